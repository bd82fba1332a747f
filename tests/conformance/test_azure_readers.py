"""The official Python client: owner levels, the tracked last event, and readers while retention changes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from azure.eventhub import CloseReason, EventData
from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore
from azure.eventhub.aio import EventHubConsumerClient as AsyncConsumerClient
from azure.eventhub.exceptions import ConnectionLostError

from tests.conformance.conftest import Doors
from tests.conformance.test_azure_async import cancel
from tests.conformance.test_azure_sync import WAIT_S, client_name, consumer, producer, read, wait_until
from tests.conformance.test_https import ANY_VERSION, Curl, curl, hub_entry

__all__ = ["curl"]  # a fixture
BLOCKING = pytest.mark.client(client_name(False))
ASYNCIO = pytest.mark.client("azure-eventhub, asyncio, plain")


class Seen:
    """What a reader's callbacks were given."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.errors: list[Exception] = []
        self.closed: list[CloseReason] = []
        self.owned: set[str] = set()
        self.tracked: list[dict[str, Any]] = []

    def take(self, context: Any, event: EventData | None) -> None:
        if event is not None:
            self.events.append(event.body_as_str())
            self.tracked.append(context.last_enqueued_event_properties)

    def callbacks(self) -> dict[str, Callable[..., Any]]:
        return {
            "on_event": self.take,
            "on_error": lambda _, error: self.errors.append(error),
            "on_partition_initialize": lambda context: self.owned.add(context.partition_id),
            "on_partition_close": lambda _, reason: self.closed.append(reason),
        }

    def async_callbacks(self) -> dict[str, Callable[..., Any]]:
        """The same as coroutines."""

        def later(callback: Callable[..., Any]) -> Callable[..., Any]:
            async def called(*arguments: Any) -> None:
                callback(*arguments)

            return called

        return {name: later(callback) for name, callback in self.callbacks().items()}

    @property
    def was_displaced(self) -> bool:
        lost = any(isinstance(error, ConnectionLostError) for error in self.errors)
        return lost and CloseReason.OWNERSHIP_LOST in self.closed


class Reading:
    """A blocking client that receives on a thread until the end of the block."""

    def __init__(self, client: Any, **how: Any) -> None:
        self._client = client
        self._thread = threading.Thread(target=lambda: client.receive(**how), daemon=True)

    def __enter__(self) -> Reading:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._thread.join(WAIT_S)


@BLOCKING
@pytest.mark.eh(63)
@pytest.mark.feature("owner level")
@pytest.mark.parametrize("higher", [1, 2], ids=["equal", "higher"])
def test_a_displaced_reader_loses_its_partition(doors: Doors, hub: str, higher: int) -> None:
    loser, winner = Seen(), Seen()
    where = {"partition_id": "0", "starting_position": "-1"}
    with producer(doors, False, hub) as sender:
        sender.send_batch([EventData("first")], partition_id="0")
        with Reading(consumer(doors, False, hub), **where, owner_level=1, **loser.callbacks()):
            wait_until(lambda: loser.events == ["first"])
            assert not loser.errors
            with Reading(consumer(doors, False, hub), **where, owner_level=higher, **winner.callbacks()):
                wait_until(lambda: loser.was_displaced)
                # With an equal level this client attaches again at once, and wins in its turn.
                if higher > 1:
                    sender.send_batch([EventData("second")], partition_id="0")
                    wait_until(lambda: winner.events == ["first", "second"])
                    assert loser.events == ["first"]


@ASYNCIO
@pytest.mark.eh(63)
@pytest.mark.feature("owner level")
def test_a_displaced_asyncio_reader_loses_its_partition(doors: Doors, hub: str) -> None:
    loser, winner = Seen(), Seen()
    where = {"partition_id": "0", "starting_position": "-1"}

    def client() -> AsyncConsumerClient:
        return AsyncConsumerClient.from_connection_string(
            doors.connection_string(), consumer_group="$Default", eventhub_name=hub
        )

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await asyncio.sleep(0.02)

    async def body() -> None:
        async with client() as first, client() as second:
            losing = asyncio.ensure_future(first.receive(**where, owner_level=1, **loser.async_callbacks()))
            await until(lambda: loser.events == ["first"])
            winning = asyncio.ensure_future(second.receive(**where, owner_level=2, **winner.async_callbacks()))
            await until(lambda: loser.was_displaced and winner.events == ["first"])
            await cancel(losing, winning)

    with producer(doors, False, hub) as sender:
        sender.send_batch([EventData("first")], partition_id="0")
    asyncio.run(body())


