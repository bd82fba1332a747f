"""Pauses one capture between blocks of a file, for as long as capture/pace.py computes."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.deadlines import BrokerDeadlines, Deadline
from hubweir.capture.pace import CapturePace, is_near
from hubweir.counters import Counters
from hubweir.env import Clock


class CaptureRest:
    """Used on the loop. counters: with those of the logs. quota_bytes: how far behind retention waits for it."""

    def __init__(
        self, clock: Clock, deadlines: BrokerDeadlines, counters: Counters, pace: CapturePace, quota_bytes: int
    ) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._counters = counters
        self._pace = pace
        self._quota_bytes = quota_bytes
        self._is_at_work = False
        self._is_stopped = False
        self._begun_ms = 0
        self._end: Deadline | None = None
        self._go: Callable[[], None] | None = None

    def enter(self) -> None:
        """Work on a file begins."""
        self._is_at_work = True
        self._pace.enter(self._clock.monotonic_ms(), self._appended_bytes)

    def leave(self) -> None:
        """It is over, for now; does nothing when it never began."""
        if self._is_at_work:
            self._is_at_work = False
            self._pace.leave(self._clock.monotonic_ms(), self._appended_bytes)

    def begin_piece(self) -> None:
        """What is timed starts now."""
        self._begun_ms = self._clock.monotonic_ms()

    def end_piece(self, size: int, behind_bytes: int, go: Callable[[], None]) -> None:
        """A piece of so many bytes is done: call go, maybe at once, when the next one may begin."""
        now_ms = self._clock.monotonic_ms()
        rest_ms = self._pace.worked(size, now_ms - self._begun_ms, now_ms, self._appended_bytes)
        if rest_ms <= 0 or self._is_stopped or is_near(behind_bytes, self._quota_bytes):
            go()
        else:
            self._go = go
            self._end = self._deadlines.arm(now_ms + rest_ms, self)

    def due(self, key: None, now_ms: int) -> None:
        """It has rested long enough."""
        self._cut()

    def stop(self) -> None:
        """Rest no more: what was resting goes on now."""
        self._is_stopped = True
        self._cut()

    def _cut(self) -> None:
        go, self._go = self._go, None
        if self._end is not None:
            self._deadlines.cancel(self._end)
        if go is not None:
            go()

    @property
    def _appended_bytes(self) -> int:
        return self._counters["log.appended_bytes"]
