import asyncio
import os
import signal
import socket
import ssl
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hubweir.client import connection as client_connection
from hubweir.client.connection import LINKS_PER_SESSION, Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import OutcomeUnknown, Sender
from hubweir.drivers.tls import client_context
from hubweir.errors import CONNECTION_FORCED, TIMED_OUT, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import LOOPS, run_on
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerProcess


def target_of(text: str) -> ConnectionString:
    return ConnectionString.parse(text)


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_connection_opens_and_closes(loop: str, namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace.connection_string()))
        assert connection.error is None
        await connection.close()
        await connection.close()
        with pytest.raises(ServiceError) as over:
            _ = connection.session
        assert over.value.condition is CONNECTION_FORCED

    run_on(loop, scenario())


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_connections_of_a_loop_share_a_receive_buffer_and_get_each_its_own_bytes(
    loop: str, namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub(partition_count=4)
    target = target_of(namespace.connection_string())

    async def read(connection: Connection, partition: int) -> list[bytes]:
        address = f"{hub}/Partitions/{partition}"
        sender = await Sender.open(connection, address)
        for number in range(20):
            await sender.send([b"%d-%d" % (partition, number) * 2_000])
        receiver = await Receiver.open(connection, address_of(hub, "$Default", str(partition)))
        bodies: list[bytes] = []
        while len(bodies) < 20:
            run = await receiver.receive(max_wait_s=5)
            assert run is not None
            bodies += map(bytes, run.bodies())
        return bodies

    async def scenario() -> None:
        connections = [await Connection.open(target) for _ in range(4)]
        assert len({id(each._driver._buffer.obj) for each in connections if each._driver is not None}) == 1
        read_by = await asyncio.gather(*(read(each, number) for number, each in enumerate(connections)))
        for partition, bodies in enumerate(read_by):
            assert bodies == [b"%d-%d" % (partition, number) * 2_000 for number in range(20)]
        for each in connections:
            await each.close()

    run_on(loop, scenario())


def test_a_connection_carries_more_links_than_a_session_holds_and_room_that_is_given_back_is_used(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace.connection_string()))
        senders = [await Sender.open(connection, hub) for _ in range(LINKS_PER_SESSION + 20)]
        assert await senders[0].send([b"of the first session"]) == await senders[-1].send([b"of the second"]) == 1
        assert len({id(link.session) for link in connection._users}) == 2
        for sender in senders[:100]:
            await sender.close()
        for _ in range(100):  # at once: the service has not seen the ends
            await Sender.open(connection, hub)
        assert sorted(Counter(id(link.session) for link in connection._users).values())[-1] == LINKS_PER_SESSION
        await connection.close()

    run_on("asyncio", scenario())


def test_tls_is_verified_against_the_development_ca(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        target = replace(target_of(namespace.connection_string(plain=False)), host="127.0.0.1")
        connection = await Connection.open(target, tls=client_context(namespace.ca_file))
        sender = await Sender.open(connection, hub)
        assert await sender.send([b"over TLS"]) == 1
        await connection.close()

    run_on("asyncio", scenario())


def test_certificate_of_an_unknown_ca_is_refused_by_us(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        target = target_of(namespace.connection_string(plain=False))
        with pytest.raises(ServiceError, match="is not trusted: .*CA file") as refused:
            await Connection.open(target, tls=ssl.create_default_context())
        assert refused.value.condition is CONNECTION_FORCED

    run_on("asyncio", scenario())


def test_port_that_nobody_listens_on_is_an_error_that_a_retry_may_cure() -> None:
    async def scenario() -> None:
        held = HeldPorts()
        target = ConnectionString(host="127.0.0.1", port=held.numbers[0], emulator=True)
        with pytest.raises(ServiceError, match="cannot reach 127.0.0.1") as refused:
            await Connection.open(target)
        assert refused.value.condition is CONNECTION_FORCED
        assert refused.value.condition.retriable

    run_on("asyncio", scenario())


def test_server_that_says_nothing_is_left_after_the_time_out() -> None:
    async def scenario() -> None:
        ended = asyncio.Event()

        async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1000):
                pass
            writer.close()
            ended.set()

        async with await asyncio.start_server(mute, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            target = ConnectionString(host="127.0.0.1", port=port, emulator=True)
            with pytest.raises(ServiceError, match=r"did not open within 0\.1 s") as refused:
                await Connection.open(target, timeout_s=0.1)
            assert refused.value.condition is TIMED_OUT
            await asyncio.wait_for(ended.wait(), 30)  # our socket is gone too, without waiting for its close

    run_on("asyncio", scenario())


def test_peer_that_speaks_something_else_ends_the_opening() -> None:
    async def scenario() -> None:
        async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(http, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ServiceError):
                await Connection.open(ConnectionString(host="127.0.0.1", port=port, emulator=True), timeout_s=30)

    run_on("asyncio", scenario())


def test_end_of_the_server_fails_every_link_at_once(tmp_path: object) -> None:
    async def scenario(server: ServerProcess) -> None:
        connection = await Connection.open(target_of(server.connection_string()))
        await connection.authorization.authorize("")
        user = connection.authorization._cbs
        await asyncio.to_thread(server.kill9)
        async with asyncio.timeout(30):
            while connection.error is None:
                await asyncio.sleep(0.01)
        assert connection.error.condition is CONNECTION_FORCED
        assert user is not None
        assert user.error is connection.error
        await connection.close()

    with ServerProcess(f"{tmp_path}/data") as server:
        run_on("asyncio", scenario(server))


@pytest.mark.skipif(sys.platform == "win32", reason="nothing stops a process there")
def test_whoever_waits_for_a_silent_service_is_told_so_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 2 * client_connection.IDLE_TIMEOUT_MS <= 60_000
    monkeypatch.setattr(client_connection, "IDLE_TIMEOUT_MS", 500)
    with ServerProcess(tmp_path / "data") as server:

        async def main() -> None:
            connection = await Connection.open(ConnectionString.parse(server.connection_string()))
            await Management(connection).create_hub(
                "silent", partition_count=1, retention_ms=3_600_000, durability="durable"
            )
            sender = await Sender.open(connection, "silent")
            assert server.pid is not None
            os.kill(server.pid, signal.SIGSTOP)
            batch = sender.batch()
            assert batch.try_add(b"is it stored?")
            with pytest.raises(OutcomeUnknown):
                await asyncio.wait_for(sender.submit(batch), 30.0)
            await connection.close()

        asyncio.run(main())


def test_names_of_links_never_repeat(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace.connection_string()))
        assert len({connection.name_link("sender") for _ in range(100)}) == 100
        await connection.close()

    run_on("asyncio", scenario())


def test_caller_that_gives_up_leaves_no_socket_behind() -> None:
    async def scenario() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        target = ConnectionString(host="127.0.0.1", port=listener.getsockname()[1], emulator=True)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            opening = group.create_task(Connection.open(target))
            accepted, _ = await loop.sock_accept(listener)
            assert await loop.sock_recv(accepted, 100)
            opening.cancel()
        while await asyncio.wait_for(loop.sock_recv(accepted, 100), 30):
            pass
        accepted.close()
        listener.close()

    run_on("asyncio", scenario())
