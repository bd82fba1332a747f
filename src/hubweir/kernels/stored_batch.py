"""The stored batch, as a table: the one format on disk that cannot be changed later.

A *run* is one or more stored batches back to back. A stored batch is a header of 80 bytes, then its payload: an
optional name block, an optional producer block, then records. All integers are big-endian and unsigned unless the
table says otherwise. This page is the only place that says where a field lies: `record.py` and `completion.py` of
`messaging_store/`, and the kernels' twins, import it, and a test compares it with `stored_batch.pxd`.

Header, made by the ingest side (which knows nothing of the log it will land in):

| offset | size | name            | meaning |
|-------:|-----:|-----------------|---------|
|      0 |    4 | magic           | `hWb\\x01`; never zero, so zero-filled space is no batch |
|      4 |    1 | version         | 1; a newer one is refused, the file untouched |
|      5 |    1 | kind            | 1 events, 2 operations, 3 control |
|      6 |    2 | flags           | bits below |
|      8 |    4 | length          | bytes of the whole batch, header included |
|     12 |    4 | count           | records in the batch; 0 for control |
|     16 |    4 | name_length     | bytes of the name block; 0 when there is none |
|     20 |    4 | producer_length | bytes of the producer block: 0 or 40 |
|     24 |    4 | payload_crc     | CRC-32C, seed CRC_SEED, of everything behind the header |

Header, completed by the owner of the log (zero before):

| offset | size | name            | meaning |
|-------:|-----:|-----------------|---------|
|     28 |    4 | writer_epoch    | epoch of the writer that appended it |
|     32 |    8 | nonce           | the log's secret; recovery takes no header without it |
|     40 |    8 | first_index     | index of the first record (events: its sequence number); control: the next index |
|     48 |    8 | first_offset    | logical count of record bytes before the first record |
|     56 |    8 | enqueued_time   | signed, ms since 1970; never less than the batch before |
|     64 |    8 | batch_number    | of the batch in its log, control batches too; rises from batch to batch |
|     72 |    4 | unsynced        | durable_upto = batch_number - unsynced: what has a smaller number was durable then |
|     76 |    4 | header_crc      | CRC-32C, seed CRC_SEED, of header bytes 0 to 76 (so of the payload CRC too) |

Batch numbers are dense where batches are appended. Where a segment begins with a part of what another one held, some
are left out; what is copied keeps its number. Numbers of batches that were refused, and superseded, are used again.

Flags: CONTINUES: the batch belongs to the same transfer as the next one, whole or absent with it (a chain).
NAME_IS_KEY / NAME_IS_PUBLISHER: what the name block holds, for every record of the batch.

Producer block (40 bytes): producer id 8 signed, epoch 4, reserved 4, first number 8, round 8, digest 8. The last two
are for sinks that resume: which round of a writer this is, and a running digest of the rows so far.

Event record (kind 1): a header of 32 bytes, then the message bytes as they came. Positions count from the first byte
of the message; ABSENT where the section is not there.

| offset | size | name                   | meaning |
|-------:|-----:|------------------------|---------|
|      0 |    4 | length                 | bytes of the record, this header included |
|      4 |    4 | header_end             | where the message's header section ends; 0 when there is none |
|      8 |    4 | delivery_annotations   | start of that section, wherever the sender put it |
|     12 |    4 | message_annotations    | start of that section |
|     16 |    4 | properties             | start of that section |
|     20 |    4 | application_properties | start of that section |
|     24 |    4 | body                   | start of the first body section |
|     28 |    4 | footer                 | start of that section |

Operation record (kind 2): length 4 (these four bytes included), then the operation's bytes.
Control payload (kind 3): one byte of control kind (table in messaging_store/control_batch.py), then what it says.

The offset of a record is first_offset plus its position behind the first record of its batch; its index is
first_index plus its place. So completing a header never touches a record.
"""

from __future__ import annotations

import struct

from msgspec import Struct

