"""What a service captured, read back by Spark: from a folder, and from a real storage account's stand-in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.spark.event_columns import COLUMN_NAMES
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.capture.azurite import ACCOUNT, INSTALL_S, KEY, azurite
from tests.spark.live_hub import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONTAINER = "films"
EVENTS, BODY = 11_000, 1_000  # more than the smallest window, of 10 MiB


@contextmanager
def publishing(namespace: RunningNamespace, hub: str, capture: CaptureDescription) -> Iterator[BlockingEventHubClient]:
    """A hub with capture whose first window is full."""
    namespace.create_event_hub(hub, partition_count=2, capture=capture)
    text = namespace.connection_string()
    with BlockingEventHubClient.from_connection_string(text, hub) as client:
        for partition_id in "01":
            sender = client.sender(partition_id=partition_id)
            sender.send((b"%d " % number).ljust(BODY, b"x") for number in range(EVENTS))
        yield client


def compare(captured: Callable[[], DataFrame], live: DataFrame) -> None:
    """Wait for a window of each partition; then what was captured is what the hub has, from the first event on."""
    until(
        lambda: captured().select("partition").distinct().count() == 2, "a captured file of each partition", seconds=90
    )
    comparable = [*COLUMN_NAMES[:-2], "to_json(properties)", "to_json(systemProperties)"]
    found, expected = captured().selectExpr(*comparable), live.selectExpr(*comparable)
    assert found.exceptAll(expected).count() == 0
    counts = {row.partition: (row.n, row.last) for row in found.groupBy("partition").agg(*_count_and_last()).collect()}
    assert set(counts) == {"0", "1"}
    assert all(n == last + 1 > 5_000 for n, last in counts.values())


def _count_and_last() -> list[object]:
    from pyspark.sql import functions as f

    return [f.count("*").alias("n"), f.max("sequenceNumber").alias("last")]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_captured_folder_is_what_the_hub_holds(spark: SparkSession, tmp_path: Path) -> None:
    with running_namespace(capture_folder=str(tmp_path / "captured")) as namespace:
        description = CaptureDescription(enabled=True, interval_s=900, size_limit_bytes=10_485_760)
        with publishing(namespace, "filmed", description):
            until(lambda: len(list(tmp_path.rglob("*.avro"))) == 2, "two captured files")
            options = {"connectionString": namespace.connection_string(), "eventHub": "filmed"}
            live = spark.read.format("eventhubs").options(**options).load()
            compare(lambda: spark.read.format("eventhubs-capture").load(str(tmp_path / "captured")), live)
    one = spark.read.format("eventhubs-capture").option("partition", "1").load(str(tmp_path / "captured"))
    assert [row.partition for row in one.select("partition").distinct().collect()] == ["1"]


@pytest.mark.slow
@pytest.mark.timeout(INSTALL_S + 120)
def test_captured_container_is_what_the_hub_holds(spark: SparkSession, tmp_path: Path) -> None:
    with azurite(tmp_path / "azurite") as account:
        account.make_container(CONTAINER)
        with running_namespace(capture_storage=account.connection_string) as namespace:
            description = CaptureDescription(
                enabled=True,
                interval_s=900,
                size_limit_bytes=10_485_760,
                destination=CaptureDestination.AZURE_BLOCK_BLOB,
                container=CONTAINER,
                storage_account=f"/subscriptions/s/providers/Microsoft.Storage/storageAccounts/{ACCOUNT}",
            )
            with publishing(namespace, "blobbed", description):
                settings = {"account_name": ACCOUNT, "account_key": KEY, "endpoint": account.endpoint}
                source = spark.read.format("eventhubs-capture").options(
                    **{f"store.{name}": text for name, text in settings.items()}
                )
                options = {"connectionString": namespace.connection_string(), "eventHub": "blobbed"}
                live = spark.read.format("eventhubs").options(**options).load()
                compare(lambda: source.load(f"az://{CONTAINER}"), live)
