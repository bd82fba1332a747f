"""Open and walk stored batches in plain Python: scan_records, find_record, find_offset."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import islice

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import MASK_64
from hubweir.kernels.contract import RECORD_WIDTH, Readable
from hubweir.kernels.stored_batch import (
    HEADER_SIZE,
    KIND_EVENTS,
    MAGIC,
    OPERATION_HEADER_SIZE,
    PRODUCER_SIZE,
    RECORD_HEADER_SIZE,
    BatchHeader,
    read_header,
)


def lengths_agree(batch: BatchHeader) -> bool:
    """Whether the parts of the batch fit into its length."""
    parts = HEADER_SIZE + batch.name_length + batch.producer_length
    return batch.producer_length in (0, PRODUCER_SIZE) and parts <= batch.length


def open_batch(data: memoryview, at: int) -> BatchHeader:
    """Return the batch at `at` of a run; KernelRefusal when none lies there whole."""
    if not 0 <= at <= len(data) - HEADER_SIZE:
        raise KernelRefusal(f"no stored batch at {at} of {len(data)} bytes")
    batch = read_header(data, at)
    if data[at : at + 4] != MAGIC or not lengths_agree(batch) or batch.end > len(data):
        raise KernelRefusal(f"no stored batch at {at} of {len(data)} bytes")
    return batch


def record_end(data: memoryview, at: int, batch: BatchHeader) -> int:
    """Return where the record at `at` ends; KernelRefusal when it does not lie in the batch."""
    least = RECORD_HEADER_SIZE if batch.kind == KIND_EVENTS else OPERATION_HEADER_SIZE
    if not batch.records_at <= at <= batch.end - least:
        raise KernelRefusal(f"no record at {at} of the batch at {batch.position}")
    length = int.from_bytes(data[at : at + 4], "big")
    if not least <= length <= batch.end - at:
        raise KernelRefusal(f"no record at {at} of the batch at {batch.position}")
    return at + length


def walk_records(data: memoryview, batch: BatchHeader) -> Iterator[tuple[int, int, int]]:
    """Yield (ordinal, start, end) of each record."""
    at = batch.records_at
    for ordinal in range(batch.count):
        end = record_end(data, at, batch)
        yield ordinal, at, end
        at = end


def find_record(run: Readable, batch_at: int, ordinal: int) -> int:
    """Position of a record by its place in its batch; see contract.py."""
    view = memoryview(run)
    batch = open_batch(view, batch_at)
    if ordinal < 0:
        raise KernelRefusal(f"no record has the place {ordinal}")
    return next((at for place, at, _ in walk_records(view, batch) if place == ordinal), -1)


def find_offset(run: Readable, batch_at: int, offset: int) -> tuple[int, int]:
    """The first record of a batch at or behind an offset; see contract.py."""
    view = memoryview(run)
    batch = open_batch(view, batch_at)
    if not 0 <= offset <= MASK_64:
        raise KernelRefusal(f"{offset} is no offset")
    for ordinal, at, _ in walk_records(view, batch):
        if (batch.first_offset + at - batch.records_at) & MASK_64 >= offset:
            return at, ordinal
    return -1, batch.count


def scan_records(data: Readable, batch_at: int, table: array[int]) -> int:
    """One row per event record of the batch; see contract.py."""
    view = memoryview(data)
    batch = open_batch(view, batch_at)
    room, rows = len(table) // RECORD_WIDTH, 0
    if batch.kind != KIND_EVENTS:
        raise KernelRefusal(f"the batch at {batch_at} holds no events")
    for ordinal, at, end in islice(walk_records(view, batch), room):
        row = (at, end - at, at + RECORD_HEADER_SIZE, end - at - RECORD_HEADER_SIZE)
        table[ordinal * RECORD_WIDTH : (ordinal + 1) * RECORD_WIDTH] = array("q", row)
        rows += 1
    return rows
