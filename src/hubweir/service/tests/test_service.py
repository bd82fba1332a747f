"""service.py: what a start serves, what a stop leaves, what the next start finds."""

import asyncio
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from hubweir.broker import openings
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from hubweir.config.namespace_settings import said_namespaces
from hubweir.drivers.tls import client_context
from hubweir.errors import CONNECTION_FORCED, ServiceError
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.connection_string import ConnectionString
from hubweir.service import gateway_start
from hubweir.service.service import Service
from hubweir.service.tests.started_service import create_hub, publish_and_read, settings, target
from hubweir.testing.event_loops import LOOPS, run_on


@pytest.fixture(params=sorted(LOOPS))
def loop_name(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_hub_of_more_partitions_is_made_where_it_is_allowed_and_served_without_the_flag_too(
    loop_name: str, tmp_path: Path
) -> None:
    async def send_to_the_last(service: Service) -> int:
        connection = await Connection.open(target(service))
        await (await Sender.open(connection, "wide/Partitions/39")).send([b"event"])
        state = await Management(connection).partition("wide", "39")
        await connection.close()
        return state.last_sequence_number

    async def first() -> None:
        service = await Service.start(settings(tmp_path, allow_more_partitions=True))
        await create_hub(service, "wide", 40)
        assert await send_to_the_last(service) == 0
        await service.stop()

    async def second() -> None:
        service = await Service.start(settings(tmp_path))
        assert await send_to_the_last(service) == 1
        with pytest.raises(ServiceError, match="40 partitions are asked for; 1 to 32 are allowed, and up to 1024 when"):
            await create_hub(service, "other", 40)
        await service.stop()

    run_on(loop_name, first())
    run_on(loop_name, second())


def test_events_survive_a_clean_stop_and_another_start(loop_name: str, tmp_path: Path) -> None:
    async def first() -> None:
        service = await Service.start(settings(tmp_path))
        await create_hub(service, "orders")
        await publish_and_read(service, "orders", [b"one", b"two"])
        await service.stop()
        await service.stop()

    async def second() -> None:
        service = await Service.start(settings(tmp_path))
        assert service.alarms.current() == ()
        connection = await Connection.open(target(service))
        state = await Management(connection).partition("orders", "0")
        assert (state.begin_sequence_number, state.last_sequence_number) == (0, 1)
        await connection.close()
        await service.stop()

    run_on(loop_name, first())
    run_on(loop_name, second())


def test_the_same_port_speaks_tls_with_the_development_certificate(loop_name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, host=("127.0.0.1", "127.0.0.2")))
        await create_hub(service, "orders")
        assert service.certificate is not None
        trusting = client_context(service.certificate.ca)
        await publish_and_read(service, "orders", [b"over tls"], tls=trusting)
        for host, port in service.addresses:
            reader, writer = await asyncio.open_connection(host, port, ssl=trusting)
            writer.close()
            await writer.wait_closed()
        await service.stop()

    run_on(loop_name, scenario())


def test_everything_works_when_gateway_and_broker_talk_over_a_socket(loop_name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, broker_seam="socket"))
        await create_hub(service, "orders")
        await publish_and_read(service, "orders", [b"event %d" % number for number in range(3_000)])
        connection = await Connection.open(target(service))
        management = Management(connection)
        assert (await management.partition("orders", "0")).last_sequence_number == 2_999
        receiver = await Receiver.open(connection, address_of("orders", "$Default", "1"))
        await management.delete_hub("orders")
        with pytest.raises(ServiceError):
            await receiver.receive(max_wait_s=10)
        await connection.close()
        await service.stop()

    run_on(loop_name, scenario())


def test_health_is_answered_on_the_same_port(loop_name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path))

        def status(path: str) -> int:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{service.addresses[0][1]}{path}", timeout=30) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                with error:
                    return error.code

        assert await asyncio.to_thread(status, "/health") == 200
        assert await asyncio.to_thread(status, "/ready") == 200
        assert await asyncio.to_thread(status, "/nothing") == 401  # it may be a hub: who asks shows a token first
        service.ready = False
        assert await asyncio.to_thread(status, "/ready") == 503
        await service.stop()

    run_on(loop_name, scenario())


