"""Retries one target's writes: for as long as the service is busy, and for a while when it is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from random import Random
from typing import TypeVar

from hubweir.client.retry import RetryPolicy
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import AUTH_FAILED, SERVER_BUSY, STORE_OFFLINE, UNAUTHORIZED, ServiceError

T = TypeVar("T")

logger = logging.getLogger(__name__)

_BUSY = (SERVER_BUSY, STORE_OFFLINE)
_WAITS = RetryPolicy(attempts=1, first_s=0.05, longest_s=5.0)
_TOLD_EVERY_S = 60.0


class Patience:
    """Counts the tries in a row of one target. what: names it in warnings."""

    def __init__(self, what: str, limit_s: float) -> None:
        self._what = what
        self._limit_s = limit_s
        self._random = Random()
        self._tried = 0
        self._since_s = 0.0
        self._heard_s = 0.0  # when the service last answered, even if only "busy": it is reachable
        self._told_s = 0.0

    def rest(self, error: ServiceError, rows: str = "") -> None:
        """Wait before the next try. A ServiceError of the same condition, when no try can help, or the service was away
        for longer than the limit. rows: what was sent, for its text.

        A busy service is waited for as long as it says so: the task lives, the query falls behind, nothing is lost.
        """
        now_s = time.monotonic()
        if self._tried == 0:
            self._since_s = self._heard_s = self._told_s = now_s
        is_away = isinstance(error, OutcomeUnknown) or error.condition.retriable
        if not is_away:
            what = f"{self._what} takes no {rows or 'writes of this task'}"
            if error.condition in (UNAUTHORIZED, AUTH_FAILED):
                what += "; the connectionString has to give the right Send there"
            raise ServiceError(error.condition, f"{what}: {error.text}") from error
        if error.condition in _BUSY:
            self._heard_s = now_s
        elif now_s - self._heard_s > self._limit_s:
            text = f"{self._what} took nothing for {now_s - self._heard_s:.0f} s, the operationTimeout: {error.text}"
            raise ServiceError(error.condition, text) from error
        if now_s - self._told_s >= _TOLD_EVERY_S:
            self._told_s = now_s
            logger.warning("%s takes nothing for %.0f s: %s", self._what, now_s - self._since_s, error.text)
        self._tried += 1
        time.sleep(_WAITS.wait_s(self._tried, self._random))

    def tried(self, step: Callable[[], T]) -> T:
        """Do step until it succeeds. ServiceError as of rest."""
        while True:
            try:
                found = step()
            except ServiceError as error:
                self.rest(error)
            else:
                self.succeeded()
                return found

    def succeeded(self) -> None:
        """Something was stored, or a link attached: the next trouble is a new one."""
        self._tried = 0
