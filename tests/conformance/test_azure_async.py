"""The official Python client, asyncio, over plain TCP and TLS; with checkpoints in memory."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from azure.eventhub import EventData
from azure.eventhub.aio import CheckpointStore, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import AuthenticationError, EventHubError

from tests.conformance.conftest import Doors

T = TypeVar("T")
WAIT_S = 40.0


def client_name(tls: bool) -> str:
    return f"azure-eventhub, asyncio, {'TLS' if tls else 'plain'}"


@pytest.fixture(
    params=[
        pytest.param(False, id="plain", marks=pytest.mark.client(client_name(False))),
        pytest.param(True, id="tls", marks=pytest.mark.client(client_name(True))),
    ]
)
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


class MemoryCheckpoints(CheckpointStore):  # type: ignore[misc]  # the client's own base class has no types
    """Checkpoints and ownership in dictionaries, as the client's interface asks."""

    def __init__(self) -> None:
        self.checkpoints: dict[str, dict[str, Any]] = {}
        self._owned: dict[str, dict[str, Any]] = {}

    async def list_ownership(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return list(self._owned.values())

    async def claim_ownership(self, ownership_list: Any, **_: Any) -> list[dict[str, Any]]:
        claimed = []
        for wanted in ownership_list:
            owned = {**wanted, "etag": str(time.time_ns()), "last_modified_time": time.time()}
            self._owned[wanted["partition_id"]] = owned
            claimed.append(owned)
        return claimed

    async def update_checkpoint(self, checkpoint: dict[str, Any], **_: Any) -> None:
        self.checkpoints[checkpoint["partition_id"]] = checkpoint

    async def list_checkpoints(self, *_: Any, **__: Any) -> list[dict[str, Any]]:
        return list(self.checkpoints.values())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(coroutine, WAIT_S * 2))


def options(doors: Doors, tls: bool) -> dict[str, Any]:
    return {"connection_verify": doors.ca_file} if tls else {}


def producer(doors: Doors, tls: bool, hub: str, **more: Any) -> EventHubProducerClient:
    string = more.pop("conn_str", "") or doors.connection_string(tls=tls)
    return EventHubProducerClient.from_connection_string(
        string, eventhub_name=hub, retry_total=0, **options(doors, tls), **more
    )


async def cancel(*receiving: asyncio.Future[Any]) -> None:
    """End receive calls; without this the client takes half a minute to notice that it is closed."""
    for task in receiving:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def read(
    doors: Doors, tls: bool, hub: str, count: int, *, store: MemoryCheckpoints | None = None, **how: Any
) -> list[EventData]:
    """Receive until count events came, checkpointing each when there is a store."""
    got: list[EventData] = []
    enough = asyncio.Event()

    async def on_event(context: Any, event: EventData) -> None:
        got.append(event)
        if store is not None:
            await context.update_checkpoint(event)
        if len(got) >= count:
            enough.set()

    client = EventHubConsumerClient.from_connection_string(
        doors.connection_string(tls=tls),
        consumer_group="second",
        eventhub_name=hub,
        checkpoint_store=store,
        load_balancing_interval=1,
        **options(doors, tls),
    )
    async with client:
        task = asyncio.ensure_future(client.receive(on_event=on_event, **how))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(enough.wait(), WAIT_S)
        await asyncio.sleep(0.1)
        await cancel(task)
    assert len(got) == count
    return got


@pytest.mark.eh(74)
@pytest.mark.feature("properties")
def test_properties(doors: Doors, tls: bool, hub: str) -> None:
    async def body() -> None:
        async with producer(doors, tls, hub) as client:
            assert (await client.get_eventhub_properties())["eventhub_name"] == hub
            assert await client.get_partition_ids() == ["0", "1", "2", "3"]
            assert (await client.get_partition_properties("3"))["last_enqueued_sequence_number"] == -1

    run(body())


