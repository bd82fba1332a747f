"""An event hub as a stream: what is read, and that it goes on exactly where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hubweir.spark.event_columns import COLUMN_NAMES
from tests.spark.live_hub import Hub, until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)

Stream = Callable[..., Any]
RowsOf = Callable[[], list[tuple[str, int]]]


def events_of(spark: SparkSession, hub: Hub, **more: str) -> DataFrame:
    return spark.readStream.format("eventhubs").options(**hub.options(startingPosition="earliest", **more)).load()


def numbers(partition_id: str, start: int, end: int) -> list[tuple[str, int]]:
    return [(partition_id, number) for number in range(start, end)]


def test_stream_gives_what_a_batch_gives_and_goes_on_from_its_checkpoint(
    spark: SparkSession, hub: Hub, stream: Stream, tmp_path: Path
) -> None:
    """Two runs over one checkpoint, in batches of at most 400 events: nothing twice, nothing missing, all columns."""
    for run in range(2):
        hub.send("0", 700, start=700 * run)
        hub.send("1", 100, start=100 * run)
        query = stream(events_of(spark, hub, maxEventsPerTrigger="400"))
        read = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
        assert sum(read) == 800 and max(read) <= 400
        last = query.lastProgress["sources"][0]
        assert last["endOffset"] == last["latestOffset"] or run == 0
    streamed = spark.read.parquet(str(tmp_path / "rows"))
    assert tuple(streamed.columns) == COLUMN_NAMES
    batch = spark.read.format("eventhubs").options(**hub.options()).load()
    comparable = [*COLUMN_NAMES[:-2], "to_json(properties)", "to_json(systemProperties)"]
    left, right = (sorted(map(str, frame.selectExpr(*comparable).collect())) for frame in (streamed, batch))
    assert left == right and len(left) == 1600


def test_running_query_reads_what_is_added_and_tells_how_far_it_is_behind(
    spark: SparkSession, hub: Hub, stream: Stream, rows_of: RowsOf
) -> None:
    events = events_of(spark, hub, maxEventsPerTrigger="500").select("partition", "sequenceNumber")
    query = stream(events, trigger={"processingTime": "0 seconds"})
    sent = 0
    behind: list[int] = []
    for _ in range(5):
        hub.send("0", 400, start=sent)
        hub.send("1", 400, start=sent)
        sent += 400

    def read_all() -> bool:
        assert query.exception() is None
        known = query.recentProgress  # once: another look may see one more batch
        behind[:] = [
            sum(_offset(source["latestOffset"]).values()) - sum(_offset(source["endOffset"]).values())
            for source in (progress["sources"][0] for progress in known)
        ]
        return bool(known) and sum(progress["numInputRows"] for progress in known) == 2 * sent

    until(read_all, "the last event")
    query.stop()
    assert rows_of() == numbers("0", 0, sent) + numbers("1", 0, sent)
    assert max(behind) > 0 and behind[-1] == 0


def _offset(text: Any) -> dict[str, int]:
    import json

    found = json.loads(text) if isinstance(text, str) else text
    return {key: value for key, value in (found or {}).items() if key not in ("from", "initial")}


def test_events_that_retention_took_stop_the_query_or_are_left_out(
    spark: SparkSession, hub: Hub, stream: Stream, rows_of: RowsOf
) -> None:
    hub.send("0", 50)
    stream(events_of(spark, hub).select("partition", "sequenceNumber"))
    hub.send("0", 30, start=50)
    expire(hub, "0")
    hub.send("0", 20, start=80)
    with pytest.raises(Exception, match="30 events of partition 0 .* sequence numbers 50 to 79: .*failOnDataLoss"):
        stream(events_of(spark, hub).select("partition", "sequenceNumber"))
    assert rows_of() == numbers("0", 0, 50)
    stream(events_of(spark, hub, failOnDataLoss="false").select("partition", "sequenceNumber"))
    assert rows_of() == numbers("0", 0, 50) + numbers("0", 80, 100)


def expire(hub: Hub, partition_id: str) -> None:
    """Retention takes everything there is, as it would in a year."""
    broker = hub.namespace.service.broker
    in_a_year_ms = int((time.time() + 366 * 86_400) * 1000)

    async def sweep() -> None:
        while broker._residents.sweep_next(in_a_year_ms):
            pass

    def is_empty() -> bool:
        hub.namespace.run(sweep())
        return hub.client.partition(partition_id).is_empty

    until(is_empty, "the sweep of retention")
