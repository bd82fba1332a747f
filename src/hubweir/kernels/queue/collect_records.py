"""Take records out of a run by their log indexes, in plain Python: collect_records."""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import open_batch, walk_records
from hubweir.kernels.buffers.tables import check_rows
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_RECORD, Readable
from hubweir.kernels.stored_batch import KIND_EVENTS, BatchHeader


def collect_records(run: Readable, indexes: array[int], at: int, last: int, rows: array[int], out: bytearray) -> int:
    """Append records to out; see queue_contract.py."""
    view = memoryview(run)
    check_rows(indexes, 1, at, last)
    check_rows(rows, MESSAGE_WIDTH, at, last)
    batch: BatchHeader | None = None
    while at < last:
        if batch is None or not _holds(batch, indexes[at]):
            batch = _batch_of(view, indexes[at])
        if batch is None:
            break
        for ordinal, start, end in walk_records(view, batch):
            if batch.first_index + ordinal == indexes[at]:
                rows[at * MESSAGE_WIDTH + Q_RECORD] = len(out)
                out += view[start:end]
                break
        else:
            raise KernelRefusal(f"the batch at {batch.position} says {batch.count} records and has fewer")
        at += 1
    return at


def _batch_of(view: memoryview, index: int) -> BatchHeader | None:
    """The events batch of a run that has an index."""
    at = 0
    while at < len(view):
        batch = open_batch(view, at)
        if _holds(batch, index):
            return batch
        at = batch.end
    return None


def _holds(batch: BatchHeader, index: int) -> bool:
    return batch.kind == KIND_EVENTS and batch.first_index <= index < min(batch.first_index + batch.count, 2**64)
