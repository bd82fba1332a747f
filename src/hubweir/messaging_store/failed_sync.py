"""What a log does when a write or a sync fails (rule R9). A failed sync is final: it is never tried again.

The kernel may have thrown the unsynced pages away and will say so only once; the page cache is no evidence. So:

1. the store takes a new writer epoch and makes it durable;
2. everything above the last good sync is dropped, but for what relaxed mode already showed to readers, which is still
   in memory; the files are looked at again by recovery, up to that sync;
3. a new segment is made from there on, with what was shown; by its epoch it supersedes the old file's rest;
4. only now the waiting sends are refused: nothing of them can come back.

A fault of ours in a step of the log (steps.py) ends here too: what was being written ends *unknown*, what only waited
is refused, and the same steps make the log anew from what is durable, a second later.

If 1, 2 or 3 fails, the log goes offline and the waiting sends end *unknown*: the next start may find them or not. An
offline log tries the steps again by itself, under yet another epoch, after 1 s and then ever later, up to every 30 s:
`log.offline_retries` counts, and an alarm stands until it works.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from hubweir.env import Result, Timer
from hubweir.errors import CorruptStore, LogFenced, LogOffline, StoreError
from hubweir.messaging_store.carried_over import carried_over, superseded_whole
from hubweir.messaging_store.group_commit import GroupCommit
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.log_state import Entry, LogState, tell
from hubweir.messaging_store.recovery import recover
from hubweir.messaging_store.segment import ActiveSegment, SegmentHeader, create
from hubweir.messaging_store.segment_files import Segment, SegmentIndexes

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
        self._alarm: str | None = None  # what was told when the log went offline
        self._is_running = False

    def failed(self, error: OSError, entries: list[Entry]) -> None:
        """Run the four steps above; commit starts no round until they are over."""
        state = self._state
        waiting = entries + self._commit.drain_for_failure()
        state.offline = f"log {state.log_id}: {error.strerror or error}; a new segment is being made"
        state.counters.add("log.failed_syncs")
        self._start(waiting)

    def faulted(self, fault: Exception) -> None:
        """A step of the log raised what nobody expected: offline from now on, and repaired."""
        state = self._state
        if self._is_running or self._timer is not None:
            return  # offline already, and about to be made anew
        state.offline = state.offline or f"log {state.log_id}: {_reason(fault)}"
        state.steps.when_written(lambda: self._stop_all(fault))

    def _stop_all(self, fault: Exception) -> None:
        state, commit = self._state, self._commit
        if self._is_running or self._timer is not None:
            return
        being_written, waiting = commit.drain_for_fault()
        self._refuse(waiting, known=True)  # of these no file holds anything
        state.tail.forget_from(state.visible.index)
        self._give_up(fault, being_written)

    def stop(self) -> None:
        """The log closes: it is not tried any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self, waiting: list[Entry]) -> None:
        state, epochs = self._state, self._epochs
        self._is_running = True
        old, state.active = state.active, None

        def epoch_taken(result: Result[int]) -> None:
            try:
                state.writer_epoch = result.value()
                # A control batch takes no index: it may have been shown and not synced, though no record was.
                is_shown = state.visible.index > state.synced.index or self._commit.unsynced_bytes > 0
                shown = state.tail.runs_from(state.synced.index) if is_shown else []
                header = state.new_header(state.synced, state.env.now_ms())
                before = superseded_whole(state.segments, header.first_index)
                state.steps.away(
                    lambda: _make_segment(state, old, header, shown, before), lambda made: ended(made, shown)
                )
            except Exception as failure:  # a fault of ours as well: the log must not stay half repaired
                self._give_up(failure, waiting)

        def ended(made: Result[ActiveSegment], shown: list[memoryview]) -> None:
            try:
                segment = made.value()
                state.started(segment)
                _note_shown(state, segment, shown)
            except Exception as failure:  # as above
                self._give_up(failure, waiting)
            else:
                self._succeeded(waiting)

        epochs.take_epoch(epoch_taken)

    def _succeeded(self, waiting: list[Entry]) -> None:
        state = self._state
        self._is_running = False
        state.synced = state.appended = state.visible
        state.offline = None
        if self._alarm is not None:
            state.alarms.remove(self._alarm)
            state.counters.add("log.offline_healed")
            self._alarm = None
        self._delay_ms = FIRST_RETRY_MS
        self._refuse(waiting, known=True)
        self._commit.resume()

    def _give_up(self, failure: Exception, waiting: list[Entry]) -> None:
        """Offline. The waiting sends end unknown, whatever a later try finds: it drops what was not synced."""
        state = self._state
        self._is_running = False
        if not isinstance(failure, OSError | StoreError):
            state.steps.report(failure)
        state.offline = (
            f"log {state.log_id}: {_reason(failure)}; "
            f"it is tried again within {LAST_RETRY_MS // 1000} s, and reads go on"
        )
        state.appended = state.visible
        if self._alarm is None:
            self._alarm = state.offline
            state.alarm(state.offline)
        if isinstance(failure, LogFenced):
            state.fenced = True
        elif not state.closing:
            self._timer = state.steps.later(self._delay_ms, self._again)
            self._delay_ms = min(2 * self._delay_ms, LAST_RETRY_MS)
        self._refuse(waiting, known=False)
        self._commit.resume()

    def _again(self) -> None:
        self._timer = None
        self._state.counters.add("log.offline_retries")
        self._start(self._commit.drain_for_failure())

    def _refuse(self, waiting: list[Entry], *, known: bool) -> None:
        """As _refuse; a fault of whoever waits is told of, and does not keep the log from coming back."""
        try:
            _refuse(self._state, waiting, known=known)
        except Exception as fault:
            self._state.steps.report(fault)


def _make_segment(
    state: LogState,
    old: ActiveSegment | None,
    header: SegmentHeader,
    shown: list[memoryview],
    before: Segment | None,
) -> ActiveSegment:
    """Steps 2 and 3; blocking."""
    if old is not None:
        with suppress(OSError):
            old.file.close()
    found = recover(state.env.files, state.folder, state.log_id, upto=state.synced.index)
    if found.end.index < state.synced.index and found.segments:
        raise CorruptStore(f"log {state.log_id}: records from {found.end.index} on, once synced, cannot be read")
    carried = carried_over(state.env.files, before)
    # What was shown begins behind records only; before the first one everything is carried over already.
    content = [part for part in (carried, shown) if part]
    return state.reserve.use_for(lambda: create(state.env.files, state.folder, header, content))


def _note_shown(state: LogState, segment: ActiveSegment, shown: list[memoryview]) -> None:
    """Index what was rewritten from memory."""
    known = state.active_segment
    assert known is not None
    if known.indexes is None:
        known.indexes = SegmentIndexes()
    position = segment.end - sum(len(data) for data in shown)
    for data in shown:
        known.indexes.note_run(data, position)
        position += len(data)
    known.end_position = segment.end


def _refuse(state: LogState, waiting: list[Entry], *, known: bool) -> None:
    text = state.offline or f"log {state.log_id}: a sync failed; nothing of this was stored, send it again"
    state.counters.add("log.refused", len(waiting))
    refused = Refused(LogOffline(text), known)
    tell(waiting, lambda entry: refused)


def _reason(failure: Exception) -> str:
    if isinstance(failure, OSError | StoreError):
        return f"cannot be written since a failed sync: {failure}"
    return f"stopped by a fault of the service ({type(failure).__name__}: {failure}), which is in its log"
