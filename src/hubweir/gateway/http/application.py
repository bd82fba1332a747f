"""The HTTP door as one ASGI application: is the service alive, is it ready; everything else has no page yet.

`/health`, `/ready`, `/livez` and `/readyz` answer GET and HEAD with the JSON document of the official emulators: 200
`healthy` or 503 `unhealthy`. Ready turns 200 when every listener accepts and every partition is open, and back to 503
when the service begins to stop; health does the same unless it is given a rule of its own.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_HEALTHY = json.dumps({"status": "healthy", "message": "Service is healthy."}).encode()
_UNHEALTHY = json.dumps(
    {"status": "unhealthy", "message": "Service not available. Please try after some time."}
).encode()
_HEALTH_PATHS = ("/health", "/livez")
_READY_PATHS = ("/ready", "/readyz")


class Application:
    """See the module's text. is_ready: asked at each request. is_alive: None means that answering is proof enough."""

    def __init__(self, is_ready: Callable[[], bool], is_alive: Callable[[], bool] | None = None) -> None:
        self._is_ready = is_ready
        self._is_alive = is_alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # A WebSocket: no door here takes one yet. Closing before accepting makes the server answer 403.
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        status, body = self._answer(scope["method"], scope["path"])
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        if status == 405:
            headers.append((b"allow", b"GET, HEAD"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _answer(self, method: str, path: str) -> tuple[int, bytes]:
        """Status and JSON document of one request."""
        if path in _HEALTH_PATHS:
            good = self._is_ready() if self._is_alive is None else self._is_alive()
        elif path in _READY_PATHS:
            good = self._is_ready()
        else:
            return 404, _problem(404, "no page here; this port answers AMQP, and over HTTP /health and /ready")
        if method not in ("GET", "HEAD"):
            return 405, _problem(405, "this page is read with GET")
        return (200, _HEALTHY) if good else (503, _UNHEALTHY)


def _problem(code: int, detail: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": detail}}).encode()
