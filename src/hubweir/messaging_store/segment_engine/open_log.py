"""Open a log: recover it, and make what nobody vouched for durable before it is shown.

`open_log` may run in any thread, so that many logs are opened beside each other and the loop stays free; what it found
is told by OpenedLog.begin_alarms, on the loop. Nobody else has the log before.

After a crash in here: the next open does the same again. The new segment is there whole or not at all (segment.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain

from msgspec.structs import replace

from hubweir.alarms import DAMAGED_FILE, RECORDS_LOST, Alarms
from hubweir.counters import Counters
from hubweir.env import Buffer, Env, join_path
from hubweir.errors import DiskFull, LogLost, LogOffline
from hubweir.kernels.stored_batch import HEADER_SIZE, read_header
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import pack_mark, pack_skipped
from hubweir.messaging_store.disk.layout import LOGS_FOLDER, NEWEST_FOLDER
from hubweir.messaging_store.disk.newest_segment import is_lost, load_newest
from hubweir.messaging_store.disk.notes import FoundNotes, load_notes
from hubweir.messaging_store.disk.recovery import (
    SKIPPED_NUMBERS,
    Recovered,
    content_to_rewrite,
    numbers_used,
    place_of_damage,
    recover,
)
from hubweir.messaging_store.disk.segment import NO_SPACE, give_back_space
from hubweir.messaging_store.disk.segment_files import load_indexes
from hubweir.messaging_store.disk.snapshot import load_snapshots
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.log_store import about_log
from hubweir.messaging_store.segment_engine.full_disk import FullDisk
from hubweir.messaging_store.segment_engine.idle_mark import DueMarks
from hubweir.messaging_store.segment_engine.log_segments import LogSegments
from hubweir.messaging_store.segment_engine.log_state import LogSettings, LogState
from hubweir.messaging_store.segment_engine.reserve import Reserve
from hubweir.messaging_store.segment_engine.roll import begins_with, superseded_whole
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.messaging_store.segment_engine.sync_watch import SyncWatch
from hubweir.messaging_store.segment_engine.writer_epochs import WriterEpochs
from hubweir.messaging_store.tail import Tail
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.service_log import REPAIRED

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Now:
    """The time of the store's clock, asked on the loop: of stamps, and of new segments. (trusted_clock.py)"""

    stamp_ms: int
    created_ms: int

    @classmethod
    def of(cls, clock: TrustedClock) -> Now:
        return cls(clock.stamp_ms(), clock.created_ms())


class EpochBehind(Exception):
    """A log has a segment of the epoch that it was to be opened under, or of a newer one: newest."""

    def __init__(self, newest: int) -> None:
        super().__init__(newest)
        self.newest = newest


@dataclass(frozen=True, slots=True)
class LogOpening:
    """One try to open a log: what it needs that only the loop knows. makes: its making was decided, and may be under
    way."""

    log_id: str
    durability: Durability | None
    name: str
    now: Now
    writer_epoch: int
    makes: bool = False


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log that was recovered and that nobody uses yet."""

    log: SegmentLog
    about: str
    _state: LogState
    _found: Recovered
    _notes: FoundNotes

    def begin_alarms(self) -> None:
        """Begin the alarms of what was found. On the loop."""
        state, found = self._state, self._found
        if found.vouched.index < found.end.index:
            last = found.end.index - 1
            text = f"records {found.vouched.index} to {last} stood behind the last sure sync, and are written anew"
            REPAIRED.say(logger, log=state.about, text=text)
        damaged = [*found.damaged_headers, *filter(None, (self._notes.damage, self._notes.half_damage))]
        if damaged:
            state.alarms.begin(DAMAGED_FILE, state.about, "; ".join(damaged))
        for segment in found.segments:
            for damage in segment.damage:
                resume = found.end.index if damage.resume is None else damage.resume.index
                state.damage.found(damage.start.index, resume, place_of_damage(segment, damage))
        if found.lost:
            state.alarms.begin(RECORDS_LOST, state.about, "; ".join(found.lost))

    def discard(self) -> None:
        """Nobody is to use it: what it holds open is closed."""
        if self._state.segments.active is not None:
            self._state.segments.active.file.close()


@dataclass(frozen=True, slots=True)
class StoreTools:
    """What the logs of one store share. folder: the store's."""

    env: Env
    folder: str
    settings: LogSettings
    counters: Counters
    alarms: Alarms
    epochs: WriterEpochs
    reserve: Reserve
    disk: FullDisk
    clock: TrustedClock
    marks: DueMarks
    syncs: SyncWatch


