"""One port, four ways in: AMQP and HTTP, each plain and over TLS; and peers that say nothing."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from hubweir.drivers.port_switch import PortSwitch
from hubweir.limits import PortLimits

Run = Callable[[Coroutine[Any, Any, Any]], Any]
HEADER = b"AMQP\x03\x01\x00\x00"


class Echo(asyncio.BufferedProtocol):
    """Stands for the AMQP driver: answers everything with its length and what it is."""

    def __init__(self, peer: str) -> None:
        assert "127.0.0.1" in peer
        self.buffer = bytearray(1000)
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def receive(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(b"amqp:" + data)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.receive(bytes(self.buffer[:nbytes]))


class Http(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(b"http:" + data)


async def check_service(address: tuple[str, int], tls: ssl.SSLContext | None = None) -> None:
    """A new connection is served."""
    reader, writer = await asyncio.open_connection(*address, ssl=tls)
    writer.write(HEADER)
    assert await reader.readexactly(13) == b"amqp:" + HEADER
    writer.close()


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([HEADER, b"more"], b"amqp:" + HEADER + b"amqp:more"),
        ([b"A", b"MQ", b"P\x00\x01\x00\x00"], b"amqp:AMQP\x00\x01\x00\x00"),
        ([b"GET / HTTP/1.1\r\n"], b"http:GET / HTTP/1.1\r\n"),
        ([b"A", b"CL / HTTP/1.1\r\n"], b"http:ACL / HTTP/1.1\r\n"),
    ],
    ids=["amqp", "amqp in pieces", "http", "http that begins with A"],
)
def test_first_bytes_choose_the_protocol_and_none_is_lost(
    run: Run,
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
    secure: bool,
    words: list[bytes],
    answer: bytes,
) -> None:
    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=contexts[0], limits=PortLimits())
        host, port = switch.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(host, port, ssl=contexts[1] if secure else None)
        for word in words[:-1]:
            writer.write(word)
            await asyncio.sleep(0.02)
        if answer.count(b"amqp:") == 2:
            assert await reader.readexactly(13) == answer[:13]
        writer.write(words[-1])
        rest = answer[13:] if answer.count(b"amqp:") == 2 else answer
        assert await reader.readexactly(len(rest)) == rest
        writer.close()
        await writer.wait_closed()
        await switch.close()

    run(scenario())


@pytest.mark.parametrize("said", [b"", b"AM", b"\x16\x03\x01"], ids=["nothing", "half a word", "half a hello"])
def test_who_does_not_say_enough_in_time_is_dropped(
    run: Run, contexts: tuple[ssl.SSLContext, ssl.SSLContext], said: bytes
) -> None:
    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=contexts[0], limits=PortLimits(first_bytes_ms=100))
        host, port = switch.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(said)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(100) == b""
        writer.close()
        await switch.close()

    run(scenario())


def test_one_undecided_connection_too_many_drops_the_oldest(run: Run) -> None:
    """Attack 79: half-open connections."""

    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=None, limits=PortLimits(undecided_connections=2))
        address = switch.listen("127.0.0.1", 0)
        silent = [await asyncio.open_connection(*address) for _ in range(2)]
        # Both are taken by the switch before the third comes.
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEADER)
        assert await reader.readexactly(13) == b"amqp:" + HEADER
        assert await silent[0][0].read(1) == b""
        silent[1][1].write(HEADER)
        assert await silent[1][0].readexactly(13) == b"amqp:" + HEADER
        for _, each in [*silent, (reader, writer)]:
            each.close()
        await switch.close()

    run(scenario())


def test_tls_without_a_certificate_is_closed_and_plain_goes_on(run: Run) -> None:
    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=None, limits=PortLimits())
        address = switch.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"\x16\x03\x01\x00\x05hello")
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(100) == b""
        writer.close()
        await check_service(address)
        await switch.close()

    run(scenario())


def test_who_breaks_the_handshake_harms_no_other(run: Run, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=contexts[0], limits=PortLimits())
        address = switch.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"\x16 is all that is right about this hello")
        await reader.read(1000)
        writer.close()
        with socket.create_connection(address) as rude:
            rude.send(b"\x16")
        await check_service(address, contexts[1])
        await switch.close()

    run(scenario())


def test_a_protocol_that_cannot_be_made_ends_only_its_connection(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        made: list[Echo] = []

        def make(peer: str) -> Echo:
            if not made:
                made.append(Echo(peer))
                raise ValueError("planted")
            return Echo(peer)

        switch = PortSwitch(amqp=make, http=Http, tls=None, limits=PortLimits())
        address = switch.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEADER)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read(100) == b""
        writer.close()
        await check_service(address)
        await switch.close()

    run(scenario())
    assert "planted" in caplog.text


def test_after_stop_listening_connections_live_on_and_new_ones_are_refused(run: Run) -> None:
    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=None, limits=PortLimits())
        address = switch.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HEADER)
        assert await reader.readexactly(13) == b"amqp:" + HEADER
        switch.stop_listening()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)
        writer.write(b"x")
        assert await reader.readexactly(6) == b"amqp:x"
        writer.close()
        await switch.close()

    run(scenario())


def test_one_unfinished_handshake_too_many_drops_the_oldest(
    run: Run, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    async def scenario() -> None:
        switch = PortSwitch(amqp=Echo, http=Http, tls=contexts[0], limits=PortLimits(undecided_connections=2))
        address = switch.listen("127.0.0.1", 0)
        unfinished = [await asyncio.open_connection(*address) for _ in range(2)]
        for _, writer in unfinished:
            writer.write(b"\x16\x03\x01")
        await asyncio.sleep(0.05)
        reader, writer = await asyncio.open_connection(*address, ssl=contexts[1])
        writer.write(HEADER)
        assert await reader.readexactly(13) == b"amqp:" + HEADER
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(unfinished[0][0].read(1), 20) == b""
        for _, each in [*unfinished, (reader, writer)]:
            each.close()
        await switch.close()

    run(scenario())
