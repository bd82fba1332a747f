"""Limits how long a read waits for a service that is away: a query outlives a restart, and does not wait for ever."""

from __future__ import annotations

import logging
import time

from hubweir.errors import ServiceError

logger = logging.getLogger(__name__)


class Absence:
    """The time in which an event hub does not answer one asker. hub: its name; limit_s: the operationTimeout."""

    def __init__(self, hub: str, limit_s: float) -> None:
        self._hub = hub
        self._limit_s = limit_s
        self._since_s: float | None = None

    def may_go_on(self, error: ServiceError, asked_s: float) -> bool:
        """A question of asked_s (monotonic) ended so: whether to ask again. One warning for each absence."""
        if not error.condition.retriable:
            return False
        if self._since_s is None:
            self._since_s = asked_s
            logger.warning(
                "event hub '%s' does not answer; it is asked again for %.0f s, the operationTimeout: %s",
                self._hub, self._limit_s, error.text,
            )  # fmt: skip
        return time.monotonic() - self._since_s < self._limit_s

    def ended(self) -> bool:
        """An answer came; whether there was an absence."""
        was_away, self._since_s = self._since_s is not None, None
        return was_away