@BLOCKING
@pytest.mark.eh(60)
@pytest.mark.feature("runtime metrics")
def test_the_last_events_tracked_properties_are_its_own(doors: Doors, hub: str) -> None:
    seen = Seen()
    with producer(doors, False, hub) as sender:
        sender.send_batch([EventData(f"{number}") for number in range(5)], partition_id="0")
        end = sender.get_partition_properties("0")
    last: list[EventData] = []
    callbacks = seen.callbacks() | {"on_event": lambda context, event: (seen.take(context, event), last.append(event))}
    where = {"partition_id": "0", "starting_position": "-1", "track_last_enqueued_event_properties": True}
    with Reading(consumer(doors, False, hub), **where, **callbacks):
        wait_until(lambda: len(last) == 5)
    event, tracked = last[-1], seen.tracked[-1]
    assert tracked["sequence_number"] == event.sequence_number == end["last_enqueued_sequence_number"] == 4
    assert tracked["offset"] == event.offset == end["last_enqueued_offset"]
    assert tracked["enqueued_time"] == event.enqueued_time == end["last_enqueued_time_utc"]
    assert tracked["retrieval_time"] is not None


@ASYNCIO
@pytest.mark.eh(60)
@pytest.mark.feature("runtime metrics")
def test_the_last_events_tracked_properties_are_its_own_with_asyncio(doors: Doors, hub: str) -> None:
    found: list[tuple[EventData, dict[str, Any]]] = []

    async def body() -> None:
        client = AsyncConsumerClient.from_connection_string(
            doors.connection_string(), consumer_group="$Default", eventhub_name=hub
        )
        enough = asyncio.Event()

        async def on_event(context: Any, event: EventData) -> None:
            found.append((event, context.last_enqueued_event_properties))
            if len(found) == 5:
                enough.set()

        where = {"partition_id": "0", "starting_position": "-1", "track_last_enqueued_event_properties": True}
        async with client:
            receiving = asyncio.ensure_future(client.receive(on_event=on_event, **where))
            await asyncio.wait_for(enough.wait(), WAIT_S)
            await cancel(receiving)

    with producer(doors, False, hub) as sender:
        sender.send_batch([EventData(f"{number}") for number in range(5)], partition_id="0")
    asyncio.run(body())
    event, tracked = found[-1]
    assert tracked["sequence_number"] == event.sequence_number == 4
    assert tracked["offset"] == event.offset
    assert tracked["enqueued_time"] == event.enqueued_time


@BLOCKING
@pytest.mark.eh(60)
@pytest.mark.feature("runtime metrics")
def test_a_reader_that_did_not_ask_has_nothing_tracked(doors: Doors, hub: str) -> None:
    seen = Seen()
    with producer(doors, False, hub) as sender:
        sender.send_batch([EventData("x")], partition_id="0")
    with Reading(consumer(doors, False, hub), partition_id="0", starting_position="-1", **seen.callbacks()):
        wait_until(lambda: seen.events == ["x"])
    assert seen.tracked == [{}] or seen.tracked == [None]


@BLOCKING
@pytest.mark.eh(84)
@pytest.mark.feature("checkpoints")
def test_retention_changed_under_two_checkpointing_readers(doors: Doors, hub: str, curl: Curl) -> None:
    """Events before, between and after six changes: each arrives exactly once at one of the two."""
    store = InMemoryCheckpointStore()
    readers = [Seen(), Seen()]

    def reading(seen: Seen) -> Reading:
        def on_event(context: Any, event: EventData) -> None:
            seen.take(context, event)
            context.update_checkpoint(event)

        client = consumer(doors, False, hub, checkpoint_store=store, load_balancing_interval=1)
        return Reading(client, starting_position="-1", **seen.callbacks() | {"on_event": on_event})

    sent: list[str] = []
    with producer(doors, False, hub) as sender, reading(readers[0]), reading(readers[1]):

        def send() -> None:
            for partition in ("0", "1", "2", "3"):
                bodies = [f"{partition} {len(sent)} {number}" for number in range(3)]
                sender.send_batch([EventData(body) for body in bodies], partition_id=partition)
                sent.extend(bodies)

        def owners() -> list[int]:
            owned = store.list_ownership("", "", "") or owned_in(store)
            return sorted(Counter(each["owner_id"] for each in owned).values())

        def owned_in(store: InMemoryCheckpointStore) -> list[dict[str, Any]]:
            return list(store.list_ownership(doors.host, hub, "$Default"))

        end = time.monotonic() + 2 * WAIT_S
        while owners() != [2, 2]:
            assert time.monotonic() < end, f"two readers do not share four partitions: {owners()}"
            time.sleep(0.1)
        for days in (2, 1) * 3:
            send()
            entry = hub_entry(days=days, partitions=4)
            assert curl.call("PUT", f"/{hub}", entry, *ANY_VERSION)[0] == 200
            send()
        wait_until(lambda: len(readers[0].events) + len(readers[1].events) >= len(sent))
        time.sleep(0.5)
    assert Counter(readers[0].events + readers[1].events) == Counter(sent)
    assert all(seen.events for seen in readers)
    # Where they stopped is where one goes on: nothing is left.
    rest = Seen()
    with Reading(
        consumer(doors, False, hub, checkpoint_store=store, load_balancing_interval=1),
        starting_position="-1",
        **rest.callbacks(),
    ):
        wait_until(lambda: len(rest.owned) == 4)
        time.sleep(0.5)
    assert rest.events == []
    assert len(read(consumer(doors, False, hub, "second"), len(sent), starting_position="-1")) == len(sent)
