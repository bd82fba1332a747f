"""hubweir health as a container's HEALTHCHECK calls it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.main import hubweir
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace


def health(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(hubweir, ["health", *arguments], env=environment)


def test_a_ready_service_is_healthy_wherever_the_port_is_said(namespace: RunningNamespace) -> None:
    port = str(namespace.port)
    by_flag = health("--port", port)
    assert (by_flag.exit_code, by_flag.output) == (0, f"127.0.0.1:{port}: Service is healthy.\n")
    assert health(HUBWEIR_PORT=port).output == by_flag.output
    assert health(HUBWEIR_PORT=port, HUBWEIR_HOST="0.0.0.0").output == by_flag.output


def test_nobody_there_is_unhealthy() -> None:
    held = HeldPorts()
    result = health("--port", str(held.numbers[0]))
    assert result.exit_code == 1 and "no answer" in result.output


@pytest.fixture
def answers() -> Iterator[dict[str, object]]:
    """A server that answers with the status and the body that stand here; `port` is where."""
    given: dict[str, object] = {"status": 200, "body": b""}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(str(given["status"])))
            self.end_headers()
            self.wfile.write(bytes(given["body"]))  # type: ignore[call-overload]

        def log_message(self, *text: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    given["port"] = str(server.server_port)
    yield given
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (503, b'{"status": "unhealthy", "message": "Service not available."}', "Service not available."),
        (503, b'{"status": "healthy", "message": "odd"}', "odd"),
        (200, b"<html>", "something else"),
        (200, b"[]", "something else"),
        (200, b'{"status": "healthy"}', "something else"),
    ],
)
def test_every_other_answer_is_unhealthy(answers: dict[str, object], status: int, body: bytes, text: str) -> None:
    answers |= {"status": status, "body": body}
    result = health("--port", str(answers["port"]))
    assert result.exit_code == 1 and text in result.output
