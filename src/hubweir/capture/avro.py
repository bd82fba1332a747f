"""Avro object container files of captured events, as bytes. (Avro 1.11 specification, object container files)

A file is a header (magic, metadata with schema and codec, 16 bytes of sync marker), then blocks: count of records,
their size in bytes (both as Avro longs), the records, the sync marker. The codec is null.

A block ends before the event that would make it larger than BLOCK_BYTES; one larger event has a block of its own. Where
blocks end depends on the events alone, never on the pieces in which they were read: made again, a file is the same
byte for byte. A file that was cut off can be read up to its last whole block.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from hubweir.env import Buffer
from hubweir.kernels import capture_block, find_record
from hubweir.kernels.columns_contract import CAPTURE_OK
from hubweir.kernels.stored_batch import AT_FIRST_INDEX, AT_LENGTH

BLOCK_BYTES = 1024 * 1024
SYNC_SIZE = 16
# More than any block can hold: a record of an event has more than 16 bytes.
_ANY_EVENTS = BLOCK_BYTES
_LENGTH_COUNT = struct.Struct(">II")
_INDEX = struct.Struct(">Q")

_VALUES = '{"type":"map","values":["long","double","string","bytes"]}'
SCHEMA = (
    '{"type":"record","name":"EventData","namespace":"Microsoft.ServiceBus.Messaging","fields":['
    '{"name":"SequenceNumber","type":"long"},'
    '{"name":"Offset","type":"string"},'
    '{"name":"EnqueuedTimeUtc","type":"string"},'
    f'{{"name":"SystemProperties","type":{_VALUES}}},'
    f'{{"name":"Properties","type":{_VALUES}}},'
    '{"name":"Body","type":["null","bytes"]}]}'
).encode("ascii")


def long(value: int) -> bytes:
    """An Avro long: zigzag, seven bits a byte, the least first. value: 0 or more."""
    value <<= 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def header(sync_marker: bytes) -> bytes:
    """What a file starts with; alone it is a file without events."""
    codec, null, schema = b"avro.codec", b"null", b"avro.schema"
    return b"".join(
        (
            b"Obj\x01", long(2), long(len(codec)), codec, long(len(null)), null, long(len(schema)), schema,
            long(len(SCHEMA)), SCHEMA, long(0), sync_marker,
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unsound:
    """Events from start to end, exclusive, that no record could be made of."""

    start: int
    end: int


@dataclass(slots=True)
class BlockWriter:
    """Frames events of runs as blocks. Used by one thread at a time; holds at most one block and one event."""

    sync_marker: bytes
    unsound: list[Unsound] = field(default_factory=list)
    events: int = 0  # in whole blocks and in the open one
    _block: bytearray = field(default_factory=bytearray)
    _count: int = 0

    def add_events(self, run: Buffer, start: int, until: int) -> list[Buffer]:
        """Take the events of a run from sequence number start on, below until; the buffers of blocks that are full.

        run: whole stored batches; start is not before its first event by more than what the log does not have.
        """
        out: list[Buffer] = []
        view = memoryview(run)
        batch_at, ordinal = _place(view, start)
        record_at = find_record(view, batch_at, ordinal) if ordinal else 0
        while batch_at < len(view):
            if _first_index(view, batch_at) + ordinal >= until:
                break
            begun = len(self._block)
            room = BLOCK_BYTES - begun
            events, batch_at, record_at, ordinal, _, _, _, _, status = capture_block(
                view, batch_at, record_at, ordinal, room, _ANY_EVENTS, until, self._block
            )
            begins_block = bool(begun) and len(self._block) - begun > room
            if begins_block:
                # The first event of a call is written whatever its size: alone then, in a block of its own.
                event = self._block[begun:]
                del self._block[begun:]
                out += self.flush()
                self._block = event
            self._count += events
            self.events += events
            if status != CAPTURE_OK:
                first = _first_index(view, batch_at)
                length, count = _LENGTH_COUNT.unpack_from(view, batch_at + AT_LENGTH)
                self.unsound.append(Unsound(first + ordinal, min(until, first + count)))
                batch_at, record_at, ordinal = batch_at + length, 0, 0
            elif not begins_block and batch_at < len(view) and _first_index(view, batch_at) + ordinal < until:
                out += self.flush()  # the next one does not fit
            if len(self._block) >= BLOCK_BYTES:
                out += self.flush()
        return out

    def flush(self) -> list[Buffer]:
        """The open block, whole; nothing when it is empty."""
        if not self._count:
            return []
        block, count = self._block, self._count
        self._block, self._count = bytearray(), 0
        return [long(count) + long(len(block)), block, self.sync_marker]


def _first_index(run: memoryview, batch_at: int) -> int:
    index: int = _INDEX.unpack_from(run, batch_at + AT_FIRST_INDEX)[0]
    return index


def _place(run: memoryview, start: int) -> tuple[int, int]:
    """Position of the batch that holds start, or of the first one behind it, and start's place in it."""
    at = 0
    while at < len(run):
        length, count = _LENGTH_COUNT.unpack_from(run, at + AT_LENGTH)
        first = _first_index(run, at)
        if start < first + count:
            return at, max(0, start - first)
        at += length
    return at, 0