MAGIC = b"hWb\x01"
VERSION = 1
CRC_SEED = 0x68756277

KIND_EVENTS, KIND_OPERATIONS, KIND_CONTROL = 1, 2, 3
FLAG_CONTINUES, FLAG_NAME_IS_KEY, FLAG_NAME_IS_PUBLISHER = 1, 2, 4

AT_MAGIC, AT_VERSION, AT_KIND, AT_FLAGS, AT_LENGTH, AT_COUNT = 0, 4, 5, 6, 8, 12
AT_NAME_LENGTH, AT_PRODUCER_LENGTH, AT_PAYLOAD_CRC, AT_WRITER_EPOCH, AT_NONCE = 16, 20, 24, 28, 32
AT_FIRST_INDEX, AT_FIRST_OFFSET, AT_ENQUEUED_TIME, AT_BATCH_NUMBER, AT_UNSYNCED, AT_HEADER_CRC = 40, 48, 56, 64, 72, 76
HEADER_SIZE = 80

# One struct for the whole header, in the order of the tables above.
HEADER_STRUCT = ">4sBBHIIIIIIQQQqQII"
MADE_STRUCT = ">4sBBHIIIII"  # bytes 0 to 28, what the ingest side makes
COMPLETED_STRUCT = ">IQQQqQI"  # bytes 28 to 76, what the owner completes

PRODUCER_SIZE = 40
PRODUCER_STRUCT = ">qIIQQQ"

AT_RECORD_LENGTH, AT_HEADER_END, AT_DELIVERY_ANNOTATIONS, AT_MESSAGE_ANNOTATIONS = 0, 4, 8, 12
AT_PROPERTIES, AT_APPLICATION_PROPERTIES, AT_BODY, AT_FOOTER = 16, 20, 24, 28
RECORD_HEADER_SIZE = 32
RECORD_STRUCT = ">8I"
ABSENT = 0xFFFFFFFF

OPERATION_HEADER_SIZE = 4

# Of the control kinds (messaging_store/control_batch.py) those that every walk over a log must know: a mark, which has
# MARK_CLOSED behind its kind after a clean stop, and what moves the next index and the next offset.
CONTROL_IDLE_MARK, CONTROL_SKIPPED = 1, 4
MARK_CLOSED = 1
SKIPPED_STRUCT = ">BQQ"
AT_SKIPPED_INDEX, AT_SKIPPED_OFFSET, SKIPPED_SIZE = 1, 9, 17

# At most this many bytes of records in one batch, unless one event alone is larger: one flipped bit, or one read on
# small credit, then costs little. (docs/reliability.md, rule R5)
BATCH_RECORDS_LIMIT = 64 * 1024

_HEADER = struct.Struct(HEADER_STRUCT)


class BatchHeader(Struct, frozen=True):
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
    number: int
    unsynced: int
    header_crc: int

    @property
    def end(self) -> int:
        """Position of the first byte behind the batch."""
        return self.position + self.length

    @property
    def name_at(self) -> int:
        """Position of the name block."""
        return self.position + HEADER_SIZE

    @property
    def records_at(self) -> int:
        """Position of the first record (control: of the control kind)."""
        return self.position + HEADER_SIZE + self.name_length + self.producer_length

    @property
    def record_bytes(self) -> int:
        """Bytes of records: what the batch adds to the log's offset; 0 for control."""
        return 0 if self.kind == KIND_CONTROL else self.end - self.records_at

    @property
    def durable_upto(self) -> int:
        """Every batch with a smaller number was durable when this one was written."""
        return self.number - self.unsynced

    @property
    def continues(self) -> bool:
        """Whether the next batch belongs to the same chain: after a crash both are there, or neither."""
        return bool(self.flags & FLAG_CONTINUES)


def read_header(buffer: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """The header at position, unverified (scan_batches verifies). The buffer must hold HEADER_SIZE bytes there."""
    _, *fields = _HEADER.unpack_from(buffer, position)
    return BatchHeader(position, *fields)
