"""What our source is compared with. Both plan as it does; only what a task does differs.

`raw-arrow`: record batches that our source made, out of memory, again and again: what Spark takes at most.
`official-client`: the same events by azure-eventhub's consumer, yielded as tuples: what a job without us would be.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from queue import Queue
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from hubweir.spark.data_source import EventHubsDataSource
from hubweir.spark.event_format import columns_of
from hubweir.spark.source.offsets import EventRange
from hubweir.spark.source.range_reader import read_ranges
from hubweir.spark.source.read_options import ReadOptions, parse_options
from hubweir.spark.source.read_tasks import ReadTask
from hubweir.spark.source.stream_reader import EventHubStreamReader
from hubweir.spark.worker_process import freeze_garbage

# Of the official client: enough that no round trip is waited for.
_PREFETCH = 3_000
_SILENCE_S = 60.0
_FILE = "rawfile"


def save_batches(options: dict[str, str], rows: int, path: str) -> None:
    """The first rows of partition 0, as our source gives them, in a file that `raw-arrow` repeats.

    rows: a multiple of 10,000, so that all batches are full.
    """
    parsed = parse_options(options, is_stream=True)
    batches = list(read_ranges(parsed, (EventRange("0", 0, rows),), parsed.columns))
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


@cache
def saved_batches(path: str) -> list[pa.RecordBatch]:
    """In memory, once a process."""
    with pa.OSFile(path, "rb") as file:
        reader = pa.ipc.open_file(file)
        return [reader.get_batch(place) for place in range(reader.num_record_batches)]


class RawArrowDataSource(EventHubsDataSource):
    """Option rawFile: what save_batches wrote, with the same columns. The others as of `eventhubs`."""

    def __init__(self, options: Any) -> None:
        self._file = options.get(_FILE)
        super().__init__({name: text for name, text in options.items() if name.lower() != _FILE})

    @classmethod
    def name(cls) -> str:
        return "raw-arrow"

    def streamReader(self, schema: StructType) -> EventHubStreamReader:
        reader = RawArrowReader(parse_options(self._given, is_stream=True), columns_of(schema))
        reader.file = self._file
        return reader


class RawArrowReader(EventHubStreamReader):
    file = ""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ReadTask)
        freeze_garbage()
        left = sum(map(len, partition.ranges))
        while left > 0:
            for batch in saved_batches(self.file):
                yield batch if batch.num_rows <= left else batch.slice(0, left)
                left -= batch.num_rows
                if left <= 0:
                    break


class OfficialDataSource(EventHubsDataSource):
    """Options as of `eventhubs`."""

    @classmethod
    def name(cls) -> str:
        return "official-client"

    def streamReader(self, schema: StructType) -> EventHubStreamReader:
        return OfficialReader(parse_options(self._given, is_stream=True), columns_of(schema))


class OfficialReader(EventHubStreamReader):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, ReadTask)
        freeze_garbage()
        for wanted in partition.ranges:
            yield from official_rows(self._options, wanted)


def official_rows(options: ReadOptions, wanted: EventRange) -> Iterator[tuple[Any, ...]]:
    """One range by azure-eventhub's own consumer, all nine columns as its objects give them."""
    from azure.eventhub import EventHubConsumerClient

    arrived: Queue[list[Any]] = Queue(8)
    client = EventHubConsumerClient.from_connection_string(
        options.connection_string, options.consumer_group, eventhub_name=options.event_hub
    )
    is_over = threading.Event()

    def on_events(_: Any, events: list[Any]) -> None:
        if not is_over.is_set():
            arrived.put(events)

    receiving = threading.Thread(
        target=client.receive_batch,
        args=(on_events,),
        kwargs={
            "partition_id": wanted.partition_id,
            "starting_position": wanted.start,
            "starting_position_inclusive": True,
            "max_batch_size": _PREFETCH,
            "prefetch": _PREFETCH,
        },
        daemon=True,
    )
    receiving.start()
    left = len(wanted)
    try:
        while left > 0:
            events = arrived.get(timeout=_SILENCE_S)[:left]
            left -= len(events)
            for event in events:
                yield (
                    b"".join(event.body),
                    wanted.partition_id,
                    event.offset,
                    event.sequence_number,
                    event.enqueued_time,
                    None,
                    event.partition_key.decode(),
                    {key.decode(): value.decode() for key, value in event.properties.items()},
                    {},
                )
    finally:
        is_over.set()
        while not arrived.empty():
            arrived.get()
        client.close()
        receiving.join()
