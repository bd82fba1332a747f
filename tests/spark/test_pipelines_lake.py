"""The pipeline to-lake: what it writes, in both formats, over restarts and repeated batches; and its compaction."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from hubweir.pipelines.description import describe
from hubweir.pipelines.run_status import read_status
from hubweir.pipelines.runner import PipelineRun
from tests.spark.live_hub import WAIT_S, Hub
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
    for run in range(2):
        hub.send("0", 300, start=sent)
        hub.send("1", 300, start=sent)
        sent += 300
        if run:
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


class Reader(threading.Thread):
    """Reads a table all the time. reads: how many rows each saw; wrong: what none should have seen."""

    def __init__(self, table: Path) -> None:
        super().__init__(daemon=True)
        self._table = table
        self.is_over = threading.Event()
        self.reads: list[int] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        before: set[tuple[str, int]] = set()
        while not self.is_over.is_set():
            try:
                found = numbers(self._table, "parquet") if any(self._table.glob("date=*/hour=*/*.parquet")) else []
            except FileNotFoundError:  # it was listed before its hour was joined, and opened behind
                continue
            now = set(found)
            if len(now) < len(found):
                self.wrong.append(f"{len(found) - len(now)} rows twice")
            if not before <= now:
                self.wrong.append(f"{len(before - now)} rows have gone")
            before = now
            self.reads.append(len(found))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_readers_see_each_row_once_at_any_moment_while_a_stream_runs_and_its_hours_are_joined(
    spark: SparkSession, hub: Hub, tmp_path: Path
) -> None:
    """Every batch is followed by a look for hours that are over, and all are: so each batch's files are joined."""
    lake, batches, sent = tmp_path / "lake", 10, 0

    def after_a_batch(line: str) -> None:
        nonlocal sent
        told.append(line)
        for mark in lake.glob(".compacted-*"):
            os.utime(mark, (0, 0))  # as if a minute had passed
        hub.send("0", 50, start=sent)
        hub.send("1", 50, start=sent)
        sent += 50

    told: list[str] = []
    raw = {
        "pipeline": "tests.spark.pipeline_runs:into_past_hours", "checkpoint": str(tmp_path / "checkpoint"),
        "source": hub.options(), "sink": {"path": str(lake), "format": "parquet"}, "trigger": "100ms",
    }  # fmt: skip
    after_a_batch("")
    reader = Reader(lake)
    reader.start()
    limit_s = time.monotonic() + WAIT_S
    PipelineRun(describe(raw, "test"), after_a_batch).run(
        spark, once=False, is_over=lambda: len(told) > batches or time.monotonic() > limit_s
    )
    reader.is_over.set()
    reader.join()
    assert len(told) > batches and reader.wrong == []
    assert len(set(reader.reads)) > 3
    files = [path for path in lake.rglob("*.parquet") if not path.name.startswith(".")]
    assert any(path.name.startswith("joined-") for path in files) and len(files) < 2 * batches
    found = numbers(lake, "parquet")
    assert len(found) >= 50 * batches
    for partition_id in "01":
        mine = [number for partition, number in found if partition == partition_id]
        assert mine == list(range(len(mine)))
