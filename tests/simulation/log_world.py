"""One log in a simulated world: random work, random faults, and a model (log_model.py) of what must be true afterwards.

The model knows of every run: was it accepted, refused, or is its end unknown; and of every index that anyone ever saw,
which bytes it named. After each restart the whole log is read back and held against it: promises P1 (accepted is
kept, refused is not there; of a relaxed log a power cut takes the newest only), P2 (a run is whole or absent), P3
(numbers rise, densely; offset and time never go back), P4 (an index names the same bytes for ever) and P11 (a note
that was answered stays, through retention too, and names no record that is not there). The mode is switched while the
log runs, and in some worlds the wall clock jumps and the machine sleeps. `Violation` is raised at the first thing that
does not hold.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from hubweir.errors import CorruptStore, StoreError
from hubweir.kernels.stored_batch import KIND_EVENTS, RECORD_HEADER_SIZE, RECORD_STRUCT
from hubweir.messaging_store.log import Appended, Durability, Log, Note, Refused, Run
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.messaging_store.retention import expire
from hubweir.messaging_store.segment_engine.log_state import LogSettings
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.testing.answers import made_log
from hubweir.testing.memory_faults import Fault, Killed, Plan, PowerCut
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv
from tests.simulation.log_model import LEAST_JUMP, Model, Record, Sent, Violation, check_last

LOG_ID = "0123456789abcdef" * 2
STORE = "store-0"
# Small figures, so that a short history crosses every limit.
SETTINGS = LogSettings(
    segment_bytes=6000, tail_bytes=1500, round_bytes=4000, idle_mark_ms=100,
    relaxed_sync_bytes=1200, relaxed_unsynced_bytes=3000,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meets:
    """What a lifetime may meet: a fault within so many calls that it fits, and maybe another one soon behind it."""

    fault: Fault
    within: int  # about as many as a lifetime makes
    call: str = ""
    then: tuple[Fault, int] | None = None  # its number is the largest


FAULTS = [
    Meets(Fault.SYNC_EIO, 16), Meets(Fault.SYNC_EIO, 12, "sync", (Fault.KILL, 14)),
    Meets(Fault.SYNC_EIO, 12, "sync", (Fault.POWER_CUT, 14)), Meets(Fault.EIO, 80), Meets(Fault.ENOSPC, 40),
    Meets(Fault.SHORT, 14), Meets(Fault.SHORT, 14, then=(Fault.KILL, 8)), Meets(Fault.EMFILE, 60),
    Meets(Fault.POWER_CUT, 80), Meets(Fault.POWER_CUT, 14, "sync"), Meets(Fault.KILL, 80),
    Meets(Fault.KILL, 14, "sync"),
]  # fmt: skip
ENDS = (Fault.POWER_CUT, Fault.KILL)
# The share of file calls before which an offloaded call stops, so that others come between; 0: calls are one step.
INTERLEAVED = [0.0, 0.1, 0.4]
SECOND_MS, HOUR_MS, YEAR_MS = 1000, 3_600_000, 31_536_000_000


def plan_a_fault(files: MemoryFiles, random: Random) -> Plan:
    """One of FAULTS for the life that begins."""
    meets = random.choice(FAULTS)
    then = meets.then and (meets.then[0], random.randrange(1, meets.then[1]))
    forever = meets.fault not in ENDS and random.random() < 0.1
    return files.plan(meets.fault, random.randrange(1, meets.within), forever=forever, call=meets.call, then=then)


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


def numbers_noted(log: Log) -> dict[bytes, int]:
    """What this world noted under each key."""
    return {key: int.from_bytes(note.body[:8], "big") for key, note in log.notes.items()}


class LogWorld:
    """A seeded history of one log. `run` plays it; `trace` hashes it (two runs of one seed must agree)."""

    def __init__(self, seed: int, *, files: Callable[[str], MemoryFiles] = MemoryFiles) -> None:
        self.random = Random(f"world {seed}")
        self.files = files(f"{seed}")
        interleaved = self.random.choice(INTERLEAVED)
        self.env = SimulatedEnv(f"{seed}", files=self.files, interleaved=interleaved)
        self.durability = self.random.choice([Durability.DURABLE, Durability.DURABLE, Durability.RELAXED])
        self.switches_modes = self.random.random() < 0.3
        self.has_notes = self.random.random() < 0.4
        self.has_bad_clocks = self.random.random() < 0.2
        self.was_relaxed = False  # in this process, at any time
        self.model = Model()
        self.trace = hashlib.sha256()
        self.messages = self.noted = 0
        self.plan: Plan | None = None
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
        if faults and self.random.random() < 0.75:
            self.plan = plan_a_fault(self.files, self.random)
        try:
            self.open()
            for _ in range(self.random.randrange(2, 14)):
                self.step()
            self.end(faults=faults)
        except PowerCut:
            self.restart(power_cut=True)
        except Killed:
            self.restart(power_cut=False)
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
        is_sick = self.plan is not None and self.plan.fired > 0 and self.plan.fault not in ENDS
        self.model.ended(self.env.monotonic_ms(), power_cut=power_cut, is_sick=is_sick)
        self.plan = None
        self.env.crash(power_cut=power_cut)
        self.env = self.env.restart()

    def open(self) -> None:
        self.store = MessagingStore.open(self.env, STORE, settings=SETTINGS)
        self.log = made_log(self.env, self.store, LOG_ID, durability=self.durability)
        bounds = self.log.bounds
        records = self.read_all(bounds.first_index)
        for note in self.log.notes.values():
            if note.index > bounds.next_index:
                raise Violation(f"a note stands behind record {note.index - 1}, and the log ends at {bounds}")
        self.model.started(records, numbers_noted(self.log), bounds.first_index)
        check_last(self.log.bounds, records)
        self.was_relaxed = self.durability is Durability.RELAXED
        for record in records:
            self.trace.update(f"{record.index} {record.offset} {record.time_ms}".encode() + record.message)

    # -- what happens in one

    def step(self) -> None:
        if self.switches_modes and self.random.random() < 0.15:
            self.switch_mode()
        if self.has_notes and self.random.random() < 0.3:
            self.append_note()
        if self.has_bad_clocks and self.random.random() < 0.2:
            self.disturb_clocks()
        choice = self.random.random()
        if choice < 0.6:
            for _ in range(self.random.randrange(1, 4)):
                self.append()
            if self.random.random() < 0.8:
                self.env.run_for(self.random.randrange(0, 60))
        elif choice < 0.75:
            # A relaxed log is left alone for longer than its window, too.
            self.env.run_for(self.random.randrange(0, 900 if self.durability is Durability.RELAXED else 400))
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
            expire(self.log, now_ms=self.env.now_ms(), retention_ms=2500)

    def append(self) -> None:
        assert self.log is not None
        batches = []
        for _ in range(self.random.choice([1, 1, 2, 3])):
            batches.append([self.message() for _ in range(self.random.randrange(1, 4))])
        messages = [message for batch in batches for message in batch]
        run, model, env = events_run(batches), self.model, self.env

        def done(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Appended):
                if sent.state != "unknown" or outcome.first_index != sent.first_index:
                    raise Violation("an append was answered twice, or not where it was put")
                sent.state = "accepted"
                is_durable = sent.is_durable and self.durability is Durability.DURABLE
                for place, message in enumerate(messages):
                    record = Record(sent.first_index + place, 0, 0, message)
                    model.saw(record, env.monotonic_ms(), is_durable=is_durable)
                if is_durable:
                    model.all_durable()
            elif outcome.known:
                sent.state = "refused"

        is_durable = self.durability is Durability.DURABLE
        try:
            appended = self.log.append(run, now_ms=env.now_ms() - self.random.randrange(0, 50), on_done=done)
        except StoreError:
            self.model.sent.append(Sent(messages, -1, "refused"))
            return
        sent = Sent(messages, appended.first_index, is_durable=is_durable)
        self.model.sent.append(sent)

    def append_note(self) -> None:
        """The owner notes the next number under one of three keys."""
        assert self.log is not None
        self.noted += 1
        key, number, model = b"key %d" % self.random.randrange(3), self.noted, self.model

        def done(outcome: Note | Refused) -> None:
            if isinstance(outcome, Note):
                model.notes[key] = max(model.notes.get(key, 0), number)

        with suppress(StoreError):
            self.log.note(key, number.to_bytes(8, "big"), now_ms=self.env.now_ms(), on_done=done)
        if self.random.random() < 0.5:
            self.env.run_for(self.random.randrange(60))

    def switch_mode(self) -> None:
        assert self.log is not None
        self.durability = self.random.choice(list(Durability))
        self.was_relaxed = self.was_relaxed or self.durability is Durability.RELAXED
        self.log.set_durability(self.durability)

    def disturb_clocks(self) -> None:
        """The wall clock jumps, or the machine sleeps."""
        far = self.random.choice([SECOND_MS, HOUR_MS, 3 * YEAR_MS])
        if self.random.random() < 0.3:
            self.env.sleep(min(far, 24 * HOUR_MS))
        else:
            self.env.jump(self.random.choice([-far, far]))

    def message(self) -> bytes:
        self.messages += 1
        return b"%d." % self.messages + self.random.randbytes(self.random.choice([3, 20, 300, 600]))

    def read_some(self) -> None:
        """Read anywhere; what a reader saw must stay."""
        assert self.log is not None
        bounds = self.log.bounds
        index = self.random.randrange(bounds.first_index, bounds.next_index + 1)
        if self.random.random() < 0.4:
            index = bounds.next_index  # nothing is there yet: what is being written must not be shown
        if bounds.next_index - index > LEAST_JUMP:
            index = max(bounds.next_index - 3, bounds.first_index)
        for record in self.read(index, self.random.choice([1, 400, 4000])):
            self.model.saw(record, self.env.monotonic_ms(), is_durable=not self.was_relaxed)

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
