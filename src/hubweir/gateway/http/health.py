"""Answers whether the service is alive and ready, with the JSON document of the official emulators.

`/health`, `/livez`, `/ready` and `/readyz` answer GET and HEAD: 200 `healthy` or 503 `unhealthy`. Health turns 200 when
every listener accepts and the catalog's partitions were opened, and back to 503 when the service begins to stop. Ready
is 503 besides while an alarm stands that keeps clients' requests from being served; its document has one member more,
`alarms`: how many of each kind stand. No entity is named: nobody has shown a token here (rule R23).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hubweir.alarms import Alarms
from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.problem import HttpRefusal

_HEALTHY = {"status": "healthy", "message": "Service is healthy."}
_UNHEALTHY = {"status": "unhealthy", "message": "Service not available. Please try after some time."}
HEALTH_PATHS = ("health", "livez")
READY_PATHS = ("ready", "readyz")


class Health:
    """See the module's text. is_running: asked at each request; begun and not about to stop."""

    def __init__(self, is_running: Callable[[], bool], alarms: Alarms) -> None:
        self._is_running = is_running
        self._alarms = alarms

    def answer(self, method: str, segments: tuple[str, ...]) -> Response | None:
        """The answer when the path is one of these pages, else None. HttpRefusal 405 for other methods."""
        if len(segments) != 1 or segments[0] not in HEALTH_PATHS + READY_PATHS:
            return None
        if method not in ("GET", "HEAD"):
            raise HttpRefusal(405, "This page is read with GET.", {"allow": "GET, HEAD"})
        is_ready_page = segments[0] in READY_PATHS
        is_good = self._is_running() and not (is_ready_page and self._alarms.blocks)
        status, told = (200, _HEALTHY) if is_good else (503, _UNHEALTHY)
        body = json.dumps({**told, "alarms": self._alarms.counts()} if is_ready_page else told).encode()
        return Response(status, body, "application/json", {"cache-control": "no-store"})
