"""The engines that the contract of Log is held against, and an owner of a log who remembers what it was answered.

An engine that is added gets a class here, with what starts it, ends it and lets a second owner come, and its place in
ENGINES.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hubweir.messaging_store.log import Appended, Durability, Log, Note, Refused, Run
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import LOG_ID, SMALL, events, messages_of
from hubweir.testing.answers import made_log, runs_of, snapshot_of
from hubweir.testing.replicated_log import DELAY_MS, ReplicatedLog
from hubweir.testing.shared_log import SharedLog
from hubweir.testing.simulated_env import SimulatedEnv

HOUR_MS = 3_600_000


class Engine(Protocol):
    """One log of an engine, in a process that may end, and a second one that takes it over."""

    env: SimulatedEnv

    def open(self) -> Log: ...

    def end(self, *, power_cut: bool = False) -> None:
        """The process ends, or the machine."""

    def second_owner(self) -> Log:
        """Another process opens the same log, while the first one goes on."""

    def run_for(self, ms: int) -> None:
        """Let time pass in all processes."""


class Segments:
    """segment_log.py, in one store folder."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(1)
        self._others: list[SimulatedEnv] = []

    def open(self) -> Log:
        return made_log(self.env, MessagingStore.open(self.env, "store-0", settings=SMALL), LOG_ID)

    def end(self, *, power_cut: bool = False) -> None:
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def second_owner(self) -> Log:
        self.env.files.locks.clear()  # as if the lock was lost
        other = SimulatedEnv(2, files=self.env.files)
        self._others.append(other)
        return made_log(other, MessagingStore.open(other, "store-0", settings=SMALL), LOG_ID)

    def run_for(self, ms: int) -> None:
        for env in (self.env, *self._others):
            env.run_for(ms)


class Replicated:
    """testing/replicated_log.py, on one shared log."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(1)
        self._shared = SharedLog()
        self._log: ReplicatedLog | None = None

    def open(self) -> Log:
        # Slower than the second owner: so its appends come behind the epoch of whoever took the log over meanwhile.
        self._log = self._opened(delay_ms=3 * DELAY_MS)
        return self._log

    def end(self, *, power_cut: bool = False) -> None:
        assert self._log is not None
        self._shared.leave(self._log._read_entry)
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def second_owner(self) -> Log:
        return self._opened(delay_ms=DELAY_MS)

    def _opened(self, *, delay_ms: int) -> ReplicatedLog:
        opened: list[object] = []
        log = ReplicatedLog(self.env, self._shared, LOG_ID, Durability.DURABLE, opened.append, delay_ms=delay_ms)
        while not opened:
            self.env.run_for(DELAY_MS)
        assert opened == [None]
        return log

    def run_for(self, ms: int) -> None:
        self.env.run_for(ms)


ENGINES: list[Callable[[], Engine]] = [Segments, Replicated]


class Owner:
    """A log and whoever appends to it."""

    def __init__(self, engine: Engine, log: Log) -> None:
        self.engine = engine
        self.log = log
        self.outcomes: list[Appended | Refused] = []

    def append(self, *messages: bytes, at_ms: int | None = None, wait_ms: int = 100) -> Appended:
        now_ms = self.engine.env.now_ms() if at_ms is None else at_ms
        appended = self.log.append(events(list(messages)), now_ms=now_ms, on_done=self.outcomes.append)
        self.engine.run_for(wait_ms)
        return appended

    def note(self, key: bytes, body: bytes | None, *, wait_ms: int = 100) -> list[Note | Refused]:
        outcomes: list[Note | Refused] = []
        self.log.note(key, body, now_ms=self.engine.env.now_ms(), on_done=outcomes.append)
        self.engine.run_for(wait_ms)
        return outcomes

    def noted(self) -> dict[bytes, bytes]:
        return {key: note.body for key, note in self.log.notes.items()}

    def answer(self, ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        answers: list[Any] = []
        found = ask(*args, on_done=answers.append, **kwargs)
        if isinstance(found, Run | int):
            return found
        self.engine.run_for(200)
        (answer,) = answers
        return answer

    def read(self, index: int, max_bytes: int = 1 << 20) -> Run:
        run = self.answer(self.log.read, index, max_bytes=max_bytes)
        assert isinstance(run, Run), run
        return run

    def runs(self, index: int) -> list[Run]:
        """What a replay shows from an index on."""
        return runs_of(self.engine.env, self.log, index)

    def snapshot(self) -> tuple[int, bytes] | None:
        """The newest snapshot: up to which index, and what it says."""
        found = snapshot_of(self.engine.env, self.log)
        return None if found is None else (found.index, found.state)

    def everything(self) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        index = self.log.bounds.first_index
        while index < self.log.bounds.next_index:
            run = self.read(index, 500)
            found |= messages_of(run.data)
            index = run.next_index
        return found


def again(owner: Owner, *, power_cut: bool = True) -> Owner:
    """The next process on the same log."""
    owner.engine.end(power_cut=power_cut)
    return Owner(owner.engine, owner.engine.open())
