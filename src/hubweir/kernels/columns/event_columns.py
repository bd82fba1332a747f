"""Delivered events as columns, in plain Python: event_columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from hubweir.kernels.buffers.tables import check_rows, signed
from hubweir.kernels.columns.column_buffers import ColumnBuffers, Entry
from hubweir.kernels.columns.text import body_of, entries_before_break, property_fields, text_of, utf8
from hubweir.kernels.columns_contract import (
    COLUMN_BODY,
    COLUMN_ENQUEUED_TIME,
    COLUMN_OFFSET,
    COLUMN_PARTITION_KEY,
    COLUMN_PROPERTIES,
    COLUMN_PUBLISHER,
    COLUMN_SEQUENCE_NUMBER,
    COLUMN_SYSTEM_PROPERTIES,
    COLUMNS_FULL,
    COLUMNS_MALFORMED,
    COLUMNS_OK,
    COLUMNS_UNTIL,
    MOST_COLUMN_BYTES,
)
from hubweir.kernels.contract import DELIVERY_WIDTH, Readable
from hubweir.kernels.frames.deliver import ENQUEUED_TIME, OFFSET, PARTITION_KEY, PUBLISHER, SEQUENCE_NUMBER
from hubweir.kernels.messages.ingest import read_delivery
from hubweir.kernels.messages.sections import (
    APPLICATION_PROPERTIES,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    STRING,
    Malformed,
    Section,
    find_section,
    is_name,
    map_entries,
    read_message,
    variable,
)

SERVICE_NAMES = (SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME, PARTITION_KEY, PUBLISHER)
# Constructors that each of them must have to count.
_TYPES = ((0x55, 0x81), STRING, (0x83,), STRING, STRING)
# Beyond this a time in milliseconds is none in microseconds.
MOST_TIME_MS = (2**63 - 1) // 1000


def event_columns(
    data: Readable,
    deliveries: array[int],
    first_row: int,
    last_row: int,
    expected: int,
    until: int,
    mask: int,
    rows: int,
    columns: list[bytearray],
    most_bytes: int = MOST_COLUMN_BYTES,
) -> tuple[int, int, int, int, int]:
    """Append delivered events to columns; see columns_contract.py."""
    view = memoryview(data)
    check_rows(deliveries, DELIVERY_WIDTH, first_row, last_row)
    places = [read_delivery(view, deliveries, row) for row in range(first_row, last_row)]
    buffers = ColumnBuffers(columns, mask, rows, most_bytes)
    first = last = gap = -1
    for row, (start, end, message_format) in enumerate(places, first_row):
        try:
            if message_format != 0:
                raise Malformed
            sections = read_message(view, start, end)
            number, offset, time_ms, key, publisher = _service(view, find_section(sections, MESSAGE_ANNOTATIONS))
        except Malformed:
            return row, first, last, gap, COLUMNS_MALFORMED
        if until >= 0 and number >= until:
            return row, first, last, gap, COLUMNS_UNTIL
        if not buffers.has_room(end - start):
            return row, first, last, gap, COLUMNS_FULL
        if gap < 0 and expected >= 0 and number != expected:
            gap = row
        first, last, expected = (number if row == first_row else first), number, signed(number + 1)
        append_row(buffers, number, offset, time_ms * 1000, key, publisher)
        if buffers.has(COLUMN_BODY):
            buffers.append_text(COLUMN_BODY, body_of(view, sections))
        if buffers.has(COLUMN_PROPERTIES):
            buffers.append_map(COLUMN_PROPERTIES, _properties(view, find_section(sections, APPLICATION_PROPERTIES)))
        if buffers.has(COLUMN_SYSTEM_PROPERTIES):
            buffers.append_map(COLUMN_SYSTEM_PROPERTIES, _system_properties(view, sections))
        buffers.rows += 1
    return last_row, first, last, gap, COLUMNS_OK


def append_row(
    buffers: ColumnBuffers, number: int, offset: bytes, time_us: int, key: bytes | None, publisher: bytes | None
) -> None:
    """Append the columns that are one value each."""
    if buffers.has(COLUMN_SEQUENCE_NUMBER):
        buffers.append_number(COLUMN_SEQUENCE_NUMBER, number)
    if buffers.has(COLUMN_ENQUEUED_TIME):
        buffers.append_number(COLUMN_ENQUEUED_TIME, time_us)
    for column, text in ((COLUMN_OFFSET, offset), (COLUMN_PARTITION_KEY, key), (COLUMN_PUBLISHER, publisher)):
        if buffers.has(column):
            buffers.append_text(column, text)


def _service(data: memoryview, annotations: Section | None) -> tuple[int, bytes, int, bytes | None, bytes | None]:
    """The service's five; Malformed when one of the first three is absent."""
    found: dict[bytes, tuple[int, int]] = {}
    if annotations is not None:
        for key, value, end in map_entries(data, annotations.value, annotations.end):
            for name, codes in zip(SERVICE_NAMES, _TYPES, strict=True):
                if data[value] in codes and is_name(data, key, value, name):
                    found[name] = value, end
    if not found.keys() >= {SEQUENCE_NUMBER, OFFSET, ENQUEUED_TIME}:
        raise Malformed
    number, time_ms = (
        int.from_bytes(data[found[name][0] + 1 : found[name][1]], "big", signed=True)
        for name in (SEQUENCE_NUMBER, ENQUEUED_TIME)
    )
    if abs(time_ms) > MOST_TIME_MS:
        raise Malformed
    offset, key_text, publisher = (
        utf8(bytes(data[slice(*variable(data, *found[name]))])) if name in found else b""
        for name in (OFFSET, PARTITION_KEY, PUBLISHER)
    )
    return number, offset, time_ms, key_text or None, publisher or None


def _properties(data: memoryview, section: Section | None) -> Iterator[Entry]:
    if section is not None:
        for key, value, end in entries_before_break(data, section.value, section.end):
            yield text_of(data, key, value), text_of(data, value, end)


def _system_properties(data: memoryview, sections: list[Section]) -> Iterator[Entry]:
    annotations, properties = find_section(sections, MESSAGE_ANNOTATIONS), find_section(sections, PROPERTIES)
    if annotations is not None:
        for key, value, end in map_entries(data, annotations.value, annotations.end):
            if not any(is_name(data, key, value, name) for name in SERVICE_NAMES):
                yield text_of(data, key, value), text_of(data, value, end)
    if properties is not None:
        for name, start, stop in property_fields(data, properties.value, properties.end):
            yield name, text_of(data, start, stop)
