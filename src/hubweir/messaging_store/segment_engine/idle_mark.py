"""The mark of an idle log: a control batch that vouches for the records before it. (Rule R10)

The last accepted batch has no successor whose `durable_upto` would vouch for it, so damage in it would look like a torn
tail. A log that falls idle therefore appends a mark within 1 s, and so does a clean stop. What remains: a batch that is
damaged in the second before a crash.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import IDLE, pack_mark
from hubweir.messaging_store.log import Appended
from hubweir.messaging_store.segment_engine.log_state import Entry, LogState


class IdleMark:
    """Whether a mark is wanted; due_marks.py says when.

    is_idle: nothing is queued, written or unsynced. submit: appends the mark.
    """

    __slots__ = ("_is_idle", "_marked", "_state", "_submit")

    def __init__(self, state: LogState, is_idle: Callable[[], bool], submit: Callable[[Entry], None]) -> None:
        self._state = state
        self._is_idle = is_idle
        self._submit = submit
        self._marked = True  # the newest batch is a mark, or there is none

    def appended(self, *, is_mark: bool) -> None:
        """The newest batch is a mark now, or needs one."""
        self._marked = is_mark

    def stop(self) -> None:
        """No mark any more: the log closes, and that leaves one."""
        self._state.marks.forget(self)

    def let_go(self) -> None:
        """The log is closed: forget whom this asks and tells, for they hold this."""
        self._is_idle, self._submit = _never, _nobody

    def reset(self) -> None:
        """A step was cut short: the newest batch needs a mark, and none is due."""
        self.stop()
        self._marked = False

    def arm(self) -> None:
        """Start, or move back, the time at which the mark is due: some time without an append (due_marks.py)."""
        if self._is_wanted():
            self._state.marks.begin(self)

    def due(self) -> None:
        """That time has passed: append the mark, if the log is still idle."""
        self._state.steps.run(self._append_if_idle)

    def _append_if_idle(self) -> None:
        state = self._state
        if state.active is None or not self._is_idle():
            self.arm()
        elif self._is_wanted():
            self._submit(mark_entry(state, IDLE))

    def _is_wanted(self) -> bool:
        state = self._state
        return not (self._marked or state.offline is not None or state.closing)


def _never() -> bool:
    """A closed log is never idle: it gets no mark."""
    return False


def _nobody(entry: Entry) -> None:
    """A closed log takes no mark."""


def mark_entry(state: LogState, body: bytes) -> Entry:
    """A mark for the log's end, completed: everything below it is durable, and it says so."""
    before, run = state.appended, pack_mark(body)
    time_ms = max(state.clock.stamp_ms(), before.last_time_ms)
    end = complete_run(
        run, before, nonce=state.nonce, enqueued_time_ms=time_ms, durable_upto=state.synced.number,
        writer_epoch=state.writer_epoch,
    )  # fmt: skip
    appended = Appended(before.index, end.index, before.offset, end.offset, time_ms)
    return Entry(run, before, end, appended, None, is_mark=True)
