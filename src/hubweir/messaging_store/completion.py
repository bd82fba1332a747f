"""The completed half of a batch: what a log's owner fills into every header of a run as it appends it.

Indexes, offsets, the enqueued time, the writer epoch and how far the log is durable (kernels/stored_batch.py has the
table). The made half, in front of it, stays as the maker sealed it (record.py).
"""

from __future__ import annotations

import struct

from msgspec import Struct

from hubweir.errors import KernelRefusal
from hubweir.kernels import crc32c, find_record
from hubweir.kernels.stored_batch import (
    AT_HEADER_CRC,
    AT_WRITER_EPOCH,
    COMPLETED_STRUCT,
    CRC_SEED,
    FLAG_CONTINUES,
    HEADER_SIZE,
    KIND_CONTROL,
    MADE_STRUCT,
    MAGIC,
    VERSION,
)
from hubweir.messaging_store.control_batch import numbers_behind

_MADE = struct.Struct(MADE_STRUCT)
_COMPLETED = struct.Struct(COMPLETED_STRUCT)
_U32 = struct.Struct(">I")


class LogEnd(Struct, frozen=True):
    """An end of a log: the next index and offset, and the newest record's offset, time and index (-1: none yet).

    last_index: numbers may be skipped behind the newest record, so it is not always index - 1.
    number: of the next batch, control batches counted too.
    """

    index: int = 0
    offset: int = 0
    last_offset: int = -1
    last_time_ms: int = -1
    last_index: int = -1
    number: int = 0


def complete_run(
    run: bytearray, before: LogEnd, *, nonce: int, enqueued_time_ms: int, durable_upto: int, writer_epoch: int
) -> LogEnd:
    """Fill in the owner's half of every header in run, in place, behind an end of the log; return the end behind it.

    durable_upto: a batch number; what has a smaller one is durable.
    Raises KernelRefusal when run is not sealed batches back to back, or ends inside a chain.
    """
    at, end, flags = 0, len(run), 0
    next_index, next_offset, number, last_index = before.index, before.offset, before.number, before.last_index
    last = None  # the last batch that has records: position, count, its first offset, where its records start
    with memoryview(run) as view:
        while at < end:
            kind, flags, length, count, records_at = _made_half(run, at, end)
            _COMPLETED.pack_into(
                run, at + AT_WRITER_EPOCH, writer_epoch, nonce, next_index, next_offset, enqueued_time_ms,
                number, number - durable_upto,
            )  # fmt: skip
            number += 1
            with view[at : at + AT_HEADER_CRC] as header:
                _U32.pack_into(run, at + AT_HEADER_CRC, crc32c(header, CRC_SEED))
            if kind == KIND_CONTROL:
                next_index, next_offset = numbers_behind(run, records_at, next_index, next_offset)
            else:
                last = at, count, next_offset, records_at
                next_index += count
                last_index = next_index - 1
                next_offset += at + length - records_at
            at += length
    if flags & FLAG_CONTINUES:
        raise KernelRefusal("the run ends inside a chain: its last batch says that another one continues it")
    if last is None:
        return LogEnd(next_index, next_offset, before.last_offset, before.last_time_ms, last_index, number)
    return LogEnd(next_index, next_offset, last_record_offset(run, *last), enqueued_time_ms, last_index, number)


def last_record_offset(run: bytes | bytearray | memoryview, at: int, count: int, offset: int, records_at: int) -> int:
    """Offset of the last record of the batch at `at`, whose first record stands at records_at and has that offset."""
    record = find_record(run, at, count - 1)
    if record < 0:
        raise KernelRefusal(f"the batch at {at} says {count} records and has fewer")
    return offset + record - records_at


def _made_half(run: bytearray, at: int, end: int) -> tuple[int, int, int, int, int]:
    """kind, flags, length, count, start of records of the batch at `at`; KernelRefusal when it is none."""
    if end - at < HEADER_SIZE:
        raise KernelRefusal(f"the run has {end - at} bytes at {at}, less than a batch header")
    magic, version, kind, flags, length, count, name_length, producer_length, _ = _MADE.unpack_from(run, at)
    records_at = at + HEADER_SIZE + name_length + producer_length
    if magic != MAGIC or version != VERSION or at + length > end or records_at > at + length:
        raise KernelRefusal(f"no sealed stored batch at {at} of the run")
    if (kind == KIND_CONTROL) != (count == 0):
        raise KernelRefusal(f"the batch at {at} of kind {kind} must not have {count} records")
    return kind, flags, length, count, records_at