def test_a_stop_tells_every_client_to_connect_again(loop_name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path))
        await create_hub(service, "orders")
        connection = await Connection.open(target(service))
        sender = await Sender.open(connection, "orders/Partitions/0")
        outcomes = [sender.submit(batch) for batch in [_batch(sender, b"in flight %d" % n) for n in range(20)]]
        await asyncio.wait_for(outcomes[0], 30)
        await service.stop()
        # What the service had taken is settled; what was still on its way is not, and nothing is refused as stored.
        settled = await asyncio.gather(*outcomes, return_exceptions=True)
        assert settled[0] is None
        assert connection.error is not None and connection.error.condition is CONNECTION_FORCED
        with pytest.raises(ServiceError):
            sender.submit(_batch(sender, b"after the end"))
        await connection.close()

    run_on(loop_name, scenario())


def _batch(sender: Sender, body: bytes) -> Any:
    batch = sender.batch()
    assert batch.try_add(body)
    return batch


def test_a_client_that_never_answers_does_not_hold_up_a_stop(loop_name: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        service = await Service.start(settings(tmp_path))
        with socket.create_connection(service.addresses[0]) as silent, socket.create_connection(service.addresses[0]):
            silent.send(b"AMQP\x03\x01\x00\x00")
            await asyncio.sleep(0.05)
            await asyncio.wait_for(service.stop(), 30)

    run_on(loop_name, scenario())


def test_a_part_that_fails_to_end_does_not_keep_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> None:
        raise RuntimeError("planted")

    async def scenario() -> None:
        with monkeypatch.context() as planted:
            planted.setattr("hubweir.service.parts.stop_gateways", failing)
            service = await Service.start(settings(tmp_path))
            with pytest.raises(RuntimeError, match="planted"):
                await service.stop()
        await (await Service.start(settings(tmp_path))).stop()

    run_on("asyncio", scenario())


def test_a_key_of_ones_own_replaces_the_old_one(tmp_path: Path) -> None:
    async def first() -> None:
        service = await Service.start(settings(tmp_path))
        await create_hub(service, "orders")
        await service.stop()

    async def second() -> None:
        service = await Service.start(settings(tmp_path, key="a key of one's own"))
        await publish_and_read(service, "orders", [b"x"])
        old = ConnectionString.parse(service.connection_string().replace("a key of one's own", "SAS_KEY_VALUE"))
        connection = await Connection.open(old)
        with pytest.raises(ServiceError) as refused:
            await Sender.open(connection, "orders/Partitions/0")
        assert refused.value.condition.management == 401
        await connection.close()
        await service.stop()

    run_on("asyncio", first())
    run_on("asyncio", second())


def test_the_others_are_served_while_a_partition_is_being_opened(
    loop_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two partitions takes long to open: the service listens, says that it is not ready, and heals by itself."""
    go_on, recover = threading.Event(), MessagingStore.recover_log
    monkeypatch.setattr(gateway_start, "OPENING_WAIT_S", 0.1)
    monkeypatch.setattr(openings, "TOLD_AFTER_MS", 50)

    def slow(store: MessagingStore, opening: Any) -> Any:
        if opening.name.startswith("partition 1"):
            assert go_on.wait(30)
        return recover(store, opening)

    async def first() -> None:
        service = await Service.start(settings(tmp_path))
        await create_hub(service, "orders")
        await service.stop()

    async def second() -> None:
        monkeypatch.setattr(MessagingStore, "recover_log", slow)
        service = await Service.start(settings(tmp_path))
        try:
            await publish_and_read(service, "orders", [b"served"])
            assert "partition-not-open" in service.alarms.counts() and service.alarms.blocks
            connection = await Connection.open(target(service))
            with pytest.raises(ServiceError, match="being opened"):
                await Management(connection).partition("orders", "1")
            go_on.set()
            while service.alarms.counts():
                await asyncio.sleep(0.01)
            assert (await Management(connection).partition("orders", "1")).last_sequence_number == -1
            await connection.close()
        finally:
            go_on.set()
            await service.stop()

    run_on(loop_name, first())
    run_on(loop_name, second())


def test_the_namespace_that_a_start_names_is_the_default_one_of_the_next_start_too(tmp_path: Path) -> None:
    async def default_of(**said: Any) -> str:
        sources = dict.fromkeys(said, "the test")
        wanted = settings(tmp_path, **said)
        service = await Service.start(wanted, said_namespaces(wanted, sources=sources))
        name = service.gateway.namespace.description.name
        await service.stop()
        return name

    async def scenario() -> None:
        assert await default_of(namespace="one", further_namespace=("two",)) == "one"
        assert await default_of() == "one"
        assert await default_of(namespace="two") == "two"
        assert await default_of() == "two"

    asyncio.run(scenario())
