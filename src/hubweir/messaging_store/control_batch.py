"""Control batches: what a log, or the hub on it, notes between the records. They take no index and no offset.

Control kinds, the first byte of a control batch's payload:

| kind | name              | what follows |
|-----:|-------------------|--------------|
|    1 | IDLE_MARK         | one byte: 0 the log fell idle, 1 the log was closed cleanly |
|    2 | EPOCH             | the new writer epoch, 4 bytes |
|    3 | EXPIRED_PRODUCERS | what event_hub writes there |
|    4 | SKIPPED           | the new next index and next offset, 8 bytes each: numbers between are never used |
|    5 | PRODUCER_FENCE    | the producer's id, 8 bytes, and what event_hub writes there |

The header of a control batch carries the log's next index and offset as they are before it.
"""

from __future__ import annotations

import struct

from hubweir.kernels.stored_batch import KIND_CONTROL
from hubweir.messaging_store.record import BatchHeader, begin_batch, seal_batch

CONTROL_IDLE_MARK, CONTROL_EPOCH, CONTROL_EXPIRED_PRODUCERS, CONTROL_SKIPPED, CONTROL_PRODUCER_FENCE = 1, 2, 3, 4, 5
IDLE, CLOSED = b"\x00", b"\x01"
# Of a PRODUCER_FENCE: the newest one of an id says all that is to be known of those before it (carried_over.py).
FENCED_ID_SIZE = 8

_SKIPPED = struct.Struct(">BQQ")


def pack_control(control: int, body: bytes = b"") -> bytearray:
    """A sealed run of one control batch (table above)."""
    out = bytearray()
    start = begin_batch(out)
    out.append(control)
    out += body
    seal_batch(out, start, count=0, kind=KIND_CONTROL)
    return out


def pack_skipped(next_index: int, next_offset: int) -> bytearray:
    """The control batch that moves a log's next numbers ahead (promise P4)."""
    return pack_control(CONTROL_SKIPPED, _SKIPPED.pack(CONTROL_SKIPPED, next_index, next_offset)[1:])


def control_of(run: bytes | bytearray | memoryview, header: BatchHeader) -> tuple[int, bytes]:
    """Control kind and what follows it, of a control batch."""
    return run[header.records_at], bytes(run[header.records_at + 1 : header.end])


def numbers_behind(run: bytes | bytearray | memoryview, at: int, next_index: int, next_offset: int) -> tuple[int, int]:
    """Next index and offset behind the control payload that starts at `at`."""
    if len(run) > at and run[at] == CONTROL_SKIPPED:
        _, next_index, next_offset = _SKIPPED.unpack_from(run, at)
    return next_index, next_offset
