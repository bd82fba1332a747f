"""Running pipelines in the tests' session, and reading what they wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubweir.pipelines.description import describe
from hubweir.pipelines.runner import PipelineRun
from tests.spark.live_hub import Hub

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter

    from hubweir.pipelines.job import Job


def run_once(spark: SparkSession, pipeline: str, hub: Hub, folder: Path, **tables: Any) -> list[str]:
    """Run a pipeline on what the hub has now; its progress lines. tables: parameters, sink, and more of the source."""
    told: list[str] = []
    raw = {
        "pipeline": pipeline,
        "checkpoint": str(folder / f"checkpoint-{pipeline}"),
        "source": hub.options(**tables.pop("source", {})),
        **tables,
    }
    PipelineRun(describe(raw, "test"), told.append).run(spark, once=True)
    return told


def send_json(hub: Hub, rows: list[dict[str, Any]], key: str | None = None) -> None:
    """One event for each row."""
    hub.client.sender().send([json.dumps(row).encode() for row in rows], partition_key=key)


def bodies(spark: SparkSession, hub: Hub) -> list[Any]:
    """Every event of a hub as JSON, in the order of partitions and sequence numbers."""
    events = spark.read.format("eventhubs").options(**hub.options(columns="body,partition,sequenceNumber")).load()
    rows = events.orderBy("partition", "sequenceNumber").collect()
    return [json.loads(bytes(row.body)) for row in rows]


def repeat_last_batch(checkpoint: Path) -> None:
    """As a driver that died behind the writing of a batch, and before Spark noted that it was done."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


def into_past_hours(job: Job) -> DataStreamWriter:
    """to-lake, as if all had come three hours ago: so each hour is over, and its files are joined at once."""
    from pyspark.sql import functions as f

    from hubweir.pipelines.lake.to_lake import into_lake

    then = f.expr("enqueuedTime - INTERVAL 3 HOURS")
    return into_lake(
        job, job.events("partition", "sequenceNumber", "enqueuedTime").withColumn("enqueuedTime", then), 0.001
    )