def open_log(tools: StoreTools, opening: LogOpening) -> OpenedLog:
    """Recover a log and make it ready to append under a new writer epoch. Blocking, in any thread.

    durability: None keeps the mode that the newest segment names. All that is visible after this call is durable.
    Raises DiskFull or LogOffline when the disk does not take what must be rewritten (open it again later), OSError
    when the log cannot be read, LogLost, CorruptStore, NewerFormat.
    """
    env, store_folder, log_id, reserve = tools.env, tools.folder, opening.log_id, tools.reserve
    about = about_log(log_id, opening.name)
    folder = join_path(store_folder, LOGS_FOLDER, log_id)
    if is_lost(env.files, store_folder, log_id):
        # An empty log in its place would use its numbers again.
        is_there = "holds no segment" if env.files.exists(folder) else "is not there"
        raise LogLost(f"log {log_id} is lost: its folder {folder} {is_there}; put it back from a backup")
    newest = load_newest(env.files, store_folder, log_id)
    env.files.sync_folder(folder)
    snapshots = load_snapshots(env.files, folder)
    notes = load_notes(env.files, folder)
    used = numbers_used(snapshots, notes.notes.values())
    found = recover(env.files, folder, log_id, newest=newest, used=used)
    unsure = newest is None and bool(found.segments)
    if unsure:
        found.lost.append(
            f"what the store remembers of log {log_id}, in {join_path(store_folder, NEWEST_FOLDER)}, is damaged or not "
            "there; whether its newest segment is there cannot be told"
        )
    nonce = found.nonce or int.from_bytes(env.random_bytes(8), "big") | 1
    number = found.end.number if found.needs_rewrite else found.vouched.number
    end = LogEnd(found.end.index, found.end.offset, found.last_offset, found.last_time_ms, found.last_index, number)
    scanned = next((each for each in reversed(found.segments) if not each.is_lost), None)
    superseded = [name for file_name in found.superseded for name in _with_indexes(file_name)]
    state = LogState(
        env, tools.counters, tools.settings, log_id, store_folder, opening.writer_epoch, nonce,
        opening.durability or found.durability, end, end, end, LogSegments(folder, found.segments, superseded),
        Tail(tools.settings.tail_bytes, end.index), tools.epochs.check, reserve, tools.disk, tools.alarms, about,
        tools.clock, tools.syncs,
    )  # fmt: skip
    skip = unsure or found.durability is Durability.RELAXED and not found.clean
    if found.needs_rewrite or skip:
        try:
            reserve.use_for(lambda: _start_behind(state, found, opening.now, skip=skip))
        except OSError as error:
            # To show less than was shown before would be a step back; to show what a power cut may take, too.
            kind = DiskFull if error.errno in NO_SPACE else LogOffline
            raise kind(f"log {log_id}: its newest records cannot be made durable: {error}; open it again") from error
    if scanned is not None:
        with suppress(OSError):  # it is only space, and the next start tries again while the segment is the newest
            give_back_space(env.files, scanned.path, found.end.position)
    return OpenedLog(SegmentLog(state, tools.epochs, tools.marks, snapshots, notes), about, state, found, notes)


def _with_indexes(file_name: str) -> list[str]:
    stem = file_name.removesuffix(".log")
    return [stem + ".offsets", stem + ".times", file_name]


def _start_behind(state: LogState, found: Recovered, now: Now, *, skip: bool) -> None:
    """Make the first segment of this open: what stands behind D, maybe skipped numbers, and a mark that vouches."""
    files, end = state.env.files, state.visible
    time_ms = max(now.stamp_ms, end.last_time_ms)
    at = end
    if found.vouched.index < found.end.index:
        # Not the newest record before D, but the first one behind it: never earlier, and as good for every search.
        vouched = found.vouched
        at = LogEnd(vouched.index, vouched.offset, -1, _time_at(state, found), vouched.index - 1, vouched.number)
    elif found.needs_rewrite:
        at = replace(end, number=found.vouched.number)  # control batches only: they take no index
    marks = bytearray()
    if skip:
        run = pack_skipped(end.index + SKIPPED_NUMBERS, end.offset + SKIPPED_NUMBERS)
        end = complete_run(
            run, end, nonce=state.nonce, enqueued_time_ms=time_ms, durable_upto=at.number,
            writer_epoch=state.writer_epoch,
        )  # fmt: skip
        marks += run
        found.lost.append(f"{_why_skipped(found)}: numbers {state.visible.index} to {end.index - 1} are skipped")
    mark = pack_mark()
    end = complete_run(
        mark, end, nonce=state.nonce, enqueued_time_ms=time_ms, durable_upto=end.number,
        writer_epoch=state.writer_epoch,
    )  # fmt: skip
    marks += mark
    header = state.new_header(at, superseded_whole(found.segments, at.index), created_ms=now.created_ms)
    begin = begins_with(header, number=found.vouched.number, last_time_ms=at.last_time_ms)
    content: Iterable[list[Buffer]] = chain([begin], content_to_rewrite(files, found), [[marks]])
    active = state.create_segment(header, content, index=end.index, offset=end.offset)
    state.segments.started(active)
    assert state.segments.active_segment is not None
    state.segments.active_segment.indexes = load_indexes(files, state.segments.active_segment)
    state.visible = state.appended = state.synced = end
    state.tail = Tail(state.settings.tail_bytes, end.index)


def _why_skipped(found: Recovered) -> str:
    if found.durability is Durability.RELAXED and not found.clean:
        return "relaxed, and not closed cleanly, so that up to 16 MiB of the newest events may be lost"
    return "the newest segment may be lost"


def _time_at(state: LogState, found: Recovered) -> int:
    """Enqueued time of the first batch behind D."""
    file = state.env.files.open_to_read(found.segments[-1].path)
    try:
        return read_header(file.read(found.vouched.position, HEADER_SIZE)).enqueued_time_ms
    finally:
        file.close()
