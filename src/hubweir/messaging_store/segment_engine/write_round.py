"""The part of a round that runs in a worker thread: maybe a new segment, then one write and one sync.

Raises DiskFull when there was no space and OutOfFiles when no file could be opened, and then nothing of the round is
left in any file; LogFenced when somebody else owns the store (FencedBehindWrite when he may have found the round in the
file); any other OSError means that the file cannot be trusted from here on (failed_sync.py).
"""

from __future__ import annotations

import errno

from msgspec import Struct

from hubweir.env import SyncFailed
from hubweir.errors import DiskFull, LogFenced, OutOfFiles
from hubweir.messaging_store.disk.segment import MARK_ROOM_BYTES, NO_FILES, NO_SPACE, ActiveSegment, SegmentHeader
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.roll import begins_with
from hubweir.messaging_store.segment_engine.waiting import Entry


class FencedBehindWrite(LogFenced):
    """Another process owns the store, and something was written when that was found: he may have taken it over."""


class WriteRound(Struct, eq=False):
    """A durable round of one log that is under way. old: the segment before it; header: of a new one, or None.

    began_s: when it was given to a thread, monotonic. took_s: what its write and its sync took, when done.
    """

    state: LogState
    entries: list[Entry]
    size: int
    old: ActiveSegment | None
    header: SegmentHeader | None
    began_s: float = 0.0
    took_s: float = 0.0

    def write(self) -> ActiveSegment:
        """Write and sync the entries behind the segment's end; with a header, into a new segment. Return the segment.

        Blocking, in a worker thread.
        """
        state, is_mark = self.state, all(entry.is_mark for entry in self.entries)
        try:
            # Marks vouch for what is accepted, an empty segment lets retention make space: neither waits for space.
            return state.reserve.use_for(self._write) if is_mark or state.settings.uses_reserve else self._write()
        except SyncFailed:
            raise
        except DiskFull:
            _cut_off(state, self.old)  # a write on the loop may have left something, though this round did not begin
            raise
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            _cut_off(state, self.old)
            raise out_of_files(state.log_id, error) from error

    def _write(self) -> ActiveSegment:
        state, old, header = self.state, self.old, self.header
        state.env.fault("log.before_round")
        if header is None:
            assert old is not None
            self._append_to(old)
            return old
        if old is not None:
            old.finish()
        state.check_epoch()
        segment = self._create(header)
        try:
            self._append_to(segment)
        except BaseException:
            segment.file.close()
            raise
        return segment

    def _create(self, header: SegmentHeader) -> ActiveSegment:
        state = self.state
        try:
            state.env.fault("log.before_new_segment")
            begin = begins_with(header, number=state.visible.number, last_time_ms=state.visible.last_time_ms)
            return state.create_segment(
                header, [begin] if begin else [], index=header.first_index, offset=header.first_offset, size=self.size
            )
        except SyncFailed:
            raise
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            raise _full(state, error) from error

    def _append_to(self, segment: ActiveSegment) -> None:
        state = self.state
        if not self.entries:
            return
        try:
            segment.set_aside(self.size, 0 if all(entry.is_mark for entry in self.entries) else MARK_ROOM_BYTES)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            raise _full(state, error) from error
        try:
            state.env.fault("log.before_write")
            began_s = state.env.monotonic_s()
            segment.write([entry.run for entry in self.entries], is_synced=True)
            self.took_s = state.env.monotonic_s() - began_s
            state.env.fault("log.after_sync")
        except SyncFailed:
            raise
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            _cut_off(state, segment)
            raise _full(state, error) from error
        check_behind_write(state)


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


def _full(state: LogState, error: OSError) -> DiskFull:
    return DiskFull(f"log {state.log_id}: {error.strerror}; nothing was stored, send again when there is space")
