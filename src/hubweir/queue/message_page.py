"""A page of messages: their rows, and what is known of all of them together."""

from __future__ import annotations

from array import array

from hubweir.kernels import clear_marks, pack_rows
from hubweir.kernels.queue_contract import (
    ACTIVE,
    DEFERRED,
    QUEUE_WIDTH,
    SCHEDULED,
    STATE_BITS,
    SUB_QUEUE_BITS,
    SUB_QUEUE_SHIFT,
    T_ACTIVE,
    T_DEFERRED,
    T_SCHEDULED,
)

SUB_QUEUES = 3
NEVER = 2**62  # of times


class Page:
    """PAGE_ROWS messages from the count `first` on, or fewer in the newest page.

    live: how many are not gone. ready_from: by sub-queue, no row before it is ready. listed: by sub-queue, whether its
    heap has the page. due_ms: by state, nothing in it is to be activated (SCHEDULED), or expires (ACTIVE), before;
    NEVER. packed: as pack_rows wrote it; None: it changed.
    """

    __slots__ = ("due_ms", "first", "listed", "live", "packed", "ready_from", "rows")

    def __init__(self, first: int, rows: array[int]) -> None:
        self.first = first
        self.rows = rows
        self.live = 0
        self.ready_from = [0] * SUB_QUEUES
        self.listed = [False] * SUB_QUEUES
        self.due_ms = {ACTIVE: NEVER, SCHEDULED: NEVER}
        self.packed: bytes | None = None


def packed(rows: array[int]) -> bytes:
    """Rows of a page without marks, as few bytes; changes rows."""
    clear_marks(rows)
    out = bytearray()
    pack_rows(rows, QUEUE_WIDTH, out)
    return bytes(out)


def kind_of(bits: int) -> int:
    """The column of a tally row for a message with this M_STATE."""
    state, sub_queue = bits & STATE_BITS, (bits & SUB_QUEUE_BITS) >> SUB_QUEUE_SHIFT
    if state == DEFERRED and not sub_queue:
        return T_DEFERRED
    return T_SCHEDULED if state == SCHEDULED else T_ACTIVE + sub_queue
