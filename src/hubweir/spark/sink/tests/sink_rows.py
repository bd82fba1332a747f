"""Rows for tests of the sink, and what a hub has of them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.receiver import ReceiverOptions
from hubweir.spark.sink.sink_columns import SinkColumns, sink_columns

COLUMNS: SinkColumns = sink_columns([("body", "binary"), ("partition", "string"), ("publisher", "string")])


def rows(numbers: Sequence[int], *, partition: str | None = None, publisher: str | None = None) -> pa.RecordBatch:
    """One record batch: the numbers as bodies, to one partition or to all in turn, or under one publisher."""
    return pa.record_batch(
        [
            pa.array([b"%d" % number for number in numbers]),
            pa.array([partition] * len(numbers), pa.string()),
            pa.array([publisher] * len(numbers), pa.string()),
        ],
        names=["body", "partition", "publisher"],
    )


def stored(client: BlockingEventHubClient) -> list[list[int]]:
    """The numbers in each partition, in order."""
    found = []
    for state in client.partitions(client.describe().partition_ids):
        count, numbers = state.last_sequence_number + 1, list[int]()
        receiver = client.receiver(state.partition_id, ReceiverOptions(limit=count))
        while len(numbers) < count:
            run = receiver.receive(max_wait_s=10)
            assert run is not None, f"partition {state.partition_id} gave {len(numbers)} of {count}"
            numbers += [int(body) for body in run.bodies()]
        receiver.close()
        found.append(numbers)
    return found
