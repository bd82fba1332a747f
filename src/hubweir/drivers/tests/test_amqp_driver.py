"""The driver around a real endpoint on real sockets: both roles, plain and TLS, one flush a turn, every kind of end."""

import asyncio
import socket
from typing import Any

import pytest

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.events import Closed, Opened, SaslInitiated, SessionBegun
from hubweir.amqp.transport.frame import EMPTY_FRAME
from hubweir.amqp.transport.performatives import Close
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.drivers import amqp_driver
from hubweir.drivers.amqp_driver import AmqpDriver, ReceiveBuffer
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.drivers.tests.driver_bench import Bench, Host, Run, until
from hubweir.limits import ConnectionLimits
from hubweir.testing.frames import frame


@pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
def test_two_ends_open_begin_and_close(run: Run, contexts: Any, secure: bool) -> None:
    async def scenario() -> None:
        bench = Bench(contexts if secure else None)
        client, server = await bench.connect()
        assert server.has(Opened)
        client.endpoint.begin_session()
        assert client.driver is not None
        client.driver.wake()
        await until(lambda: client.has(SessionBegun) and server.has(SessionBegun))
        client.endpoint.close()
        client.driver.wake()
        await client.closed.wait()
        await server.closed.wait()
        for host in (client, server):
            assert [type(event) for event in host.events].count(Closed) == 1
            assert isinstance(host.events[-1], Closed) and host.events[-1].clean
            assert host.steps[-1] == "closed"
        assert len(bench.lost) == 1
        await bench.close()

    run(scenario())


def test_connections_that_share_one_receive_buffer_keep_their_bytes_apart(run: Run) -> None:
    async def scenario() -> None:
        bench = Bench()
        pairs = [await bench.connect() for _ in range(20)]
        for client, _ in pairs:
            for _ in range(3):
                client.endpoint.begin_session()
            assert client.driver is not None
            client.driver.wake()
        await until(lambda: all(len(client.endpoint.sessions) == 3 for client, _ in pairs))
        await until(lambda: all(len(server.endpoint.sessions) == 3 for _, server in pairs))
        for client, _ in pairs:
            assert client.driver is not None
            client.driver.abort()
        await asyncio.gather(*(server.closed.wait() for _, server in pairs))
        await bench.close()

    run(scenario())


class SpyTransport(asyncio.Transport):
    """Counts writes, and passes nothing on."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.told: list[str] = []
        self.closing = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered here."""

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.written.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    def close(self) -> None:
        self.told.append("close")
        self.closing = True


def opened() -> tuple[AmqpDriver, Host, SpyTransport]:
    """The driver of an open client, and what it writes to, which is empty."""
    endpoint = Endpoint(Role.CLIENT, EndpointSettings("client"), now_ms=monotonic_ms())
    spy, host = SpyTransport(), Host(endpoint, Role.CLIENT)
    driver = AmqpDriver(endpoint, host, ReceiveBuffer())
    driver.connection_made(spy)
    assert len(spy.written) == 1  # the header, written at the end of the first turn
    bench_server = Endpoint(Role.SERVER, EndpointSettings("server"), now_ms=monotonic_ms())
    for _ in range(6):  # let both ends talk until they are open
        for event in bench_server.receive_data(memoryview(b"".join(spy.written)), monotonic_ms()):
            if isinstance(event, SaslInitiated):
                bench_server.answer_sasl(0)
        spy.written.clear()
        answer = b"".join(bench_server.data_to_send())
        if answer:
            driver.receive(answer)
    assert endpoint.is_open
    spy.written.clear()
    return driver, host, spy


def test_all_wake_ups_of_one_turn_share_one_write(run: Run) -> None:
    async def scenario() -> None:
        driver, _, spy = opened()
        endpoint = driver.endpoint
        for _ in range(5):
            endpoint.begin_session()
            driver.wake()
        assert spy.written == []
        await asyncio.sleep(0)
        assert len(spy.written) == 1
        driver.connection_lost(None)

    run(scenario())


