"""Open delivered messages for a client, in plain Python: open_events."""

from __future__ import annotations

from array import array

from hubweir.kernels.buffers.tables import check_rows
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    E_APPLICATION_PROPERTIES,
    E_BODY,
    E_BODY_LENGTH,
    E_ENQUEUED_TIME,
    E_KEY,
    E_KEY_LENGTH,
    E_OFFSET,
    E_PROPERTIES,
    E_SEQUENCE_NUMBER,
    EVENT_WIDTH,
    Readable,
)
from hubweir.kernels.frames.deliver import ENQUEUED_TIME, OFFSET, PARTITION_KEY, SEQUENCE_NUMBER
from hubweir.kernels.messages.ingest import read_delivery
from hubweir.kernels.messages.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    STRING,
    VALUE,
    Malformed,
    Section,
    find_section,
    is_name,
    map_entries,
    read_message,
    variable,
)

# More decimal digits than 18 may not fit a table's 64 bits.
MOST_DIGITS = 18


def open_events(data: Readable, rows: array[int], first_row: int, last_row: int, table: array[int]) -> int:
    """One row per delivered message; see contract.py."""
    view = memoryview(data)
    check_rows(rows, DELIVERY_WIDTH, first_row, last_row)
    deliveries = [read_delivery(view, rows, row) for row in range(first_row, last_row)]
    room, opened = len(table) // EVENT_WIDTH, 0
    for start, end, message_format in deliveries[:room]:
        if message_format != 0:
            break
        try:
            sections = read_message(view, start, end)
        except Malformed:
            break
        row = [-1] * EVENT_WIDTH
        _fill_annotations(view, find_section(sections, MESSAGE_ANNOTATIONS), row)
        for code, column in ((PROPERTIES, E_PROPERTIES), (APPLICATION_PROPERTIES, E_APPLICATION_PROPERTIES)):
            section = find_section(sections, code)
            row[column] = -1 if section is None else section.start
        _fill_body(view, [section for section in sections if section.code in (DATA, SEQUENCE, VALUE)], row)
        table[opened * EVENT_WIDTH : (opened + 1) * EVENT_WIDTH] = array("q", row)
        opened += 1
    return opened


def _fill_annotations(data: memoryview, annotations: Section | None, row: list[int]) -> None:
    """Fill the service's names; where a name stands twice the last one that has its type counts."""
    if annotations is None:
        return
    for key, value, end in map_entries(data, annotations.value, annotations.end):
        code = data[value]
        if is_name(data, key, value, SEQUENCE_NUMBER) and code in (0x55, 0x81):
            row[E_SEQUENCE_NUMBER] = int.from_bytes(data[value + 1 : end], "big", signed=True)
        elif is_name(data, key, value, ENQUEUED_TIME) and code == 0x83:
            row[E_ENQUEUED_TIME] = int.from_bytes(data[value + 1 : end], "big", signed=True)
        elif is_name(data, key, value, OFFSET) and code in STRING:
            text = bytes(data[slice(*variable(data, value, end))])
            if 1 <= len(text) <= MOST_DIGITS and all(0x30 <= digit <= 0x39 for digit in text):
                row[E_OFFSET] = int(text)
        elif is_name(data, key, value, PARTITION_KEY) and code in STRING:
            start, stop = variable(data, value, end)
            row[E_KEY], row[E_KEY_LENGTH] = start, stop - start


def _fill_body(data: memoryview, body: list[Section], row: list[int]) -> None:
    """The bytes of a body that is one data section; of any other body only where it starts."""
    if not body:
        return
    row[E_BODY] = body[0].start
    if len(body) == 1 and body[0].code == DATA:
        start, stop = variable(data, body[0].value, body[0].end)
        row[E_BODY], row[E_BODY_LENGTH] = start, stop - start
