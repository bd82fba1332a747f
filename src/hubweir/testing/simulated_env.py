"""An Env without a clock, threads or a disk: virtual time, a seeded order, and an end whenever the test wants one.

`run` plays what is due until nothing is left or a time is reached. An offloaded call happens at one moment of virtual
time, a while after it was asked for; its end is reported a while later: so calls of different logs overlap in every
order. With `interleaved` a call stops before some of its file calls, others and the loop go on meanwhile, and a crash
may find it there (stepped_call.py). The same seed gives the same history in every process; `trace` is its hash.

One SimulatedEnv is one process. `crash` ends it: nothing that was scheduled happens any more. A new one over the same
MemoryFiles is the restart.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from hubweir.env import Ahead, Lane, Result
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.stepped_call import Outcome, SteppedCall
from hubweir.testing.ticks import Ticking, Ticks

T = TypeVar("T")
START_MS = 1_700_000_000_000


class _Timer:
    __slots__ = ("callback", "name")

    def __init__(self, callback: Callable[[], None] | None, name: str) -> None:
        self.callback = callback
        self.name = name

    def cancel(self) -> None:
        self.callback = None


class SimulatedEnv:
    """See the module's text, and hubweir.env.Env."""

    def __init__(
        self,
        seed: int | str = 0,
        *,
        files: MemoryFiles | None = None,
        start_ms: int = START_MS,
        monotonic_ms: int = 0,
        slowest_ms: int = 20,
        interleaved: float = 0.0,
    ) -> None:
        """start_ms: the wall clock, when the monotonic one shows monotonic_ms, as it does now.

        interleaved: of so many file calls an offloaded call stops before one and is taken up later.
        """
        self._random = Random(f"env {seed}")
        self.ahead = Ahead()  # stays 0: here all time is virtual, and passes as the test says
        self._files = files if files is not None else MemoryFiles(seed)
        self._start_ms = start_ms - monotonic_ms
        self._now_ms = monotonic_ms
        self._slowest_ms = slowest_ms
        self._wall_jump_ms = 0
        self._slept_ms = 0
        self._soon: deque[Callable[[], None]] = deque()
        self._later: list[tuple[int, int, _Timer]] = []
        self._numbers = itertools.count(1)  # in the order in which things are put in line
        self._ticks = Ticks(self._numbers)
        self._alive = True
        self._interleaved = interleaved
        self._stopped: list[SteppedCall[Any]] = []  # calls that have begun and not ended
        self.trace = hashlib.sha256()
        self._stalled: dict[Lane, list[Callable[[], None]]] = {}
        self.faults: dict[str, Exception] = {}  # fault point -> what it raises
        self.fault_hits: dict[str, int] = {}

    # -- Env

    @property
    def machine(self) -> SimulatedEnv:
        return self

    @property
    def files(self) -> MemoryFiles:
        return self._files

    def now_ms(self) -> int:
        return self._start_ms + self.boottime_ms() + self._wall_jump_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    def boottime_ms(self) -> int:
        return self._now_ms + self._slept_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def new_id(self) -> str:
        return self._random.randbytes(16).hex()

    def call_soon(self, callback: Callable[[], None]) -> None:
        if self._alive:
            self._soon.append(callback)

    at_turn_end = call_soon  # here nothing else comes in a turn

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> _Timer:
        return self._at(delay_ms, callback, "timer")

    def offload(self, lane: Lane, call: Callable[[], T], on_done: Callable[[Result[T]], None]) -> None:
        begins, takes = self._random.randrange(self._slowest_ms + 1), self._random.randrange(self._slowest_ms + 1)
        self._at(begins, lambda: self._begin(lane, call, on_done, takes), "offloaded")

    def _begin(self, lane: Lane, call: Callable[[], T], on_done: Callable[[Result[T]], None], takes: int) -> None:
        """Do a call, or its first step, unless its lane is stalled."""
        if lane in self._stalled:
            self._stalled[lane].append(lambda: self._begin(lane, call, on_done, takes))
        elif self._interleaved:
            stepped = SteppedCall(call)
            self._stopped.append(stepped)
            self._play_on(stepped, takes, on_done)
        else:
            outcome = Outcome(call)
            self._at(takes, lambda: on_done(outcome), "done")

    def _play_on(self, call: SteppedCall[T], takes: int, on_done: Callable[[Result[T]], None]) -> None:
        """Play a call up to where it stops or ends."""
        self._files.before_call = lambda: self._maybe_stop(call)
        try:
            if not call.advance():
                self._at(
                    self._random.randrange(self._slowest_ms + 1), lambda: self._play_on(call, takes, on_done), "on"
                )
                return
        finally:
            self._files.before_call = None
        self._stopped.remove(call)
        outcome = call.outcome
        assert outcome is not None
        self._at(takes, lambda: on_done(outcome), "done")

    def _maybe_stop(self, call: SteppedCall[Any]) -> None:
        if self._random.random() < self._interleaved:
            call.pause()

    def fault(self, point: str) -> None:
        self.fault_hits[point] = self.fault_hits.get(point, 0) + 1
        if point in self.faults:
            raise self.faults[point]

    # -- the test's side

    def run(self, until_ms: int | None = None) -> None:
        """Play everything that is due, up to `until_ms` of the monotonic clock; None: until nothing is left."""
        while self._alive:
            if self._soon:
                self._soon.popleft()()
                continue
            if self._ticks.line and self._play_tick(until_ms):
                continue
            if not self._later or (until_ms is not None and self._later[0][0] > until_ms):
                break
            at, number, timer = heapq.heappop(self._later)
            if timer.callback is not None:
                self._pass_to(at, number, timer.name)
                timer.callback()
        if until_ms is not None and self._alive:
            self._now_ms = max(self._now_ms, until_ms)

    def run_for(self, duration_ms: int) -> None:
        """Play this much virtual time."""
        self.run(self._now_ms + duration_ms)

    def turn(self) -> None:
        """End the current loop turn: play what was called soon, let no time pass."""
        self.run(self._now_ms)

    def next_ms(self) -> int | None:
        """When something happens next, by the monotonic clock; None: nothing does any more."""
        if self._soon:
            return self._now_ms
        if self._ticks.line:
            return min(line[0][0] for line in (self._later, self._ticks.line) if line)
        return self._later[0][0] if self._later else None

    def keep_ticking(self, ticking: Ticking) -> None:
        """Have something look now, and again every tick_ms (ticks.py)."""
        if ticking.tick() and self._alive:
            self._ticks.put(self._now_ms, ticking)

    def jump(self, by_ms: int) -> None:
        """Move the wall clock; the monotonic ones do not notice."""
        self._wall_jump_ms += by_ms

    def stall(self, lane: Lane) -> None:
        """Let no call of this lane begin until `go_on`, as if all its threads waited for a disk that hangs."""
        self._stalled.setdefault(lane, [])

    def stalled_calls(self, lane: Lane) -> int:
        """How many calls of a stalled lane wait."""
        return len(self._stalled[lane])

    def go_on(self, lane: Lane) -> None:
        """End a stall."""
        for run in self._stalled.pop(lane):
            self._at(0, run, "offloaded")

    def pass_over(self, until_ms: int) -> None:
        """The process was stopped until then: its clocks went on, and what was due meanwhile is late."""
        self._now_ms = max(self._now_ms, until_ms)

    def sleep(self, for_ms: int) -> None:
        """The machine sleeps: the monotonic clock and timers stand still, the others go on."""
        self._slept_ms += for_ms

    def crash(self, *, power_cut: bool = False) -> None:
        """End this process at once; with power_cut, the machine."""
        self._alive = False
        self._soon.clear()
        self._later.clear()
        self._ticks.line.clear()
        self._stalled.clear()
        if power_cut:
            self._files.power_cut()
        else:
            self._files.process_died()

    def restart(self) -> SimulatedEnv:
        """The next process on the same disk, later by a second."""
        seed = self._random.random()
        return SimulatedEnv(
            str(seed),
            files=self._files,
            start_ms=self.now_ms() + 1000,
            slowest_ms=self._slowest_ms,
            interleaved=self._interleaved,
        )

    def _at(self, delay_ms: int, callback: Callable[[], None], name: str) -> _Timer:
        timer = _Timer(callback if self._alive else None, name)
        heapq.heappush(self._later, (self._now_ms + delay_ms, next(self._numbers), timer))
        return timer

    def _play_tick(self, until_ms: int | None) -> bool:
        """Play the next tick if it is due before the next timer; whether it was."""
        timer = self._later[0] if self._later else None
        ends_ms = ([timer[0]] if timer else []) + ([until_ms + 1] if until_ms is not None else [])
        at = self._ticks.next_ms(self._now_ms, min(ends_ms, default=None))
        if at is None or (until_ms is not None and at > until_ms):
            return False
        number = self._ticks.line[0][1]
        if timer is not None and timer[:2] < (at, number):
            return False
        self._pass_to(at, number, "tick")
        self._ticks.play()
        return True

    def _pass_to(self, at: int, number: int, name: str) -> None:
        self._now_ms = max(self._now_ms, at)
        self.trace.update(f"{at} {number} {name}\n".encode())
