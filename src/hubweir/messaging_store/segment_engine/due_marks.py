"""Tells the idle logs of one store when their marks are due: one timer for all, and some marks a turn of the loop.

A timer for each log would be ten more objects for each send that garbage collections look at, and after a burst to a
thousand logs all would be due in one turn.
"""

from __future__ import annotations

from itertools import islice
from typing import Protocol

from hubweir.env import Env, Timer

# A mark is an append: 0.1 ms, and as much when its log takes it up.
MARKS_AT_ONCE = 32


class Mark(Protocol):
    """The mark of one log (idle_mark.py)."""

    def due(self) -> None:
        """Its time has come. Raises no Exception."""


class DueMarks:
    """Every mark waits equally long, so they are due in the order in which their time began."""

    def __init__(self, env: Env, delay_ms: int) -> None:
        self._env = env
        self._delay_ms = delay_ms
        self._due_ms: dict[Mark, int] = {}  # on the monotonic clock, in order
        self._timer: Timer | None = None

    def begin(self, mark: Mark) -> None:
        """The time of a mark begins now, also when it had begun before."""
        self._due_ms.pop(mark, None)
        self._due_ms[mark] = self._env.monotonic_ms() + self._delay_ms
        if self._timer is None:
            self._set_timer()

    def forget(self, mark: Mark) -> None:
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
