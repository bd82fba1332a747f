"""Stored batches from the owner's side: begin, seal, complete, read and walk them.

The bytes are drawn once, in kernels/stored_batch.py. Here are the two halves of a batch's life: the *made* half
(begin_batch, seal_batch; the ingest kernel appends the records in between), which needs no log, and the *completed*
half (complete_run), which the log's owner fills in as it appends. Nothing here walks event records; a batch costs a
few microseconds whatever it holds.

Control kinds, the first byte of a control batch's payload:

| kind | name              | what follows |
|-----:|-------------------|--------------|
|    1 | IDLE_MARK         | one byte: 0 the log fell idle, 1 the log was closed cleanly |
|    2 | EPOCH             | the new writer epoch, 4 bytes |
|    3 | EXPIRED_PRODUCERS | what event_hub writes there |
|    4 | SKIPPED           | the new next index and next offset, 8 bytes each: numbers between are never used |
|    5 | PRODUCER_FENCE    | the producer's id, 8 bytes, and what event_hub writes there |

A control batch takes no index and no offset: its header carries the log's next ones as they are before it.
After a crash: a batch without a sound header and payload CRC is no batch; see recovery.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hubweir.errors import KernelRefusal
from hubweir.kernels import crc32c, find_record
from hubweir.kernels.stored_batch import (
    AT_HEADER_CRC,
    AT_WRITER_EPOCH,
    BATCH_RECORDS_LIMIT,
    COMPLETED_STRUCT,
    CRC_SEED,
    FLAG_CONTINUES,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    HEADER_STRUCT,
    KIND_CONTROL,
    KIND_EVENTS,
    KIND_OPERATIONS,
    MADE_STRUCT,
    MAGIC,
    OPERATION_HEADER_SIZE,
    PRODUCER_SIZE,
    PRODUCER_STRUCT,
    VERSION,
)

CONTROL_IDLE_MARK, CONTROL_EPOCH, CONTROL_EXPIRED_PRODUCERS, CONTROL_SKIPPED, CONTROL_PRODUCER_FENCE = 1, 2, 3, 4, 5
IDLE, CLOSED = b"\x00", b"\x01"
# Of a PRODUCER_FENCE: the newest one of an id says all that is to be known of those before it (carried_over.py).
FENCED_ID_SIZE = 8

_HEADER = struct.Struct(HEADER_STRUCT)
_MADE = struct.Struct(MADE_STRUCT)
_COMPLETED = struct.Struct(COMPLETED_STRUCT)
_PRODUCER = struct.Struct(PRODUCER_STRUCT)
_U32 = struct.Struct(">I")
_SKIPPED = struct.Struct(">BQQ")


@dataclass(frozen=True, slots=True)
class Producer:
    """Who numbered the events of a batch, and from which number on (stored_batch.py, producer block)."""

    producer_id: int
    epoch: int
    first_number: int
    round: int = 0
    digest: int = 0


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A batch header as read, and where it stands in its buffer. Nothing about it is verified."""

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
    enqueued_time_ms: int
    durable_upto: int

    @property
    def end(self) -> int:
        """Position of the first byte behind the batch."""
        return self.position + self.length

    @property
    def records_at(self) -> int:
        """Position of the first record (control: of the control kind)."""
        return self.position + HEADER_SIZE + self.name_length + self.producer_length

    @property
    def record_bytes(self) -> int:
        """Bytes of records: what the batch adds to the log's offset; 0 for control."""
        return 0 if self.kind == KIND_CONTROL else self.end - self.records_at

    @property
    def continues(self) -> bool:
        return bool(self.flags & FLAG_CONTINUES)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """What complete_run left behind the run. last_record_offset is None when the run has no record."""

    next_index: int
    next_offset: int
    last_record_offset: int | None


def begin_batch(
    out: bytearray, *, name: bytes = b"", name_is_publisher: bool = False, producer: Producer | None = None
) -> int:
    """Append an unsealed header, name block and producer block to out; return where the batch starts.

    name: the partition key (UTF-8), or the publisher's name. The caller appends the records, then calls seal_batch.
    """
    start = len(out)
    flags = 0 if not name else FLAG_NAME_IS_PUBLISHER if name_is_publisher else FLAG_NAME_IS_KEY
    producer_length = PRODUCER_SIZE if producer else 0
    out += _MADE.pack(MAGIC, VERSION, KIND_EVENTS, flags, 0, 0, len(name), producer_length, 0)
    out += bytes(HEADER_SIZE - _MADE.size)
    out += name
    if producer:
        numbers = (producer.producer_id, producer.epoch, 0, producer.first_number, producer.round, producer.digest)
        out += _PRODUCER.pack(*numbers)
    return start


def seal_batch(out: bytearray, start: int, *, count: int, kind: int = KIND_EVENTS, continues: bool = False) -> None:
    """Make the batch that runs from start to the end of out whole: length, count, kind, flags, payload CRC."""
    magic, version, _, flags, _, _, name_length, producer_length, _ = _MADE.unpack_from(out, start)
    flags = flags | FLAG_CONTINUES if continues else flags & ~FLAG_CONTINUES
    with memoryview(out) as view, view[start + HEADER_SIZE :] as payload:
        payload_crc = crc32c(payload, CRC_SEED)
    length = len(out) - start
    _MADE.pack_into(
        out, start, magic, version, kind, flags, length, count, name_length, producer_length, payload_crc
    )  # fmt: skip


