"""Repairs a log behind a failed write or sync (rule R9). A failed sync is final: it is never tried again.

The kernel may have thrown the unsynced pages away and will say so only once; the page cache is no evidence. So:

1. the store takes a new writer epoch and makes it durable;
2. everything above the last good sync is dropped, but for what relaxed mode already showed to readers, which is still
   in memory;
3. a new segment is made from there on, with what was shown; by its epoch it supersedes the old file's rest;
4. only now the waiting sends are refused: nothing of them can come back.

A fault of ours in a step of the log (steps.py) ends here too: what was being written ends *unknown*, what only waited
is refused, and the same steps make the log anew from what is durable, a second later.

No other file is touched: retention, snapshots, indexes and capture go on with theirs in the log's folder meanwhile.

If 1 or 3 fails, the log goes offline and the waiting sends end *unknown*: the next start may find them or not. An
offline log tries the steps again by itself, under yet another epoch, after 1 s and then ever later, up to every 30 s:
`log.offline_retries` counts, and an alarm stands until it works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from hubweir.alarms import LOG_OFFLINE
from hubweir.env import Files, Lane, Result, Timer
from hubweir.errors import LogFenced, LogOffline, StoreError
from hubweir.messaging_store.disk.segment import ActiveSegment, SegmentHeader
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.segment_engine.group_commit import GroupCommit
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.roll import begins_with, close_failed, superseded_whole
from hubweir.messaging_store.segment_engine.waiting import Entry, tell
from hubweir.messaging_store.segment_engine.write_round import check_behind_write
from hubweir.service_log import REPAIRED

logger = logging.getLogger(__name__)

# Each try takes an epoch and reads the newest segment's end: seldom enough to cost nothing on a disk that stays broken.
FIRST_RETRY_MS, LAST_RETRY_MS = 1000, 30_000


class EpochSource(Protocol):
    """Whoever keeps the store's EPOCH file."""

    def take_epoch(self, on_done: Callable[[Result[int]], None]) -> None:
        """Make the next epoch durable, away from the loop; answer with it on the loop."""


