"""The official Python clients at a damaged partition: they hear what is lost, once, and read on behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import CloseReason, EventHubConsumerClient
from azure.eventhub.aio import EventHubConsumerClient as AsyncConsumerClient
from azure.eventhub.exceptions import ConnectionLostError

from hubweir.testing.damaged_namespace import HUB, damaged_namespace
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.test_azure_async import cancel
from tests.conformance.test_azure_readers import Reading, Seen
from tests.conformance.test_azure_sync import client_name, wait_until

EVENTS, DAMAGED = 20, 7
BEFORE = [f"event {number}." for number in range(DAMAGED)]
BEHIND = [f"event {number}." for number in range(DAMAGED + 1, EVENTS)]
# The clients' own is 30 s: so long a partition rests whose reader ended.
REST_S = 1


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[RunningNamespace]:
    with damaged_namespace(tmp_path / "data", events=EVENTS, damaged=DAMAGED) as namespace:
        yield namespace


def options(namespace: RunningNamespace) -> dict[str, Any]:
    return {
        "conn_str": namespace.connection_string(),
        "consumer_group": "$Default",
        "eventhub_name": HUB,
        "load_balancing_interval": REST_S,
    }


def check(seen: Seen) -> None:
    """One error that names the partition and the numbers; everything sound came, in order, what stood before maybe
    twice, since this client begins at its checkpoint again."""
    [error] = seen.errors
    assert isinstance(error, ConnectionLostError)
    assert f"events {DAMAGED} to {DAMAGED} of partition 0 of event hub '{HUB}'" in str(error)
    assert seen.closed[0] is CloseReason.OWNERSHIP_LOST
    assert seen.events[-len(BEHIND) :] == BEHIND
    assert seen.events[: -len(BEHIND)] in (BEFORE, BEFORE + BEFORE)


@pytest.mark.client(client_name(False))
@pytest.mark.feature("errors")
@pytest.mark.parametrize("start", ["-1", 3], ids=["oldest", "number"])
def test_a_consumer_hears_of_damage_once_and_reads_on(damaged: RunningNamespace, start: str | int) -> None:
    seen = Seen()
    client = EventHubConsumerClient.from_connection_string(**options(damaged))
    with Reading(client, starting_position=start, starting_position_inclusive=True, **seen.callbacks()):
        wait_until(lambda: bool(seen.events) and seen.events[-1] == BEHIND[-1])
    if start == "-1":
        check(seen)
    else:
        assert len(seen.errors) == 1 and seen.events[-len(BEHIND) :] == BEHIND


@pytest.mark.client("azure-eventhub, asyncio, plain")
@pytest.mark.feature("errors")
def test_an_asyncio_consumer_hears_of_damage_once_and_reads_on(damaged: RunningNamespace) -> None:
    seen = Seen()

    async def read() -> None:
        client = AsyncConsumerClient.from_connection_string(**options(damaged))
        async with client:
            reading = asyncio.create_task(client.receive(starting_position="-1", **seen.async_callbacks()))
            async with asyncio.timeout(30):
                while not seen.events or seen.events[-1] != BEHIND[-1]:
                    await asyncio.sleep(0.05)
            await cancel(reading)

    asyncio.run(read())
    check(seen)


@pytest.mark.client(client_name(False))
@pytest.mark.feature("errors")
def test_a_consumer_with_checkpoints_gets_nothing_twice_but_what_was_not_marked(damaged: RunningNamespace) -> None:
    from azure.eventhub._eventprocessor.in_memory_checkpoint_store import InMemoryCheckpointStore

    seen, done = Seen(), threading.Event()

    def take(context: Any, event: Any) -> None:
        seen.take(context, event)
        context.update_checkpoint(event)
        if seen.events[-1] == BEHIND[-1]:
            done.set()

    client = EventHubConsumerClient.from_connection_string(
        **options(damaged), checkpoint_store=InMemoryCheckpointStore()
    )
    with Reading(client, starting_position="-1", **{**seen.callbacks(), "on_event": take}):
        assert done.wait(30), seen.errors
    assert len(seen.errors) == 1 and seen.events == BEFORE + BEHIND
