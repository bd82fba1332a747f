"""Record batches into Parquet files, a folder for each date and hour: `date=2026-01-31/hour=07/<name>.parquet`.

A file appears under its name whole: written beside it, synced, renamed. A writer that dies leaves `.…` files, which
readers pass over. A name that is there already is replaced, so a task that runs again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hubweir.pipelines.durable_file import publish

DATE, HOUR = "date", "hour"
SUFFIX = ".parquet"
# Rows that one hour may have in memory: a row group of a file, some ten megabytes.
ROWS_A_GROUP = 100_000


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A file that was written. path: below the table, with /. low, high: sequence numbers; -1 when there is none."""

    path: str
    date: str
    hour: int
    size_bytes: int
    rows: int
    low: int = -1
    high: int = -1


class _HourFile:
    """The open file of one date and hour."""

    def __init__(self, table: Path, date: str, hour: int, name: str) -> None:
        self._place = (date, hour)
        self._folder = table / f"{DATE}={date}" / f"{HOUR}={hour:02}"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._table = table
        self._final = self._folder / name
        self._unfinished = self._folder / f".{name}.{uuid4().hex}"
        self._waiting: list[pa.RecordBatch] = []
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        self._low, self._high = -1, -1

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows of this hour; they are on disk when enough have come, or at the end."""
        self._waiting.append(batch)
        self._rows += batch.num_rows
        if "sequenceNumber" in batch.schema.names:
            found = pc.min_max(batch.column("sequenceNumber"))
            self._low = min(self._low, found["min"].as_py()) if self._low >= 0 else found["min"].as_py()
            self._high = max(self._high, found["max"].as_py())
        if sum(each.num_rows for each in self._waiting) >= ROWS_A_GROUP:
            self._write()

    def _write(self) -> None:
        rows = pa.Table.from_batches(self._waiting)
        self._waiting = []
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._unfinished, rows.schema, compression="zstd")
        self._writer.write_table(rows)

    def finish(self) -> LakeFile:
        """Whole under its name."""
        self._write()
        assert self._writer is not None
        self._writer.close()
        publish(self._unfinished, self._final)
        date, hour = self._place
        path = self._final.relative_to(self._table).as_posix()
        return LakeFile(path, date, hour, self._final.stat().st_size, self._rows, self._low, self._high)

    def abandon(self) -> None:
        """Nothing of it stays."""
        if self._writer is not None:
            self._writer.close()
        self._unfinished.unlink(missing_ok=True)


def write_files(batches: Iterable[pa.RecordBatch], table: Path, name: str) -> list[LakeFile]:
    """Write rows that have the columns `date` (text) and `hour` (number), which go into the folders' names only."""
    open_files: dict[tuple[str, int], _HourFile] = {}
    try:
        for batch in batches:
            for date, hour, rows in by_hour(batch):
                if (date, hour) not in open_files:
                    open_files[date, hour] = _HourFile(table, date, hour, name)
                open_files[date, hour].add(rows)
    except BaseException:
        for each in open_files.values():
            each.abandon()
        raise
    return [each.finish() for each in open_files.values()]


def by_hour(batch: pa.RecordBatch) -> list[tuple[str, int, pa.RecordBatch]]:
    """The rows of each date and hour, in their order, without these two columns. As a rule that is one."""
    named = pa.Table.from_batches([batch]).select([DATE, HOUR])
    places = named.group_by([DATE, HOUR], use_threads=False).aggregate([])
    plain = batch.drop_columns([DATE, HOUR])
    found = []
    for place in places.to_pylist():
        is_here = pc.and_(pc.equal(batch.column(DATE), place[DATE]), pc.equal(batch.column(HOUR), place[HOUR]))
        found.append((place[DATE], place[HOUR], plain if len(places) == 1 else plain.filter(is_here)))
    return found
