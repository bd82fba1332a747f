"""HTTP with a guard: a request is answered, and no request head is too long, too wide or too slow."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.http_driver import HEAD_BYTES, HEADER_COUNT, LINE_BYTES, HttpDriver
from hubweir.drivers.port_switch import PortSwitch

Run = Callable[[Coroutine[Any, Any, Any]], Any]


async def application(scope: dict[str, Any], receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def ask(data: bytes, *, head_time_ms: int = 10_000, wait: bool = True) -> bytes:
    """Send bytes to a guarded server and return all that it answers until it closes, or the first answer."""
    http = HttpDriver(application, head_time_ms=head_time_ms)
    switch = PortSwitch(amqp=lambda peer: pytest.fail("not AMQP"), http=http.new_protocol, tls=None)
    reader, writer = await asyncio.open_connection(*switch.listen("127.0.0.1", 0))
    writer.write(data)
    answer = await reader.read(10_000) if wait else b""
    writer.close()
    await http.close(grace_ms=1_000)
    await switch.close()
    return answer


def test_a_request_is_answered(run: Run) -> None:
    answer = run(ask(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"ok")


def test_two_requests_on_one_connection_are_both_answered(run: Run) -> None:
    async def scenario() -> bytes:
        http = HttpDriver(application)
        switch = PortSwitch(amqp=lambda peer: pytest.fail("not AMQP"), http=http.new_protocol, tls=None)
        reader, writer = await asyncio.open_connection(*switch.listen("127.0.0.1", 0))
        answers = b""
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            answers += await reader.readuntil(b"ok")
        writer.close()
        await http.close(grace_ms=1_000)
        await switch.close()
        return answers

    assert run(scenario()).count(b"200 OK") == 2


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"x-wide: " + b"w" * (HEAD_BYTES + 8192) + b"\r\n", b"431"),
        (b"x-never-ends: " + b"w" * (HEAD_BYTES + 8192), b"431"),
        (b"a: b\r\n" * (HEADER_COUNT + 1), b"431"),
        (b"a: b\r\n" * (HEADER_COUNT - 1), b"200"),
        (b"x-wide: " + b"w" * (HEAD_BYTES - 4200) + b"\r\n", b"200"),
    ],
    ids=["one long header", "a header without an end", "too many headers", "just enough headers", "just short enough"],
)
def test_the_head_of_a_request_has_limits(run: Run, head: bytes, status: bytes) -> None:
    answer = run(ask(b"GET / HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n"))
    assert answer.split(b" ")[1] == status


@pytest.mark.parametrize(("length", "status"), [(LINE_BYTES, b"200"), (LINE_BYTES + 1, b"414")])
def test_the_line_of_a_request_has_a_limit(run: Run, length: int, status: bytes) -> None:
    answer = run(ask(b"GET /" + b"p" * (length - 1) + b" HTTP/1.1\r\nhost: x\r\n\r\n"))
    assert answer.split(b" ")[1] == status


def test_a_slow_head_is_refused(run: Run) -> None:
    answer = run(ask(b"GET / HTTP/1.1\r\nhost", head_time_ms=50))
    assert answer.split(b" ")[1] == b"408"


def test_bytes_that_are_no_request_are_refused(run: Run) -> None:
    assert run(ask(b"\x00\x01 nothing of the kind\r\n\r\n")).split(b" ")[1] == b"400"
