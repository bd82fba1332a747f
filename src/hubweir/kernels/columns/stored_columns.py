"""Stored events as columns, in plain Python: stored_columns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from hubweir.errors import KernelRefusal
from hubweir.kernels.batches.batches import open_batch, record_end
from hubweir.kernels.buffers.tables import MASK_64, signed
from hubweir.kernels.columns.column_buffers import ColumnBuffers, Entry
from hubweir.kernels.columns.event_columns import MOST_TIME_MS, SERVICE_NAMES, append_row
from hubweir.kernels.columns.text import body_of, entries_before_break, property_fields, text_of, utf8
from hubweir.kernels.columns_contract import (
    COLUMN_BODY,
    COLUMN_PARTITION_KEY,
    COLUMN_PROPERTIES,
    COLUMN_SYSTEM_PROPERTIES,
    COLUMNS_FULL,
    COLUMNS_MALFORMED,
    COLUMNS_OK,
    COLUMNS_UNTIL,
    MOST_COLUMN_BYTES,
)
from hubweir.kernels.contract import B_COUNT, B_POSITION, BATCH_WIDTH, Readable
from hubweir.kernels.frames.deliver import PARTITION_KEY, section_at
from hubweir.kernels.messages.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    STRING,
    Malformed,
    Section,
    is_name,
    read_message,
    variable,
)
from hubweir.kernels.stored_batch import (
    AT_APPLICATION_PROPERTIES,
    AT_BODY,
    AT_MESSAGE_ANNOTATIONS,
    AT_PROPERTIES,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    KIND_EVENTS,
    RECORD_HEADER_SIZE,
    BatchHeader,
)


def stored_columns(
    data: Readable,
    batches: array[int],
    first_row: int,
    last_row: int,
    expected: int,
    until: int,
    mask: int,
    rows: int,
    columns: list[bytearray],
    most_bytes: int = MOST_COLUMN_BYTES,
) -> tuple[int, int, int, int, int]:
    """Append the events of stored batches to columns; see columns_contract.py."""
    view = memoryview(data)
    positions, counts = batches[B_POSITION::BATCH_WIDTH], batches[B_COUNT::BATCH_WIDTH]
    if not 0 <= first_row <= last_row <= sum(counts):
        raise KernelRefusal(f"rows {first_row} to {last_row} do not lie in batches of {sum(counts)} events")
    buffers = ColumnBuffers(columns, mask, rows, most_bytes)
    row, first, last, gap, base = first_row, -1, -1, -1, 0
    for position, count in zip(positions, counts, strict=True):
        if row >= last_row:
            break
        try:
            batch = open_batch(view, position)
            if batch.kind != KIND_EVENTS or abs(batch.enqueued_time_ms) > MOST_TIME_MS:
                raise Malformed
            at = batch.records_at
            for ordinal in range(min(count, last_row - base) if row < base + count else 0):
                end = record_end(view, at, batch)
                if base + ordinal == row:
                    number = signed(batch.first_index + ordinal)
                    event = _Event(view, batch, at, end, buffers)
                    if until >= 0 and number >= until:
                        return row, first, last, gap, COLUMNS_UNTIL
                    if not buffers.has_room(end - at + batch.name_length):
                        return row, first, last, gap, COLUMNS_FULL
                    if gap < 0 and expected >= 0 and number != expected:
                        gap = row
                    first, last, expected = (number if row == first_row else first), number, signed(number + 1)
                    event.append(number)
                    row += 1
                at = end
        except (KernelRefusal, Malformed):
            return row, first, last, gap, COLUMNS_MALFORMED
        base += count
    return row, first, last, gap, COLUMNS_OK


class _Event:
    """One stored event; Malformed when a section that a column needs is not where its record says."""

    def __init__(self, data: memoryview, batch: BatchHeader, at: int, end: int, buffers: ColumnBuffers) -> None:
        self._data, self._batch, self._at, self._buffers = data, batch, at, buffers
        self._named = bool(batch.name_length and batch.flags & (FLAG_NAME_IS_KEY | FLAG_NAME_IS_PUBLISHER))

        def section(field: int, code: int, *wanted: int) -> Section | None:
            return section_at(data, at, field, code, end) if any(map(buffers.has, wanted)) else None

        key_columns = () if self._named else (COLUMN_PARTITION_KEY,)
        self._annotations = section(AT_MESSAGE_ANNOTATIONS, MESSAGE_ANNOTATIONS, COLUMN_SYSTEM_PROPERTIES, *key_columns)
        self._properties = section(AT_PROPERTIES, PROPERTIES, COLUMN_SYSTEM_PROPERTIES)
        self._application = section(AT_APPLICATION_PROPERTIES, APPLICATION_PROPERTIES, COLUMN_PROPERTIES)
        self._body = self._read_body(end) if buffers.has(COLUMN_BODY) else None

    def append(self, number: int) -> None:
        """Append its row."""
        buffers, batch = self._buffers, self._batch
        offset = b"%d" % ((batch.first_offset + self._at - batch.records_at) & MASK_64)
        key = publisher = None
        if self._named:
            key = utf8(bytes(self._data[batch.name_at : batch.name_at + batch.name_length]))
            publisher = key if batch.flags & FLAG_NAME_IS_PUBLISHER else None
        elif buffers.has(COLUMN_PARTITION_KEY):
            key = self._own_key()
        append_row(buffers, number, offset, batch.enqueued_time_ms * 1000, key, publisher)
        if buffers.has(COLUMN_BODY):
            buffers.append_text(COLUMN_BODY, self._body)
        if buffers.has(COLUMN_PROPERTIES):
            buffers.append_map(COLUMN_PROPERTIES, self._entries(self._application))
        if buffers.has(COLUMN_SYSTEM_PROPERTIES):
            buffers.append_map(COLUMN_SYSTEM_PROPERTIES, self._system_properties())
        buffers.rows += 1

    def _read_body(self, end: int) -> bytes | None:
        try:
            plain = section_at(self._data, self._at, AT_BODY, DATA, end)
        except Malformed:
            plain = None
        if plain is not None and plain.end == end:
            return bytes(self._data[slice(*variable(self._data, plain.value, end))])
        return body_of(self._data, read_message(self._data, self._at + RECORD_HEADER_SIZE, end))

    def _own_key(self) -> bytes | None:
        """The sender's: the last one that is a string; an empty one is none."""
        key = b""
        for name, value, end in self._walked(self._annotations):
            if self._data[value] in STRING and is_name(self._data, name, value, PARTITION_KEY):
                key = utf8(bytes(self._data[slice(*variable(self._data, value, end))]))
        return key or None

    def _walked(self, section: Section | None) -> Iterator[tuple[int, int, int]]:
        if section is not None:
            yield from entries_before_break(self._data, section.value, section.end)

    def _entries(self, section: Section | None) -> Iterator[Entry]:
        for key, value, end in self._walked(section):
            yield text_of(self._data, key, value), text_of(self._data, value, end)

    def _system_properties(self) -> Iterator[Entry]:
        for key, value, end in self._walked(self._annotations):
            if not any(is_name(self._data, key, value, name) for name in SERVICE_NAMES):
                yield text_of(self._data, key, value), text_of(self._data, value, end)
        if self._properties is not None:
            for name, start, stop in property_fields(self._data, self._properties.value, self._properties.end):
                yield name, text_of(self._data, start, stop)
