"""The least that a Python source of events can do: the same few rows again and again, planned and made out of nothing.

What a micro-batch of it takes is PySpark's own share in ours. Same columns, frozen garbage, no service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from hubweir.spark.event_columns import COLUMN_NAMES, spark_schema
from hubweir.spark.record_batches import arrow_schema
from hubweir.spark.worker_process import end_quietly, freeze_garbage
from spark_cases.events import BODY_BYTES

_ROW: dict[str, Any] = {
    "body": bytes(range(BODY_BYTES)),
    "partition": "0",
    "offset": "4096",
    "sequenceNumber": 1,
    "enqueuedTime": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "publisher": None,
    "partitionKey": "device-0001",
    "properties": {"source": "benchmark", "reading": "temperature"},
    "systemProperties": {},
}


@cache
def constant_rows(rows: int) -> pa.RecordBatch:
    """Made once a process."""
    return pa.RecordBatch.from_pylist([_ROW] * rows, schema=arrow_schema(COLUMN_NAMES))


class ConstantDataSource(DataSource):
    """Options: rows of a micro-batch, and tasks that share them."""

    @classmethod
    def name(cls) -> str:
        return "constant-rows"

    def schema(self) -> str:
        return spark_schema()

    def streamReader(self, schema: StructType) -> ConstantReader:
        return ConstantReader(int(self.options["rows"]), int(self.options["tasks"]))


class ConstantReader(DataSourceStreamReader):
    """Its offset counts batches."""

    def __init__(self, rows: int, tasks: int) -> None:
        self._rows, self._tasks = rows, tasks

    def initialOffset(self) -> dict[str, int]:
        return {"batches": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        return {"batches": start["batches"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(json.dumps(end)) for _ in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        freeze_garbage()
        yield constant_rows(self._rows // self._tasks)
        freeze_garbage()

    def stop(self) -> None:
        end_quietly()
