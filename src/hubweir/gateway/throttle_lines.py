"""What the log is told of a namespace that is over its throughput units: a line when it begins to be refused."""

from __future__ import annotations

import logging

from hubweir.env import Env
from hubweir.service_log import THROTTLED

logger = logging.getLogger(__name__)

QUIET_MS = 60_000  # without a refusal; then the next one is a beginning again


class ThrottleLines:
    """See the module's text."""

    def __init__(self, env: Env, namespace: str) -> None:
        self._env = env
        self._namespace = namespace
        self._last_ms: int | None = None

    def refused(self, text: str) -> None:
        """A send was refused just now, in these words."""
        now_ms, last_ms = self._env.monotonic_ms(), self._last_ms
        self._last_ms = now_ms
        if last_ms is None or now_ms - last_ms >= QUIET_MS:
            THROTTLED.say(logger, namespace=self._namespace, text=text)