def complete_run(
    run: bytearray,
    *,
    nonce: int,
    first_index: int,
    first_offset: int,
    enqueued_time_ms: int,
    durable_upto: int,
    writer_epoch: int,
) -> RunEnd:
    """Fill in the owner's half of every header in run, in place; return the next index and offset.

    Raises KernelRefusal when run is not sealed batches back to back, or ends inside a chain.
    """
    at, end, flags = 0, len(run), 0
    next_index, next_offset = first_index, first_offset
    last = None  # the last batch that has records: position, count, its first offset, where its records start
    with memoryview(run) as view:
        while at < end:
            kind, flags, length, count, records_at = _made_half(run, at, end)
            _COMPLETED.pack_into(
                run, at + AT_WRITER_EPOCH, writer_epoch, nonce, next_index, next_offset, enqueued_time_ms,
                durable_upto, 0,
            )  # fmt: skip
            with view[at : at + AT_HEADER_CRC] as header:
                _U32.pack_into(run, at + AT_HEADER_CRC, crc32c(header, CRC_SEED))
            if kind == KIND_CONTROL:
                next_index, next_offset = _after_control(run, records_at, next_index, next_offset)
            else:
                last = at, count, next_offset, records_at
                next_index += count
                next_offset += at + length - records_at
            at += length
    if flags & FLAG_CONTINUES:
        raise KernelRefusal("the run ends inside a chain: its last batch says that another one continues it")
    return RunEnd(next_index, next_offset, None if last is None else last_record_offset(run, *last))


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


def _after_control(run: bytes | bytearray | memoryview, at: int, next_index: int, next_offset: int) -> tuple[int, int]:
    """Next index and offset behind the control payload that starts at `at`."""
    if len(run) > at and run[at] == CONTROL_SKIPPED:
        _, next_index, next_offset = _SKIPPED.unpack_from(run, at)
    return next_index, next_offset


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at position, unverified (scan_batches verifies). The buffer must hold HEADER_SIZE bytes there."""
    (
        _, version, kind, flags, length, count, name_length, producer_length, payload_crc, writer_epoch, nonce,
        first_index, first_offset, enqueued_time_ms, durable_upto, _, _,
    ) = _HEADER.unpack_from(buffer, position)  # fmt: skip
    return BatchHeader(
        position, version, kind, flags, length, count, name_length, producer_length, payload_crc, writer_epoch, nonce,
        first_index, first_offset, enqueued_time_ms, durable_upto,
    )  # fmt: skip


def headers_of(run: bytes | bytearray | memoryview) -> Iterator[BatchHeader]:
    """The header of every batch of a run, in order."""
    at = 0
    while at < len(run):
        header = read_header(run, at)
        yield header
        at = header.end


def name_of(run: bytes | bytearray | memoryview, header: BatchHeader) -> bytes:
    """The name block of a batch: a partition key or a publisher, as header.flags says; b"" when there is none."""
    at = header.position + HEADER_SIZE
    return bytes(run[at : at + header.name_length])


def producer_of(run: bytes | bytearray | memoryview, header: BatchHeader) -> Producer | None:
    """The producer block of a batch, if it has one."""
    if header.producer_length != PRODUCER_SIZE:
        return None
    at = header.position + HEADER_SIZE + header.name_length
    producer_id, epoch, _, first_number, round_number, digest = _PRODUCER.unpack_from(run, at)
    return Producer(producer_id, epoch, first_number, round_number, digest)


def end_of_batch(run: bytes | bytearray | memoryview, header: BatchHeader) -> tuple[int, int]:
    """Next index and next offset behind this batch."""
    if header.kind == KIND_CONTROL:
        return _after_control(run, header.records_at, header.first_index, header.first_offset)
    return header.first_index + header.count, header.first_offset + header.record_bytes


def pack_operations(operations: Sequence[bytes]) -> bytearray:
    """A sealed run of kind operations, one record each; a chain when it takes more than one batch, so all or none.

    The run of no operations is empty.
    """
    groups: list[list[bytes]] = []
    room = 0
    for operation in operations:
        size = OPERATION_HEADER_SIZE + len(operation)
        if not groups or size > room:
            groups.append([])
            room = BATCH_RECORDS_LIMIT
        groups[-1].append(operation)
        room -= size
    out = bytearray()
    for number, group in enumerate(groups, 1):
        start = begin_batch(out)
        for operation in group:
            out += _U32.pack(OPERATION_HEADER_SIZE + len(operation)) + operation
        seal_batch(out, start, count=len(group), kind=KIND_OPERATIONS, continues=number < len(groups))
    return out


def operations_of(run: bytes | bytearray | memoryview) -> Iterator[tuple[int, memoryview]]:
    """(index, bytes) of every operation record in a run; batches of other kinds are stepped over. For replay."""
    view = memoryview(run)
    for header in headers_of(run):
        if header.kind != KIND_OPERATIONS:
            continue
        at = header.records_at
        for place in range(header.count):
            (length,) = _U32.unpack_from(view, at)
            yield header.first_index + place, view[at + OPERATION_HEADER_SIZE : at + length]
            at += length


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
