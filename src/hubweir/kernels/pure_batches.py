"""Walk stored batches in plain Python: crc32c, scan_batches, scan_records, find_record, find_offset.

Also what the other twins need to open a batch and to refuse a call that breaks the contract.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from struct import iter_unpack, unpack_from

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import (
    BATCH_WIDTH,
    BATCHES_DAMAGED,
    BATCHES_NEWER,
    BATCHES_OK,
    BATCHES_PARTIAL,
    RECORD_WIDTH,
)
from hubweir.kernels.stored_batch import (
    AT_HEADER_CRC,
    CRC_SEED,
    HEADER_SIZE,
    HEADER_STRUCT,
    KIND_CONTROL,
    KIND_EVENTS,
    MAGIC,
    OPERATION_HEADER_SIZE,
    PRODUCER_SIZE,
    RECORD_HEADER_SIZE,
    VERSION,
)

Readable = bytes | bytearray | memoryview
MASK_64 = 2**64 - 1


def _crc_tables() -> list[list[int]]:
    """Eight tables: what a byte does to the register, followed by none to seven zero bytes."""
    first = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        first.append(byte)
    tables = [first]
    for _ in range(7):
        tables.append([before >> 8 ^ first[before & 0xFF] for before in tables[-1]])
    return tables


_CRC_TABLES = _crc_tables()


def crc32c(data: Readable, seed: int = 0) -> int:
    """CRC-32C of data, continuing seed; see contract.py. Eight bytes a step: half the time of one by one."""
    if not 0 <= seed < 2**32:
        raise KernelRefusal(f"seed {seed} is no 32-bit number")
    t0, t1, t2, t3, t4, t5, t6, t7 = _CRC_TABLES
    value, view = seed ^ 0xFFFFFFFF, memoryview(data)
    words = len(view) // 8 * 8
    for low, p4, p5, p6, p7 in iter_unpack("<IBBBB", view[:words]):
        low ^= value
        value = (
            t7[low & 0xFF] ^ t6[low >> 8 & 0xFF] ^ t5[low >> 16 & 0xFF] ^ t4[low >> 24]
            ^ t3[p4] ^ t2[p5] ^ t1[p6] ^ t0[p7]
        )  # fmt: skip
    for byte in view[words:]:
        value = value >> 8 ^ t0[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Batch:
    """A stored batch of a run: header fields, and where its name block, records and end are in the run."""

    position: int
    version: int
    kind: int
    flags: int
    length: int
    count: int
    name_length: int
    producer_length: int
    payload_crc: int
    writer_epoch: int
    nonce: int
    first_index: int
    first_offset: int
    enqueued_time: int
    durable_upto: int
    header_crc: int

    @property
    def end(self) -> int:
        return self.position + self.length

    @property
    def name(self) -> int:
        return self.position + HEADER_SIZE

    @property
    def records(self) -> int:
        return self.name + self.name_length + self.producer_length


def check_range(start: int, end: int, size: int) -> None:
    """Refuse a range that does not lie in a buffer of size bytes."""
    if not 0 <= start <= end <= size:
        raise KernelRefusal(f"bytes {start} to {end} do not lie in a buffer of {size}")


def check_rows(table: array[int], width: int, first: int, last: int) -> None:
    """Refuse rows that do not lie in a table."""
    if not 0 <= first <= last <= len(table) // width:
        raise KernelRefusal(f"rows {first} to {last} do not lie in a table of {len(table) // width}")


def signed(number: int) -> int:
    """The 64 bits of number as a table holds them: two's complement."""
    number &= MASK_64
    return number - 2**64 if number >= 2**63 else number


def read_header(data: memoryview, at: int) -> Batch:
    """Unpack the 80 bytes at `at`; nothing is checked."""
    fields = unpack_from(HEADER_STRUCT, data, at)
    return Batch(at, *(*fields[1:15], fields[16]))


def lengths_agree(batch: Batch) -> bool:
    """Whether the parts of the batch fit into its length."""
    parts = HEADER_SIZE + batch.name_length + batch.producer_length
    return batch.producer_length in (0, PRODUCER_SIZE) and parts <= batch.length


def open_batch(data: memoryview, at: int) -> Batch:
    """Return the batch at `at` of a run; KernelRefusal when none lies there whole."""
    if not 0 <= at <= len(data) - HEADER_SIZE:
        raise KernelRefusal(f"no stored batch at {at} of {len(data)} bytes")
    batch = read_header(data, at)
    if data[at : at + 4] != MAGIC or not lengths_agree(batch) or batch.end > len(data):
        raise KernelRefusal(f"no stored batch at {at} of {len(data)} bytes")
    return batch


def record_end(data: memoryview, at: int, batch: Batch) -> int:
    """Return where the record at `at` ends; KernelRefusal when it does not lie in the batch."""
    least = RECORD_HEADER_SIZE if batch.kind == KIND_EVENTS else OPERATION_HEADER_SIZE
    if not batch.records <= at <= batch.end - least:
        raise KernelRefusal(f"no record at {at} of the batch at {batch.position}")
    length = int.from_bytes(data[at : at + 4], "big")
    if not least <= length <= batch.end - at:
        raise KernelRefusal(f"no record at {at} of the batch at {batch.position}")
    return at + length


def walk_records(data: memoryview, batch: Batch) -> Iterator[tuple[int, int, int]]:
    """Yield (ordinal, start, end) of each record."""
    at = batch.records
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
        if (batch.first_offset + at - batch.records) & MASK_64 >= offset:
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


def scan_batches(data: Readable, start: int, end: int, nonce: int, table: array[int]) -> tuple[int, int, int]:
    """Walk and check stored batches, one row each; see contract.py."""
    view = memoryview(data)
    check_range(start, end, len(view))
    if not 0 <= nonce <= MASK_64:
        raise KernelRefusal(f"{nonce} is no nonce")
    room, rows, at = len(table) // BATCH_WIDTH, 0, start
    while rows < room and at < end:
        status = _check_batch(view, at, end, nonce)
        if status != BATCHES_OK:
            return rows, at, status
        batch = read_header(view, at)
        row = (
            at, batch.length, batch.kind, batch.flags, batch.count, signed(batch.first_index),
            signed(batch.first_offset), batch.enqueued_time, signed(batch.durable_upto), batch.writer_epoch,
            batch.records,
        )  # fmt: skip
        table[rows * BATCH_WIDTH : (rows + 1) * BATCH_WIDTH] = array("q", row)
        rows += 1
        at = batch.end
    return rows, at, BATCHES_OK


def _check_batch(data: memoryview, at: int, end: int, nonce: int) -> int:
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
