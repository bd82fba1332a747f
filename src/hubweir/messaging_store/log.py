"""Log: the one durable structure, as an interface. A partition is a log, a fragment is a log, the catalog is a log.

A log is appended at its end, read in order, and trimmed at its front. Its records have dense indexes from 0 and byte
offsets (table: kernels/stored_batch.py). Whatever takes time is a completion: it answers later, through a callback on
the owner's loop, so that a sync or a cold read never stalls the loop, and so that a replicated engine can stand
behind the same interface. The segment files of segment_engine/ are the first engine; docs/extending.md says what
another one has to do.

One writer: whoever holds the lease. Every lease has a writer epoch, higher than all before it; an append under an
older epoch raises LogFenced, and readers never see a batch of an older epoch behind one of a newer.

Beside its records a log keeps *notes* of its owner's: under each key the newest, a few bytes that trimming does not
take and that the log does not understand.

Visible means below the log's watermark: synced in DURABLE mode, written in RELAXED mode. Nothing above it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeVar

from msgspec import Struct

from hubweir.errors import CorruptStore, StoreError

T = TypeVar("T")


class Durability(IntEnum):
    """When an append is answered, so what a power cut may take. (docs/reliability.md)"""

    DURABLE = 1
    RELAXED = 2


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a log, until a higher epoch exists."""

    writer_epoch: int


class Appended(Struct, frozen=True):
    """Where a run was put. Known at once; durable only when `on_done` says so. Ends are exclusive."""

    first_index: int
    next_index: int
    first_offset: int
    next_offset: int
    enqueued_time_ms: int


class Bounds(Struct, frozen=True):
    """What a log holds and shows: indexes first_index .. next_index - 1 are visible.

    last_index is the index of the newest visible record (numbers may be skipped behind it), last_offset its offset,
    last_time_ms its enqueued time; -1, -1 and None before the first. All keep their values when retention empties the
    log: first_index = next_index then.
    """

    first_index: int
    next_index: int
    first_offset: int
    next_offset: int
    last_offset: int
    last_time_ms: int | None
    last_index: int


class Run(Struct, frozen=True):
    """Stored batches back to back, whole ones. Empty data: nothing visible at that position yet.

    The first batch holds the index that was asked for, maybe in its middle (kernels.find_record goes there). Batches
    may be control batches. data belongs to the log and never changes; keep it as long as you like.
    next_index: the first index behind the run, to read on from.
    """

    data: bytes | memoryview
    first_index: int
    next_index: int


@dataclass(frozen=True, slots=True)
class Refused:
    """An append or a read that failed. known: nothing was stored (refused); not known: stored or not (unknown).

    What is not known is settled later: see Log.append.
    """

    error: StoreError
    known: bool = True


