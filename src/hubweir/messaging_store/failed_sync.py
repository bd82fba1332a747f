"""What a log does when a write or a sync fails (rule R9). A failed sync is final: it is never tried again.

The kernel may have thrown the unsynced pages away and will say so only once; the page cache is no evidence. So:

1. the store takes a new writer epoch and makes it durable;
2. everything above the last good sync is dropped, but for what relaxed mode already showed to readers, which is still
   in memory; the files are looked at again by recovery, up to that sync;
3. a new segment is made from there on, with what was shown; by its epoch it supersedes the old file's rest;
4. only now the waiting sends are refused: nothing of them can come back.

If 1, 2 or 3 fails, the log goes offline and the waiting sends end *unknown*: the next start may find them or not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from hubweir.env import Result
from hubweir.errors import CorruptStore, LogOffline, StoreError
from hubweir.messaging_store.batch_scan import Place
from hubweir.messaging_store.group_commit import GroupCommit
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.log_state import Entry, LogState
from hubweir.messaging_store.record import headers_of
from hubweir.messaging_store.recovery import recover
from hubweir.messaging_store.segment import ActiveSegment, create
from hubweir.messaging_store.segment_files import SegmentIndexes


class EpochSource(Protocol):
    """Whoever keeps the store's EPOCH file."""

    def take_epoch(self, on_done: Callable[[Result[int]], None]) -> None:
        """Make the next epoch durable, away from the loop; answer with it on the loop."""


def recover_from_failure(
    state: LogState, commit: GroupCommit, epochs: EpochSource, error: OSError, entries: list[Entry]
) -> None:
    """Run the four steps above; commit starts no round until they are over."""
    waiting = entries + commit.drain_for_failure()
    old, state.active = state.active, None
    state.offline = f"log {state.log_id}: {error.strerror or error}; a new segment is being made"
    state.counters.add("log.failed_syncs")

    def epoch_taken(result: Result[int]) -> None:
        try:
            state.writer_epoch = result.value()
        except (OSError, StoreError) as failure:
            _give_up(state, commit, failure, waiting)
            return
        shown = state.tail.runs_from(state.synced.index) if state.visible.index > state.synced.index else []
        header = state.new_header(state.synced, state.env.now_ms())

        def make_segment() -> ActiveSegment:
            if old is not None:
                with suppress(OSError):
                    old.file.close()
            found = recover(state.env.files, state.folder, state.log_id, upto=state.synced.index)
            if found.end.index < state.synced.index and found.segments:
                raise CorruptStore(
                    f"log {state.log_id}: records from {found.end.index} on, once synced, cannot be read"
                )
            return create(state.env.files, state.folder, header, [shown] if shown else [])

        def made(outcome: Result[ActiveSegment]) -> None:
            try:
                segment = outcome.value()
            except (OSError, StoreError) as failure:
                _give_up(state, commit, failure, waiting)
                return
            state.started(segment)
            _note_shown(state, segment, shown)
            state.synced = state.appended = state.visible
            state.offline = None
            _refuse(state, waiting, known=True)
            commit.resume()

        state.env.offload(make_segment, made)

    epochs.take_epoch(epoch_taken)


def _note_shown(state: LogState, segment: ActiveSegment, shown: list[memoryview]) -> None:
    """Index what was rewritten from memory."""
    known = state.active_segment
    assert known is not None
    known.indexes = SegmentIndexes()
    position = segment.end - sum(len(data) for data in shown)
    for data in shown:
        for header in headers_of(data):
            place = Place(position + header.position, header.first_index, header.first_offset)
            known.indexes.note(place, header.enqueued_time_ms)
        position += len(data)
    known.end_position = segment.end


def _give_up(state: LogState, commit: GroupCommit, failure: Exception, waiting: list[Entry]) -> None:
    state.offline = f"log {state.log_id}: cannot be written since a failed sync: {failure}"
    state.appended = state.visible
    state.alarm(state.offline)
    _refuse(state, waiting, known=False)
    commit.resume()


def _refuse(state: LogState, waiting: list[Entry], *, known: bool) -> None:
    text = state.offline or f"log {state.log_id}: a sync failed; nothing of this was stored, send it again"
    state.counters.add("log.refused", len(waiting))
    for entry in waiting:
        if entry.on_done is not None:
            entry.on_done(Refused(LogOffline(text), known))