class Repair:
    """The repairs of one log: after a failure, and again and again while the log is offline, until `stop`."""

    def __init__(self, state: LogState, commit: GroupCommit, epochs: EpochSource) -> None:
        self._state = state
        self._commit = commit
        self._epochs = epochs
        self._delay_ms = FIRST_RETRY_MS
        self._timer: Timer | None = None
        self._is_told = False  # an alarm stands, for it did not come back at once
        self._is_running = False
        self._left: ActiveSegment | None = None  # what was appended to when the log failed; not used again

    def failed(self, error: OSError, entries: list[Entry]) -> None:
        """Run the four steps above; commit starts no round until they are over."""
        state = self._state
        waiting = entries + self._commit.drain_for_failure()
        state.health.go_offline(f"log {state.log_id}: {error.strerror or error}; a new segment is being made")
        state.counters["log.failed_syncs"] += 1
        self._start(waiting)

    def faulted(self, fault: Exception) -> None:
        """A step of the log raised what nobody expected: offline from now on, and repaired."""
        state = self._state
        if self._is_running or self._timer is not None:
            return  # offline already, and about to be made anew
        if state.health.offline is None:
            state.health.go_offline(f"log {state.log_id}: {_reason(fault)}")
        state.steps.when_written(lambda: self._stop_all(fault))

    def _stop_all(self, fault: Exception) -> None:
        state, commit = self._state, self._commit
        if self._is_running or self._timer is not None:
            return
        being_written, waiting = commit.drain_for_fault()
        self._refuse(waiting, known=True)  # of these no file holds anything
        state.tail.forget_from(state.visible.number)
        self._give_up(fault, being_written)

    def stop(self) -> None:
        """The log closes: it is not tried any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, waiting: list[Entry]) -> None:
        state, epochs = self._state, self._epochs
        self._is_running = True
        old = state.segments.give_up()
        if old is not None:
            close_failed(state, old)  # whatever becomes of the steps: it is not used again
        self._left = left = old or self._left

        def epoch_taken(result: Result[int]) -> None:
            try:
                state.writer_epoch = result.value()
                shown = state.tail.runs_from(state.synced.number)
                header = state.new_header(state.synced, superseded_whole(state.segments.kept, state.synced.index))
                state.steps.away(
                    Lane.RECOVERY,
                    lambda: _make_segment(state, left, header, shown),
                    lambda made: ended(made, shown),
                )
            except Exception as failure:  # a fault of ours as well: the log must not stay half repaired
                self._give_up(failure, waiting)

        def ended(made: Result[ActiveSegment], shown: list[memoryview]) -> None:
            try:
                segment = made.value()
                state.segments.started(segment)
                _note_shown(state, segment, shown)
            except Exception as failure:  # as above
                self._give_up(failure, waiting)
            else:
                self._succeeded(waiting)

        epochs.take_epoch(epoch_taken)

    def _succeeded(self, waiting: list[Entry]) -> None:
        state = self._state
        self._is_running, self._left = False, None
        self._commit.go_back(is_synced=True)
        state.health.come_back()
        text = f"it goes on behind a failure in a new segment, at record {state.visible.index}"
        REPAIRED.say(logger, log=state.about, text=f"{text}, writer epoch {state.writer_epoch}; {len(waiting)} refused")
        if self._is_told:
            state.alarms.end(LOG_OFFLINE, state.about)
            state.counters["log.offline_healed"] += 1
            self._is_told = False
        self._delay_ms = FIRST_RETRY_MS
        self._refuse(waiting, known=True)
        self._commit.resume()

    def _give_up(self, failure: Exception, waiting: list[Entry]) -> None:
        """Offline. The waiting sends end unknown, whatever a later try finds: it drops what was not synced."""
        state = self._state
        self._is_running = False
        if not isinstance(failure, OSError | StoreError):
            state.steps.report(failure)
        self._commit.go_back(is_synced=False)
        if not isinstance(failure, LogFenced):
            self._go_offline(failure)
        else:
            state.health.go_offline(str(failure))
        self._refuse(waiting, known=False)
        if isinstance(failure, LogFenced):
            state.health.fence(failure)
        self._commit.resume()

    def _go_offline(self, failure: Exception) -> None:
        """Tell it, and try again later."""
        state = self._state
        text = f"{_reason(failure)}; it is tried again within {LAST_RETRY_MS // 1000} s, and reads go on"
        state.health.go_offline(f"log {state.log_id}: {text}")
        if not state.health.is_closing:
            self._is_told = True
            state.alarms.begin(LOG_OFFLINE, state.about, text)
            self._timer = state.steps.later(self._delay_ms, self._again)
            self._delay_ms = min(2 * self._delay_ms, LAST_RETRY_MS)

    def _again(self) -> None:
        self._timer = None
        self._state.counters["log.offline_retries"] += 1
        self._start(self._commit.drain_for_failure())

    def _refuse(self, waiting: list[Entry], *, known: bool) -> None:
        """As _refuse; a fault of whoever waits is told of, and does not keep the log from coming back."""
        try:
            _refuse(self._state, waiting, known=known)
        except Exception as fault:
            self._state.steps.report(fault)


def _make_segment(
    state: LogState, left: ActiveSegment | None, header: SegmentHeader, shown: list[memoryview]
) -> ActiveSegment:
    """Steps 2 and 3; blocking."""
    # A mark above the last sync is not kept in memory, so its number is missing. No sync is due when the log appends
    # one, so the mark is the first batch above the sync: it stands before all that was shown, or alone.
    before = state.synced if shown else state.visible
    begin = begins_with(header, number=before.number, last_time_ms=before.last_time_ms)
    content = [part for part in (begin, shown) if part]
    end = state.visible
    segment = state.reserve.use_for(lambda: state.create_segment(header, content, index=end.index, offset=end.offset))
    try:
        check_behind_write(state)  # another owner may have found what is about to be told as refused
    except (LogFenced, OSError):
        segment.file.close()
        raise
    if left is not None:
        with suppress(OSError):  # only space: it goes with the file
            _cut(state.env.files, left)
    return segment


def _cut(files: Files, left: ActiveSegment) -> None:
    """Give back what is set aside behind a segment's end, and what failed there: all of that is superseded by now."""
    file = files.open(left.path)
    try:
        file.truncate(left.end)
    finally:
        file.close()


def _note_shown(state: LogState, segment: ActiveSegment, shown: list[memoryview]) -> None:
    """Index what was rewritten from memory."""
    known = state.segments.active_segment
    assert known is not None
    if known.indexes is None:
        known.indexes = SegmentIndexes()
    position = segment.end - sum(len(data) for data in shown)
    for data in shown:
        known.indexes.note_run(data, position)
        position += len(data)
    known.end_position = segment.end


def _refuse(state: LogState, waiting: list[Entry], *, known: bool) -> None:
    text = state.health.offline or f"log {state.log_id}: a sync failed; nothing of this was stored, send it again"
    state.counters["log.refused"] += len(waiting)
    refused = Refused(LogOffline(text), known)
    tell(waiting, refused)


def _reason(failure: Exception) -> str:
    if isinstance(failure, OSError | StoreError):
        return f"cannot be written since a failed sync: {failure}"
    return f"stopped by a fault of the service ({type(failure).__name__}: {failure}), which is in its log"
