"""Values out of Arrow's buffers: pyarrow makes the arrays, whole and sliced; broken ones are refused or malformed."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pyarrow as pa
import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns.arrow import TextMapColumn, VariableColumn, rows_at
from hubweir.kernels.columns_contract import MapColumn, Variable
from hubweir.kernels.messages.sections import Malformed

VALUES = [b"one", None, b"", b"four", b"x" * 300, None, b"seven", b"8", b"nine", None]
ROWS = [[("a", "1"), ("b", None)], None, [], [("c", "")], [("d", "4"), ("a", "5")]]


def variable(values: pa.Array) -> Variable:
    validity, offsets, content = values.buffers()
    return validity, offsets, content or b"", values.offset


def text_map(rows: pa.MapArray) -> MapColumn:
    """A map array with its whole children, which stay whole when the array is sliced."""
    validity, offsets, *_ = rows.buffers()
    return validity, offsets, rows.offset, variable(rows.keys), variable(rows.items)


@pytest.mark.parametrize("first", range(len(VALUES)))
def test_a_slice_of_an_array_has_the_values_that_arrow_says(first: int) -> None:
    values = pa.array(VALUES, pa.binary()).slice(first)
    column = VariableColumn(variable(values))
    assert [column[row] for row in range(len(values))] == values.to_pylist()
    for outside in (-1, len(values)):
        with pytest.raises(Malformed):
            column[outside]


def test_a_column_without_a_bitmap_has_no_nulls() -> None:
    values = pa.array([b"a", b"", b"c"], pa.binary())
    assert variable(values)[0] is None
    column = VariableColumn(variable(values))
    assert [column[row] for row in range(3)] == [b"a", b"", b"c"]


@pytest.mark.parametrize("first", range(len(ROWS)))
def test_a_slice_of_maps_has_the_entries_that_arrow_says_and_a_null_map_has_none(first: int) -> None:
    rows = pa.array(ROWS, pa.map_(pa.string(), pa.string())).slice(first)
    column = TextMapColumn(text_map(rows))
    said = [
        [(key.encode(), None if value is None else value.encode()) for key, value in row or ()]
        for row in rows.to_pylist()
    ]
    assert [column[row] for row in range(len(rows))] == said


def offsets(*numbers: int) -> bytes:
    return array("i", numbers).tobytes()


@pytest.mark.parametrize(
    "broken",
    [
        (None, offsets(0, 9), b"short", 0),  # ends behind its bytes
        (None, offsets(3, 1), b"short", 0),  # goes back
        (None, offsets(-1, 2), b"short", 0),
        (b"", offsets(0, 2), b"short", 0),  # a bitmap that ends before the row
    ],
)
def test_a_row_that_does_not_lie_in_its_buffers_is_malformed(broken: Variable) -> None:
    column = VariableColumn(broken)
    with pytest.raises(Malformed):
        column[0]


def test_a_map_entry_without_a_key_or_behind_its_children_is_malformed() -> None:
    keys, values = (None, offsets(0, 1), b"k", 0), (None, offsets(0, 1), b"v", 0)
    assert TextMapColumn((None, offsets(0, 1), 0, keys, values))[0] == [(b"k", b"v")]
    no_key = (b"\x00", offsets(0, 0), b"", 0)
    for broken in ((None, offsets(0, 1), 0, no_key, values), (None, offsets(0, 2), 0, keys, values)):
        with pytest.raises(Malformed):
            TextMapColumn(broken)[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: VariableColumn((None, b"\0\0\0", b"", 0)),  # no whole offset
        lambda: VariableColumn((None, offsets(0), b"", -1)),
        lambda: VariableColumn((None, offsets(0), b"", 2**31)),
        lambda: rows_at(None, 2, 1),
        lambda: rows_at(None, -1, 1),
        lambda: rows_at(array("q", [0, 1]), 0, 3),
    ],
)
def test_a_call_that_cannot_be_meant_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(KernelRefusal):
        make()


def test_rows_come_in_the_order_that_is_given() -> None:
    assert list(rows_at(None, 2, 5)) == [2, 3, 4]
    assert list(rows_at(array("q", [7, 5, 9, 1]), 1, 3)) == [5, 9]
    assert list(rows_at(array("q"), 0, 0)) == []
