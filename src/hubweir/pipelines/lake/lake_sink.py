"""`format("hubweir-lake")`: a table of Parquet files, or of Delta, by date and hour; each event once for any reader.

Tasks write files (lake_files.py). In a plain table a file's name is made of query, micro-batch and task, so a batch
that is repeated after a crash puts the same files in place of its own; Spark's own file sink instead keeps a log that
other readers do not know. A Delta table takes all files of a batch by one commit that carries query and batch
(delta_table.py). Either way one stream may write a table at a time.

| option | means |
|---|---|
| `path` | the folder; on a cluster one that all machines see |
| `tableFormat` | parquet or delta |
| `compactAfterMs` | how long after its end an hour's files are joined; without it never |
| `repeats` | the micro-batch that a run before began and did not end; its tasks may have been others |
"""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from hubweir.pipelines.lake.compaction import compact, file_name, recover, remove_left
from hubweir.pipelines.lake.delta_table import DeltaFile, commit_files, compact_hours
from hubweir.pipelines.lake.lake_files import DATE, HOUR, SUFFIX, LakeFile, write_files
from hubweir.pipelines.lake.table_lock import locked
from hubweir.spark.errors import IllegalOption
from hubweir.spark.worker_process import freeze_garbage

NAME = "hubweir-lake"
PARQUET, DELTA = "parquet", "delta"
# Looking through the folders of a table takes longer than a small batch.
_COMPACT_EVERY_S = 60.0
_MARK = ".compacted-"


@dataclass
class LakeMessage(WriterCommitMessage):
    """The files that one task wrote. schema: of the files, None when there are none; it is serialized Arrow."""

    query: str
    files: list[LakeFile]
    schema: bytes


class LakeDataSource(DataSource):
    """One table."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = options

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: StructType, overwrite: bool) -> LakeWriter:
        after = self._given.get("compactAfterMs")
        missing = sorted({DATE, HOUR} - set(schema.fieldNames()))
        if missing or not self._given.get("path"):
            raise IllegalOption(f"{NAME} needs the option path, and the columns {DATE} and {HOUR}")
        table_format = self._given.get("tableFormat") or PARQUET
        repeats = self._given.get("repeats")
        return LakeWriter(
            Path(self._given["path"]),
            table_format,
            None if after is None else int(after),
            None if repeats is None else int(repeats),
        )


class LakeWriter(DataSourceStreamArrowWriter):
    """Writes in tasks, commits beside the driver."""

    def __init__(
        self, table: Path, table_format: str, compact_after_ms: int | None, repeats: int | None = None
    ) -> None:
        self._table = table
        self._is_delta = table_format == DELTA
        self._compact_after_ms = compact_after_ms
        self._repeats = repeats

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LakeMessage:
        """In a task: its rows as files."""
        freeze_garbage()
        context = TaskContext.get()
        assert context is not None
        query = context.getLocalProperty("sql.streaming.queryId") or ""
        batch = int(context.getLocalProperty("streaming.sql.batchId") or 0)
        name = file_name(query, batch, context.partitionId())
        if self._is_delta:  # an attempt that died may have left files: they are in no commit, and under other names
            name = f"{name.removesuffix(SUFFIX)}-{uuid4().hex}{SUFFIX}"
        schema = b""

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal schema
            for each in iterator:
                schema = schema or each.schema.serialize().to_pybytes()
                yield each

        return LakeMessage(query, write_files(batches(), self._table, name), schema)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """All tasks of a batch are done: one commit, and what compaction is due. May be called twice for a batch."""
        written = [message for message in messages if isinstance(message, LakeMessage) and message.files]
        if self._is_delta and written:
            files = [delta_file(file) for message in written for file in message.files]
            schema = pa.ipc.read_schema(pa.py_buffer(written[0].schema))
            commit_files(self._table, schema, files, query=written[0].query, batch=batchId)
        elif batchId == self._repeats and written:
            remove_left(self._table, written[0].query, batchId, {file.path for each in written for file in each.files})
        query = next((message.query for message in messages if isinstance(message, LakeMessage)), None)
        if query is not None and self._compact_after_ms is not None and self._is_due(query):
            now_ms, after_ms = int(time.time() * 1000), self._compact_after_ms
            if self._is_delta:
                compact_hours(self._table, now_ms=now_ms, after_ms=after_ms)
                return
            with locked(self._table) as is_ours:
                if is_ours:
                    recover(self._table)
                    compact(self._table, query=query, before_batch=batchId, now_ms=now_ms, after_ms=after_ms)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """A batch failed, and is repeated: a plain table's files are put in place again, Delta names none of these."""

    def _is_due(self, query: str) -> bool:
        """Whether the query's last look is long ago. The time is a file's: every commit has a process of its own."""
        mark = self._table / f"{_MARK}{query[:8]}"
        if mark.exists() and time.time() - mark.stat().st_mtime < _COMPACT_EVERY_S:
            return False
        self._table.mkdir(parents=True, exist_ok=True)
        mark.touch()
        return True


def delta_file(file: LakeFile) -> DeltaFile:
    """A file as Delta names it, with what lets a reader skip it."""
    stats: dict[str, object] = {"numRecords": file.rows}
    if file.low >= 0:
        stats |= {"minValues": {"sequenceNumber": file.low}, "maxValues": {"sequenceNumber": file.high}}
    return DeltaFile(file.path, file.size_bytes, {DATE: file.date, HOUR: str(file.hour)}, stats)
