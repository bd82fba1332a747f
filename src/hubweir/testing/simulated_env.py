"""An Env without a clock, threads or a disk: virtual time, a seeded order, and an end whenever the test wants one.

`run` plays what is due until nothing is left or a time is reached. An offloaded call happens at one moment of virtual
time, a while after it was asked for; its end is reported a while later: so calls of different logs overlap in every
order. The same seed gives the same history in every process; `trace` is its hash.

One SimulatedEnv is one process. `crash` ends it: nothing that was scheduled happens any more. A new one over the same
MemoryFiles is the restart.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Generic, TypeVar

from hubweir.env import Result
from hubweir.testing.memory_files import MemoryFiles

T = TypeVar("T")
START_MS = 1_700_000_000_000


class _Outcome(Generic[T]):
    """How an offloaded call ended."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._value: T | None = None
        self._error: Exception | None = None
        try:
            self._value = call()
        except Exception as error:  # whatever it was: value() raises it where the result is wanted
            self._error = error

    def value(self) -> T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


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
        self, seed: int | str = 0, *, files: MemoryFiles | None = None, start_ms: int = START_MS, slowest_ms: int = 20
    ) -> None:
        self._random = Random(f"env {seed}")
        self._files = files if files is not None else MemoryFiles(seed)
        self._start_ms = start_ms
        self._now_ms = 0
        self._slowest_ms = slowest_ms
        self._wall_jump_ms = 0
        self._soon: deque[Callable[[], None]] = deque()
        self._later: list[tuple[int, int, _Timer]] = []
        self._count = 0
        self._alive = True
        self.trace = hashlib.sha256()
        self.faults: dict[str, Exception] = {}  # fault point -> what it raises
        self.fault_hits: dict[str, int] = {}

    # -- Env

    @property
    def files(self) -> MemoryFiles:
        return self._files

    def now_ms(self) -> int:
        return self._start_ms + self._now_ms + self._wall_jump_ms

    def monotonic_ms(self) -> int:
        return self._now_ms

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def new_id(self) -> str:
        return self._random.randbytes(16).hex()

    def call_soon(self, callback: Callable[[], None]) -> None:
        if self._alive:
            self._soon.append(callback)

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> _Timer:
        return self._at(delay_ms, callback, "timer")

    def offload(self, call: Callable[[], T], on_done: Callable[[Result[T]], None]) -> None:
        begins, takes = self._random.randrange(self._slowest_ms + 1), self._random.randrange(self._slowest_ms + 1)

        def run() -> None:
            outcome: _Outcome[T] = _Outcome(call)
            self._at(takes, lambda: on_done(outcome), "done")

        self._at(begins, run, "offloaded")

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
            if not self._later or (until_ms is not None and self._later[0][0] > until_ms):
                break
            at, number, timer = heapq.heappop(self._later)
            if timer.callback is not None:
                self._now_ms = max(self._now_ms, at)
                self.trace.update(f"{at} {number} {timer.name}\n".encode())
                timer.callback()
        if until_ms is not None and self._alive:
            self._now_ms = max(self._now_ms, until_ms)

    def run_for(self, duration_ms: int) -> None:
        """Play this much virtual time."""
        self.run(self._now_ms + duration_ms)

    def turn(self) -> None:
        """End the current loop turn: play what was called soon, let no time pass."""
        self.run(self._now_ms)

    def jump(self, by_ms: int) -> None:
        """Move the wall clock; the monotonic one does not notice."""
        self._wall_jump_ms += by_ms

    def crash(self, *, power_cut: bool = False) -> None:
        """End this process at once; with power_cut, the machine."""
        self._alive = False
        self._soon.clear()
        self._later.clear()
        if power_cut:
            self._files.power_cut()
        else:
            self._files.process_died()

    def restart(self) -> SimulatedEnv:
        """The next process on the same disk, later by a second."""
        seed = self._random.random()
        start = self._start_ms + self._now_ms + self._wall_jump_ms + 1000
        return SimulatedEnv(str(seed), files=self._files, start_ms=start, slowest_ms=self._slowest_ms)

    def _at(self, delay_ms: int, callback: Callable[[], None], name: str) -> _Timer:
        timer = _Timer(callback if self._alive else None, name)
        self._count += 1
        heapq.heappush(self._later, (self._now_ms + delay_ms, self._count, timer))
        return timer
