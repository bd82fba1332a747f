"""The part of a round that runs in a worker thread: maybe a new segment, then one write and one sync.

Raises DiskFull when there was no space and OutOfFiles when no file could be opened, and then nothing of the round is
left in any file; LogFenced when somebody else owns the store; any other OSError means that the file cannot be trusted
from here on (failed_sync.py).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from contextlib import suppress

from hubweir.env import Buffer, SyncFailed
from hubweir.errors import DiskFull, OutOfFiles
from hubweir.messaging_store.carried_over import carried_over
from hubweir.messaging_store.layout import UNFINISHED_SUFFIX, join
from hubweir.messaging_store.log_state import LogState
from hubweir.messaging_store.segment import NO_SPACE, ActiveSegment, SegmentHeader, create
from hubweir.messaging_store.segment_files import Segment

# Opening a file failed, so nothing was done with it: the next try may succeed, and tells nothing wrong.
NO_FILES = (errno.EMFILE, errno.ENFILE)


def write_round(
    state: LogState,
    old: ActiveSegment | None,
    header: SegmentHeader | None,
    buffers: Sequence[Buffer],
    size: int,
    mark_room: int,
    before: Segment | None = None,
) -> ActiveSegment:
    """Write and sync the buffers behind the segment's end; with a header, into a new segment. Return the segment.

    before: the segment that a new one takes the place of, if it does (carried_over.py).
    """

    def work() -> ActiveSegment:
        return _write_round(state, old, header, buffers, size, mark_room, before)

    try:
        # Marks vouch for what is accepted, an empty segment lets retention make space: neither waits for space.
        return state.reserve.use_for(work) if not mark_room or state.settings.uses_reserve else work()
    except SyncFailed:
        raise
    except OSError as error:
        if error.errno not in NO_FILES:
            raise
        raise out_of_files(state.log_id, error) from error


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
    before: Segment | None,
) -> ActiveSegment:
    state.env.fault("log.before_round")
    if header is None:
        assert old is not None
        _write(state, old, buffers, size, mark_room)
        return old
    if old is not None:
        old.finish()
    state.check_epoch()
    segment = _create(state, header, before)
    try:
        _write(state, segment, buffers, size, mark_room)
    except BaseException:
        segment.file.close()
        raise
    return segment


def _create(state: LogState, header: SegmentHeader, before: Segment | None) -> ActiveSegment:
    files, folder = state.env.files, state.folder
    try:
        state.env.fault("log.before_new_segment")
        carried = carried_over(files, before)
        return create(files, folder, header, [carried] if carried else [])
    except SyncFailed:
        raise
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        with suppress(OSError):
            files.remove(join(folder, header.name.file_name + UNFINISHED_SUFFIX))
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
        segment.file.write_and_sync(segment.end, buffers)
        state.env.fault("log.after_sync")
    except SyncFailed:
        raise
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        segment.forget_behind()
        raise _full(state, error) from error


def _full(state: LogState, error: OSError) -> DiskFull:
    return DiskFull(f"log {state.log_id}: {error.strerror}; nothing was stored, send again when there is space")
