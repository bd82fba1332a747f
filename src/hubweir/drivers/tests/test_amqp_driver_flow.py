"""The driver under back-pressure: who is not read, who is not written to, and that nothing is lost over it."""

import asyncio
import socket
from typing import Any

import pytest

from hubweir.amqp.transport.events import SessionBegun
from hubweir.amqp.transport.performatives import Flow
from hubweir.drivers import amqp_driver
from hubweir.drivers.amqp_driver import WRITE_HIGH_BYTES, WRITE_LOW_BYTES
from hubweir.drivers.tests.driver_bench import Bench, Run, until
from hubweir.testing.frames import frame


def test_paused_reading_takes_nothing_and_resumed_reading_loses_nothing(run: Run) -> None:
    async def scenario() -> None:
        bench = Bench()
        client, server = await bench.connect()
        assert client.driver is not None and server.driver is not None
        server.driver.pause_reading()
        server.driver.pause_reading()
        client.endpoint.begin_session()
        client.driver.wake()
        await asyncio.sleep(0.05)
        assert not server.has(SessionBegun)
        server.driver.resume_reading()
        server.driver.resume_reading()
        await until(lambda: client.has(SessionBegun))
        server.driver.stop_reading()
        server.driver.resume_reading()
        client.endpoint.begin_session()
        client.driver.wake()
        await asyncio.sleep(0.05)
        assert len(server.endpoint.sessions) == 1
        client.driver.abort()
        server.driver.abort()
        await server.closed.wait()
        await bench.close()

    run(scenario())


def test_writing_is_paused_for_a_slow_peer_and_goes_on_when_it_reads(run: Run) -> None:
    async def scenario() -> None:
        bench = Bench()
        client, server = await bench.connect()
        assert client.driver is not None and server.driver is not None and server.driver.transport is not None
        client.driver.pause_reading()
        frame = b"\x00\x00\x00\x08\x02\x00\x00\x00"  # empty frames: bytes that a client takes in any number
        server.driver.transport.write(frame * 1_000_000)
        assert server.steps == ["paused"] and server.driver.writing_paused
        assert WRITE_HIGH_BYTES < server.driver.unwritten_bytes < 8_000_000  # the socket took some
        client.driver.resume_reading()
        await until(lambda: server.steps == ["paused", "writable"])
        assert not server.driver.writing_paused and server.driver.unwritten_bytes <= WRITE_LOW_BYTES
        client.driver.abort()
        await server.closed.wait()
        assert server.driver.unwritten_bytes == 0
        await bench.close()

    run(scenario())


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_a_peer_that_asks_and_reads_no_answers_is_not_read_either(run: Run, contexts: Any, secure: bool) -> None:
    async def scenario() -> None:
        bench = Bench(contexts if secure else None)
        client, server = await bench.connect()
        client.endpoint.begin_session()
        assert client.driver is not None and server.driver is not None
        client.driver.wake()
        await until(lambda: client.has(SessionBegun))
        asking, answering = client.driver.transport, server.driver.transport
        assert asking is not None and answering is not None
        for transport in (asking, answering):  # so that little is kept by the kernel
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        client.driver.pause_reading()
        ask = frame(Flow(next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9, echo=True))
        asking.write(ask * (4 * amqp_driver.UNREAD_LIMIT_BYTES // len(ask)))
        await until(lambda: answering.get_write_buffer_size() > amqp_driver.UNREAD_LIMIT_BYTES)
        turns = 0
        while turns != server.turns:  # until the kernel's buffers, which grow, are full too
            turns = server.turns
            await asyncio.sleep(0.2)
        assert answering.get_write_buffer_size() < 2 * amqp_driver.UNREAD_LIMIT_BYTES
        client.driver.resume_reading()
        await until(lambda: server.turns > turns)  # the answers were taken: it is read again
        client.driver.abort()
        await server.closed.wait()
        await bench.close()

    run(scenario())
