"""A bench with one store in a simulated world, and runs of events to put into it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hubweir.counters import Counters
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE, RECORD_STRUCT
from hubweir.messaging_store.control_batch import pack_control
from hubweir.messaging_store.disk.whole_file import seal
from hubweir.messaging_store.log import Appended, Durability, Note, Refused, Run
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.testing.answers import made_log, runs_of, snapshot_of
from hubweir.testing.simulated_env import SimulatedEnv

LOG_ID = "ab" * 16
SOME_CONTROL = 5  # a kind that nothing has, so that nothing is concluded from it
FOLDER = f"store-0/logs/{LOG_ID}"
SMALL = LogSettings(
    segment_bytes=4000, tail_bytes=600, round_bytes=3000, relaxed_sync_bytes=1000, relaxed_unsynced_bytes=2500
)


def events(*batches: list[bytes], name: bytes = b"") -> bytearray:
    """A sealed run, one batch for each list of messages; more than one are a chain."""
    run = bytearray()
    for number, messages in enumerate(batches, 1):
        start = begin_batch(run, name=name)
        for message in messages:
            run += struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, 0, 0, 0, 0, 0, 0) + message
        seal_batch(run, start, count=len(messages), continues=number < len(batches))
    return run


def messages_of(run: bytes | memoryview) -> dict[int, bytes]:
    """index -> message of every event record in a run."""
    found = {}
    for header in headers_of(run):
        at = header.records_at
        for place in range(header.count):
            (length,) = struct.unpack_from(">I", run, at)
            found[header.first_index + place] = bytes(run[at + RECORD_HEADER_SIZE : at + length])
            at += length
    return found


@dataclass
class Bench:
    """One log in one store; `kill` and `cut` and `reopen` are its crashes."""

    durability: Durability = Durability.DURABLE
    settings: LogSettings = SMALL
    env: SimulatedEnv = field(default_factory=lambda: SimulatedEnv(3))
    counters: Counters = field(default_factory=Counters)
    outcomes: list[Appended | Refused] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.open()

    def open_store(self) -> None:
        self.store = MessagingStore.open(self.env, "store-0", counters=self.counters, settings=self.settings)

    def open(self) -> SegmentLog:
        self.open_store()
        self.log = made_log(self.env, self.store, LOG_ID, durability=self.durability)
        return self.log

    def append(self, *messages: bytes, wait_ms: int = 50) -> Appended:
        """One batch; wait_ms=0 leaves the loop turn open."""
        now_ms, done = self.store.clock.stamp_ms(), self.outcomes.append
        appended = self.log.append(events(list(messages)), now_ms=now_ms, on_done=done)
        if wait_ms:
            self.env.run_for(wait_ms)
        return appended

    def control(self, body: bytes = b"", *, kind: int = SOME_CONTROL, wait_ms: int = 60) -> list[Appended | Refused]:
        """Append a control batch; its outcome, once there is one."""
        outcomes: list[Appended | Refused] = []
        self.log.append(pack_control(kind, body), now_ms=self.env.now_ms(), on_done=outcomes.append)
        self.env.run_for(wait_ms)
        return outcomes

    def note(self, key: bytes, body: bytes | None, *, wait_ms: int = 100) -> list[Note | Refused]:
        """Note something; the outcome, once there is one."""
        outcomes: list[Note | Refused] = []
        self.log.note(key, body, now_ms=self.env.now_ms(), on_done=outcomes.append)
        self.env.run_for(wait_ms)
        return outcomes

    def noted(self) -> dict[bytes, bytes]:
        """What is noted under each key."""
        return {key: note.body for key, note in self.log.notes.items()}

    def answer(self, ask: Callable[..., object], *args: object, **kwargs: object) -> object:
        """The answer of a completion, at once or after a while."""
        answers: list[object] = []
        result = ask(*args, on_done=answers.append, **kwargs)
        if isinstance(result, Run | int):
            return result
        self.env.run_for(100)
        assert len(answers) == 1
        return answers[0]

    def read(self, index: int, max_bytes: int = 1 << 20) -> Run | Refused:
        answer = self.answer(self.log.read, index, max_bytes=max_bytes)
        assert isinstance(answer, Run | Refused)
        return answer

    def everything(self) -> dict[int, bytes]:
        """All that can be read, from the first index on."""
        found: dict[int, bytes] = {}
        index = self.log.bounds.first_index
        while index < self.log.bounds.next_index:
            run = self.read(index)
            assert isinstance(run, Run), run
            found |= messages_of(run.data)
            index = run.next_index
        return found

    def runs(self, index: int = 0) -> list[Run]:
        """What a replay shows from an index on."""
        return runs_of(self.env, self.log, index)

    def snapshot(self) -> tuple[int, bytes] | None:
        """The newest snapshot: up to which index, and what it says."""
        found = snapshot_of(self.env, self.log)
        return None if found is None else (found.index, found.state)

    def reopen(self, *, close: bool = False, power_cut: bool = False) -> SegmentLog:
        """End this process, cleanly or not, and open the store in the next."""
        if close:
            self.store.close(lambda: None)
            self.env.run()
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()
        return self.open()

    def take_over(self) -> None:
        """As if another process had opened the store, whose lock was lost."""
        self.env.files.set_bytes("store-0/EPOCH", seal((99).to_bytes(4, "big") + b"somebody"))

    @property
    def folder(self) -> str:
        """Of the log."""
        return FOLDER

    def segments(self) -> list[str]:
        """Names of the log's segment files."""
        names = [path.rpartition("/")[2] for path in self.env.files.paths() if path.startswith(FOLDER)]
        return [name for name in names if name.endswith(".log")]


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def relaxed() -> Bench:
    return Bench(durability=Durability.RELAXED)


@pytest.fixture
def make_bench() -> type[Bench]:
    return Bench


@pytest.fixture
def make_events() -> Callable[..., bytearray]:
    return events


@pytest.fixture
def read_messages() -> Callable[[bytes | memoryview], dict[int, bytes]]:
    return messages_of
