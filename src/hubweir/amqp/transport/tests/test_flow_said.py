"""A flow's row says each attribute by its column, and what was left out is None."""

from __future__ import annotations

from array import array

from hubweir.amqp.transport.flow_said import FlowSaid, flow_said
from hubweir.kernels.contract import (
    C_CREDIT,
    C_DELIVERY_COUNT,
    C_DRAIN,
    C_ECHO,
    C_HANDLE,
    C_NEXT_INCOMING,
    C_WINDOW,
    FLOW_WIDTH,
)


def rows(*said: dict[int, int]) -> array[int]:
    made = array("q", [-1] * FLOW_WIDTH * len(said))
    for row, columns in enumerate(said):
        for column, value in columns.items():
            made[row * FLOW_WIDTH + column] = value
    return made


def test_each_column_is_its_attribute() -> None:
    columns = {
        C_NEXT_INCOMING: 1, C_WINDOW: 2, C_HANDLE: 3, C_DELIVERY_COUNT: 4, C_CREDIT: 5, C_DRAIN: 1, C_ECHO: 0,
    }  # fmt: skip
    assert flow_said(rows(columns), 0) == FlowSaid(1, 2, 3, 4, 5, True, False)
    assert flow_said(rows({**columns, C_DRAIN: 0, C_ECHO: 1}), 0) == FlowSaid(1, 2, 3, 4, 5, False, True)


def test_what_is_left_out_is_none_and_nothing_else_is() -> None:
    said = flow_said(rows({C_WINDOW: 7}), 0)
    assert said == FlowSaid(None, 7, None, None, None, False, False)
    zeros = flow_said(rows(dict.fromkeys((C_NEXT_INCOMING, C_WINDOW, C_HANDLE, C_DELIVERY_COUNT, C_CREDIT), 0)), 0)
    assert zeros == FlowSaid(0, 0, 0, 0, 0, False, False)


def test_a_row_is_read_where_it_stands() -> None:
    of_two = rows({C_WINDOW: 1, C_CREDIT: 10}, {C_WINDOW: 2, C_CREDIT: 20})
    assert [flow_said(of_two, row).link_credit for row in (0, 1)] == [10, 20]
