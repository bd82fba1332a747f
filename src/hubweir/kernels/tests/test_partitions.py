"""Rows are grouped by partition as the service would choose it: the hash of keys, ids that were given, turns."""

from __future__ import annotations

from array import array
from types import SimpleNamespace

import pytest

from hubweir.event_hub.partition_key import partition_of_key
from hubweir.kernels.columns_contract import (
    ROWS_MALFORMED,
    ROWS_NO_PARTITION,
    ROWS_OK,
    ROWS_TWO_TARGETS,
    Variable,
)
from hubweir.kernels.tests.test_event_batches import column


def grouped(
    kernels: SimpleNamespace, keys: Variable | None, ids: Variable | None, first: int, last: int, spread: int = 0
) -> tuple[int, int, list[list[int]]]:
    """(row, status, the rows of each of four partitions)."""
    order, starts = array("q", [-1] * (last - first)), array("q", [-1] * 5)
    row, status = kernels.rows_by_partition(keys, ids, first, last, 4, spread, order, starts)
    groups = [order[starts[each] : starts[each + 1]].tolist() for each in range(4)] if status == ROWS_OK else []
    return row, status, groups


def test_rows_without_a_target_take_turns(kernels: SimpleNamespace) -> None:
    assert grouped(kernels, None, None, 0, 6) == (6, ROWS_OK, [[0, 4], [1, 5], [2], [3]])
    assert grouped(kernels, None, None, 2, 6, spread=3) == (6, ROWS_OK, [[5], [2], [3], [4]])
    nothing: list[bytes | None] = [None, b"", None, b""]
    assert grouped(kernels, column(nothing), column(nothing), 0, 4) == (4, ROWS_OK, [[0], [1], [2], [3]])


def test_rows_with_a_key_go_where_the_hub_would_put_them(kernels: SimpleNamespace) -> None:
    keys: list[bytes | None] = [b"key-%d" % (number % 7) for number in range(50)]
    row, status, groups = grouped(kernels, column(keys), None, 0, 50)
    assert (row, status) == (50, ROWS_OK)
    for partition, group in enumerate(groups):
        assert group == [place for place, key in enumerate(keys) if partition_of_key(key or b"", 4) == partition]


def test_rows_with_an_id_go_there(kernels: SimpleNamespace) -> None:
    ids: list[bytes | None] = [b"3", b"0", None, b"03", b"3", b""]
    assert grouped(kernels, None, column(ids), 0, 6) == (6, ROWS_OK, [[1], [5], [2], [0, 3, 4]])


def test_no_rows_make_empty_groups(kernels: SimpleNamespace) -> None:
    assert grouped(kernels, None, None, 3, 3) == (3, ROWS_OK, [[], [], [], []])


@pytest.mark.parametrize("wanted", [b"4", b"-1", b"x", b"1 ", b"1.0", b"0000000001", "١".encode()])
def test_an_id_that_no_partition_has_is_refused(kernels: SimpleNamespace, wanted: bytes) -> None:
    assert grouped(kernels, None, column([b"1", wanted, b"2"]), 0, 3) == (1, ROWS_NO_PARTITION, [])


def test_a_row_with_two_targets_is_refused(kernels: SimpleNamespace) -> None:
    answer = grouped(kernels, column([b"k", None, b"k"]), column([None, b"1", b"1"]), 0, 3)
    assert answer == (2, ROWS_TWO_TARGETS, [])


def test_buffers_that_lie_are_a_status_and_change_nothing(kernels: SimpleNamespace) -> None:
    order, starts = array("q", [-1] * 3), array("q", [-1] * 5)
    spoiled = (None, column([b"a", b"b"])[1], b"", 0)
    assert kernels.rows_by_partition(spoiled, None, 0, 3, 4, 0, order, starts) == (0, ROWS_MALFORMED)
    assert order.tolist() == [-1] * 3
    assert starts.tolist() == [-1] * 5
