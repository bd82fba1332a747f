"""The pipeline to-lake: what it writes, in both formats, over restarts and repeated batches; and its compaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from hubweir.pipelines.run_status import read_status
from tests.spark.live_hub import Hub
from tests.spark.pipeline_runs import repeat_last_batch, run_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbers(table: Path, table_format: str) -> list[tuple[str, int]]:
    """Every row of a table by a reader that is not Spark."""
    if table_format == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(str(table)).to_pyarrow_table()
    else:
        found = ds.dataset(table, format="parquet", partitioning="hive").to_table()
    return sorted(zip(found["partition"].to_pylist(), found["sequenceNumber"].to_pylist(), strict=True))


@pytest.mark.parametrize("table_format", ["parquet", "delta"])
def test_each_event_is_in_the_table_once_over_restarts_and_a_repeated_batch(
    spark: SparkSession, hub: Hub, tmp_path: Path, table_format: str
) -> None:
    lake = tmp_path / "lake"
    sent = 0
    for run in range(3):
        hub.send("0", 300, start=sent)
        hub.send("1", 300, start=sent)
        sent += 300
        if run == 2:
            repeat_last_batch(tmp_path / "checkpoint-to-lake")
        told = run_once(
            spark, "to-lake", hub, tmp_path,
            sink={"path": str(lake), "format": table_format}, source={"maxEventsPerTrigger": "400"},
        )  # fmt: skip
        assert any("behind 0" in line for line in told) and "events/s" not in told[0]
    expected = [(partition, number) for partition in "01" for number in range(sent)]
    assert numbers(lake, table_format) == expected
    status = read_status(tmp_path / "checkpoint-to-lake")
    assert (status.state, status.behind) == ("stopped", 0)
    assert {key: one.next for key, one in status.partitions.items()} == {"0": sent, "1": sent}
