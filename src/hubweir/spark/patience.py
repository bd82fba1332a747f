"""How long one target's writes are tried again: while the service is busy, and for a while when it is away."""

from __future__ import annotations

import logging
import time
from random import Random

from hubweir.client.retry import RetryPolicy
from hubweir.client.sender import OutcomeUnknown
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE, ServiceError

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
        self._told_s = 0.0

    def rest(self, error: ServiceError) -> None:
        """Wait before the next try. The error itself, when no try can help, or the limit without success is over.

        A busy service is waited for as long as it says so: the task lives, the query falls behind, nothing is lost.
        """
        now_s = time.monotonic()
        if self._tried == 0:
            self._since_s = self._told_s = now_s
        is_away = isinstance(error, OutcomeUnknown) or error.condition.retriable
        if not is_away or (error.condition not in _BUSY and now_s - self._since_s > self._limit_s):
            raise error
        if now_s - self._told_s >= _TOLD_EVERY_S:
            self._told_s = now_s
            logger.warning("%s takes nothing for %.0f s: %s", self._what, now_s - self._since_s, error.text)
        self._tried += 1
        time.sleep(_WAITS.wait_s(self._tried, self._random))

    def succeeded(self) -> None:
        """Something was stored: the next trouble is a new one."""
        self._tried = 0
