"""The mark of an idle log: a control batch that vouches for the records before it. (Rule R10)

The last accepted batch has no successor whose `durable_upto` would vouch for it, so damage in it would look like a torn
tail. A log that falls idle therefore appends a mark within 1 s, and so does a clean stop. What remains: a batch that is
damaged in the second before a crash.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.env import Timer
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, pack_control
from hubweir.messaging_store.log import Appended
from hubweir.messaging_store.log_state import Entry, LogState


class IdleMark:
    """When the next mark is due. is_idle: nothing is queued, written or unsynced; submit: appends the mark."""

    __slots__ = ("_due_ms", "_is_idle", "_marked", "_state", "_submit", "_timer")

    def __init__(self, state: LogState, is_idle: Callable[[], bool], submit: Callable[[Entry], None]) -> None:
        self._state = state
        self._is_idle = is_idle
        self._submit = submit
        self._timer: Timer | None = None
        self._due_ms = 0
        self._marked = True  # the newest batch is a mark, or there is none

    def appended(self, *, is_mark: bool) -> None:
        """The newest batch is a mark now, or needs one."""
        self._marked = is_mark

    def stop(self) -> None:
        """No mark any more: the log closes, and that leaves one."""
        if self._timer is not None:
            self._timer.cancel()

    def reset(self) -> None:
        """A step was cut short: the newest batch needs a mark, and no timer is set."""
        self.stop()
        self._timer, self._marked = None, False

    def arm(self) -> None:
        """The log was busy a moment ago: the mark is due a while from now. One timer, moved when it fires too early."""
        state = self._state
        if self._marked or state.offline is not None or state.closing:
            return
        self._due_ms = state.env.monotonic_ms() + state.settings.idle_mark_ms
        if self._timer is None:
            self._timer = state.steps.later(state.settings.idle_mark_ms, self._fire)

    def _fire(self) -> None:
        self._timer = None
        state = self._state
        early = self._due_ms - state.env.monotonic_ms()
        if early > 0:
            self._timer = state.steps.later(early, self._fire)
        elif state.active is None or not self._is_idle():
            self.arm()
        elif not self._marked and state.offline is None and not state.closing:
            self._submit(mark_entry(state, IDLE))


def mark_entry(state: LogState, body: bytes) -> Entry:
    """A mark for the log's end, completed: everything below it is durable, and it says so."""
    end, run = state.appended, pack_control(CONTROL_IDLE_MARK, body)
    time_ms = max(state.env.now_ms(), end.last_time_ms)
    complete_run(
        run, nonce=state.nonce, first_index=end.index, first_offset=end.offset, enqueued_time_ms=time_ms,
        durable_upto=state.synced.index, writer_epoch=state.writer_epoch,
    )  # fmt: skip
    appended = Appended(end.index, end.index, end.offset, end.offset, time_ms)
    return Entry(run, end, end, appended, None, is_mark=True)
