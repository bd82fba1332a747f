"""The HTTP door: health, ready, and nothing else yet."""

import asyncio
import json
from typing import Any

import pytest

from hubweir.gateway.http.application import Application


def ask(application: Application, path: str, *, method: str = "GET") -> tuple[int, dict[bytes, bytes], bytes]:
    """Status, headers and body of one request."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("no page here reads a body")

    asyncio.run(application({"type": "http", "method": method, "path": path}, receive, send))
    start, body = sent
    return start["status"], dict(start["headers"]), body["body"]


@pytest.mark.parametrize("path", ["/health", "/livez", "/ready", "/readyz"])
def test_a_ready_service_answers_with_the_emulators_document(path: str) -> None:
    status, headers, body = ask(Application(lambda: True), path)
    assert status == 200
    assert json.loads(body) == {"status": "healthy", "message": "Service is healthy."}
    assert headers[b"content-type"] == b"application/json"
    assert int(headers[b"content-length"]) == len(body)


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_a_service_that_is_not_ready_answers_503(path: str) -> None:
    status, _, body = ask(Application(lambda: False), path)
    assert status == 503
    assert json.loads(body) == {
        "status": "unhealthy",
        "message": "Service not available. Please try after some time.",
    }


def test_a_service_that_stops_is_alive_and_not_ready() -> None:
    application = Application(lambda: False, lambda: True)
    assert ask(application, "/health")[0] == 200
    assert ask(application, "/ready")[0] == 503


def test_head_has_the_headers_and_no_body() -> None:
    status, headers, body = ask(Application(lambda: True), "/health", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers[b"content-length"]) > 0


def test_every_other_page_is_absent_and_says_what_there_is() -> None:
    status, _, body = ask(Application(lambda: True), "/hub/messages")
    assert status == 404
    assert "/health" in json.loads(body)["error"]["message"]


def test_other_methods_are_refused_with_what_is_allowed() -> None:
    status, headers, _ = ask(Application(lambda: True), "/health", method="POST")
    assert status == 405
    assert headers[b"allow"] == b"GET, HEAD"


def test_a_websocket_is_closed_before_it_opens() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    asyncio.run(Application(lambda: True)({"type": "websocket", "path": "/"}, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
