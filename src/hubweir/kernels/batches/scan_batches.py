"""Check stored batches against their checksums in plain Python: scan_batches, what recovery runs."""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import lengths_agree
from hubweir.kernels.buffers.crc import crc32c
from hubweir.kernels.buffers.tables import MASK_64, check_range, signed
from hubweir.kernels.contract import BATCH_WIDTH, BATCHES_DAMAGED, BATCHES_NEWER, BATCHES_OK, BATCHES_PARTIAL, Readable
from hubweir.kernels.stored_batch import (
    AT_HEADER_CRC,
    CRC_SEED,
    HEADER_SIZE,
    KIND_CONTROL,
    KIND_EVENTS,
    MAGIC,
    VERSION,
    BatchHeader,
    read_header,
)


def scan_batches(data: Readable, start: int, end: int, nonce: int, table: array[int]) -> tuple[int, int, int]:
    """Walk and check stored batches, one row each; see contract.py."""
    view = memoryview(data)
    check_range(start, end, len(view))
    if not 0 <= nonce <= MASK_64:
        raise KernelRefusal(f"{nonce} is no nonce")
    room, rows, at = len(table) // BATCH_WIDTH, 0, start
    while rows < room and at < end:
        status = check_batch(view, at, end, nonce)
        if status != BATCHES_OK:
            return rows, at, status
        batch = read_header(view, at)
        table[rows * BATCH_WIDTH : (rows + 1) * BATCH_WIDTH] = batch_row(batch)
        rows += 1
        at = batch.end
    return rows, at, BATCHES_OK


def batch_row(batch: BatchHeader) -> array[int]:
    """The row of a batch in a batch table."""
    row = (
        batch.position, batch.length, batch.kind, batch.flags, batch.count, signed(batch.first_index),
        signed(batch.first_offset), batch.enqueued_time_ms, signed(batch.number - batch.unsynced),
        batch.writer_epoch, batch.records_at, signed(batch.number),
    )  # fmt: skip
    return array("q", row)


def check_batch(data: memoryview, at: int, end: int, nonce: int) -> int:
    """What stands at `at`, as a status of scan_batches."""
    left = end - at
    if data[at : at + min(4, left)] != MAGIC[:left]:
        return BATCHES_DAMAGED
    if left < HEADER_SIZE:
        return BATCHES_PARTIAL
    batch = read_header(data, at)
    if nonce and (crc32c(data[at : at + AT_HEADER_CRC], CRC_SEED) != batch.header_crc or batch.nonce != nonce):
        return BATCHES_DAMAGED
    if batch.version > VERSION:
        return BATCHES_NEWER
    if batch.version < VERSION or not KIND_EVENTS <= batch.kind <= KIND_CONTROL or not lengths_agree(batch):
        return BATCHES_DAMAGED
    if batch.length > left:
        return BATCHES_PARTIAL
    if crc32c(data[at + HEADER_SIZE : batch.end], CRC_SEED) != batch.payload_crc:
        return BATCHES_DAMAGED
    return BATCHES_OK
