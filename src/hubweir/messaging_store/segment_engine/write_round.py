"""The part of a round that runs in a worker thread: maybe a new segment, then one write and one sync.

Raises DiskFull when there was no space and OutOfFiles when no file could be opened, and then nothing of the round is
left in any file; LogFenced when somebody else owns the store (FencedBehindWrite when he may have found the round in the
file); any other OSError means that the file cannot be trusted from here on (failed_sync.py).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from hubweir.env import Buffer, SyncFailed
from hubweir.errors import DiskFull, LogFenced, OutOfFiles
from hubweir.messaging_store.disk.segment import NO_FILES, NO_SPACE, ActiveSegment, SegmentHeader
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.roll import begins_with


class FencedBehindWrite(LogFenced):
    """Another process owns the store, and something was written when that was found: he may have taken it over."""


def write_round(
    state: LogState,
    old: ActiveSegment | None,
    header: SegmentHeader | None,
    buffers: Sequence[Buffer],
    size: int,
    mark_room: int,
) -> ActiveSegment:
    """Write and sync the buffers behind the segment's end; with a header, into a new segment. Return the segment."""

    def work() -> ActiveSegment:
        return _write_round(state, old, header, buffers, size, mark_room)

    try:
        # Marks vouch for what is accepted, an empty segment lets retention make space: neither waits for space.
        return state.reserve.use_for(work) if not mark_room or state.settings.uses_reserve else work()
    except SyncFailed:
        raise
    except DiskFull:
        _cut_off(state, old)  # a write on the loop may have left something, though this round did not come to its own
        raise
    except OSError as error:
        if error.errno not in NO_FILES:
            raise
        _cut_off(state, old)
        raise out_of_files(state.log_id, error) from error


def check_behind_write(state: LogState) -> None:
    """What was written is answered, or cut off and refused, only behind this. (writer_epochs.py)"""
    try:
        state.check_epoch()
    except LogFenced as error:
        raise FencedBehindWrite(str(error)) from error
    except OSError as error:  # as good as a failed sync: nobody knows what holds
        raise SyncFailed(error.errno, f"the store's epoch cannot be read: {error.strerror}") from error


def _cut_off(state: LogState, segment: ActiveSegment | None) -> None:
    """Nothing of what is refused may be found in the file.

    Raises OSError; then the file cannot be trusted, and nothing is refused yet.
    """
    if segment is not None and segment.is_torn:
        check_behind_write(state)
        segment.forget_behind()
        check_behind_write(state)


def out_of_files(log_id: str, error: OSError) -> OutOfFiles:
    """The refusal when no file can be opened: which limit, and what to do about it."""
    if error.errno == errno.ENFILE:
        limit = "the system has as many open files as it may (raise fs.file-max)"
    else:
        limit = "the process has as many open files as it may (raise its limit: ulimit -n, LimitNOFILE)"
    return OutOfFiles(f"log {log_id}: {limit}; nothing was done, try again when there are fewer connections")


def _write_round(
    state: LogState,
    old: ActiveSegment | None,
    header: SegmentHeader | None,
    buffers: Sequence[Buffer],
    size: int,
    mark_room: int,
) -> ActiveSegment:
    state.env.fault("log.before_round")
    if header is None:
        assert old is not None
        _write(state, old, buffers, size, mark_room)
        return old
    if old is not None:
        old.finish()
    state.check_epoch()
    segment = _create(state, header, size)
    try:
        _write(state, segment, buffers, size, mark_room)
    except BaseException:
        segment.file.close()
        raise
    return segment


def _create(state: LogState, header: SegmentHeader, size: int) -> ActiveSegment:
    try:
        state.env.fault("log.before_new_segment")
        begin = begins_with(header, number=state.visible.number, last_time_ms=state.visible.last_time_ms)
        content = [begin] if begin else []  # a mark: no index, no offset
        return state.create_segment(header, content, index=header.first_index, offset=header.first_offset, size=size)
    except SyncFailed:
        raise
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise _full(state, error) from error


def _write(state: LogState, segment: ActiveSegment, buffers: Sequence[Buffer], size: int, mark_room: int) -> None:
    if not buffers:
        return
    try:
        segment.set_aside(size, mark_room)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise _full(state, error) from error
    try:
        state.env.fault("log.before_write")
        segment.write(buffers, is_synced=True)
        state.env.fault("log.after_sync")
    except SyncFailed:
        raise
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        _cut_off(state, segment)
        raise _full(state, error) from error
    check_behind_write(state)


def _full(state: LogState, error: OSError) -> DiskFull:
    return DiskFull(f"log {state.log_id}: {error.strerror}; nothing was stored, send again when there is space")
