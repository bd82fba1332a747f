"""Retries calls to a service that does not serve one asker: a query outlives a restart, and does not wait for ever.

The client tries a call a few times by itself (hub_connection.py), which is for a connection that broke. What is here
goes on after that, for as long as the options of a source or a sink say.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from random import SystemRandom
from typing import TypeVar

from hubweir.client.retry import RetryPolicy
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import Condition, ServiceError

T = TypeVar("T")

logger = logging.getLogger(__name__)

# Short: before each try the client has waited, too.
_WAITS = RetryPolicy(attempts=1, first_s=0.05, longest_s=0.5)
_TOLD_EVERY_S = 60.0
_CHANCE = SystemRandom()  # without a state: a reader travels with its Patience, and workers are forked


class Patience:
    """Of one asker: how long the service has not served it, and whether it asks again.

    what: names what is asked, in texts. limit_s: the operationTimeout, for which it may be away. busy: conditions by
    which it says that it is there, and wants to be asked again: these are met for as long as it takes. silent_s: how
    long the log is told nothing; from then on it is told every minute.
    """

    def __init__(
        self,
        what: str,
        limit_s: float,
        *,
        busy: tuple[Condition, ...] = (),
        silent_s: float = 0.0,
        waits: RetryPolicy = _WAITS,
    ) -> None:
        self.what = what
        self.back_s = 0.0  # when the last trouble ended, by the monotonic clock
        self._limit_s = limit_s
        self._busy = busy
        self._silent_s = silent_s
        self._waits = waits
        self._tried = 0
        self._since_s = 0.0
        self._heard_s = 0.0  # when the service last answered, even if only "busy": it is reachable
        self._told_s = 0.0

    @property
    def away_s(self) -> float:
        """How long the service has been away: neither served nor said that it is busy."""
        return time.monotonic() - self._heard_s

    def may_go_on(self, error: ServiceError, asked_s: float | None = None) -> bool:
        """A call that began at asked_s (monotonic; None: now) ended so: whether to make it again."""
        if not may_pass(error):
            return False
        now_s = time.monotonic()
        if not self._tried:
            self._since_s = self._heard_s = now_s if asked_s is None else asked_s
            self._told_s = now_s + self._silent_s - _TOLD_EVERY_S
        self._tried += 1
        if error.condition in self._busy:
            self._heard_s = now_s
        if now_s - self._told_s >= _TOLD_EVERY_S:
            self._told_s = now_s
            logger.warning(
                "%s has not served for %.0f s. It is asked again until it was away for %.0f s, the operationTimeout: "
                "%s", self.what, now_s - self._since_s, self._limit_s, error.text,
            )  # fmt: skip
        return now_s - self._heard_s <= self._limit_s

    def rest(self, error: ServiceError, asked_s: float | None = None) -> None:
        """Wait before the next try. The error itself when no try can help, or when the service is away for too long."""
        if not self.may_go_on(error, asked_s):
            raise error
        self.pause()

    def pause(self) -> None:
        """Wait before the next try: longer each time."""
        time.sleep(self._waits.wait_s(self._tried, _CHANCE))

    def tried(self, step: Callable[[], T]) -> T:
        """Do step until it succeeds. ServiceError as of rest."""
        while True:
            asked_s = time.monotonic()
            try:
                found = step()
            except ServiceError as error:
                self.rest(error, asked_s)
            else:
                self.succeeded()
                return found

    def succeeded(self) -> None:
        """The service served: the next trouble is a new one."""
        if self._tried:
            self._tried, self.back_s = 0, time.monotonic()


def may_pass(error: ServiceError) -> bool:
    """Whether another try can help."""
    return error.condition.retriable or isinstance(error, OutcomeUnknown)
