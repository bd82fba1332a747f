"""`format("hubweir-replay")`: an event hub as a stream that begins in its captured files.

An offset is the next sequence number of every partition, as of format("eventhubs"): below the number where history
ends a partition is read from files, from there on from the hub. While one is in history, a micro-batch is whole files
of those that are, at least one each; then the hub's stream goes on. So restarts, limits and checks are the hub
source's. What no file has, before the first one or between two, the hub may have still: the same task reads it there,
in its place.

Options besides the hub's: `captured` (the place), `archiveNameFormat`, `store.…`, and `historyEnd`, JSON of the number
behind the last captured event of each partition. It is an option because it must stay as it was at the first start.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from hubweir.pipelines.captured.history import HistoryFile, read_history, whole_blocks
from hubweir.spark.captured.avro_file import HEADER_BYTES, EventTimes, read_blocks, read_header
from hubweir.spark.captured.places import DEFAULT_FORMAT, place_of
from hubweir.spark.errors import IllegalCapture
from hubweir.spark.event_format import EventFormat, columns_of
from hubweir.spark.source.offsets import EventRange, Offset, batch_range, end_offset, initial_offset, plain
from hubweir.spark.source.range_reader import read_ranges, report_loss
from hubweir.spark.source.read_options import ReadOptions, parse_options
from hubweir.spark.source.stream_reader import EventHubStreamReader
from hubweir.spark.worker_process import freeze_garbage

_OWN = ("captured", "archivenameformat", "historyend")
_STORE = "store."


class ReplayDataSource(EventFormat):
    """One hub and its captured files."""

    NAME = "hubweir-replay"

    def streamReader(self, schema: StructType) -> ReplayReader:
        store = {key[len(_STORE) :]: text for key, text in self._given.items() if key.lower().startswith(_STORE)}
        hub = {k: v for k, v in self._given.items() if k.lower() not in _OWN and not k.lower().startswith(_STORE)}
        place = History(self._given["captured"], self._given.get("archiveNameFormat") or DEFAULT_FORMAT, store)
        ends = {key: int(end) for key, end in json.loads(self._given["historyEnd"]).items()}
        return ReplayReader(parse_options(hub, is_stream=True), columns_of(schema), place, ends)


class History:
    """Captured files, found when they are first asked for. It travels to tasks without them."""

    def __init__(self, path: str, name_format: str, store: dict[str, str]) -> None:
        self.path, self.name_format, self.store = path, name_format, store
        self._files: dict[str, list[HistoryFile]] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_files": None}

    def of(self, partition_id: str) -> list[HistoryFile]:
        """The files of a partition."""
        if self._files is None:
            self._files = read_history(self.path, self.name_format, self.store)
        return self._files.get(partition_id, [])


class HistoryPartition(InputPartition):
    """What one task reads of history: the events of start to end, exclusive, in files, or in the hub what they lack."""

    def __init__(self, partition_id: str, parts: tuple[HistoryFile | EventRange, ...], start: int, end: int) -> None:
        super().__init__(None)
        self.partition_id, self.parts, self.start, self.end = partition_id, parts, start, end


class ReplayReader(EventHubStreamReader):
    """See the module's text."""

    def __init__(
        self, options: ReadOptions, columns: tuple[str, ...], history: History, history_end: dict[str, int]
    ) -> None:
        super().__init__(options, columns)
        self._history, self._history_end = history, history_end

    def initialOffset(self) -> Offset:
        """Where the oldest file of each partition begins, or where startingPosition says, if that is before it.

        IllegalCapture when files are of partitions that the hub does not have: nobody would read them.
        """
        if self._first is None:
            starts = plain(super().initialOffset())
            if missing := sorted(set(self._history_end) - set(starts), key=int):
                self._first = None
                raise IllegalCapture(
                    f"captured files are of partition {', '.join(missing)}, which event hub "
                    f"'{self._options.event_hub}' does not have: name the capture of this hub, or give it "
                    f"{int(missing[-1]) + 1} partitions"
                )
            for key in starts:
                if files := self._history.of(key):
                    starts[key] = min(starts[key], files[0].start)
            self._first = initial_offset(starts)
        return self._first

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        begin = plain(start)
        in_history = [key for key, number in begin.items() if number < self._history_end.get(key, 0)]
        if not in_history:
            return super().latestOffset(start, limit)
        bounds = self._hub.bounds()
        self._check_partitions(begin, bounds)
        self._highs(bounds)
        most = limit.max_rows // len(in_history) if isinstance(limit, ReadMaxRows) else 2**63
        return end_offset(start, {**begin, **{key: self._files_end(key, begin[key], most) for key in in_history}})

    def _files_end(self, partition_id: str, start: int, most: int) -> int:
        """Where the last file ends that begins within `most` events, and is in history; at least one file."""
        last = self._history_end[partition_id]
        ends = [file.end for file in self._history.of(partition_id) if start < file.end <= last]
        return ends[max(0, bisect_right(ends, start + most) - 1)] if ends else last

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of a batch: a task a partition for what is history, the hub's for the rest."""
        begin, upto = batch_range(start, end)
        found: list[InputPartition] = []
        for key in sorted(upto, key=int):
            edge = min(upto[key], self._history_end.get(key, 0))
            if begin.get(key, 0) < edge:
                parts = self._parts(key, begin.get(key, 0), edge)
                found.append(HistoryPartition(key, parts, begin.get(key, 0), edge))
        live = {key: max(begin.get(key, 0), min(upto[key], self._history_end.get(key, 0))) for key in upto}
        return [*found, *super().partitions(live, upto)]

    def _parts(self, partition_id: str, start: int, end: int) -> tuple[HistoryFile | EventRange, ...]:
        """Files and what stands between them, in order. DataLoss when neither has events and that matters."""
        found: list[HistoryFile | EventRange] = []
        at = start
        for file in self._history.of(partition_id):
            if file.end > start and file.start < end:
                found += self._in_hub(partition_id, at, file.start)
                found.append(file)
                at = file.end
        return (*found, *self._in_hub(partition_id, at, end))

    def _in_hub(self, partition_id: str, start: int, end: int) -> list[EventRange]:
        if start >= end:
            return []
        bounds = self._hub.bounds_behind({partition_id: end}, 0)
        self._check_partitions({partition_id: end}, bounds)
        held = bounds[partition_id]
        first, last = max(start, held.low), min(end, held.high)
        if first >= last:
            self._lost(partition_id, start, end)
            return []
        if start < first:
            self._lost(partition_id, start, first)
        if last < end:
            self._lost(partition_id, last, end)
        return [EventRange(partition_id, first, last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, HistoryPartition):
            return self._read_history(partition)
        return super().read(partition)

    def _read_history(self, task: HistoryPartition) -> Iterator[pa.RecordBatch]:
        """The events of a task, file by file. What a file lacks, of the numbers from its first to its last, is lost."""
        freeze_garbage()
        for part in task.parts:
            if isinstance(part, EventRange):
                yield from read_ranges(self._options, (part,), self._columns)
            else:
                yield from self._read_file(task, part)

    def _read_file(self, task: HistoryPartition, file: HistoryFile) -> Iterator[pa.RecordBatch]:
        names = self._columns if "sequenceNumber" in self._columns else (*self._columns, "sequenceNumber")
        place = place_of(self._history.path, self._history.store)
        header = read_header(place.read(file.path, 0, min(file.size_bytes, HEADER_BYTES)), file.path)
        expected, end = max(task.start, file.start), min(task.end, file.end)
        for data in whole_blocks(place, file, header.size):
            for batch in read_blocks(
                data, 0, header, name=file.path, partition_id=task.partition_id, columns=names, times=EventTimes()
            ):
                numbers = batch.column("sequenceNumber")
                batch = batch.filter(pc.and_(pc.greater_equal(numbers, expected), pc.less(numbers, end)))
                if batch.num_rows:
                    for first, behind in gaps(batch.column("sequenceNumber").to_numpy(), expected):
                        self._lost(task.partition_id, first, behind)
                    expected = batch.column("sequenceNumber")[-1].as_py() + 1
                    yield batch.select(list(self._columns))
        if expected < end:
            self._lost(task.partition_id, expected, end)

    def _lost(self, partition_id: str, start: int, end: int) -> None:
        why = "no captured file has them, nor has the event hub"
        report_loss(self._options, partition_id, start, end, why)


def gaps(numbers: NDArray[np.int64], expected: int) -> list[tuple[int, int]]:
    """The ranges, ends exclusive, that rising numbers leave out from expected on."""
    before = np.concatenate(([expected - 1], numbers[:-1]))
    places = np.flatnonzero(numbers - before != 1)
    return [(int(before[place]) + 1, int(numbers[place])) for place in places]
