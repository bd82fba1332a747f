"""The time by which a request to a management node is to be answered, as its client says.

A client that waits no longer than it said gets an answer in that time: what it asked for, or that the outcome is not
known. It may then ask again over the same link. Two names are in use; Go writes a ulong. 0 is no time at all: Python
writes it when it waits for less than a second itself, and ends the wait without us.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.amqp.messaging.message import Message
from hubweir.env import Env, Timer
from hubweir.limits import TIME_LIMIT_MS

NAMES = ("com.microsoft:server-timeout", "server-timeout")


def server_timeout_ms(message: Message) -> int | None:
    """How long the client waits for the answer, in milliseconds; None: it does not say, or nothing that is a time."""
    said = message.application_properties or {}
    for name in NAMES:
        value = said.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return min(int(value), TIME_LIMIT_MS)
    return None


class AnswerDeadline:
    """Of one request that was handed to its broker: either its answer comes, or its time ends first."""

    def __init__(self, limit_ms: int | None, on_over: Callable[[], None]) -> None:
        """limit_ms None: no limit. on_over: called once, when the time ended before the answer."""
        self._limit_ms = limit_ms
        self._on_over = on_over
        self._is_answered = self._is_over = False
        self._timer: Timer | None = None

    def begin(self, env: Env) -> None:
        """Start the time. Most requests are answered before they come here, and need no timer."""
        if self._limit_ms is not None and not self._is_answered:
            self._timer = env.machine.call_later(self._limit_ms, self._end)

    def answered(self) -> bool:
        """The broker answered: True when that is in time, so that the client is to hear it."""
        self._is_answered = True
        self._on_over = _nothing  # which knows this deadline: no circle may be left
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return not self._is_over

    def _end(self) -> None:
        self._timer, self._is_over = None, True
        on_over, self._on_over = self._on_over, _nothing
        on_over()


def _nothing() -> None:
    """The time of a request that was answered ends for nobody."""
