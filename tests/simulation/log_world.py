"""One log in a simulated world: random work, random faults, and a model that says what must be true afterwards.

The model knows of every run: was it accepted, refused, or is its end unknown; and of every index that anyone ever saw,
which bytes it named. After each restart the whole log is read back and held against it: promises P1 (accepted is
kept, refused is not there), P2 (a run is whole or absent), P3 (numbers rise, densely; offset and time never go back)
and P4 (an index names the same bytes for ever). `Violation` is raised at the first thing that does not hold.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hubweir.errors import CorruptStore, StoreError
from hubweir.kernels.stored_batch import KIND_EVENTS, RECORD_HEADER_SIZE, RECORD_STRUCT
from hubweir.messaging_store.log import Appended, Bounds, Durability, Refused, Run
from hubweir.messaging_store.log_state import LogSettings
from hubweir.messaging_store.messaging_store import MessagingStore
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.messaging_store.segment_log import SegmentLog
from hubweir.testing.memory_files import Fault, MemoryFiles, PowerCut
from hubweir.testing.simulated_env import SimulatedEnv

LOG_ID = "0123456789abcdef" * 2
STORE = "store-0"
# Small figures, so that a short history crosses every limit.
SETTINGS = LogSettings(
    segment_bytes=6000, tail_bytes=1500, relaxed_sync_bytes=1200, relaxed_unsynced_bytes=3000, idle_mark_ms=100
)  # fmt: skip
LEAST_JUMP = 1_000_000  # numbers are skipped by more than this, or not at all


class Violation(BaseException):
    """A promise does not hold. No Exception: a log contains those that are raised in its callbacks."""


@dataclass(slots=True)
class Sent:
    """One run that was appended: its messages, and how it ended."""

    messages: list[bytes]
    first_index: int
    state: str = "unknown"  # until it is "accepted" or "refused"
    accepted_at_ms: int = 0


@dataclass(slots=True)
class Record:
    """One record as it was read."""

    index: int
    offset: int
    time_ms: int
    message: bytes


def events_run(batches: list[list[bytes]]) -> bytearray:
    """A sealed run; more than one batch is a chain."""
    run = bytearray()
    for number, messages in enumerate(batches, 1):
        start = begin_batch(run)
        for message in messages:
            run += struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, 0, 0, 0, 0, 0, 0) + message
        seal_batch(run, start, count=len(messages), continues=number < len(batches))
    return run


def records_of(run: bytes | memoryview) -> list[Record]:
    """Every event record of a run."""
    records = []
    for header in headers_of(run):
        at = header.records_at
        for place in range(header.count if header.kind == KIND_EVENTS else 0):
            (length,) = struct.unpack_from(">I", run, at)
            message = bytes(run[at + RECORD_HEADER_SIZE : at + length])
            offset = header.first_offset + at - header.records_at
            records.append(Record(header.first_index + place, offset, header.enqueued_time_ms, message))
            at += length
    return records


@dataclass(slots=True)
class Model:
    """What was promised."""

    durability: Durability
    sent: list[Sent] = field(default_factory=list)
    seen: dict[int, bytes] = field(default_factory=dict)  # index -> the bytes that anyone saw there
    must_keep: dict[int, bytes] = field(default_factory=dict)
    first_index: int = 0

    def saw(self, record: Record) -> None:
        """A reader, or a sender's outcome, learned what an index names."""
        if self.seen.setdefault(record.index, record.message) != record.message:
            raise Violation(f"P4: index {record.index} names other bytes than before")
        self.must_keep[record.index] = record.message

    def after_power_cut(self, next_kept: int) -> None:
        """Relaxed only: what was not synced may be gone, from an index on."""
        for index in [index for index in self.must_keep if index >= next_kept]:
            del self.must_keep[index]