def test_a_turn_that_bytes_bring_serves_who_woke_the_driver_before_and_who_does_after_gets_one_too(run: Run) -> None:
    async def scenario() -> None:
        driver, host, spy = opened()
        endpoint, turns = driver.endpoint, host.turns
        endpoint.begin_session()
        driver.wake()
        driver.receive(EMPTY_FRAME)
        assert (host.turns - turns, len(spy.written)) == (1, 1)
        endpoint.begin_session()
        driver.wake()
        await asyncio.sleep(0)  # the loop calls back twice: for the first wake, too
        assert (host.turns - turns, len(spy.written)) == (2, 2)
        await asyncio.sleep(0)
        assert host.turns - turns == 2
        driver.connection_lost(None)

    run(scenario())


def test_who_wakes_the_driver_within_a_turn_gets_no_other(run: Run) -> None:
    async def scenario() -> None:
        driver, host, spy = opened()
        on_turn_end = host.on_turn_end

        def waking() -> None:
            on_turn_end()
            driver.endpoint.begin_session()
            driver.wake()

        host.on_turn_end = waking  # type: ignore[method-assign]
        turns = host.turns
        driver.receive(EMPTY_FRAME)
        assert (host.turns - turns, len(spy.written)) == (1, 1)
        await asyncio.sleep(0)
        assert (host.turns - turns, len(spy.written)) == (1, 1)
        host.on_turn_end = on_turn_end  # type: ignore[method-assign]
        driver.connection_lost(None)

    run(scenario())


@pytest.mark.parametrize("inner", ["receive", "resume_writing"])
def test_a_turn_within_a_turn_writes_nothing_by_itself_and_leaves_no_other_behind(run: Run, inner: str) -> None:
    """As when the transport drains while the host is at work, which has its turn behind this one."""

    async def scenario() -> None:
        driver, host, spy = opened()
        on_turn_end, written = host.on_turn_end, []

        def works_on() -> None:
            host.on_turn_end = on_turn_end  # type: ignore[method-assign]
            driver.endpoint.begin_session()
            driver.wake()
            for _ in range(2):
                if inner == "receive":
                    driver.receive(EMPTY_FRAME)
                else:
                    driver.resume_writing()
                written.append(len(spy.written))
                driver.wake()

        host.on_turn_end = works_on  # type: ignore[method-assign]
        driver.receive(EMPTY_FRAME)
        assert (written, len(spy.written), host.steps) == ([0, 0], 1, [])
        turns, drained = host.turns, 2 if inner == "resume_writing" else 0
        await asyncio.sleep(0)
        assert (host.turns - turns, len(spy.written), host.steps) == (drained, 1, ["writable"] * drained)
        await asyncio.sleep(0)
        assert host.turns - turns == drained
        driver.connection_lost(None)

    run(scenario())


def test_nothing_is_written_while_the_transport_says_that_it_has_room(run: Run) -> None:
    """A transport of asyncio whose write fails within that call loses its connection twice: an error in every log."""

    async def scenario() -> None:
        driver, host, spy = opened()
        driver.pause_writing()
        driver.endpoint.begin_session()
        driver.resume_writing()
        assert (spy.written, host.steps) == ([], ["paused"])
        await asyncio.sleep(0)
        assert (len(spy.written), host.steps[-1]) == (1, "writable")
        driver.resume_writing()
        driver.pause_writing()  # full again before the turn ends
        await asyncio.sleep(0)
        driver.resume_writing()
        driver.connection_lost(None)
        await asyncio.sleep(0)
        assert host.steps.count("writable") == 1 and host.steps[-1] == "closed"

    run(scenario())


