"""A table over a batch that is repeated with other tasks than before: each event once all the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds

from tests.spark.live_hub import Hub
from tests.spark.pipeline_runs import repeat_last_batch, run_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_batch_that_is_repeated_with_fewer_tasks_leaves_no_rows_of_the_others(
    spark: SparkSession, hub: Hub, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    hub.send("0", 300)
    hub.send("1", 300)
    for tasks in ("6", "3"):
        run_once(spark, "to-lake", hub, tmp_path, sink={"path": str(lake)}, source={"minPartitions": tasks})
        files = list(lake.rglob("[!.]*.parquet"))
        if tasks == "6":
            assert len(files) >= 6
            repeat_last_batch(tmp_path / "checkpoint-to-lake")
    found = ds.dataset(lake, format="parquet", partitioning="hive").to_table()
    rows = sorted(zip(found["partition"].to_pylist(), found["sequenceNumber"].to_pylist(), strict=True))
    assert rows == [(partition, number) for partition in "01" for number in range(300)]
