"""Buffers that pyarrow takes as they are, row by row; what is no set of columns is refused and left untouched."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns.column_buffers import _MOST_GROWTH, _MOST_NAMES, ColumnBuffers
from hubweir.kernels.columns_contract import (
    ALL_COLUMNS,
    BODY_BYTES,
    BODY_OFFSETS,
    COLUMN_BODY,
    COLUMN_BUFFERS,
    COLUMN_ENQUEUED_TIME,
    COLUMN_PROPERTIES,
    COLUMN_PUBLISHER,
    COLUMN_SEQUENCE_NUMBER,
    ENQUEUED_TIMES,
    MOST_COLUMN_BYTES,
    PROPERTIES_KEY_BYTES,
    PROPERTIES_KEY_OFFSETS,
    PROPERTIES_OFFSETS,
    PROPERTIES_VALUE_BYTES,
    PROPERTIES_VALUE_OFFSETS,
    PUBLISHER_BYTES,
    PUBLISHER_OFFSETS,
    PUBLISHER_VALIDITY,
    SEQUENCE_NUMBERS,
)

MASK = 1 << COLUMN_BODY | 1 << COLUMN_SEQUENCE_NUMBER | 1 << COLUMN_PUBLISHER | 1 << COLUMN_PROPERTIES
BODIES = [b"one", b"", b"x" * 300, *(b"%d" % number for number in range(14))]
PUBLISHERS = [b"p" if number % 3 else None for number in range(len(BODIES))]
MAPS = [[(b"k%d" % number, b"v" * number)] * (number % 3) for number in range(len(BODIES))]


def empty() -> list[bytearray]:
    return [bytearray() for _ in range(COLUMN_BUFFERS)]


def fill(columns: list[bytearray], start: int, end: int, mask: int = MASK) -> None:
    """Append rows start to end of BODIES and the others, as one call of a kernel does."""
    buffers = ColumnBuffers(columns, mask, start, MOST_COLUMN_BYTES)
    for row in range(start, end):
        buffers.append_text(COLUMN_BODY, BODIES[row])
        buffers.append_number(COLUMN_SEQUENCE_NUMBER, 7 + row)
        buffers.append_text(COLUMN_PUBLISHER, PUBLISHERS[row])
        buffers.append_map(COLUMN_PROPERTIES, MAPS[row])
        buffers.rows += 1


def made(columns: list[bytearray], kind: pa.DataType, rows: int, *places: int | None) -> pa.Array:
    wrapped = [None if place is None else pa.py_buffer(bytes(columns[place])) for place in places]
    found = pa.Array.from_buffers(kind, rows, wrapped)
    found.validate(full=True)
    return found


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, len(BODIES)])
def test_rows_of_one_call_or_two_are_arrays_of_arrow(cut: int) -> None:
    """8 and 9: the bitmap of the publishers goes on in the middle of a byte, and in a fresh one."""
    columns, rows = empty(), len(BODIES)
    fill(columns, 0, cut)
    fill(columns, cut, rows)
    assert made(columns, pa.binary(), rows, None, BODY_OFFSETS, BODY_BYTES).to_pylist() == BODIES
    numbers = made(columns, pa.int64(), rows, None, SEQUENCE_NUMBERS).to_pylist()
    assert numbers == list(range(7, 7 + rows))
    names = made(columns, pa.binary(), rows, PUBLISHER_VALIDITY, PUBLISHER_OFFSETS, PUBLISHER_BYTES)
    assert names.to_pylist() == PUBLISHERS
    entries = sum(map(len, MAPS))
    keys = made(columns, pa.string(), entries, None, PROPERTIES_KEY_OFFSETS, PROPERTIES_KEY_BYTES)
    values = made(columns, pa.string(), entries, None, PROPERTIES_VALUE_OFFSETS, PROPERTIES_VALUE_BYTES)
    starts = made(columns, pa.int32(), rows + 1, None, PROPERTIES_OFFSETS)
    found = pa.MapArray.from_arrays(starts, keys, values).to_pylist()
    assert [[(key.encode(), value.encode()) for key, value in row] for row in found] == MAPS


def test_columns_that_were_not_asked_for_stay_empty() -> None:
    columns = empty()
    buffers = ColumnBuffers(columns, 1 << COLUMN_ENQUEUED_TIME, 0, MOST_COLUMN_BYTES)
    assert [buffers.has(column) for column in (COLUMN_ENQUEUED_TIME, COLUMN_BODY)] == [True, False]
    buffers.append_number(COLUMN_ENQUEUED_TIME, 5)
    assert [place for place, buffer in enumerate(columns) if buffer] == [ENQUEUED_TIMES]


def test_room_is_for_the_longest_text_that_a_row_can_become() -> None:
    columns = empty()
    fill(columns, 0, 3)
    taken = len(columns[BODY_BYTES])
    most = taken + 100 * _MOST_GROWTH + _MOST_NAMES
    assert ColumnBuffers(columns, MASK, 3, most).has_room(100)
    assert not ColumnBuffers(columns, MASK, 3, most).has_room(101)
    assert not ColumnBuffers(columns, MASK, 3, most - 1).has_room(100)
    other = 1 << COLUMN_SEQUENCE_NUMBER
    assert ColumnBuffers(columns, other, 3, _MOST_NAMES).has_room(0), "numbers have no limit of bytes"


def rows_of(columns: list[bytearray], rows: int, mask: int = MASK, most_bytes: int = MOST_COLUMN_BYTES) -> None:
    ColumnBuffers(columns, mask, rows, most_bytes)


def test_columns_that_do_not_hold_the_rows_that_are_said_are_refused_untouched() -> None:
    for place in (BODY_OFFSETS, BODY_BYTES, SEQUENCE_NUMBERS, PUBLISHER_VALIDITY, PROPERTIES_OFFSETS):
        columns = empty()
        fill(columns, 0, 9)
        columns[place] += b"\0"
        before = [bytes(buffer) for buffer in columns]
        with pytest.raises(KernelRefusal):
            rows_of(columns, 9)
        assert [bytes(buffer) for buffer in columns] == before
    columns = empty()
    fill(columns, 0, 9)
    rows_of(columns, 9)
    for wrong in (8, 10, 0):
        with pytest.raises(KernelRefusal):
            rows_of(columns, wrong)


def test_what_is_no_set_of_columns_is_refused() -> None:
    for call in (
        {"columns": empty()[1:], "rows": 0},
        {"columns": [bytearray()] * COLUMN_BUFFERS, "rows": 0},
        {"columns": empty(), "rows": -1},
        {"columns": empty(), "rows": MOST_COLUMN_BYTES + 1},
        {"columns": empty(), "rows": 0, "mask": ALL_COLUMNS + 1},
        {"columns": empty(), "rows": 0, "mask": -1},
        {"columns": empty(), "rows": 0, "most_bytes": -1},
        {"columns": empty(), "rows": 0, "most_bytes": MOST_COLUMN_BYTES + 1},
    ):
        with pytest.raises(KernelRefusal):
            rows_of(**call)  # type: ignore[arg-type]


def test_a_buffer_that_arrow_holds_stops_the_call_before_its_first_row() -> None:
    columns = empty()
    fill(columns, 0, 2)
    held = memoryview(columns[PUBLISHER_BYTES])
    with pytest.raises(BufferError):
        rows_of(columns, 2)
    rows_of(columns, 2, mask=1 << COLUMN_BODY)  # not one of these
    held.release()
    fill(columns, 2, 4)
