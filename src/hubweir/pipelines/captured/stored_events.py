"""Received events as stored batches again, so that capture's kernel makes of them the records that the broker makes.

The message's bytes are ingested as they came, service annotations included, which the kernel leaves out of a record as
it does of any event's. Every event gets a batch of its own, for its header is what says sequence number, offset and
time. Each event is copied twice, so that the output is byte-identical to the broker's, types of properties included.
"""

from __future__ import annotations

from array import array

import numpy as np
import pyarrow as pa

from hubweir.client.event_run import EventRun
from hubweir.errors import DECODE_ERROR, ServiceError
from hubweir.kernels import event_columns, ingest
from hubweir.kernels.columns_contract import COLUMN_PUBLISHER
from hubweir.kernels.contract import INGEST_DONE
from hubweir.kernels.stored_batch import (
    AT_COUNT,
    AT_ENQUEUED_TIME,
    AT_FIRST_INDEX,
    AT_FIRST_OFFSET,
    AT_FLAGS,
    AT_KIND,
    AT_LENGTH,
    AT_MAGIC,
    AT_NAME_LENGTH,
    AT_VERSION,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    KIND_EVENTS,
    MAGIC,
    VERSION,
)
from hubweir.spark.record_batches import fresh_columns, record_batch

_HEADER = np.dtype(
    {
        "names": ["magic", "version", "kind", "flags", "length", "count", "name", "index", "offset", "time"],
        "formats": ["S4", "u1", "u1", ">u2", ">u4", ">u4", ">u4", ">u8", ">u8", ">i8"],
        "offsets": [
            AT_MAGIC, AT_VERSION, AT_KIND, AT_FLAGS, AT_LENGTH, AT_COUNT, AT_NAME_LENGTH, AT_FIRST_INDEX,
            AT_FIRST_OFFSET, AT_ENQUEUED_TIME,
        ],
        "itemsize": HEADER_SIZE,
    }
)  # fmt: skip


def stored_events(run: EventRun, count: int) -> bytes:
    """The first count events of a run as stored batches of one event each; checksums are left out.

    ServiceError DECODE_ERROR when one is no legal message.
    """
    records = bytearray()
    row, _, events, status = ingest(run.data, run.deliveries, 0, count, 0, None, records, 2**31)
    if status != INGEST_DONE or row != count or events != count:
        raise ServiceError(DECODE_ERROR, f"what was received behind its first {events} events is no legal message")
    starts = record_starts(records, count)
    names = publishers(run, count)
    headers = np.zeros(count, _HEADER)
    headers["magic"], headers["version"], headers["kind"], headers["count"] = MAGIC, VERSION, KIND_EVENTS, 1
    headers["index"] = np.asarray(run.sequence_numbers()[:count])
    headers["offset"] = np.asarray(run.offsets()[:count])
    headers["time"] = np.asarray(run.enqueued_times_ms()[:count])
    lengths = np.asarray([len(name) for name in names], np.uint32) if names else np.zeros(count, np.uint32)
    headers["name"] = lengths
    headers["flags"] = np.where(lengths > 0, FLAG_NAME_IS_PUBLISHER, 0)
    headers["length"] = HEADER_SIZE + lengths + np.diff(np.asarray(starts))
    made, view = memoryview(headers.tobytes()), memoryview(records)
    pieces: list[memoryview | bytes] = []
    for place in range(count):
        pieces.append(made[place * HEADER_SIZE : (place + 1) * HEADER_SIZE])
        if names:
            pieces.append(names[place])
        pieces.append(view[starts[place] : starts[place + 1]])
    return b"".join(pieces)


def record_starts(records: bytearray, count: int) -> array[int]:
    """Where each record starts, and where the last one ends. A record begins with its length."""
    starts, at = array("q", [0]), 0
    for _ in range(count):
        at += int.from_bytes(records[at : at + 4], "big")
        starts.append(at)
    return starts


def publishers(run: EventRun, count: int) -> list[bytes]:
    """Each event's publisher; empty when no event has one."""
    columns = fresh_columns()
    event_columns(run.data, run.deliveries, 0, count, -1, -1, 1 << COLUMN_PUBLISHER, 0, columns)
    found: pa.Array = record_batch(columns, count, ("publisher",), "").column(0)
    if found.null_count == count:
        return []
    return [(name or "").encode() for name in found.to_pylist()]
