"""Reads what a batch says of its messages, in plain Python: read_fields."""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import islice

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import open_batch, walk_records
from hubweir.kernels.contract import Readable
from hubweir.kernels.messages.sections import (
    BINARY,
    LIST,
    MAP,
    STRING,
    Malformed,
    compound,
    is_name,
    map_entries,
    read_section,
    skip_value,
    variable,
)
from hubweir.kernels.queue_contract import (
    I_ID,
    I_ID_LENGTH,
    I_KEY,
    I_KEY_LENGTH,
    I_SCHEDULED,
    I_SESSION,
    I_SESSION_LENGTH,
    I_TTL,
    INCOMING_WIDTH,
)
from hubweir.kernels.stored_batch import (
    ABSENT,
    AT_HEADER_END,
    AT_MESSAGE_ANNOTATIONS,
    AT_PROPERTIES,
    KIND_EVENTS,
    RECORD_HEADER_SIZE,
)

NULL = 0x40
TTL_FIELD, ID_FIELD, SESSION_FIELD = 2, 0, 10
SCHEDULED_TIME, PARTITION_KEY = b"x-opt-scheduled-enqueue-time", b"x-opt-partition-key"


def read_fields(run: Readable, batch_at: int, table: array[int]) -> int:
    """One incoming row for each record; see queue_contract.py."""
    view = memoryview(run)
    batch = open_batch(view, batch_at)
    if batch.kind != KIND_EVENTS:
        raise KernelRefusal(f"the batch at {batch_at} holds no messages")
    room, rows = len(table) // INCOMING_WIDTH, 0
    for ordinal, at, end in islice(walk_records(view, batch), room):
        row = [ordinal, at, end - at, *[-1] * (INCOMING_WIDTH - 3)]
        for read in (_read_header, _read_properties, _read_annotations):
            with suppress(Malformed):
                read(view, at, end, row)
        table[ordinal * INCOMING_WIDTH : (ordinal + 1) * INCOMING_WIDTH] = array("q", row)
        rows += 1
    return rows


def _word(data: memoryview, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _section_end(at: int, end: int, place: int) -> int:
    """Where the section at `place` of the message stands in data; Malformed when that is not in the record."""
    if place >= end - at - RECORD_HEADER_SIZE:
        raise Malformed
    return at + RECORD_HEADER_SIZE + place


def _field(data: memoryview, at: int, end: int, wanted: int) -> tuple[int, int]:
    """Where the wanted field of the list at `at` starts and ends; Malformed when it has none."""
    if data[at] not in LIST:
        raise Malformed  # the record names a section of another kind
    count, field, stop = compound(data, at, end)
    if wanted >= count:
        raise Malformed
    for _ in range(wanted):
        field = skip_value(data, field, stop)
    return field, skip_value(data, field, stop)


def _read_header(data: memoryview, at: int, end: int, row: list[int]) -> None:
    header_end = _word(data, at + AT_HEADER_END)
    if not 0 < header_end <= end - at - RECORD_HEADER_SIZE:
        return
    # A header section may stand behind others: its end is all that the record tells. It nearly always stands first.
    section_at, stop = at + RECORD_HEADER_SIZE, at + RECORD_HEADER_SIZE + header_end
    section = read_section(data, section_at, stop)
    while section.end < stop:
        section = read_section(data, section.end, stop)
    field, behind = _field(data, section.value, section.end, TTL_FIELD)
    if data[field] in (0x43, 0x52, 0x70):
        row[I_TTL] = int.from_bytes(data[field + 1 : behind], "big")


def _read_properties(data: memoryview, at: int, end: int, row: list[int]) -> None:
    place = _word(data, at + AT_PROPERTIES)
    if place == ABSENT:
        return
    section = read_section(data, _section_end(at, end, place), end)
    field, behind = _field(data, section.value, section.end, ID_FIELD)
    if data[field] not in (NULL, 0x00):
        row[I_ID], row[I_ID_LENGTH] = field, behind - field
    field, behind = _field(data, section.value, section.end, SESSION_FIELD)
    if data[field] in STRING:
        start, stop = variable(data, field, behind)
        row[I_SESSION], row[I_SESSION_LENGTH] = start, stop - start


def _read_annotations(data: memoryview, at: int, end: int, row: list[int]) -> None:
    """Where a name stands twice the last one that has its type counts."""
    place = _word(data, at + AT_MESSAGE_ANNOTATIONS)
    if place == ABSENT:
        return
    section = read_section(data, _section_end(at, end, place), end)
    if data[section.value] not in MAP:
        raise Malformed
    for key, value, behind in map_entries(data, section.value, section.end):
        if data[value] == 0x83 and is_name(data, key, value, SCHEDULED_TIME):
            row[I_SCHEDULED] = int.from_bytes(data[value + 1 : behind], "big", signed=True)
        elif data[value] in (*STRING, *BINARY) and is_name(data, key, value, PARTITION_KEY):
            start, stop = variable(data, value, behind)
            row[I_KEY], row[I_KEY_LENGTH] = start, stop - start
