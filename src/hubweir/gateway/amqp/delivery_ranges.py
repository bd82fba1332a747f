"""Stretches of delivery ids that can be settled with one disposition.

Delivery ids are serial numbers (32 bits, wrapping) of a session, which several links share: a range may only hold ids
of one link, so it ends at every gap.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_SETTLED, DELIVERY_WIDTH

_MASK = 0xFFFF_FFFF
_HALF = 0x8000_0000


@dataclass(frozen=True, slots=True)
class DeliveryRange:
    """Deliveries first_id to last_id, both included."""

    first_id: int
    last_id: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows of consecutive ids that settle alike: how many deliveries, how many bytes of payload."""

    ids: DeliveryRange
    deliveries: int
    size_bytes: int
    settled: bool


def stretches(rows: array[int], first: int, last: int) -> list[Stretch]:
    """Cut delivery rows first to last - 1 (not empty) into stretches. One look where all of them are one, as usual."""
    start, end = first * DELIVERY_WIDTH, last * DELIVERY_WIDTH
    settled = rows[start + D_SETTLED : end : DELIVERY_WIDTH]
    first_id, last_id = rows[start + D_DELIVERY_ID], rows[end - DELIVERY_WIDTH + D_DELIVERY_ID]
    count = last - first
    if (last_id - first_id) & _MASK == count - 1 and sum(settled) in (0, count):
        size = sum(rows[start + D_LENGTH : end : DELIVERY_WIDTH])
        return [Stretch(DeliveryRange(first_id, last_id), count, size, bool(settled[0]))]
    found: list[Stretch] = []
    begin = first
    for row in range(first + 1, last + 1):
        if row == last or _breaks(rows, row):
            found += stretches(rows, begin, row)
            begin = row
    return found


def _breaks(rows: array[int], row: int) -> bool:
    """True when a stretch cannot go on from the row before to this one."""
    at = row * DELIVERY_WIDTH
    before = at - DELIVERY_WIDTH
    follows = (rows[at + D_DELIVERY_ID] - rows[before + D_DELIVERY_ID]) & _MASK == 1
    return not follows or rows[at + D_SETTLED] != rows[before + D_SETTLED]


def merge_ranges(ranges: Iterable[DeliveryRange]) -> list[DeliveryRange]:
    """The same ids in as few ranges as possible, in serial order. All lie within half of the number space."""
    waiting = list(ranges)
    if len(waiting) < 2:
        return waiting
    # Serial order around any member: everything alive lies within half of the space (serial number arithmetic).
    origin = (waiting[0].first_id - _HALF) & _MASK
    waiting.sort(key=lambda span: (span.first_id - origin) & _MASK)
    merged = [waiting[0]]
    for span in waiting[1:]:
        if (span.first_id - merged[-1].last_id) & _MASK == 1:
            merged[-1] = DeliveryRange(merged[-1].first_id, span.last_id)
        else:
            merged.append(span)
    return merged
