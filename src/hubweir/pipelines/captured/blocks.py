"""`format("hubweir-capture-blocks")`: an event hub as a stream of Avro blocks, made in the tasks that read it.

A row is one block as it stands in a captured file, sync marker included: `partition`, `events`, `block`. Offsets,
limits and restarts are those of format("eventhubs"). Each micro-batch begins new blocks, and where they end depends on
its events alone, so a batch that is repeated gives the same bytes.

With the option `countWindows` each trigger is a micro-batch (windows.py), and a partition that had no events in
it gives a row without a block.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from hubweir.capture.avro import SYNC_SIZE, BlockWriter
from hubweir.client.event_run import EventRun
from hubweir.env import Buffer
from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.pipelines.captured.stored_events import stored_events
from hubweir.pipelines.captured.windows import window_of, with_window, without_window
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_format import EventFormat
from hubweir.spark.hub_connection import client_of
from hubweir.spark.option_texts import OptionTexts
from hubweir.spark.source.offsets import EventRange, Offset, batch_range, plain
from hubweir.spark.source.range_reader import RangeReader
from hubweir.spark.source.read_options import ReadOptions, parse_options
from hubweir.spark.source.read_tasks import ReadTask
from hubweir.spark.source.stream_reader import EventHubStreamReader
from hubweir.spark.worker_process import freeze_garbage

_COUNT = "countwindows"
SCHEMA = "partition string, events bigint, block binary"
_ARROW = pa.schema([("partition", pa.string()), ("events", pa.int64()), ("block", pa.binary())])


class CaptureBlocksDataSource(EventFormat):
    """One hub."""

    NAME = "hubweir-capture-blocks"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> CaptureBlocksReader:
        hub = {key: text for key, text in self._given.items() if key.lower() != _COUNT}
        options = parse_options(hub, is_stream=True)
        if options.min_partitions is not None:
            raise IllegalOption("minPartitions is not for capture: a partition's files are made in one task")
        return CaptureBlocksReader(options, OptionTexts(self._given).text(_COUNT) == "true")


class EmptyPartitions(InputPartition):
    """Partitions of a hub that had no events in a window; one task gives their rows."""

    def __init__(self, ids: tuple[str, ...]) -> None:
        super().__init__(None)
        self.ids = ids


class CaptureBlocksReader(EventHubStreamReader):
    """The stream of a hub, whose tasks give blocks."""

    def __init__(self, options: ReadOptions, counts_windows: bool) -> None:
        super().__init__(options, ("body",))
        self._counts_windows = counts_windows
        self._has_looked = False

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """As of a hub's stream, one window further.

        The first look of a run is no window's end, unless there are events or the run is one window itself: who runs it
        for the first time in a day has not waited. While events wait for minEventsPerTrigger the window goes on.
        """
        begin = without_window(start)
        end = super().latestOffset(begin, limit)
        is_once, is_first = self._target is not None, not self._has_looked
        self._has_looked = True
        has_events = plain(end) != plain(begin)
        is_over = is_first if is_once else has_events or not (is_first or self._has_waiting(begin))
        if not self._counts_windows or not is_over:
            return with_window(end, window_of(start)) if has_events else start
        return with_window(end, window_of(start) + 1)

    def _has_waiting(self, begin: Offset) -> bool:
        seen = self._seen or {}
        return any(seen.get(key, 0) > number for key, number in plain(begin).items())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of a batch, and one for the partitions without events where the window has moved."""
        begin, upto = without_window(start), without_window(end)
        found = list(super().partitions(begin, upto))
        if window_of(end) != window_of(start):
            begin, upto = batch_range(begin, upto)
            if empty := tuple(key for key in sorted(upto, key=int) if begin.get(key, 0) == upto[key]):
                found.append(EmptyPartitions(empty))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the blocks of its ranges."""
        freeze_garbage()
        if isinstance(partition, EmptyPartitions):
            for each in partition.ids:
                yield block_row(each, 0, b"")
            return
        assert isinstance(partition, ReadTask)
        for one in partition.ranges:
            yield from BlockReader(self._options, one).blocks()


class BlockReader(RangeReader):
    """Reads one range once, into blocks."""

    def __init__(self, options: ReadOptions, wanted: EventRange) -> None:
        super().__init__(options, client_of(options), wanted, ("body",))
        self._writer = BlockWriter(sync_marker(options.event_hub, wanted.partition_id))

    def blocks(self) -> Iterator[pa.RecordBatch]:
        """One record batch a block. Errors as of RangeReader.read."""
        yield from self.read()
        yield from self._rows_of(self._writer.flush())

    def _take(self, run: EventRun) -> Iterator[pa.RecordBatch]:
        wanted, numbers = self._wanted, run.sequence_numbers()
        count = bisect_left(numbers, wanted.end)
        if count and (numbers[0] != self._next or numbers[count - 1] != self._next + count - 1):
            self._missing(run, 0, count, numbers[0], numbers[count - 1])
        upto = numbers[count - 1] + 1 if count else self._next
        if count < len(run) and upto < wanted.end:
            self._loss(upto, wanted.end, "there is a gap in the partition")
            upto = wanted.end
        self._next = upto
        if count:
            buffers = self._writer.add_events(stored_events(run, count), numbers[0], numbers[count - 1] + 1)
            if self._writer.unsound:
                event = self._writer.unsound[0].start
                raise ServiceError(DECODE_ERROR, f"event {event} of partition {wanted.partition_id} is no message")
            yield from self._rows_of(buffers)

    def _rows_of(self, buffers: list[Buffer]) -> Iterator[pa.RecordBatch]:
        """buffers: of whole blocks, three each."""
        for at in range(0, len(buffers), 3):
            block = b"".join(buffers[at : at + 3])
            yield block_row(self._wanted.partition_id, long_at(block), block)


def block_row(partition_id: str, events: int, block: bytes) -> pa.RecordBatch:
    """One row of SCHEMA."""
    columns = [
        pa.array([value], field.type) for value, field in zip((partition_id, events, block), _ARROW, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def sync_marker(hub: str, partition_id: str) -> bytes:
    """Of all files of a partition: a block may be made before it is known which file it goes into."""
    return hashlib.sha256(f"hubweir capture {hub}/{partition_id}".encode()).digest()[:SYNC_SIZE]


def long_at(data: bytes) -> int:
    """The Avro long that data begins with."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1)
