"""A store whose logs keep their records in memory and complete when the test says so, and an Env with a hand on it.

Long because every hand-made part stands for one that brokers and their tests share.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.partition import CreatePartition
from hubweir.counters import Counters
from hubweir.env import Lane
from hubweir.messaging_store.log import (
    Appended,
    Bounds,
    Durability,
    Lease,
    Note,
    Pending,
    Refused,
    Replayed,
    Run,
    Snapshot,
)
from hubweir.messaging_store.log_store import NotOpened
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.testing.event_loops import LOOPS, run_on


class HandEnv:
    """Time stands still until `pass_time`; callbacks run in `pass_time` and `turn`."""

    def __init__(self) -> None:
        self.wall_ms = 1_000_000
        self.elapsed_ms = 0
        self._soon: list[Callable[[], None]] = []
        self._timers: list[HandTimer] = []

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.elapsed_ms

    def boottime_ms(self) -> int:
        return self.elapsed_ms

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    at_turn_end = call_soon

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> HandTimer:
        timer = HandTimer(self.elapsed_ms + delay_ms, callback)
        self._timers.append(timer)
        return timer

    def offload(self, lane: Lane, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        """The call runs in the next turn, and its end comes in the same."""

        def run() -> None:
            try:
                value = call()
            except Exception as error:
                raised = error
                on_done(SimpleNamespace(value=lambda: _raise(raised)))
            else:
                on_done(SimpleNamespace(value=lambda: value))

        self.call_soon(run)

    def turn(self) -> None:
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()

    def pass_time(self, ms: int) -> None:
        end = self.elapsed_ms + ms
        while due := sorted((t for t in self._timers if t.at_ms <= end and not t.over), key=lambda t: t.at_ms):
            timer = due[0]
            self._advance(max(timer.at_ms, self.elapsed_ms))
            timer.over = True
            timer.callback()
        self._advance(end)
        self._timers = [timer for timer in self._timers if not timer.over]

    @property
    def timers(self) -> int:
        return len([timer for timer in self._timers if not timer.over])

    def _advance(self, to_ms: int) -> None:
        self.wall_ms += to_ms - self.elapsed_ms
        self.elapsed_ms = to_ms


def _raise(error: Exception) -> None:
    raise error


class HandTimer:
    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.over = False

    def cancel(self) -> None:
        self.over = True


class HandLog:
    """A log of one-byte records: a run of n bytes is n records. `complete` makes everything appended visible."""

    def __init__(self, log_id: str, durability: Durability) -> None:
        self.log_id = log_id
        self.durability = durability
        self.lease = Lease(1)
        self.records = bytearray()
        self.visible = 0
        self.first = 0
        self.cold = False
        self.fail_with: Exception | None = None
        self.damaged: Refused | None = None
        self.saved: Snapshot | Refused | None = None
        self.aged: list[int] = []
        self.trimmed: list[int] = []
        self.waiting_reads: list[HandPending] = []
        self.notes: dict[bytes, Note] = {}
        self.notes_damage: str | None = None
        self._tickets: list[tuple[Appended | Note, Callable[[Any], None]]] = []
        self._on_visible: Callable[[], None] = lambda: None

    @property
    def bounds(self) -> Bounds:
        last = self.visible - 1
        return Bounds(self.first, self.visible, self.first, self.visible, last, last if self.visible else None, last)

    def append(self, run: bytearray, *, now_ms: int, on_done: Callable[[Appended | Refused], None]) -> Appended:
        if self.fail_with is not None:
            raise self.fail_with
        start = len(self.records)
        self.records += run
        appended = Appended(start, len(self.records), start, len(self.records), now_ms)
        self._tickets.append((appended, on_done))
        return appended

    def complete(self, refused: Refused | None = None) -> None:
        tickets, self._tickets = self._tickets, []
        if refused is None:
            self.visible = len(self.records)
        for appended, on_done in tickets:
            on_done(refused or appended)
        self._on_visible()

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        if self.cold:
            pending = HandPending(lambda: on_done(self._run(index, max_bytes)))
            self.waiting_reads.append(pending)
            return pending
        found = self._run(index, max_bytes)
        return found if isinstance(found, Run) else self._later(found, on_done)

    def _later(self, refused: Refused, on_done: Callable[[Run | Refused], None]) -> Pending:
        pending = HandPending(lambda: on_done(refused))
        self.waiting_reads.append(pending)
        return pending

    def _run(self, index: int, max_bytes: int) -> Any:
        if self.damaged is not None:
            return self.damaged
        index = max(index, self.first)
        data = bytes(self.records[index : min(self.visible, index + max_bytes)])
        return Run(data, index, index + len(data))

    def answer_reads(self) -> None:
        waiting, self.waiting_reads = self.waiting_reads, []
        for pending in waiting:
            pending.answer()

    def find_offset(self, offset: int, on_done: Callable[[int | Refused], None]) -> Pending:
        pending = HandPending(lambda: on_done(offset))
        self.waiting_reads.append(pending)
        return pending

    def find_time(self, time_ms: int, on_done: Callable[[int | Refused], None]) -> int:
        return time_ms

    def on_visible(self, callback: Callable[[], None]) -> None:
        self._on_visible = callback

    def older_than(self, time_ms: int) -> int:
        self.aged.append(time_ms)
        return self.first

    def trim(self, index: int) -> int:
        self.trimmed.append(index)
        return self.first

    def set_roll_age(self, roll_age_ms: int | None) -> None:
        self.roll_age_ms = roll_age_ms

    def load_snapshot(self, read: Callable[[Snapshot], Any], on_done: Callable[[Any], None]) -> None:
        on_done(read(self.saved) if isinstance(self.saved, Snapshot) else self.saved)

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed], None]) -> None:
        on_done(Replayed())

    def save_snapshot(self, state: bytes, on_done: Callable[[Refused | None], None]) -> None:
        on_done(None)

    def note(self, key: bytes, body: bytes | None, *, now_ms: int, on_done: Callable[[Note | Refused], None]) -> None:
        """`complete` makes it durable, too."""
        note = self.notes[key] = Note(key, body or b"", len(self.records), len(self.records), now_ms)
        self._tickets.append((note, on_done))

    def set_durability(self, durability: Durability) -> None:
        self.durability = durability


class HandPending:
    def __init__(self, answer: Callable[[], None]) -> None:
        self._answer = answer
        self.cancelled = False

    def answer(self) -> None:
        if not self.cancelled:
            self._answer()

    def cancel(self) -> None:
        self.cancelled = True


class HandStore:
    """Logs by id; deleting and closing complete at once."""

    def __init__(self, env: HandEnv) -> None:
        self._env = env
        self.clock = TrustedClock(env)
        self.clock_kept = 0
        self.logs: dict[str, HandLog] = {}
        self.closed = False
        self.closings: list[str] = []
        self.looks = 0
        self.cleaned = 0
        self.raised_above: list[int] = []

    def log_ids(self) -> list[str]:
        return sorted(self.logs)

    def create_log(self, log_id: str, *, durability: Durability, name: str = "") -> Any:
        return self.logs.setdefault(log_id, HandLog(log_id, durability))

    def open_log(
        self, log_id: str, on_done: Callable[[Any], None], *, durability: Durability, name: str, makes: bool
    ) -> None:
        """In the next turn. A test may take the place of create_log."""

        def open() -> None:
            try:
                log = self.create_log(log_id, durability=durability)
            except Exception as error:
                on_done(NotOpened(error))
            else:
                on_done(log)

        self._env.call_soon(open)

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        self.closings.append(log_id)
        on_done()

    def delete_log(self, log_id: str, on_done: Callable[[Any], None]) -> None:
        self.logs.pop(log_id, None)
        on_done(SimpleNamespace(value=lambda: None))

    def keep_clock(self) -> None:
        self.clock_kept += 1

    def look_at_syncs(self) -> None:
        """No sync of this store hangs."""

    def remove_unfinished(self) -> None:
        self.cleaned += 1

    def raise_epoch(self, newest: int, on_done: Callable[[Any], None]) -> None:
        self.raised_above.append(newest)
        on_done(SimpleNamespace(value=lambda: newest + 1))

    def look_for_owner(self) -> None:
        self.looks += 1

    def close(self, on_done: Callable[[], None]) -> None:
        self.closed = True
        on_done()


@dataclass
class Bench:
    """A broker with one partition, log "a", and everything around it."""

    env: HandEnv
    store: HandStore
    broker: Broker

    @property
    def log(self) -> HandLog:
        return self.store.logs["a"]

    @property
    def armed(self) -> int:
        """How many deadlines the broker has armed; one is the sweep's."""
        return len(self.broker._deadlines)

    def ask(self, command: Command) -> list[Answer]:
        """The answers to a command, which grows when it is answered later."""
        answers: list[Answer] = []
        self.broker.submit(command, answers.append)
        for _ in range(3):  # an opening begins in the first, runs in the second
            self.env.turn()
        return answers


@pytest.fixture
def bench() -> Iterator[Bench]:
    env = HandEnv()
    store = HandStore(env)
    broker = Broker(env, store, Counters())  # type: ignore[arg-type]
    made = Bench(env, store, broker)
    broker.start()
    made.ask(CreatePartition("a", "orders", "0", Durability.DURABLE, 3_600_000))
    yield made


@pytest.fixture
def pushes(bench: Bench) -> list[Push]:
    """What the bench's broker says unasked, which grows."""
    pushed: list[Push] = []
    bench.broker.on_push = pushed.append
    return pushed


@pytest.fixture(params=sorted(LOOPS))
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a fresh loop, 60 s at most; a callback that fails fails the test."""
    return functools.partial(run_on, request.param)
