"""HTTP with a guard: a request is answered, and no request head is too long, too wide or too slow."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from hubweir.drivers.http_driver import HEAD_BYTES, HEADER_COUNT, LINE_BYTES, HttpDriver
from hubweir.drivers.port_switch import PortSwitch
from hubweir.limits import PortLimits

Run = Callable[[Coroutine[Any, Any, Any]], Any]


async def application(scope: dict[str, Any], receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


def port_of(new_protocol: Any) -> PortSwitch:
    """A port of a driver under test."""
    return PortSwitch(amqp=lambda peer: pytest.fail("not AMQP"), http=new_protocol, tls=None, limits=PortLimits())


async def ask(data: bytes, *, head_time_ms: int = 10_000, wait: bool = True) -> bytes:
    """Send bytes to a guarded server and return all that it answers until it closes, or the first answer."""
    http = HttpDriver(application, limits=PortLimits(http_head_ms=head_time_ms))
    switch = port_of(http.new_protocol)
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
        http = HttpDriver(application, limits=PortLimits())
        switch = port_of(http.new_protocol)
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
    """Attack 79: the head."""
    answer = run(ask(b"GET / HTTP/1.1\r\nhost", head_time_ms=50))
    assert answer.split(b" ")[1] == b"408"


def test_bytes_that_are_no_request_are_refused(run: Run) -> None:
    assert run(ask(b"\x00\x01 nothing of the kind\r\n\r\n")).split(b" ")[1] == b"400"


# What two readers may understand differently. Each is a POST with a body, and a second request hidden behind it.

CONTROL = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


def post(*fields: bytes, body: bytes = b"hello") -> bytes:
    return b"POST / HTTP/1.1\r\nhost: x\r\n" + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body


@pytest.mark.parametrize("request_bytes", [CONTROL, CHUNKED], ids=["length", "chunks"])
def test_a_plain_request_and_the_one_behind_it_are_answered(run: Run, request_bytes: bytes) -> None:
    assert run(ask_all(request_bytes + HIDDEN)).count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.parametrize(
    "request_bytes",
    [
        post(b"content-length: 5", b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
        post(b"transfer-encoding: chunked", b"content-length: 5", body=b"0\r\n\r\n"),
        post(b"content-length: 5", b"content-length: 5"),
        post(b"content-length: 5", b"content-length: 6"),
        post(b"content-length: 5, 5"),
        post(b"content-length: +5"),
        post(b"content-length: -5"),
        post(b"content-length: 0x5"),
        post(b"content-length: 5 5"),
        post(b"content-length: 99999999999999999999999"),
        post(b"transfer-encoding: chunked", b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
        post(b"transfer-encoding: chunked, chunked", body=b"0\r\n\r\n"),
        post(b"transfer-encoding: xchunked", body=b"0\r\n\r\n"),
        post(b"transfer-encoding: gzip, chunked", body=b"0\r\n\r\n"),
        post(b"transfer-encoding: \x0bchunked", body=b"0\r\n\r\n"),
        post(b"transfer-encoding: identity"),
        post(b"transfer-encoding : chunked", body=b"0\r\n\r\n"),
        post(b"x: y\r\n transfer-encoding: chunked", b"content-length: 5"),
        post(b"x: y\ntransfer-encoding: chunked", b"content-length: 5"),
        post(b"x: y\rtransfer-encoding: chunked", b"content-length: 5"),
        post(b"x: y\x00z", b"content-length: 5"),
        post(b": y", b"content-length: 5"),
        post(b"transfer-encoding: chunked", body=b"-1\r\n"),
        post(b"transfer-encoding: chunked", body=b"0x5\r\nhello\r\n0\r\n\r\n"),
        post(b"transfer-encoding: chunked", body=b"5\nhello\n0\n\n"),
        post(b"transfer-encoding: chunked", body=b"fffffffffffffffff\r\n"),
        post(b"transfer-encoding: chunked", body=b"0\r\nhost: y\r\n\r\n"),
        post(b"host: y", b"content-length: 5"),
        b"POST / HTTP/1.1\ncontent-length: 5\nhost: x\n\nhello",
        b"POST http://other/ HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello",
        b"POST / HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_a_request_with_two_meanings_is_refused_and_nothing_behind_it_is_read(run: Run, request_bytes: bytes) -> None:
    """Attacks 72 to 75."""
    answers = run(ask_all(request_bytes + HIDDEN))
    assert answers.count(b"HTTP/1.1 ") == 1
    assert answers.split(b" ")[1] in (b"400", b"501")


async def ask_all(
    data: bytes, *, serve: Any = application, head_time_ms: int = 10_000, window_ms: int = 10_000
) -> bytes:
    """Send bytes and return everything until the server closes."""
    http = HttpDriver(serve, limits=PortLimits(http_head_ms=head_time_ms))

    def new_protocol() -> asyncio.Protocol:
        protocol = http.new_protocol()
        protocol._body_window_ms = window_ms  # type: ignore[attr-defined]
        return protocol

    switch = port_of(new_protocol)
    reader, writer = await asyncio.open_connection(*switch.listen("127.0.0.1", 0))
    writer.write(data)
    answers = b""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(30):
            while piece := await reader.read(65_536):
                answers += piece
    writer.close()
    await http.close(grace_ms=1_000)
    await switch.close()
    return answers


async def reading(scope: dict[str, Any], receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    """Answers when the whole body is there."""
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    if message["type"] == "http.request":
        await application(scope, receive, send)


@pytest.mark.parametrize("head", [b"content-length: 100000", b"transfer-encoding: chunked"])
def test_a_body_that_trickles_in_is_refused(run: Run, head: bytes) -> None:
    """Attack 79: the body."""
    answer = run(ask_all(post(head, body=b"5\r\nhello\r\n"), serve=reading, window_ms=50))
    assert answer.split(b" ")[1] == b"408"


def test_a_thousand_requests_in_one_write_are_all_answered_in_order(run: Run) -> None:
    """Attack 80."""
    seen: list[bytes] = []

    async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope["raw_path"])
        await asyncio.sleep(0)
        await application(scope, receive, send)

    many = b"".join(b"GET /%d HTTP/1.1\r\nhost: x\r\n\r\n" % n for n in range(999))
    answers = run(ask_all(many + HIDDEN, serve=noting))
    assert answers.count(b"HTTP/1.1 200 OK") == 1_000
    assert seen == [b"/%d" % n for n in range(999)] + [b"/hidden"]


def test_what_is_malformed_behind_a_request_under_way_is_never_its_answer(run: Run) -> None:
    """The request may still take effect: its peer must not read 400 as its answer."""

    async def slow(scope: dict[str, Any], receive: Any, send: Any) -> None:
        await asyncio.sleep(0.05)
        await application(scope, receive, send)

    assert b"400" not in run(ask_all(CONTROL + b"\x00 nothing of the kind\r\n\r\n", serve=slow))


def test_an_upgrade_to_something_else_is_passed_over_and_ends_the_connection(run: Run) -> None:
    answers = run(ask_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n" + HIDDEN))
    assert answers.count(b"HTTP/1.1 200 OK") == 1


def test_header_names_are_kept_as_they_were_spelt(run: Run) -> None:
    spelt: list[bytes] = []

    async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
        spelt.extend(scope["extensions"]["hubweir.header_names"])
        await application(scope, receive, send)

    run(ask_all(b"GET / HTTP/1.1\r\nHost: x\r\nWindAlert: y\r\nconnection: close\r\n\r\n", serve=noting))
    assert spelt == [b"Host", b"WindAlert", b"connection"]


def test_a_peer_that_pipelines_without_end_is_read_no_faster_than_it_is_answered(run: Run) -> None:
    """Attack 80."""

    async def scenario() -> tuple[int, int]:
        answered = 0
        largest = 0
        enough = asyncio.Event()
        protocols: list[Any] = []

        async def noting(scope: dict[str, Any], receive: Any, send: Any) -> None:
            nonlocal answered, largest
            await asyncio.sleep(0)
            await application(scope, receive, send)
            answered += 1
            waiting = sum(len(cycle.body) for cycle, _ in protocols[0].pipeline)
            largest = max(largest, waiting + len(protocols[0]._held))
            if answered == 200:
                enough.set()

        http = HttpDriver(noting, limits=PortLimits())

        def new_protocol() -> asyncio.Protocol:
            protocols.append(http.new_protocol())
            return protocols[-1]

        switch = port_of(new_protocol)
        reader, writer = await asyncio.open_connection(*switch.listen("127.0.0.1", 0))
        # Without limits each answer would let another read in: the requests, and the last one's body, would pile up.
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * 300_000)
        try:
            async with asyncio.timeout(30):
                while not enough.is_set():
                    await reader.read(65_536)
        finally:
            writer.transport.abort()
            await http.close(grace_ms=0)
            await switch.close()
        return answered, largest

    answered, largest = run(scenario())
    assert answered >= 200
    assert largest < 1024 * 1024


def test_the_body_of_a_request_that_waits_is_not_read_ahead(run: Run) -> None:
    async def scenario() -> int:
        go_on, held_back = asyncio.Event(), asyncio.Event()
        protocols: list[Any] = []

        async def waiting(scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["raw_path"] == b"/wait":
                held_back.set()
                await go_on.wait()
            await asyncio.sleep(0.001)
            await application(scope, receive, send)

        http = HttpDriver(waiting, limits=PortLimits())

        def new_protocol() -> asyncio.Protocol:
            protocols.append(http.new_protocol())
            return protocols[-1]

        switch = port_of(new_protocol)
        _, writer = await asyncio.open_connection(*switch.listen("127.0.0.1", 0))
        small = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
        waits = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n"
        writer.write(small * 20 + waits + post(b"content-length: 8000000", body=b"x" * 8_000_000))
        await held_back.wait()
        for _ in range(50):  # turns of the loop in which more would be read
            await asyncio.sleep(0.001)
        read_ahead = sum(len(cycle.body) for cycle, _ in protocols[0].pipeline)
        writer.transport.abort()
        await http.close(grace_ms=0)
        await switch.close()
        return read_ahead

    assert run(scenario()) < 1024 * 1024


def test_a_request_that_does_not_end_is_ended_with_the_driver(run: Run) -> None:
    async def scenario() -> list[str]:
        began = asyncio.Event()
        heard: list[str] = []

        async def endless(scope: dict[str, Any], receive: Any, send: Any) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard.append("cancelled")
                raise

        http = HttpDriver(endless, limits=PortLimits())
        switch = port_of(http.new_protocol)
        reader, writer = await asyncio.open_connection(*switch.listen("127.0.0.1", 0))
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        await began.wait()
        await http.close(grace_ms=0)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        await switch.close()
        return heard

    assert run(scenario()) == ["cancelled"]
