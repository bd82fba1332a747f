"""State of one log: settings, how far it is appended, visible and synced, its segments, and whether it takes appends.

Used on the owner's loop only. What changes has one writer each, which a test of this file holds:

| part | written by |
|---|---|
| appended, visible, synced: ends of the log | group_commit.py, behind open_log.py |
| segments | log_segments.py, whose methods say what happened |
| health | log_health.py, likewise |
| writer_epoch | failed_sync.py, with the epoch that a repair takes |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hubweir.alarms import Alarms
from hubweir.counters import Counters
from hubweir.env import Buffer, Env, join_path
from hubweir.limits import MIB, StoreLimits
from hubweir.messaging_store.completion import LogEnd
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.disk.newest_segment import newest_behind, save_newest
from hubweir.messaging_store.disk.segment import ActiveSegment, SegmentHeader, create
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.full_disk import FullDisk
from hubweir.messaging_store.segment_engine.known_damage import KnownDamage
from hubweir.messaging_store.segment_engine.log_health import LogHealth
from hubweir.messaging_store.segment_engine.log_segments import LogSegments
from hubweir.messaging_store.segment_engine.reserve import Reserve
from hubweir.messaging_store.segment_engine.steps import Steps
from hubweir.messaging_store.segment_engine.sync_watch import SyncWatch
from hubweir.messaging_store.tail import Tail
from hubweir.messaging_store.trusted_clock import TrustedClock


@dataclass(frozen=True, slots=True)
class LogSettings:
    """Bytes and milliseconds of one log. roll_age_ms: retention/8, or None for never."""

    segment_bytes: int = StoreLimits.log_segment_bytes
    roll_age_ms: int | None = None
    tail_bytes: int = StoreLimits.log_tail_bytes
    queue_bytes: int = StoreLimits.log_queue_bytes  # appends wait for at most this much; then they are refused
    round_bytes: int = 4 * MIB  # of one write, or half of what is under way; a larger run goes alone
    idle_mark_ms: int = 800  # the mark is durable within 1 s of the last append
    relaxed_sync_ms: int = 50
    relaxed_sync_bytes: int = 1 * MIB
    relaxed_unsynced_bytes: int = 16 * MIB
    uses_reserve: bool = False  # appends may use what is kept for a full disk: for the catalog, where deletes are


@dataclass(slots=True)
class LogState:
    """synced <= visible <= appended. about: what people call the log, in alarms."""

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
    segments: LogSegments
    tail: Tail
    check_epoch: Callable[[], None]  # blocking; raises LogFenced when somebody else owns the store
    reserve: Reserve
    disk: FullDisk
    alarms: Alarms
    about: str
    clock: TrustedClock
    syncs: SyncWatch
    health: LogHealth = field(init=False)
    folder: str = field(init=False)
    steps: Steps = field(init=False)
    damage: KnownDamage = field(init=False)

    def __post_init__(self) -> None:
        self.folder = join_path(self.store_folder, LOGS_FOLDER, self.log_id)
        self.health = LogHealth()
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
            self.segments.name_before(at.index),
            first_number,
        )  # fmt: skip
        self.segments.begun(header.name)
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
