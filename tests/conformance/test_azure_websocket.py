"""The official Python client over WebSocket inside TLS, blocking and asyncio."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest
from azure.eventhub import EventData, TransportType
from azure.eventhub.aio import EventHubConsumerClient as AsyncConsumerClient
from azure.eventhub.aio import EventHubProducerClient as AsyncProducerClient
from azure.eventhub.exceptions import AuthenticationError, ConnectError

from tests.conformance.conftest import Doors
from tests.conformance.test_azure_async import cancel
from tests.conformance.test_azure_sync import KEYS, WAIT_S, bodies, consumer, producer, read

pytestmark = pytest.mark.eh(3)
BLOCKING = pytest.mark.client("azure-eventhub, blocking, WebSocket")
ASYNCIO = pytest.mark.client("azure-eventhub, asyncio, WebSocket")


def websocket(doors: Doors) -> dict[str, Any]:
    """Options of a client; without a port in the address this client takes 443."""
    return {
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"sb://{doors.host}:{doors.port}",
    }


@BLOCKING
@pytest.mark.eh(74)
@pytest.mark.feature("properties")
def test_properties(doors: Doors, hub: str) -> None:
    with producer(doors, True, hub, **websocket(doors)) as client:
        assert client.get_eventhub_properties()["eventhub_name"] == hub
        assert client.get_partition_properties("0")["is_empty"]


@BLOCKING
@pytest.mark.feature("WebSocket")
def test_single_events_come_back(doors: Doors, hub: str) -> None:
    with producer(doors, True, hub, **websocket(doors)) as client:
        client.send_event(EventData("single"), partition_id="3")
    got = read(consumer(doors, True, hub, **websocket(doors)), 1, starting_position="-1", partition_id="3")
    assert bodies(got) == ["single"]


@BLOCKING
@pytest.mark.eh(50)
@pytest.mark.feature("send batch")
def test_a_large_batch_comes_back(doors: Doors, hub: str) -> None:
    with producer(doors, True, hub, **websocket(doors)) as client:
        client.send_batch([EventData(bytes([number]) * 125_000) for number in range(8)], partition_id="0")
    got = read(consumer(doors, True, hub, **websocket(doors)), 8, starting_position="-1", partition_id="0")
    assert [b"".join(event.body) for _, event in got] == [bytes([number]) * 125_000 for number in range(8)]


@BLOCKING
@pytest.mark.eh(43)
@pytest.mark.feature("send keyed")
def test_keys_choose_their_partitions(doors: Doors, hub: str) -> None:
    with producer(doors, True, hub, **websocket(doors)) as client:
        for key, _ in KEYS:
            client.send_batch([EventData(key)], partition_key=key)
    got = read(consumer(doors, True, hub, **websocket(doors)), len(KEYS), starting_position="-1")
    assert {(event.body_as_str(), partition) for partition, event in got} == {(key, str(n)) for key, n in KEYS}


@BLOCKING
@pytest.mark.feature("receive from any position")
def test_a_position(doors: Doors, hub: str) -> None:
    with producer(doors, True, hub, **websocket(doors)) as client:
        client.send_batch([EventData(f"{number}") for number in range(6)], partition_id="0")
    got = read(consumer(doors, True, hub, **websocket(doors)), 3, starting_position=2, partition_id="0")
    assert bodies(got) == ["3", "4", "5"]


@BLOCKING
@pytest.mark.eh(25, 37)
@pytest.mark.feature("errors")
def test_errors(doors: Doors, hub: str) -> None:
    wrong = doors.connection_string(tls=True, key="wrong")
    client = producer(doors, True, hub, conn_str=wrong, **websocket(doors))
    with client, pytest.raises(AuthenticationError):
        client.send_event(EventData("x"))
    with producer(doors, True, hub, **websocket(doors)) as client:
        with pytest.raises(ConnectError):
            client.send_batch([EventData("x")], partition_id="1000")
        client.send_event(EventData("still usable"))


@ASYNCIO
@pytest.mark.skipif(find_spec("aiohttp") is None, reason="NOT RUN: this client needs aiohttp, which is not installed")
@pytest.mark.feature("WebSocket")
def test_asyncio_sends_and_receives(doors: Doors, hub: str) -> None:
    got: list[str] = []

    async def body() -> None:
        said = {"eventhub_name": hub, "connection_verify": doors.ca_file, **websocket(doors)}
        string = doors.connection_string(tls=True)
        async with AsyncProducerClient.from_connection_string(string, **said) as sender:
            assert await sender.get_partition_ids() == ["0", "1", "2", "3"]
            await sender.send_batch([EventData(f"{number}") for number in range(20)], partition_id="1")
        reader = AsyncConsumerClient.from_connection_string(string, consumer_group="$Default", **said)
        enough = asyncio.Event()

        async def on_event(_: Any, event: EventData) -> None:
            got.append(event.body_as_str())
            if len(got) == 20:
                enough.set()

        async with reader:
            receiving = asyncio.ensure_future(
                reader.receive(on_event=on_event, partition_id="1", starting_position="-1")
            )
            await asyncio.wait_for(enough.wait(), WAIT_S)
            await cancel(receiving)

    asyncio.run(body())
    assert got == [f"{number}" for number in range(20)]
