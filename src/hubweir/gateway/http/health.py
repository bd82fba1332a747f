"""Is the service alive, is it ready: the JSON document of the official emulators.

`/health`, `/livez`, `/ready` and `/readyz` answer GET and HEAD: 200 `healthy` or 503 `unhealthy`. Ready turns 200 when
every listener accepts and every partition is open, and back to 503 when the service begins to stop; health does the
same unless it is given a rule of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.problem import HttpRefusal

_HEALTHY = json.dumps({"status": "healthy", "message": "Service is healthy."}).encode()
_UNHEALTHY = json.dumps(
    {"status": "unhealthy", "message": "Service not available. Please try after some time."}
).encode()
HEALTH_PATHS = ("health", "livez")
READY_PATHS = ("ready", "readyz")


class Health:
    """See the module's text. is_ready: asked at each request. is_alive: None means that it is asked instead."""

    def __init__(self, is_ready: Callable[[], bool], is_alive: Callable[[], bool] | None = None) -> None:
        self._is_ready = is_ready
        self._is_alive = is_alive

    def answer(self, method: str, segments: tuple[str, ...]) -> Response | None:
        """The answer when the path is one of these pages, else None. HttpRefusal 405 for other methods."""
        if len(segments) != 1:
            return None
        if segments[0] in HEALTH_PATHS:
            good = self._is_ready() if self._is_alive is None else self._is_alive()
        elif segments[0] in READY_PATHS:
            good = self._is_ready()
        else:
            return None
        if method not in ("GET", "HEAD"):
            raise HttpRefusal(405, "This page is read with GET.", {"allow": "GET, HEAD"})
        status, body = (200, _HEALTHY) if good else (503, _UNHEALTHY)
        return Response(status, body, "application/json", {"cache-control": "no-store"})
