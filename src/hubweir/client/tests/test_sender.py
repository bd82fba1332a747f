import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.client.connection import Connection
from hubweir.client.event_batch import EventBatch
from hubweir.client.management import Management
from hubweir.client.sender import OutcomeUnknown, Sender
from hubweir.errors import (
    ARGUMENT_OUT_OF_RANGE,
    CONNECTION_FORCED,
    DETACH_FORCED,
    MESSAGE_TOO_LARGE,
    NOT_FOUND,
    ServiceError,
)
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import ServerProcess


async def connect(text: str) -> Connection:
    return await Connection.open(ConnectionString.parse(text))


def test_every_kind_of_address_takes_events(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub(partition_count=2)

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        for address in (f"{hub}/Partitions/1", f"{hub}/Publishers/device-1", hub):
            assert await (await Sender.open(connection, address)).send([b"a", b"b"]) == 1
        management = Management(connection)
        held = [await management.partition(hub, partition) for partition in ("0", "1")]
        assert sum(state.last_sequence_number + 1 for state in held) == 6
        await connection.close()

    run_on("asyncio", scenario())


def test_many_batches_are_in_flight_together_and_stored_in_order(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        sender = await Sender.open(connection, f"{hub}/Partitions/0")
        outcomes = []
        for number in range(3_000):  # more than the credit of the link
            batch = sender.batch()
            assert batch.try_add(b"%d" % number)
            outcomes.append(sender.submit(batch))
        assert len(sender._in_flight) + len(sender._waiting) == 3_000
        await asyncio.gather(*outcomes)
        state = await Management(connection).partition(hub, "0")
        assert state.last_sequence_number == 2_999
        await connection.close()

    run_on("asyncio", scenario())


def test_event_over_the_limit_leaves_nothing_sent_and_the_link_usable(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        sender = await Sender.open(connection, hub)
        assert sender.max_message_size == 1_048_576
        with pytest.raises(ServiceError) as refused:
            await sender.send([b"small", bytes(sender.max_message_size)])
        assert refused.value.condition is MESSAGE_TOO_LARGE
        with pytest.raises(ServiceError) as refused:
            sender.submit_payload(bytes(sender.max_message_size + 1))
        assert refused.value.condition is MESSAGE_TOO_LARGE
        assert (await Management(connection).partition(hub, "0")).is_empty
        assert await sender.send([bytes(1_000_000)]) == 1
        await connection.close()

    run_on("asyncio", scenario())


def test_batch_that_the_service_rejects_fails_alone(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        sender = await Sender.open(connection, hub)
        bad = sender.submit_payload(b"\x00\x53\x75\xa0\x05no", message_format=0)
        single = sender.submit_payload(encode_message(Message(body=DataBody((b"good",)))), message_format=0)
        await single
        with pytest.raises(ServiceError) as rejected:
            await bad
        assert not isinstance(rejected.value, OutcomeUnknown)
        assert (await Management(connection).partition(hub, "0")).last_sequence_number == 0
        await connection.close()

    run_on("asyncio", scenario())


def test_partition_that_does_not_exist_refuses_the_link(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        with pytest.raises(ServiceError) as refused:
            await Sender.open(connection, f"{hub}/Partitions/7")
        assert refused.value.condition in (NOT_FOUND, ARGUMENT_OUT_OF_RANGE)
        await connection.close()

    run_on("asyncio", scenario())


def test_link_that_the_service_detaches_fails_later_sends_with_its_reason() -> None:
    async def scenario(namespace: RunningNamespace) -> None:
        connection = await connect(namespace.connection_string())
        sender = await Sender.open(connection, "orders")
        async with asyncio.timeout(30):
            while sender.error is None:
                await asyncio.sleep(0.02)
        with pytest.raises(ServiceError, match="idle") as over:
            await sender.send([b"x"])
        assert over.value.condition is DETACH_FORCED
        assert connection.error is None
        assert await (await Sender.open(connection, "orders")).send([b"x"]) == 1
        await connection.close()

    with running_namespace(idle_link_ms=1_000) as namespace:
        namespace.create_event_hub("orders")
        run_on("asyncio", scenario(namespace))


def test_server_that_dies_in_mid_send_leaves_what_went_out_unknown_and_the_rest_unsent(tmp_path: Path) -> None:
    """A stopped server takes bytes and answers nothing: batches up to the credit went out, those behind it did not."""

    async def scenario(server: ServerProcess) -> None:
        connection = await connect(server.connection_string())
        await Management(connection).create_hub(
            "orders", partition_count=1, retention_ms=3_600_000, durability="durable"
        )
        sender = await Sender.open(connection, "orders")
        await sender.send([b"first"])
        credit = sender._link.sendable
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        batch = sender.batch()
        assert batch.try_add(b"x")
        outcomes = [sender.submit(batch) for _ in range(credit + 5)]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(server.kill9)
        ended = await asyncio.wait_for(asyncio.gather(*outcomes, return_exceptions=True), 30)
        assert [isinstance(one, OutcomeUnknown) for one in ended] == [True] * credit + [False] * 5
        assert {one.condition for one in ended if isinstance(one, ServiceError)} == {CONNECTION_FORCED}
        await connection.close()

    with ServerProcess(tmp_path / "data") as server:
        run_on("asyncio", scenario(server))


def test_close_detaches_and_ends_what_waits(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        sender = await Sender.open(connection, hub)
        batch = EventBatch(1_000)
        assert batch.try_add(b"x")
        outcome = sender.submit(batch)
        await sender.close()
        await sender.close()
        with pytest.raises(OutcomeUnknown):
            await outcome
        with pytest.raises(ServiceError) as over:
            sender.submit(batch)
        assert over.value.condition is DETACH_FORCED
        assert await (await Sender.open(connection, hub)).send([b"y"]) == 1  # the connection goes on
        await connection.close()

    run_on("asyncio", scenario())


def test_batch_that_was_given_up_before_it_went_out_is_not_sent(
    namespace: RunningNamespace, new_hub: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await connect(namespace.connection_string())
        sender = await Sender.open(connection, f"{hub}/Partitions/0")
        with monkeypatch.context() as full:
            full.setattr(Connection, "writing_paused", True)
            outcomes = [sender.submit_payload(_payload(sender, body)) for body in (b"a", b"b", b"c")]
            outcomes[1].cancel()
        sender.on_turn_end()
        await asyncio.gather(outcomes[0], outcomes[2])
        assert (await Management(connection).partition(hub, "0")).last_sequence_number == 1
        await connection.close()

    run_on("asyncio", scenario())


def _payload(sender: Sender, body: bytes) -> bytes:
    batch = sender.batch()
    assert batch.try_add(body)
    return batch.payload()