@pytest.mark.eh(44, 51)
@pytest.mark.parametrize(
    "way",
    [
        pytest.param({}, id="batch", marks=pytest.mark.feature("send batch")),
        pytest.param({"partition_key": "alphabet"}, id="keyed", marks=pytest.mark.feature("send keyed")),
        pytest.param({"partition_id": "2"}, id="partition", marks=pytest.mark.feature("send to partition")),
    ],
)
def test_batches(doors: Doors, tls: bool, hub: str, way: dict[str, str]) -> None:
    async def body() -> list[EventData]:
        async with producer(doors, tls, hub) as client:
            batch = await client.create_batch(**way)
            for number in range(20):
                batch.add(EventData(f"{number:02}"))
            await client.send_batch(batch)
        only = {"partition_id": "2"} if way else {}
        return await read(doors, tls, hub, 20, starting_position="-1", **only)

    assert sorted(event.body_as_str() for event in run(body())) == [f"{number:02}" for number in range(20)]


@pytest.mark.both_ways
@pytest.mark.feature("send single")
def test_single_events(doors: Doors, tls: bool, hub: str) -> None:
    async def body() -> list[EventData]:
        async with producer(doors, tls, hub) as client:
            for number in range(5):
                await client.send_event(EventData(f"{number}"))
        return await read(doors, tls, hub, 5, starting_position="-1")

    assert sorted(event.body_as_str() for event in run(body())) == ["0", "1", "2", "3", "4"]


@pytest.mark.feature("buffered producer")
def test_a_buffered_producer_sends_all_it_was_given(doors: Doors, tls: bool, hub: str) -> None:
    sent: list[EventData] = []

    async def on_success(events: list[EventData], _: str) -> None:
        sent.extend(events)

    async def on_error(events: list[EventData], _: str, error: Exception) -> None:
        raise error

    async def body() -> list[EventData]:
        async with producer(doors, tls, hub, buffered_mode=True, on_success=on_success, on_error=on_error) as client:
            for number in range(50):
                await client.send_event(EventData(f"{number:02}"), partition_id="0")
            await client.flush(timeout=WAIT_S)
        return await read(doors, tls, hub, 50, starting_position="-1", partition_id="0")

    assert [event.body_as_str() for event in run(body())] == [f"{number:02}" for number in range(50)]
    assert len(sent) == 50


@pytest.mark.eh(55)
@pytest.mark.feature("receive from any position")
def test_positions(doors: Doors, tls: bool, hub: str) -> None:
    async def body() -> None:
        async with producer(doors, tls, hub) as client:
            await client.send_batch([EventData(f"{number}") for number in range(10)], partition_id="0")

        async def reads(start: Any, inclusive: bool, first: int) -> None:
            how = {"starting_position": start, "starting_position_inclusive": inclusive, "partition_id": "0"}
            got = await read(doors, tls, hub, 10 - first, **how)
            assert [event.sequence_number for event in got] == list(range(first, 10)), start

        await asyncio.gather(*(reads(*each) for each in (("-1", False, 0), (4, False, 5), (4, True, 4))))

    run(body())


@pytest.mark.both_ways
@pytest.mark.eh(68)
@pytest.mark.feature("checkpoints")
def test_a_checkpointed_consumer_goes_on_where_it_stopped(doors: Doors, tls: bool, hub: str) -> None:
    async def body() -> None:
        store = MemoryCheckpoints()
        async with producer(doors, tls, hub) as client:
            for partition in ("0", "1"):
                await client.send_batch([EventData(f"first {partition}")] * 3, partition_id=partition)
            got = await read(doors, tls, hub, 6, store=store, starting_position="-1")
            assert {event.body_as_str() for event in got} == {"first 0", "first 1"}
            assert set(store.checkpoints) == {"0", "1"}
            for partition in ("0", "1", "3"):
                await client.send_batch([EventData(f"second {partition}")] * 2, partition_id=partition)
        got = await read(doors, tls, hub, 6, store=store, starting_position="-1")
        assert {event.body_as_str() for event in got} == {"second 0", "second 1", "second 3"}

    run(body())


@pytest.mark.eh(25, 37)
@pytest.mark.feature("errors")
def test_a_wrong_key_and_a_missing_hub(doors: Doors, tls: bool, hub: str) -> None:
    async def body() -> None:
        wrong = doors.connection_string(tls=tls, key="wrong")
        async with producer(doors, tls, hub, conn_str=wrong) as client:
            with pytest.raises(AuthenticationError):
                await client.send_event(EventData("x"))
        async with producer(doors, tls, "missing") as client:
            with pytest.raises(EventHubError):
                await client.get_eventhub_properties()

    run(body())
