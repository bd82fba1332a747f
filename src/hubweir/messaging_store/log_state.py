"""What one log knows about itself: settings, how far it is appended, visible and synced, and its segments.

Plain data, used on the owner's loop only; group_commit.py and failed_sync.py change it, segment_log.py shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.messaging_store.log import Appended, Durability, Refused
from hubweir.messaging_store.reserve import Reserve
from hubweir.messaging_store.segment import SEGMENT_HEADER_SIZE, ActiveSegment, SegmentHeader
from hubweir.messaging_store.segment_files import Segment, SegmentIndexes
from hubweir.messaging_store.steps import Steps
from hubweir.messaging_store.tail import Tail, TailRun

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Bytes and milliseconds of one log. roll_age_ms: retention/8, or None for never."""

    segment_bytes: int = 256 * MIB
    roll_age_ms: int | None = None
    tail_bytes: int = 4 * MIB
    queue_bytes: int = 64 * MIB  # appends wait for at most this much; then they are refused
    idle_mark_ms: int = 800  # the mark is durable within 1 s of the last append
    relaxed_sync_ms: int = 50
    relaxed_sync_bytes: int = 1 * MIB
    relaxed_unsynced_bytes: int = 16 * MIB
    uses_reserve: bool = False  # appends may use what is kept for a full disk: for the catalog, where deletes are


@dataclass(frozen=True, slots=True)
class End:
    """An end of the log: the next index and offset, and the newest record's offset and time (-1: none yet).

    last_index: of the newest record. Numbers may be skipped behind it, so it is not always index - 1; -1: none yet.
    """

    index: int
    offset: int
    last_offset: int
    last_time_ms: int
    last_index: int


@dataclass(slots=True)
class Entry:
    """One run on its way to the file. before, end: the ends of the log without and with it."""

    run: bytearray
    before: End
    end: End
    appended: Appended
    on_done: Callable[[Appended | Refused], None] | None
    is_mark: bool = False


@dataclass(slots=True)
class LogState:
    """synced <= visible <= appended. active: the segment being written, None until the first append of this open."""

    env: Env
    counters: Counters
    settings: LogSettings
    log_id: str
    folder: str
    writer_epoch: int
    nonce: int
    durability: Durability
    appended: End
    visible: End
    synced: End
    first_index: int
    first_offset: int
    segments: list[Segment]
    tail: Tail
    check_epoch: Callable[[], None]  # blocking; raises LogFenced when somebody else owns the store
    reserve: Reserve
    superseded: list[str] = field(default_factory=list)
    active: ActiveSegment | None = None
    active_segment: Segment | None = None
    offline: str | None = None  # why appends are refused
    full: bool = False
    fenced: bool = False
    closing: bool = False
    alarms: list[str] = field(default_factory=list)
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.env, self.log_id, self.counters)

    def new_header(self, at: End, now_ms: int) -> SegmentHeader:
        """The header of a segment that starts at an end of the log."""
        return SegmentHeader(
            self.log_id, self.nonce, self.writer_epoch, at.index, at.offset, at.last_offset, at.last_time_ms, now_ms,
            self.durability, at.index - 1 - at.last_index,
        )  # fmt: skip

    def started(self, active: ActiveSegment) -> None:
        """A new segment is durable: it supersedes what older files hold from its first index on."""
        first, own = active.header.first_index, active.header.name
        while self.segments and self.segments[-1].first_index >= first:
            old = self.segments.pop()
            if old.header.name != own:
                self.superseded.extend(old.names())
        if self.segments:
            self.segments[-1].end_index = first
        self.active = active
        self.active_segment = Segment(active.header, self.folder, None, active.end)
        if active.end > SEGMENT_HEADER_SIZE:  # it begins with content: replay must find that
            self.active_segment.indexes = SegmentIndexes()
            self.active_segment.indexes.note(self.active_segment.start, max(0, active.header.last_time_ms))
        self.segments.append(self.active_segment)

    def show(self, entries: list[Entry], segment: ActiveSegment) -> None:
        """The entries are in the file and visible: indexes, tail, watermark."""
        known = self.active_segment
        assert known is not None
        if known.indexes is None:
            known.indexes = SegmentIndexes()
        for entry in entries:
            known.indexes.note_run(entry.run, segment.end)
            segment.end += len(entry.run)
            if not entry.is_mark:
                run = TailRun(
                    memoryview(entry.run).toreadonly(), entry.before.index, entry.end.index, entry.end.offset,
                    entry.appended.enqueued_time_ms,
                )  # fmt: skip
                self.tail.add(run, self.synced.index)
        known.end_position = segment.end
        if entries:
            self.visible = entries[-1].end

    def alarm(self, text: str) -> None:
        """Tell the operator, once."""
        if text not in self.alarms:
            self.alarms.append(text)
            self.counters.add("log.alarms")


def tell(entries: list[Entry], outcome_of: Callable[[Entry], Appended | Refused]) -> None:
    """Call the ticket of every entry, in order. Raises the first exception of one, when all were called."""
    fault: Exception | None = None
    for entry in entries:
        if entry.on_done is not None:
            try:
                entry.on_done(outcome_of(entry))
            except Exception as error:
                fault = fault or error
    if fault is not None:
        raise fault
