"""Our stores inside the official clients, their store inside ours, and one group of both kinds of processor."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hubweir.client.event_hub_client import EventHubClient
from hubweir.client.event_processor import EventProcessor
from hubweir.client.event_run import EventRun
from hubweir.client.partition_context import PartitionContext
from hubweir.client.processor_options import ProcessorOptions
from hubweir.client.sqlite_checkpoint_store import BlockingSqliteCheckpointStore, SqliteCheckpointStore
from hubweir.testing.running_namespace import RunningNamespace
from tests.capture.azurite import INSTALL_S, azurite

azure_eventhub = pytest.importorskip("azure.eventhub", reason="NOT RUN: azure-eventhub is not installed")

pytestmark = pytest.mark.conformance

NewHub = Callable[..., str]
PARTITIONS = ("0", "1", "2", "3")


async def until(holds: Callable[[], bool], seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


class Handled:
    """What came, by partition; for our processors and, as on_batch, for the official ones."""

    def __init__(self) -> None:
        self.numbers: dict[str, list[int]] = {partition: [] for partition in PARTITIONS}

    @property
    def count(self) -> int:
        return sum(map(len, self.numbers.values()))

    async def handle(self, context: PartitionContext, run: EventRun) -> None:
        self.numbers[context.partition_id] += run.sequence_numbers()

    async def on_batch(self, context: Any, batch: list[Any]) -> None:
        self.numbers[context.partition_id] += [event.sequence_number for event in batch]
        await context.update_checkpoint()

    def on_batch_blocking(self, context: Any, batch: list[Any]) -> None:
        self.numbers[context.partition_id] += [event.sequence_number for event in batch]
        context.update_checkpoint()


async def send_to_all(client: EventHubClient, count: int) -> None:
    for partition in PARTITIONS:
        await client.sender(partition_id=partition).send([b"x"] * count)


def test_official_blocking_client_keeps_its_place_in_our_file_and_ours_goes_on_there(
    namespace: RunningNamespace, new_hub: NewHub, tmp_path: Path
) -> None:
    hub, handled, more = new_hub(partition_count=4), Handled(), Handled()
    text = namespace.connection_string()

    async def send() -> None:
        async with EventHubClient.from_connection_string(text, hub) as client:
            await send_to_all(client, 25)

    async def go_on() -> None:
        async with (
            EventHubClient.from_connection_string(text, hub) as client,
            SqliteCheckpointStore(tmp_path / "group.db") as store,
        ):
            await send_to_all(client, 5)
            # A short lease: the official client may renew one at the very moment at which it gives it up.
            async with EventProcessor(client, store, more.handle, ProcessorOptions(lease_s=2, interval_s=0.5)):
                await until(lambda: more.count >= 20)

    asyncio.run(send())
    with BlockingSqliteCheckpointStore(tmp_path / "group.db") as store:
        consumer = azure_eventhub.EventHubConsumerClient.from_connection_string(
            text, "$Default", eventhub_name=hub, checkpoint_store=store, load_balancing_interval=0.5
        )
        receiving = threading.Thread(
            target=consumer.receive_batch, args=(handled.on_batch_blocking,), kwargs={"starting_position": "-1"}
        )
        receiving.start()
        end = time.monotonic() + 30
        while handled.count < 100 and time.monotonic() < end:
            time.sleep(0.05)
        consumer.close()
        receiving.join(30)
    assert handled.numbers == {partition: list(range(25)) for partition in PARTITIONS}
    asyncio.run(go_on())
    assert more.numbers == {partition: list(range(25, 30)) for partition in PARTITIONS}


def test_official_processor_and_ours_share_one_group(
    namespace: RunningNamespace, new_hub: NewHub, tmp_path: Path
) -> None:
    hub, official, ours = new_hub(partition_count=4), Handled(), Handled()
    text = namespace.connection_string()
    from azure.eventhub.aio import EventHubConsumerClient

    async def scenario() -> None:
        async with (
            EventHubClient.from_connection_string(text, hub) as client,
            SqliteCheckpointStore(tmp_path / "group.db") as store,
        ):
            # The case of a group's name is nobody's business: the stores fold it as the official one does.
            processor = EventProcessor(
                client, store, ours.handle, ProcessorOptions(group="$default", lease_s=3, interval_s=0.3)
            )
            consumer = EventHubConsumerClient.from_connection_string(
                text,
                "$Default",
                eventhub_name=hub,
                checkpoint_store=store,
                load_balancing_interval=0.3,
                partition_ownership_expiration_interval=3,
            )
            async with processor, consumer, asyncio.TaskGroup() as group:
                await until(lambda: len(processor.partition_ids) == 4)
                receiving = group.create_task(consumer.receive_batch(official.on_batch, starting_position="-1"))
                await until(lambda: len(processor.partition_ids) == 2)
                await send_to_all(client, 10)
                await until(lambda: sum(1 for each in official.numbers.values() if each) == 2)
                await until(lambda: official.count + ours.count >= 40)
                await consumer.close()  # it gives its leases up
                await until(lambda: len(processor.partition_ids) == 4)
                await send_to_all(client, 10)
                await until(lambda: all(each[-1:] == [19] for each in ours.numbers.values()))
                await receiving
            for partition in PARTITIONS:
                assert sorted({*official.numbers[partition], *ours.numbers[partition]}) == list(range(20))

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def storage_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A connection string of a real Azurite. Installed only where there is a client for it."""
    reason = "NOT RUN: azure-eventhub-checkpointstoreblob-aio is not installed"
    pytest.importorskip("azure.eventhub.extensions.checkpointstoreblobaio", reason=reason)
    with azurite(tmp_path_factory.mktemp("azurite") / "data") as account:
        yield account.connection_string


@pytest.mark.timeout(INSTALL_S + 120)
def test_our_processors_keep_their_place_in_the_official_blob_store(
    namespace: RunningNamespace, new_hub: NewHub, storage_account: str
) -> None:
    """Two processors of ours over real blobs: shares, a stop, a second life behind the checkpoints."""
    from azure.eventhub.extensions.checkpointstoreblobaio import BlobCheckpointStore

    hub = new_hub(partition_count=4)

    async def scenario() -> None:
        handled, after = Handled(), Handled()
        async with (
            EventHubClient.from_connection_string(namespace.connection_string(), hub) as client,
            BlobCheckpointStore.from_connection_string(storage_account, "checkpoints") as store,
        ):
            await store._container_client.create_container()
            await send_to_all(client, 30)
            first = EventProcessor(
                client, store, handled.handle, ProcessorOptions(lease_s=10, interval_s=0.5, checkpoint_every=10)
            )
            second = EventProcessor(
                client, store, handled.handle, ProcessorOptions(lease_s=10, interval_s=0.5, checkpoint_every=10)
            )
            async with first:
                await until(lambda: handled.count == 120)
                async with second:
                    await until(lambda: len(first.partition_ids) == len(second.partition_ids) == 2)
            names = (client.namespace, hub.upper(), "$default")
            assert {mark["sequence_number"] for mark in await store.list_checkpoints(*names)} == {29}
            assert {lease["owner_id"] for lease in await store.list_ownership(*names)} <= {"", None}
            await send_to_all(client, 3)
            async with EventProcessor(client, store, after.handle, ProcessorOptions(lease_s=10, interval_s=0.5)):
                await until(lambda: after.count >= 12)
            assert after.numbers == {partition: [30, 31, 32] for partition in PARTITIONS}

    asyncio.run(scenario())
