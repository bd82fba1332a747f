"""Rolls a log into a new segment: when, in whose place, what the new one begins with, and what becomes of the old.

The new segment is made by a round (write_round.py), a start (open_log.py) or a repair (failed_sync.py); a worker thread
then saves the old one's indexes and closes its file.

A control batch takes no index. So a segment may hold some and no record yet; the next segment then has the same first
index and supersedes it, as a whole. It keeps the older one's first batch number, which says where the segment before
both ends. The marks in between say nothing about other files, so they are left out, and their numbers are missing.
So is the number of a mark whose sync failed: a repair writes only what readers were shown.

A start takes damage for a torn tail when it begins at the number from which on nothing is vouched for (recovery.py).
So the new segment begins with a mark of the number right below the one that it goes on with: else a torn first write
behind the missing numbers would look like the loss of batches that were vouched for.

After a crash: indexes can be rebuilt, and recovery deals with spare space and a missing mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from hubweir.env import Buffer, Lane, Result
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import pack_mark
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, ActiveSegment, SegmentHeader
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.segment_engine.log_state import LogState


def needs_new_segment(state: LogState, *, size: int | None, roll_age_ms: int | None, is_asked: bool) -> bool:
    """Whether the next round goes into a new segment.

    size: bytes of the first run that it carries; None: it carries nothing. is_asked: somebody wants a new one.
    """
    active = state.segments.active
    if active is None or active.header.durability is not state.durability:
        return True
    if active.end <= SEGMENT_HEADER_SIZE:
        return False
    if is_asked:
        return True
    if size is None:
        return False
    if active.end + size > state.settings.segment_bytes:
        return True
    # Below 0: made while the clock was wrong, ahead; what was appended to it cannot grow old before that time. What is
    # to be written was stamped just now, and else the clock is looked at once a minute or so: near enough for hours.
    passed_ms = state.clock.latest_created_ms - active.header.created_ms
    return passed_ms < 0 or (roll_age_ms is not None and passed_ms >= roll_age_ms)


def superseded_whole(segments: Sequence[Segment], first_index: int) -> Segment | None:
    """The newest segment, when one that starts at this index takes its place; else None."""
    return segments[-1] if segments and segments[-1].first_index == first_index else None


def begins_with(header: SegmentHeader, *, number: int, last_time_ms: int) -> list[Buffer]:
    """The content of a new segment, before the batch with this number, which it goes on with.

    last_time_ms: no batch in the log has a later enqueued time.
    """
    if number == header.first_number:
        return []
    # Never a mark of a clean close, which would vouch for the end of what follows.
    mark = pack_mark()
    complete_run(
        mark, LogEnd(header.first_index, header.first_offset, number=number - 1), nonce=header.nonce,
        enqueued_time_ms=max(last_time_ms, 0), durable_upto=number - 1, writer_epoch=header.writer_epoch,
    )  # fmt: skip
    return [mark]


def save_indexes(state: LogState, old: ActiveSegment) -> None:
    """The log goes on in a new segment: save the old one's indexes and close its file. Call before state.started."""
    segment, files, folder = state.segments.active_segment, state.env.files, state.folder

    def save() -> None:
        old.file.close()
        if segment is not None and segment.indexes is not None:
            segment.indexes.save(files, folder, segment.header.name.stem)

    state.steps.away(Lane.MAINTENANCE, save, _ignore_failure)


def close_failed(state: LogState, failed: ActiveSegment) -> None:
    """A write or a sync of this segment failed, and it is given up: close its file, once no call uses it."""
    state.steps.when_written(lambda: state.steps.away(Lane.MAINTENANCE, failed.file.close, _ignore_failure))


def close_segment(state: LogState, active: ActiveSegment | None, on_closed: Callable[[], None]) -> None:
    """The log is closed: give the spare space back, save the indexes, close the file, then call back in any case."""
    segment, files, folder = state.segments.active_segment, state.env.files, state.folder
    usable = state.health.offline is None

    def finish() -> None:
        if active is None or segment is None:
            return
        try:
            if usable:
                active.finish()
                if segment.indexes is not None:
                    segment.indexes.save(files, folder, segment.header.name.stem)
        finally:
            active.file.close()

    def finished(result: Result[None]) -> None:
        try:
            _ignore_failure(result)
        finally:
            on_closed()

    state.steps.away(Lane.MAINTENANCE, finish, finished)


def _ignore_failure(result: Result[None]) -> None:
    with suppress(OSError):
        result.value()
