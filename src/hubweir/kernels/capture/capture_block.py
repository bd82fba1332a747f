"""Stored events as Avro records of Capture, in plain Python: capture_block."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack, unpack_from

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import open_batch, record_end
from hubweir.kernels.buffers.tables import MASK_64, signed
from hubweir.kernels.columns.text import (
    DOUBLES,
    SIGNED,
    UNSIGNED,
    body_of,
    entries_before_break,
    property_fields,
    text_of,
    time_text,
    undescribed,
    us_time_text,
    utf8,
)
from hubweir.kernels.columns_contract import CAPTURE_DAMAGED, CAPTURE_OK
from hubweir.kernels.contract import Readable
from hubweir.kernels.frames.deliver import ENQUEUED_TIME, OFFSET, PARTITION_KEY, PUBLISHER, SEQUENCE_NUMBER
from hubweir.kernels.messages.sections import (
    APPLICATION_PROPERTIES,
    BINARY,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    Malformed,
    Section,
    find_section,
    is_name,
    map_entries,
    read_message,
    variable,
)
from hubweir.kernels.stored_batch import (
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    KIND_EVENTS,
    RECORD_HEADER_SIZE,
    BatchHeader,
)

# A block of a map whose count takes one byte.
MOST_ENTRIES = 63

LONG, DOUBLE, STRING, BYTES = range(4)  # branches of the union of map values

_Entry = tuple[bytes, bytes]  # key and value, both encoded


def capture_block(
    run: Readable,
    batch_at: int,
    record_at: int,
    ordinal: int,
    max_bytes: int,
    max_events: int,
    until: int,
    out: bytearray,
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Append an Avro record for each event of a run; see columns_contract.py."""
    view = memoryview(run)
    if not 0 <= batch_at <= len(view) or record_at < 0 or ordinal < 0 or (ordinal > 0 and record_at == 0):
        raise KernelRefusal(f"batch {batch_at}, record {record_at}, place {ordinal} are no position of a run")
    begun, events, span = len(out), 0, (-1, -1, -1, -1)
    while batch_at < len(view):
        try:
            batch = open_batch(view, batch_at)
        except KernelRefusal:
            return events, batch_at, record_at, ordinal, *span, CAPTURE_DAMAGED
        at = record_at or batch.records_at
        while batch.kind == KIND_EVENTS and ordinal < batch.count:
            sequence_number = signed(batch.first_index + ordinal)
            place = (batch_at, at if ordinal else 0, ordinal)
            if events >= max_events or (until >= 0 and sequence_number >= until):
                return events, *place, *span, CAPTURE_OK
            try:
                end = record_end(view, at, batch)
                record = _record(view, batch, at, end, sequence_number)
            except (KernelRefusal, Malformed):
                return events, *place, *span, CAPTURE_DAMAGED
            if events and len(out) - begun + len(record) > max_bytes:
                return events, *place, *span, CAPTURE_OK
            out += record
            first, first_time = (span[0], span[2]) if events else (sequence_number, batch.enqueued_time_ms)
            span = (first, sequence_number, first_time, batch.enqueued_time_ms)
            events, at, ordinal = events + 1, end, ordinal + 1
        batch_at, record_at, ordinal = batch.end, 0, 0
    return events, len(view), 0, 0, *span, CAPTURE_OK


def _record(data: memoryview, batch: BatchHeader, at: int, end: int, sequence_number: int) -> bytes:
    sections = read_message(data, at + RECORD_HEADER_SIZE, end)
    offset = b"%d" % ((batch.first_offset + at - batch.records_at) & MASK_64)
    properties = find_section(sections, APPLICATION_PROPERTIES)
    body = body_of(data, sections)
    return b"".join([
        avro_long(sequence_number),
        avro_bytes(offset),
        avro_bytes(us_time_text(batch.enqueued_time_ms)),
        _map(_system_properties(data, batch, sections, sequence_number, offset)),
        _map(iter(()) if properties is None else _properties(data, properties)),
        b"\0" if body is None else b"\x02" + avro_bytes(body),
    ])  # fmt: skip


def _system_properties(
    data: memoryview, batch: BatchHeader, sections: list[Section], sequence_number: int, offset: bytes
) -> Iterator[_Entry]:
    yield avro_bytes(SEQUENCE_NUMBER), branch(LONG, avro_long(sequence_number))
    yield avro_bytes(OFFSET), branch(STRING, avro_bytes(offset))
    yield avro_bytes(ENQUEUED_TIME), branch(STRING, avro_bytes(time_text(batch.enqueued_time_ms)))
    replaced = [SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PUBLISHER]
    if batch.name_length and batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER):
        name = branch(STRING, avro_bytes(utf8(bytes(data[batch.name_at : batch.name_at + batch.name_length]))))
        replaced.append(PARTITION_KEY)
        yield avro_bytes(PARTITION_KEY), name
        if batch.flags & FLAG_NAME_IS_PUBLISHER:
            yield avro_bytes(PUBLISHER), name
    annotations = find_section(sections, MESSAGE_ANNOTATIONS)
    if annotations is not None:
        for key, value, end in map_entries(data, annotations.value, annotations.end):
            if not any(is_name(data, key, value, name) for name in replaced):
                yield avro_bytes(text_of(data, key, value)), _value(data, value, end)
    properties = find_section(sections, PROPERTIES)
    if properties is not None:
        for name, start, stop in property_fields(data, properties.value, properties.end):
            yield avro_bytes(name), _value(data, start, stop)


def _properties(data: memoryview, section: Section) -> Iterator[_Entry]:
    for key, value, end in entries_before_break(data, section.value, section.end):
        yield avro_bytes(text_of(data, key, value)), _value(data, value, end)


def _value(data: memoryview, at: int, end: int) -> bytes:
    """One map value as a branch of the union."""
    start = undescribed(data, at, end)
    code, octets = data[start], bytes(data[start + 1 : end])
    if code in (0x41, 0x42, 0x56):
        return branch(LONG, avro_long(code == 0x41 or (code == 0x56 and octets != b"\0")))
    if code in UNSIGNED or code in SIGNED:
        number = int.from_bytes(octets, "big", signed=code in SIGNED)
        if number < 2**63:
            return branch(LONG, avro_long(number))
    if code in DOUBLES:
        return branch(DOUBLE, pack("<d", unpack_from(DOUBLES[code], octets)[0]))
    if code in BINARY:
        return branch(BYTES, avro_bytes(bytes(data[slice(*variable(data, start, end))])))
    return branch(STRING, avro_bytes(text_of(data, at, end)))


def _map(entries: Iterator[_Entry]) -> bytes:
    every = [key + value for key, value in entries]
    blocks = [every[at : at + MOST_ENTRIES] for at in range(0, len(every), MOST_ENTRIES)]
    return b"".join([avro_long(len(block)) + b"".join(block) for block in blocks]) + b"\0"


def branch(index: int, value: bytes) -> bytes:
    """A value of a union: the branch's index, then the value."""
    return avro_long(index) + value


def avro_long(value: int) -> bytes:
    """Zigzag, then seven bits a byte, least first."""
    left = (value << 1) ^ (value >> 63)
    octets = bytearray()
    while left > 0x7F:
        octets.append(left & 0x7F | 0x80)
        left >>= 7
    octets.append(left)
    return bytes(octets)


def avro_bytes(value: bytes) -> bytes:
    """Bytes and strings alike: length, then content."""
    return avro_long(len(value)) + value
