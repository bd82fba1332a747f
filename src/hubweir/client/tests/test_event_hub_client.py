import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.client.connection import Connection
from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.management import Management
from hubweir.client.retry import RetryPolicy
from hubweir.errors import ARGUMENT_ERROR, ILLEGAL_STATE, NOT_FOUND, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import LOOPS, run_on
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerProcess

BARE = "Endpoint=sb://localhost:5672;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true"
QUICK = RetryPolicy(attempts=200, first_s=0.05, longest_s=0.1)


@pytest.mark.parametrize("loop", sorted(LOOPS))
def test_one_client_sends_receives_and_describes(
    loop: str, namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub(partition_count=2)

    async def scenario() -> None:
        async with EventHubClient.from_connection_string(namespace.connection_string(), hub) as client:
            assert (await client.describe()).partition_ids == ("0", "1")
            assert await client.sender(partition_id="1").send([b"a", b"b"]) == 1
            assert (await client.partition("1")).last_sequence_number == 1
            run = await client.receiver("1").receive(max_wait_s=5)
            assert run is not None
            assert [bytes(body) for body in run.bodies()] == [b"a", b"b"]
            assert await client.connection() is await client.connection()

    run_on(loop, scenario())


def test_tls_with_the_development_ca(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        text = namespace.connection_string(plain=False)
        async with EventHubClient.from_connection_string(text, hub, ca_file=namespace.ca_file) as client:
            assert await client.sender().send([b"x"]) == 1

    run_on("asyncio", scenario())


def test_hub_comes_from_the_argument_or_the_text_and_never_from_both() -> None:
    assert EventHubClient.from_connection_string(BARE, "orders").hub == "orders"
    assert EventHubClient.from_connection_string(BARE + ";EntityPath=orders").hub == "orders"
    assert EventHubClient.from_connection_string(BARE + ";EntityPath=orders", "Orders").hub == "Orders"
    for text, hub in ((BARE, None), (BARE + ";EntityPath=orders", "other"), ("nonsense", "orders")):
        with pytest.raises(ServiceError) as refused:
            EventHubClient.from_connection_string(text, hub)
        assert refused.value.condition is ARGUMENT_ERROR


def test_namespace_is_named_as_the_official_clients_name_it() -> None:
    assert EventHubClient.from_connection_string(BARE, "orders").namespace == "localhost:5672"


def test_sender_has_a_partition_or_a_publisher() -> None:
    client = EventHubClient.from_connection_string(BARE, "orders")
    assert client.sender(publisher="device").address == "orders/Publishers/device"
    with pytest.raises(ServiceError) as refused:
        client.sender(partition_id="0", publisher="device")
    assert refused.value.condition is ARGUMENT_ERROR


def test_what_no_retry_can_cure_is_raised_at_once(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        retry = RetryPolicy(attempts=5, first_s=30)
        async with EventHubClient.from_connection_string(
            namespace.connection_string(), "no-such-hub", retry=retry
        ) as client:
            with pytest.raises(ServiceError) as refused:
                await client.describe()
        assert refused.value.condition is NOT_FOUND

    run_on("asyncio", scenario(), seconds=5)


def test_closed_client_says_so(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        client = EventHubClient.from_connection_string(namespace.connection_string(), "orders")
        await client.close()
        await client.close()
        with pytest.raises(ServiceError, match="is closed") as refused:
            await client.describe()
        assert refused.value.condition is ILLEGAL_STATE

    run_on("asyncio", scenario())


def test_service_that_is_killed_and_comes_back_is_found_again_and_no_event_is_lost_or_repeated(tmp_path: Path) -> None:
    """Sender and receiver both live on over two kills; the receiver gives every stored event once, in order."""

    async def scenario(server: ServerProcess) -> None:
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        await Management(connection).create_hub(
            "orders", partition_count=1, retention_ms=3_600_000, durability="durable"
        )
        await connection.close()
        async with EventHubClient.from_connection_string(server.connection_string(), "orders", retry=QUICK) as client:
            sender, receiver = client.sender(), client.receiver("0")
            taken: list[int] = []
            for life in range(3):
                if life:
                    await asyncio.to_thread(server.kill9)
                    async with asyncio.TaskGroup() as group:
                        group.create_task(asyncio.to_thread(server.start))
                        group.create_task(sender.send([b"while it starts"]))
                await sender.send([b"x"] * 10)
                last = (await client.partition("0")).last_sequence_number
                while not taken or taken[-1] < last:
                    run = await receiver.receive(max_wait_s=5)
                    assert run is not None
                    taken += run.sequence_numbers()
            assert taken == list(range(32))

    with ServerProcess(tmp_path / "data") as server:
        run_on("asyncio", scenario(server), seconds=60)
