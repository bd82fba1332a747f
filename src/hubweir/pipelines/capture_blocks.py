"""`format("hubweir-capture-blocks")`: an event hub as a stream of Avro blocks, made in the tasks that read it.

A row is one block as it stands in a captured file, sync marker included: `partition`, `events`, `block`. Offsets,
limits and restarts are those of format("eventhubs"). Each micro-batch begins new blocks, and where they end depends on
its events alone, so a batch that is repeated gives the same bytes.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, MutableMapping

import pyarrow as pa
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.types import StructType

from hubweir.capture.avro import SYNC_SIZE, BlockWriter
from hubweir.client.event_run import EventRun
from hubweir.env import Buffer
from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.pipelines.stored_events import stored_events
from hubweir.spark.errors import IllegalOption
from hubweir.spark.event_range import RangeReader
from hubweir.spark.hub_connection import client_of
from hubweir.spark.offsets import EventRange
from hubweir.spark.options import ReadOptions, parse_options
from hubweir.spark.range_partition import RangePartition
from hubweir.spark.stream_reader import EventHubStreamReader
from hubweir.spark.worker_process import freeze_garbage

NAME = "hubweir-capture-blocks"
SCHEMA = "partition string, events bigint, block binary"
_ARROW = pa.schema([("partition", pa.string()), ("events", pa.int64()), ("block", pa.binary())])


class CaptureBlocksDataSource(DataSource):
    """One hub."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = options

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> CaptureBlocksReader:
        options = parse_options(self._given, is_stream=True)
        if options.min_partitions is not None:
            raise IllegalOption("minPartitions is not for capture: a partition's files are made in one task")
        return CaptureBlocksReader(options, ("body",))


class CaptureBlocksReader(EventHubStreamReader):
    """The stream of a hub, whose tasks give blocks."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the blocks of its ranges."""
        assert isinstance(partition, RangePartition)
        freeze_garbage()
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
            buffers = self._writer.add(stored_events(run, count), numbers[0], numbers[count - 1] + 1)
            if self._writer.unsound:
                event = self._writer.unsound[0].start
                raise ServiceError(DECODE_ERROR, f"event {event} of partition {wanted.partition_id} is no message")
            yield from self._rows_of(buffers)

    def _rows_of(self, buffers: list[Buffer]) -> Iterator[pa.RecordBatch]:
        """buffers: of whole blocks, three each."""
        for at in range(0, len(buffers), 3):
            block = b"".join(buffers[at : at + 3])
            row = (self._wanted.partition_id, long_at(block), block)
            columns = [pa.array([value], field.type) for value, field in zip(row, _ARROW, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=_ARROW)


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