@dataclass(frozen=True, slots=True)
class Note:
    """What an owner noted under a key, last. index, offset: the log's end when it did: every record below was there.

    time_ms: as given to Log.note, and not before the newest record's.
    """

    key: bytes
    body: bytes
    index: int
    offset: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An owner's state that holds the effect of every record below index; the one at index begins at offset."""

    index: int
    offset: int
    state: bytes


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay that came to the visible end. damage: the ranges that it passed over, of records or of control batches,
    in order; each has its alarm."""

    damage: tuple[CorruptStore, ...] = ()


OnAppended = Callable[[Appended | Refused], None]
OnNoted = Callable[[Note | Refused], None]


def call_all(calls: Iterable[Callable[[], None]]) -> None:
    """Call each, in order, whatever becomes of one. Raises the first exception of one, when all were called."""
    fault: Exception | None = None
    for call in calls:
        try:
            call()
        except Exception as error:
            fault = fault or error
    if fault is not None:
        raise fault


class Pending(Protocol):
    """A read that answers later."""

    def cancel(self) -> None:
        """The callback will not be called."""


class Log(Protocol):
    """See the module's text. All methods are called on the owner's loop; callbacks come there, not inside the call."""

    @property
    def log_id(self) -> str:
        """32 lower-case hexadecimal digits; never used twice."""

    @property
    def lease(self) -> Lease:
        """The right to write that this process has, or had: an append says whether it is over."""

    @property
    def durability(self) -> Durability:
        """When appends are answered from the next segment on; what is there keeps the mode it was written in."""

    @property
    def bounds(self) -> Bounds:
        """What is visible now; a new value each time, which does not follow the log."""

    def append(self, run: bytearray, *, now_ms: int, on_done: OnAppended) -> Appended:
        """Complete the headers of run in place and store it behind everything appended before; the log keeps run.

        Whole runs only; a chain stays in one call. now_ms: a stamp of the store's clock, just taken; enqueued time is
        max(now_ms, last time). Raises LogFenced, LogOffline or DiskFull when it is refused at once (nothing stored,
        on_done not called). on_done comes in append order, with Appended when the run is visible or with Refused.
        A run that was refused and is not `known` is never visible to the owner who was told so, and the log takes
        another append only when that run is dropped for good. So what is appended behind it, once it is visible, says
        that it is not there.
        After a crash: the run is there whole, or not at all; whole for certain once on_done said Appended in DURABLE.
        One that ended unknown is there or not, as long as nothing was appended behind it.
        """

    @property
    def notes(self) -> Mapping[bytes, Note]:
        """The newest durable note of each key. The same object each time, which follows the log; for reading only."""

    @property
    def notes_damage(self) -> str | None:
        """Why notes that were there could not be read at the start, for people; None: they are all there."""

    def note(self, key: bytes, body: bytes | None, *, now_ms: int, on_done: OnNoted) -> None:
        """Keep a few bytes of the owner's, which trimming leaves alone, in the place of what is kept under this key.

        key: at most 64 bytes. body: at most 64 KiB; None: keep nothing under the key. All notes of a log together
        should stay below some MB: an engine may write them all with each. Of two notes the later call's counts.
        Raises LogFenced, LogOffline or DiskFull when it is refused at once. on_done comes once: with the note when it
        is durable, in every mode, and everything appended before it with it; or with Refused.
        After a crash: a note is there for certain once on_done said so, and so are the records before it. One that was
        refused is not there; when the refusal is not `known` it may be.
        """

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        """Visible batches from the one that holds index on: at least one batch, then up to max_bytes.

        Answers at once from the tail in memory (on_done is not called), or gives a Pending and answers later. An index
        at or above the watermark gives an empty Run at once. Below the first index: reads from the first index on
        (Run.first_index shows the jump). Refused with CorruptStore where damage was found: the bytes are never served.
        """

    def find_offset(self, offset: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """Index of the first record whose offset is at least `offset`; next_index when there is none.

        Where damage may hold that record, the index is the damage's first: a read there is refused and names it.
        """

    def find_time(self, time_ms: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        """Index of the first record enqueued at time_ms or later; next_index when there is none. Damage: the same."""

    def on_visible(self, callback: Callable[[], None]) -> None:
        """Call back after every move of the watermark (one callback a log; None was set before)."""

    def replay(self, index: int, visit: Callable[[Run], None], on_done: Callable[[Replayed | Refused], None]) -> None:
        """Hand every visible batch from index on to visit, in order; then on_done, once.

        For an owner that has no state yet, or is not sure of it. visit may be called away from the loop: what it
        changes is used by nobody else before on_done. A StoreError that it raises ends the replay, and is refused; what
        it was handed before stays. The owner trims nothing meanwhile.
        """

    def older_than(self, time_ms: int) -> int:
        """An index below which every record is older than time_ms, on the clock by which the store's records grow old.

        As large as the engine can tell without reading, so more records may be as old: with segments, those of one.
        """

    def trim(self, index: int) -> int:
        """Drop the records below index, from the oldest on; return the first index that is left.

        An engine may keep some of them: one that drops whole segments keeps at most one segment more. It drops nothing
        that is not covered by the older of two snapshots, when the owner saves any. What it kept goes with a later
        call. Notes and the newest record's numbers and time stay. Does nothing when the lease is over or the log is
        closed.
        After a crash: every record from index on is there, and below it maybe a part of those that were dropped, in
        order and without a hole.
        """

    def set_roll_age(self, roll_age_ms: int | None) -> None:
        """Start a new segment when the newest is this old, so that retention finds whole ones; None: never by age."""

    def save_snapshot(self, state: bytes, on_done: Callable[[None | Refused], None]) -> None:
        """Store the owner's state as of the visible end (rule R11): new file, sync, rename, sync folder."""

    def load_snapshot(self, read: Callable[[Snapshot], T], on_done: Callable[[T | None | Refused], None]) -> None:
        """What read makes of the newest snapshot that verifies; None when there is none.

        read may be called away from the loop, and raise a StoreError, which is refused.
        """

    def set_durability(self, durability: Durability) -> None:
        """Change the mode; the next append starts a new segment, whose header names it."""

    def stop(self, fault: Exception) -> None:
        """A fault of the owner's code (rule R4): the log goes offline at once, loudly, as after a fault of its own.

        Waiting appends are refused, and it is repaired and comes back by itself.
        """

    def close(self, on_done: Callable[[], None]) -> None:
        """Write and sync what is pending, append the idle mark, sync, close. Appends from now on raise LogOffline."""
