"""Open a log: recover it, and make what nobody vouched for durable before it is shown.

After a crash in here: the next open does the same again. The new segment is there whole or not at all (segment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

from hubweir.counters import Counters
from hubweir.env import Buffer, Env
from hubweir.errors import DiskFull, LogOffline
from hubweir.kernels.stored_batch import HEADER_SIZE
from hubweir.messaging_store.carried_over import carried_over, superseded_whole
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, pack_control, pack_skipped
from hubweir.messaging_store.failed_sync import EpochSource
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.log_state import End, LogSettings, LogState
from hubweir.messaging_store.record import read_header
from hubweir.messaging_store.recovery import Recovered, content_to_rewrite, recover
from hubweir.messaging_store.reserve import Reserve
from hubweir.messaging_store.segment import NO_SPACE, create
from hubweir.messaging_store.segment_files import load_indexes
from hubweir.messaging_store.segment_log import SegmentLog
from hubweir.messaging_store.snapshot import load
from hubweir.messaging_store.tail import Tail

# After an unclean stop a relaxed log skips this many indexes and offset bytes: more than can have been shown and lost,
# since at most 16 MiB are visible and not synced, and a record has at least 4 bytes. (Promise P4)
SKIPPED_NUMBERS = 32 * 1024 * 1024


def open_log(
    env: Env,
    folder: str,
    log_id: str,
    *,
    writer_epoch: int,
    epochs: EpochSource,
    check_epoch: Callable[[], None],
    reserve: Reserve,
    durability: Durability | None,
    counters: Counters,
    settings: LogSettings,
) -> SegmentLog:
    """Recover a log and make it ready to append under a new writer epoch. Blocking.

    durability: None keeps the mode that the newest segment names. All that is visible after this call is durable.
    Raises DiskFull or LogOffline when the disk does not take what must be rewritten (open it again later), OSError
    when the log cannot be read, CorruptStore, NewerFormat.
    """
    env.files.sync_folder(folder)
    found = recover(env.files, folder, log_id)
    nonce = found.nonce or int.from_bytes(env.random_bytes(8), "big") | 1
    end = End(found.end.index, found.end.offset, found.last_offset, found.last_time_ms, found.last_index)
    oldest = found.segments[0].header if found.segments else None
    superseded = [name for file_name in found.superseded for name in _with_indexes(file_name)]
    state = LogState(
        env, counters, settings, log_id, folder, writer_epoch, nonce, durability or found.durability, end, end, end,
        oldest.first_index if oldest else 0, oldest.first_offset if oldest else 0, found.segments,
        Tail(settings.tail_bytes, end.index), check_epoch, reserve, superseded=superseded,
    )  # fmt: skip
    for alarm in found.alarms:
        state.alarm(alarm)
    for segment in found.segments:
        for damage in segment.damage:
            resume = damage.start if damage.resume is None else damage.resume
            counters.add("log.corrupt_records", resume.index - damage.start.index)
    snapshots = load(env.files, folder)
    skip = found.durability is Durability.RELAXED and not found.clean and bool(found.segments)
    if found.vouched.index < found.end.index or skip:
        try:
            reserve.use_for(lambda: _start_behind(state, found, skip=skip))
        except OSError as error:
            # To show less than was shown before would be a step back; to show what a power cut may take, too.
            kind = DiskFull if error.errno in NO_SPACE else LogOffline
            raise kind(f"log {log_id}: its newest records cannot be made durable: {error}; open it again") from error
    return SegmentLog(state, epochs, snapshots)


def _with_indexes(file_name: str) -> list[str]:
    stem = file_name.removesuffix(".log")
    return [stem + ".offsets", stem + ".times", file_name]


def _start_behind(state: LogState, found: Recovered, *, skip: bool) -> None:
    """Make the first segment of this open: what stands behind D, maybe skipped numbers, and a mark that vouches."""
    files, end, now_ms = state.env.files, state.visible, state.env.now_ms()
    at = end
    if found.vouched.index < found.end.index:
        # Not the newest record before D, but the first one behind it: never earlier, and as good for every search.
        at = End(found.vouched.index, found.vouched.offset, -1, _time_at(state, found), found.vouched.index - 1)
    marks = bytearray()
    if skip:
        skipped = End(
            end.index + SKIPPED_NUMBERS, end.offset + SKIPPED_NUMBERS, end.last_offset, end.last_time_ms,
            end.last_index,
        )  # fmt: skip
        marks += _completed(state, pack_skipped(skipped.index, skipped.offset), end, now_ms, durable_upto=at.index)
        end = skipped
        state.alarm(
            f"log {state.log_id}: relaxed, and not closed cleanly: numbers {state.visible.index} to {end.index - 1} "
            "are skipped; up to 16 MiB of the newest events may be lost"
        )
    mark = pack_control(CONTROL_IDLE_MARK, IDLE)
    marks += _completed(state, mark, end, now_ms, durable_upto=end.index)
    replaced = superseded_whole(found.segments, at.index)
    carried = carried_over(files, replaced, end_position=found.vouched.position)  # what follows is rewritten anyway
    content: Iterable[list[Buffer]] = chain([carried], content_to_rewrite(files, found), [[marks]])
    active = create(files, state.folder, state.new_header(at, now_ms), content)
    state.started(active)
    assert state.active_segment is not None
    state.active_segment.indexes = load_indexes(files, state.active_segment)
    state.visible = state.appended = state.synced = end
    state.tail = Tail(state.settings.tail_bytes, end.index)
    if state.segments[0] is state.active_segment:
        state.first_index, state.first_offset = at.index, at.offset


def _completed(state: LogState, run: bytearray, at: End, now_ms: int, *, durable_upto: int) -> bytearray:
    complete_run(
        run, nonce=state.nonce, first_index=at.index, first_offset=at.offset,
        enqueued_time_ms=max(now_ms, at.last_time_ms), durable_upto=durable_upto, writer_epoch=state.writer_epoch,
    )  # fmt: skip
    return run


def _time_at(state: LogState, found: Recovered) -> int:
    """Enqueued time of the first batch behind D."""
    file = state.env.files.open_to_read(found.segments[-1].path)
    try:
        return read_header(file.read(found.vouched.position, HEADER_SIZE)).enqueued_time_ms
    finally:
        file.close()
