"""Runs the steps that a log takes by itself on the loop, and catches exceptions that nobody expected. (Rule R4)

A step is the end of a call away from the loop, a timer, or the flush at the end of a turn. What escapes from one has
left the log as nobody thought of it: waiting sends might never be answered, and what is in memory may be wrong. So the
log stops, loudly: `on_fault` is told at once, which takes it offline (failed_sync.py), and nothing else of the process
notices. Errors of the disk are no such faults; the steps themselves deal with those.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from hubweir.counters import Counters
from hubweir.env import Env, Lane, Result, Timer

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Steps:
    """The steps of one log. on_fault: whoever stops the log sets it.

    What waits is a partial, not a closure with its cells: every append makes some, and collections look at each object.
    """

    __slots__ = ("_counters", "_env", "_log_id", "_when_written", "_writes", "on_fault")

    def __init__(self, env: Env, log_id: str, counters: Counters) -> None:
        self._env = env
        self._log_id = log_id
        self._counters = counters
        self._writes = 0
        self._when_written: list[Callable[[], None]] = []
        self.on_fault: Callable[[Exception], None] = _nobody

    def run(self, step: Callable[[], None]) -> None:
        """Do a step now; never raises an Exception."""
        try:
            step()
        except Exception as fault:
            self.report(fault)
            self.on_fault(fault)

    def report(self, fault: Exception) -> None:
        """Tell of a fault in the service's log and its counters, and do nothing about it."""
        self._counters["log.faults"] += 1
        logger.error("log %s: a fault of the service", self._log_id, exc_info=fault)

    def soon(self, step: Callable[[], None]) -> None:
        """Env.call_soon."""
        self._env.call_soon(partial(self.run, step))

    def at_turn_end(self, step: Callable[[], None]) -> None:
        """Env.at_turn_end."""
        self._env.at_turn_end(partial(self.run, step))

    def later(self, delay_ms: int, step: Callable[[], None]) -> Timer:
        """Env.call_later."""
        return self._env.call_later(delay_ms, partial(self.run, step))

    def away(self, lane: Lane, call: Callable[[], T], done: Callable[[Result[T]], None]) -> None:
        """Env.offload; done is a step."""
        self._env.offload(lane, call, partial(self._ended, done))

    def write_away(self, call: Callable[[], T], done: Callable[[Result[T]], None]) -> None:
        """The same for a write or a sync of the file that is being appended to; see when_written."""
        self._env.offload(Lane.WRITES, call, partial(self._written, done))
        self._writes += 1

    def _ended(self, done: Callable[[Result[Any]], None], result: Result[Any]) -> None:
        self.run(partial(done, result))

    def _written(self, done: Callable[[Result[Any]], None], result: Result[Any]) -> None:
        self._writes -= 1
        self.run(partial(done, result))
        if not self._writes and self._when_written:
            waiting, self._when_written = self._when_written, []
            for callback in waiting:
                self.soon(callback)

    def when_written(self, callback: Callable[[], None]) -> None:
        """Call back, never inside this call, when no call uses the file: only then it may be closed."""
        if self._writes:
            self._when_written.append(callback)
        else:
            self.soon(callback)

    def let_go(self) -> None:
        """The log is closed: a fault is only reported from now on, and whoever would stop the log is forgotten."""
        self.on_fault = _nobody


def _nobody(fault: Exception) -> None:
    """Nobody stops the log: it is being made, and whoever makes it sees the exception itself, or it is closed."""
