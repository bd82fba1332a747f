"""State of one log: settings, how far it is appended, visible and synced, and its segments.

Plain data, used on the owner's loop only; group_commit.py and failed_sync.py change it, segment_log.py shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hubweir.alarms import Alarms
from hubweir.counters import Counters
from hubweir.env import Buffer, Env, join_path
from hubweir.errors import LogFenced
from hubweir.limits import MIB, StoreLimits
from hubweir.messaging_store.completion import LogEnd
from hubweir.messaging_store.disk.layout import LOGS_FOLDER, UNFINISHED_SUFFIX, SegmentName
from hubweir.messaging_store.disk.newest_segment import newest_behind, save_newest
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, ActiveSegment, SegmentHeader, create
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.full_disk import FullDisk
from hubweir.messaging_store.segment_engine.known_damage import KnownDamage
from hubweir.messaging_store.segment_engine.reserve import Reserve
from hubweir.messaging_store.segment_engine.steps import Steps
from hubweir.messaging_store.tail import Tail
from hubweir.messaging_store.trusted_clock import TrustedClock


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Bytes and milliseconds of one log. roll_age_ms: retention/8, or None for never."""

    segment_bytes: int = StoreLimits.log_segment_bytes
    roll_age_ms: int | None = None
    tail_bytes: int = StoreLimits.log_tail_bytes
    queue_bytes: int = StoreLimits.log_queue_bytes  # appends wait for at most this much; then they are refused
    idle_mark_ms: int = 800  # the mark is durable within 1 s of the last append
    relaxed_sync_ms: int = 50
    relaxed_sync_bytes: int = 1 * MIB
    relaxed_unsynced_bytes: int = 16 * MIB
    uses_reserve: bool = False  # appends may use what is kept for a full disk: for the catalog, where deletes are


@dataclass(slots=True)
class LogState:
    """synced <= visible <= appended. active: the segment being written, None until the first append of this open.

    about: what people call the log, in alarms.
    """

    env: Env
    counters: Counters
    settings: LogSettings
    log_id: str
    store_folder: str
    writer_epoch: int
    nonce: int
    durability: Durability
    appended: LogEnd
    visible: LogEnd
    synced: LogEnd
    first_index: int
    first_offset: int
    segments: list[Segment]
    tail: Tail
    check_epoch: Callable[[], None]  # blocking; raises LogFenced when somebody else owns the store
    reserve: Reserve
    disk: FullDisk
    alarms: Alarms
    about: str
    clock: TrustedClock
    superseded: list[str] = field(default_factory=list)
    begun: list[SegmentName] = field(default_factory=list)  # may be there, made by who failed: started() supersedes
    active: ActiveSegment | None = None
    active_segment: Segment | None = None
    offline: str | None = None  # why appends are refused
    full: bool = False
    fenced: LogFenced | None = None  # once set, for good; offline with it
    on_fenced: Callable[[LogFenced], None] | None = None
    closing: bool = False
    folder: str = field(init=False)
    steps: Steps = field(init=False)
    damage: KnownDamage = field(init=False)

    def __post_init__(self) -> None:
        self.folder = join_path(self.store_folder, LOGS_FOLDER, self.log_id)
        self.damage = KnownDamage(self.alarms, self.about, self.counters)
        self.steps = Steps(self.env, self.log_id, self.counters)

    def new_header(
        self, at: LogEnd, replaced: Segment | None = None, *, created_ms: int | None = None
    ) -> SegmentHeader:
        """The header of a segment that starts at an end of the log, and is about to be made.

        replaced: the segment that it takes the place of as a whole (roll.py). created_ms None: now.
        """
        created_ms = self.clock.created_ms() if created_ms is None else created_ms
        first_number = at.number if replaced is None else replaced.header.first_number
        header = SegmentHeader(
            self.log_id, self.nonce, self.writer_epoch, at.index, at.offset, at.last_offset, at.last_time_ms,
            created_ms, self.durability, at.index - 1 - at.last_index,
            next((each.header.name for each in reversed(self.segments) if each.first_index < at.index), None),
            first_number,
        )  # fmt: skip
        self.begun.append(header.name)
        return header

    def create_segment(
        self, header: SegmentHeader, content: Iterable[Sequence[Buffer]], *, index: int, offset: int, size: int = 0
    ) -> ActiveSegment:
        """Make a segment durable with content, and then what the store remembers of the log; blocking.

        index, offset: behind the content. size: of what goes into it next, which may be more than a segment should
        hold. Raises OSError as `create`; the segment may be there then.
        """
        files = self.env.files
        active = create(files, self.folder, header, content)
        room_bytes = self.settings.segment_bytes + size
        newest = newest_behind(header.name, index=index, offset=offset, room_bytes=room_bytes)
        try:
            save_newest(files, self.store_folder, self.log_id, newest)
        except BaseException:
            active.file.close()
            raise
        return active

    def started(self, active: ActiveSegment) -> None:
        """A new segment is durable: it supersedes what older files hold from its first index on."""
        first, own = active.header.first_index, active.header.name
        while self.segments and self.segments[-1].first_index >= first:
            old = self.segments.pop()
            if old.header.name != own:
                self.superseded.extend(old.names())
        for name in self.begun:
            if name != own:
                self.superseded += [name.file_name, name.file_name + UNFINISHED_SUFFIX]
        self.begun.clear()
        if self.segments:
            self.segments[-1].end_index = first
            self.segments[-1].end_number = active.header.first_number or None
        self.active = active
        self.active_segment = Segment(active.header, self.folder, None, active.end)
        if active.end > SEGMENT_HEADER_SIZE:  # it begins with content: replay must find that
            self.active_segment.indexes = SegmentIndexes()
            self.active_segment.indexes.note(self.active_segment.start, max(0, active.header.last_time_ms))
        self.segments.append(self.active_segment)

    def fence(self, error: LogFenced) -> None:
        """Another process owns the store: this one writes nothing any more, for good."""
        if self.fenced is None:
            self.fenced, self.offline = error, str(error)
            if self.on_fenced is not None:
                self.on_fenced(error)
