"""Control batches: what a log notes between the records. They take no index and no offset.

Control kinds, the first byte of a control batch's payload (2, 3 and 5 are of earlier formats, and free):

| kind | name      | what follows |
|-----:|-----------|--------------|
|    1 | IDLE_MARK | one byte: 0 a mark of an idle log, or behind appends, 1 the log was closed cleanly |
|    4 | SKIPPED   | the new next index and next offset, 8 bytes each: numbers between are never used |

The header of a control batch carries the log's next index and offset as they are before it.
"""

from __future__ import annotations

import struct

from hubweir.kernels import stored_batch
from hubweir.kernels.stored_batch import KIND_CONTROL, MARK_CLOSED, SKIPPED_STRUCT, BatchHeader
from hubweir.messaging_store.record import begin_batch, seal_batch

# The kernels know them, too.
CONTROL_IDLE_MARK, CONTROL_SKIPPED = stored_batch.CONTROL_IDLE_MARK, stored_batch.CONTROL_SKIPPED
IDLE, CLOSED = b"\x00", bytes((MARK_CLOSED,))

_SKIPPED = struct.Struct(SKIPPED_STRUCT)


def pack_control(control: int, body: bytes = b"") -> bytearray:
    """A sealed run of one control batch (table above)."""
    out = bytearray()
    start = begin_batch(out)
    out.append(control)
    out += body
    seal_batch(out, start, count=0, kind=KIND_CONTROL)
    return out


def pack_mark(body: bytes = IDLE) -> bytearray:
    """A mark, to be completed: IDLE, or CLOSED, which vouches for the log's end."""
    return pack_control(CONTROL_IDLE_MARK, body)


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