def test_a_transport_is_read_again_before_it_is_closed(run: Run) -> None:
    """A paused TLS transport would not see the peer's end."""

    async def scenario() -> None:
        driver, _, spy = opened()
        driver.stop_reading()
        driver.receive(frame(Close()))
        assert spy.told == ["pause", "resume", "close"]
        driver.connection_lost(None)

    run(scenario())


def test_a_peer_that_vanishes_ends_the_endpoint_and_the_host_once(run: Run) -> None:
    async def scenario() -> None:
        bench = Bench()
        client, server = await bench.connect()
        assert client.driver is not None
        client.driver.abort()
        await server.closed.wait()
        await client.closed.wait()
        for host in (client, server):
            assert [type(event) for event in host.events].count(Closed) == 1
            assert not next(event for event in host.events if isinstance(event, Closed)).clean
        await bench.close()

    run(scenario())


def test_bytes_that_are_no_amqp_get_an_answer_and_the_end(run: Run) -> None:
    async def scenario() -> None:
        bench = Bench()
        reader, writer = await asyncio.open_connection(*bench.address)
        writer.write(b"AMQP\x00\x09\x09\x09")
        assert (await reader.read()).startswith(b"AMQP")
        await bench.servers[0].closed.wait()
        writer.close()
        await bench.close()

    run(scenario())


def test_a_fault_of_the_host_ends_its_connection_loudly_and_no_other(run: Run, caplog: Any) -> None:
    async def scenario() -> None:
        bench = Bench()
        other, _ = await bench.connect()
        client, server = await bench.connect()
        server.fail_at = SessionBegun
        client.endpoint.begin_session()
        assert client.driver is not None and other.driver is not None
        client.driver.wake()
        await client.closed.wait()
        await server.closed.wait()
        other.endpoint.begin_session()
        other.driver.wake()
        await until(lambda: other.has(SessionBegun))
        other.driver.abort()
        await other.closed.wait()
        await bench.close()

    run(scenario())
    assert "planted" in caplog.text


def test_a_silent_peer_is_dropped_when_its_time_is_over(run: Run) -> None:
    async def scenario() -> None:
        # Client and server share a loop, so a loop that the machine holds up for half of this time ends the connection:
        # one of several lives on.
        bench = Bench(limits=ConnectionLimits(idle_timeout_ms=1_500))
        for _ in range(5):
            client, server = await bench.connect()
            # The client's endpoint sends heartbeats by its driver's timer: the connection stays.
            await asyncio.sleep(2.5)
            if not server.closed.is_set():
                break
        assert not server.closed.is_set()
        assert client.driver is not None and client.driver._timer is not None
        client.driver._timer.cancel()
        await asyncio.wait_for(server.closed.wait(), 30)
        await client.closed.wait()
        await bench.close()

    run(scenario())


def test_a_peer_that_never_finishes_its_greeting_is_dropped(run: Run) -> None:
    async def scenario() -> None:
        bench = Bench(header_deadline_ms=50, sasl_deadline_ms=100)
        reader, writer = await asyncio.open_connection(*bench.address)
        writer.write(b"AMQP\x03\x01\x00\x00")
        await asyncio.wait_for(reader.read(), 30)
        await bench.servers[0].closed.wait()
        writer.close()
        await bench.close()

    run(scenario())


def test_a_peer_that_does_not_take_our_close_is_dropped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amqp_driver, "CLOSE_GRACE_MS", 50)

    async def scenario() -> None:
        bench = Bench(close_deadline_ms=50)
        client, server = await bench.connect()
        assert client.driver is not None and server.driver is not None and server.driver.transport is not None
        client.driver.pause_reading()
        # Fill the way to the client, so that nothing of ours gets through any more.
        raw = server.driver.transport.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        server.driver.transport.write(bytes(8 * 1024 * 1024))
        server.endpoint.close()
        server.driver.wake()
        await asyncio.wait_for(server.closed.wait(), 30)
        assert "paused" in server.steps
        client.driver.abort()
        await client.closed.wait()
        await bench.close()

    run(scenario())
