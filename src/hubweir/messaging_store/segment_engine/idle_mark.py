"""The mark of an idle log, a control batch that vouches for the records before it, and when it is due. (Rule R10)

The last accepted batch has no successor whose `durable_upto` would vouch for it, so damage in it would look like a torn
tail. A log that falls idle therefore appends a mark within 1 s, and so does a clean stop. What remains: a batch that is
damaged in the second before a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from hubweir.env import Env, Timer
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import IDLE, pack_mark
from hubweir.messaging_store.log import Appended
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.waiting import Entry

# A mark is an append: 0.1 ms, and as much when its log takes it up.
MARKS_AT_ONCE = 32


class DueMarks:
    """Tells the idle logs of one store when their marks are due: one timer for all, and some marks a turn of the loop.

    Every mark waits equally long, so they are due in the order in which their time began. A timer for each log would be
    ten more objects for each send that garbage collections look at, and after a burst to a thousand logs all would be
    due in one turn.
    """

    def __init__(self, env: Env, delay_ms: int) -> None:
        self._env = env
        self._delay_ms = delay_ms
        self._due_ms: dict[IdleMark, int] = {}  # on the monotonic clock, in order
        self._timer: Timer | None = None

    def begin(self, mark: IdleMark) -> None:
        """The time of a mark begins now, also when it had begun before."""
        self._due_ms.pop(mark, None)
        self._due_ms[mark] = self._env.monotonic_ms() + self._delay_ms
        if self._timer is None:
            self._set_timer()

    def forget(self, mark: IdleMark) -> None:
        """It is not due any more."""
        self._due_ms.pop(mark, None)
        if not self._due_ms and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if self._due_ms:
            first_ms = next(iter(self._due_ms.values()))
            self._timer = self._env.call_later(max(0, first_ms - self._env.monotonic_ms()), self._rang)

    def _rang(self) -> None:
        """The timer may ring early: the time of the mark that it was set for began again meanwhile."""
        self._timer = None
        now_ms = self._env.monotonic_ms()
        due = [mark for mark, due_ms in islice(self._due_ms.items(), MARKS_AT_ONCE) if due_ms <= now_ms]
        for mark in due:
            del self._due_ms[mark]
        self._set_timer()
        for mark in due:
            mark.due()


class IdleMark:
    """Whether one log wants a mark.

    marks: of its store. is_idle: nothing is queued, written or unsynced. submit: appends the mark.
    """

    __slots__ = ("_is_idle", "_marked", "_marks", "_state", "_submit")

    def __init__(
        self, state: LogState, marks: DueMarks, is_idle: Callable[[], bool], submit: Callable[[Entry], None]
    ) -> None:
        self._state = state
        self._marks = marks
        self._is_idle = is_idle
        self._submit = submit
        self._marked = True  # the newest batch is a mark, or there is none

    def appended(self, *, is_mark: bool) -> None:
        """The newest batch is a mark now, or needs one."""
        self._marked = is_mark

    def stop(self) -> None:
        """No mark any more: the log closes, and that leaves one."""
        self._marks.forget(self)

    def let_go(self) -> None:
        """The log is closed: forget whom this asks and tells, for they hold this."""
        self._is_idle, self._submit = _never, _nobody

    def reset(self) -> None:
        """A step was cut short: the newest batch needs a mark, and none is due."""
        self.stop()
        self._marked = False

    def arm(self) -> None:
        """Start, or move back, the time at which the mark is due: some time without an append."""
        if self._is_wanted():
            self._marks.begin(self)

    def due(self) -> None:
        """That time has passed: append the mark, if the log is still idle. Raises no Exception."""
        self._state.steps.run(self._append_if_idle)

    def _append_if_idle(self) -> None:
        state = self._state
        if state.segments.active is None or not self._is_idle():
            self.arm()
        elif self._is_wanted():
            self._submit(mark_entry(state, IDLE))

    def _is_wanted(self) -> bool:
        state = self._state
        return not (self._marked or state.health.offline is not None or state.health.is_closing)


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
