"""A captured file, read into Arrow record batches: an Avro object container file with the service's schema.

The header gives the schema, the codec and the sync marker that stands behind every block. Records are decoded by a
kernel, a block at a time. A file that was cut off is read up to its last whole block by who asks for all of it: a file
under its final name is never cut off, so here that is an error. A large file may be read in parts: a part has the
blocks that begin in it. (Avro 1.11 specification, object container files)
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from hubweir.capture.avro import SCHEMA, SYNC_SIZE
from hubweir.kernels import read_capture_block
from hubweir.kernels.columns_contract import COLUMNS_FULL, COLUMNS_MALFORMED
from hubweir.spark.errors import IllegalCapture
from hubweir.spark.record_batches import fresh_columns, mask_of, record_batch

MAGIC = b"Obj\x01"
ROWS_A_BATCH = 10_000
# What a header takes in any file of this schema, with room for what others put into its metadata.
HEADER_BYTES = 64 * 1024
_FIELDS = [(each["name"], each["type"]) for each in json.loads(SCHEMA)["fields"]]


@dataclass(frozen=True, slots=True)
class AvroHeader:
    """What a file's header says. size: where its first block begins."""

    sync_marker: bytes
    is_deflated: bool
    size: int


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Enqueued times in ms: since is the first that is wanted, until the first that is not."""

    since_ms: int = -(2**63)
    until_ms: int = 2**63 - 1


def read_header(data: bytes | memoryview, name: str) -> AvroHeader:
    """The header at the start of data. IllegalCapture when this is no captured file."""
    reader = _Bytes(data, name)
    if bytes(reader.take(4)) != MAGIC:
        raise IllegalCapture(f"{name} is no Avro file: it does not begin with Obj")
    metadata: dict[str, bytes] = {}
    while count := reader.long():
        if count < 0:
            count = -count
            reader.long()
        for _ in range(count):
            key = bytes(reader.take(reader.long())).decode("utf-8", "replace")
            metadata[key] = bytes(reader.take(reader.long()))
    _check_schema(metadata.get("avro.schema", b""), name)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in ("null", "deflate"):
        raise IllegalCapture(f"{name} is compressed by {codec[:32]}; null and deflate can be read")
    return AvroHeader(bytes(reader.take(SYNC_SIZE)), codec == "deflate", reader.position)


def read_blocks(
    data: bytes | memoryview,
    start: int,
    header: AvroHeader,
    *,
    name: str,
    partition_id: str,
    columns: tuple[str, ...],
    times: EventTimes,
    end: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Record batches of the blocks that begin at data[start:end]; data goes on at least to the end of the last.

    IllegalCapture when the bytes are not such blocks.
    """
    reader = _Bytes(data, name, start)
    mask, rows, buffers = mask_of(columns), 0, fresh_columns()
    while reader.position < (len(data) if end is None else end):
        count, size = reader.long(), reader.long()
        block: bytes | memoryview = reader.take(size)
        if bytes(reader.take(SYNC_SIZE)) != header.sync_marker:
            raise IllegalCapture(
                f"{name} is damaged before byte {reader.position}: no sync marker stands behind a block"
            )
        if header.is_deflated:
            block = _inflated(block, name)
        at, left = 0, count
        while left > 0:
            at, records, taken, _, _, status = read_capture_block(
                block, at, len(block), left, times.since_ms, times.until_ms, mask, rows, buffers
            )
            left, rows = left - records, rows + taken
            if status == COLUMNS_MALFORMED:
                raise IllegalCapture(f"{name} is damaged before byte {reader.position}: a record cannot be read")
            if status == COLUMNS_FULL or rows >= ROWS_A_BATCH:
                yield record_batch(buffers, rows, columns, partition_id)
                rows, buffers = 0, fresh_columns()
    if rows:
        yield record_batch(buffers, rows, columns, partition_id)


def begins_before(data: bytes | memoryview, header: AvroHeader, time_ms: int, name: str) -> bool | None:
    """Whether the first event of a file came before a time; None when it has no event. data: the file's beginning.

    IllegalCapture when the first event is not whole in data.
    """
    reader = _Bytes(data, name, header.size)
    if reader.position == len(data):
        return None
    reader.long()
    size = reader.long()
    block: bytes | memoryview = memoryview(data)[reader.position : reader.position + size]
    if header.is_deflated:
        block = _inflated(block, name)
    # Others stand behind the first, or are cut off: the status tells of that alone.
    _, records, taken, *_ = read_capture_block(block, 0, len(block), 1, -(2**63), time_ms, 0, 0, fresh_columns())
    if not records:
        raise IllegalCapture(f"{name} is damaged or cut off behind byte {reader.position}: a record cannot be read")
    return taken > 0


def _check_schema(text: bytes, name: str) -> None:
    try:
        found = json.loads(text)
        fields = [(each["name"], each["type"]) for each in found["fields"]]
    except (ValueError, KeyError, TypeError):
        raise IllegalCapture(f"{name} has no Avro schema of a record") from None
    if fields != _FIELDS:
        raise IllegalCapture(
            f"{name} holds other records than captured events: {text[:200].decode('utf-8', 'replace')}"
        )


def _inflated(block: bytes | memoryview, name: str) -> bytes:
    try:
        return zlib.decompress(block, -15)
    except zlib.error as error:
        raise IllegalCapture(f"{name} is damaged: a block does not inflate ({error})") from None


class _Bytes:
    """Avro's longs and lengths, read in order. IllegalCapture where the bytes end too soon."""

    def __init__(self, data: bytes | memoryview, name: str, position: int = 0) -> None:
        self.position = position
        self._data = memoryview(data)
        self._name = name

    def take(self, size: int) -> memoryview:
        """The next bytes."""
        end = self.position + size
        if size < 0 or end > len(self._data):
            raise IllegalCapture(f"{self._name} is cut off or damaged behind byte {self.position}")
        found, self.position = self._data[self.position : end], end
        return found

    def long(self) -> int:
        """A zigzag number of at most ten bytes."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise IllegalCapture(f"{self._name} is damaged before byte {self.position}: a number has more than ten bytes")