def check(model: Model, records: list[Record], first_index: int, *, lost_allowed: bool) -> None:
    """Hold everything that the log shows against the model."""
    previous: Record | None = None
    by_index = {}
    for record in records:
        if previous is not None:
            step = record.index - previous.index
            if step != 1 and step < LEAST_JUMP:
                raise Violation(f"P3: index {record.index} follows {previous.index}")
            if record.offset <= previous.offset or record.time_ms < previous.time_ms:
                raise Violation(f"P3: offset or time of {record.index} go back")
        previous = record
        by_index[record.index] = record.message
    if lost_allowed:
        missing = [index for index in model.must_keep if index >= first_index and index not in by_index]
        if missing:
            model.after_power_cut(min(missing))
    for index, message in model.must_keep.items():
        if index >= first_index and by_index.get(index) != message:
            raise Violation(f"P1: accepted index {index} is {'changed' if index in by_index else 'lost'}")
    present = {record.message for record in records}
    for sent in model.sent:
        here = sum(message in present for message in sent.messages)
        if here and sent.state == "refused":
            raise Violation(f"P1: a refused run is stored at {sent.first_index}")
        if 0 < here < len(sent.messages) and sent.first_index >= first_index:
            raise Violation(f"P2: {here} of {len(sent.messages)} messages of a run are stored")
    for record in records:
        model.saw(record)


def check_last(bounds: Bounds, records: list[Record]) -> None:
    """The last index that the log names is the last record's, whatever numbers were skipped behind it."""
    if records and bounds.last_index != records[-1].index:
        raise Violation(f"the log names {bounds.last_index} as its last index; the last record has {records[-1].index}")
    if not records and bounds.last_index >= bounds.first_index:
        raise Violation(f"the log names {bounds.last_index} as its last index, and holds nothing")


