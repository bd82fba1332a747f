"""A flow in usual form, read from its row: as many attributes of Flow as anybody here asks for.

Receivers of many links grant credit in each turn; a whole performative for each would cost ten times as much.
"""

from __future__ import annotations

from array import array

from msgspec import Struct

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


class FlowSaid(Struct, frozen=True, gc=False):
    """See Flow, of which each attribute has the meaning."""

    next_incoming_id: int | None
    incoming_window: int
    handle: int | None
    delivery_count: int | None
    link_credit: int | None
    drain: bool
    echo: bool


def flow_said(rows: array[int], row: int) -> FlowSaid:
    """What a flow row says (kernels/contract.py, C_…)."""
    said = rows[row * FLOW_WIDTH : (row + 1) * FLOW_WIDTH]
    next_incoming_id, handle = said[C_NEXT_INCOMING], said[C_HANDLE]
    delivery_count, credit = said[C_DELIVERY_COUNT], said[C_CREDIT]
    return FlowSaid(
        None if next_incoming_id < 0 else next_incoming_id,
        said[C_WINDOW],
        None if handle < 0 else handle,
        None if delivery_count < 0 else delivery_count,
        None if credit < 0 else credit,
        said[C_DRAIN] == 1,
        said[C_ECHO] == 1,
    )