class LogWorld:
    """A seeded history of one log. `run` plays it; `trace` hashes it (two runs of one seed must agree)."""

    def __init__(self, seed: int, *, files: Callable[[str], MemoryFiles] = MemoryFiles) -> None:
        self.random = Random(f"world {seed}")
        self.files = files(f"{seed}")
        self.env = SimulatedEnv(f"{seed}", files=self.files)
        self.durability = self.random.choice([Durability.DURABLE, Durability.DURABLE, Durability.RELAXED])
        self.model = Model(self.durability)
        self.trace = hashlib.sha256()
        self.lost_allowed = False
        self.messages = 0
        self.store: MessagingStore | None = None
        self.log: SegmentLog | None = None

    # -- the history

    def run(self) -> str:
        """Play some lifetimes of the process, then two without faults; return the trace's hash."""
        for _ in range(self.random.randrange(1, 4)):
            self.lifetime(faults=True)
        self.files.heal()
        self.lifetime(faults=False)
        self.open()
        self.trace.update(self.env.trace.digest() + self.files.trace.digest())
        return self.trace.hexdigest()

    def lifetime(self, *, faults: bool) -> None:
        """Open, check, work, end somehow."""
        if faults and self.random.random() < 0.6:
            fault = self.random.choice([Fault.SYNC_EIO, Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC, Fault.SHORT,
                                        Fault.POWER_CUT, Fault.POWER_CUT])  # fmt: skip
            self.files.plan(self.files.calls + self.random.randrange(1, 80), fault, forever=self.random.random() < 0.1)
        try:
            self.open()
            for _ in range(self.random.randrange(2, 14)):
                self.step()
            self.end(faults=faults)
        except PowerCut:
            self.restart(power_cut=True)
        except (OSError, StoreError):
            self.files.heal()
            self.restart(power_cut=self.random.random() < 0.5)

    def end(self, *, faults: bool) -> None:
        assert self.store is not None
        choice = self.random.random()
        if choice < 0.3 or not faults:
            self.store.close(lambda: None)
            self.env.run()
            self.restart(power_cut=self.random.random() < 0.5)
        else:
            self.restart(power_cut=choice < 0.8)

    def restart(self, *, power_cut: bool) -> None:
        self.trace.update(self.env.trace.digest())
        self.files.heal()
        self.env.crash(power_cut=power_cut)
        self.lost_allowed = self.lost_allowed or (power_cut and self.durability is Durability.RELAXED)
        self.env = self.env.restart()

    def open(self) -> None:
        self.store = MessagingStore.open(self.env, STORE, settings=SETTINGS)
        self.log = self.store.create_log(LOG_ID, durability=self.durability)
        records = self.read_all(self.log.bounds.first_index)
        check(self.model, records, self.log.bounds.first_index, lost_allowed=self.lost_allowed)
        check_last(self.log.bounds, records)
        self.lost_allowed = False
        for record in records:
            self.trace.update(f"{record.index} {record.offset} {record.time_ms}".encode() + record.message)

    # -- what happens in one

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.6:
            for _ in range(self.random.randrange(1, 4)):
                self.append()
            if self.random.random() < 0.8:
                self.env.run_for(self.random.randrange(0, 60))
        elif choice < 0.75:
            self.env.run_for(self.random.randrange(0, 400))
        elif choice < 0.93:
            self.read_some()
        elif choice < 0.97:
            assert self.log is not None
            self.log.save_snapshot(b"state", lambda outcome: None)
        elif choice < 0.98:
            self.files.heal()  # a log that went offline comes back by itself
            self.env.run_for(4000)
        else:
            assert self.log is not None
            self.log.expire(now_ms=self.env.now_ms(), retention_ms=2500)

    def append(self) -> None:
        assert self.log is not None
        batches = []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            batches.append([self.message() for _ in range(self.random.randrange(1, 4))])
        messages = [message for batch in batches for message in batch]
        run, model, env = events_run(batches), self.model, self.env

        def done(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Appended):
                if sent.state != "unknown" or outcome.first_index != sent.first_index:
                    raise Violation("an append was answered twice, or not where it was put")
                sent.state, sent.accepted_at_ms = "accepted", env.now_ms()
                for place, message in enumerate(messages):
                    model.saw(Record(sent.first_index + place, 0, 0, message))
            elif outcome.known:
                sent.state = "refused"

        try:
            appended = self.log.append(run, now_ms=env.now_ms() - self.random.randrange(0, 50), on_done=done)
        except StoreError:
            self.model.sent.append(Sent(messages, -1, "refused"))
            return
        sent = Sent(messages, appended.first_index)
        self.model.sent.append(sent)

    def message(self) -> bytes:
        self.messages += 1
        return b"%d." % self.messages + self.random.randbytes(self.random.choice([3, 20, 300, 600]))

    def read_some(self) -> None:
        """Read anywhere; what a reader saw must stay."""
        assert self.log is not None
        bounds = self.log.bounds
        index = self.random.randrange(bounds.first_index, bounds.next_index + 1)
        if bounds.next_index - index > LEAST_JUMP:
            index = max(bounds.next_index - 3, bounds.first_index)
        for record in self.read(index, self.random.choice([1, 400, 4000])):
            self.model.saw(record)

    def read(self, index: int, max_bytes: int) -> list[Record]:
        assert self.log is not None
        answers: list[Run | Refused] = []
        run = self.log.read(index, max_bytes=max_bytes, on_done=answers.append)
        if not isinstance(run, Run):
            while not answers:
                self.env.run_for(5)
            answer = answers[0]
            if isinstance(answer, Refused):
                if isinstance(answer.error, CorruptStore):
                    raise Violation(f"P1: {answer.error}")
                raise answer.error
            run = answer
        return records_of(run.data)

    def read_all(self, index: int) -> list[Record]:
        """Everything from an index on, in reads of random sizes."""
        assert self.log is not None
        records: list[Record] = []
        while index < self.log.bounds.next_index:
            found = self.read(index, self.random.choice([1, 700, 5000]))
            found = [record for record in found if record.index >= index]
            if not found:
                break
            records += found
            index = found[-1].index + 1
        return records


def play(seed: int, *, files: Callable[[str], MemoryFiles] = MemoryFiles) -> str:
    """One seeded history; the hash of its trace. Raises Violation."""
    return LogWorld(seed, files=files).run()
