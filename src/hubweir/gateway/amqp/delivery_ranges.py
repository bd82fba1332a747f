"""Cuts deliveries into submissions that settle alike, and joins their ids into ranges for few dispositions.

Delivery ids are serial numbers (32 bits, wrapping) of a session, which several links share: a range may only hold ids
of one link, so it ends at every gap.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from hubweir.gateway.append_queue import DeliveryRange, Submission, Submitter
from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_SETTLED, DELIVERY_WIDTH

_MASK = 0xFFFF_FFFF
_HALF = 0x8000_0000


def submissions_of(submitter: Submitter, rows: array[int], first: int, last: int) -> list[Submission]:
    """Delivery rows first to last - 1 (not empty) as submissions of one link, each of rows that settle alike.

    One look where all of them are one, as usual.
    """
    start, end = first * DELIVERY_WIDTH, last * DELIVERY_WIDTH
    settled = rows[start + D_SETTLED : end : DELIVERY_WIDTH]
    first_id, last_id = rows[start + D_DELIVERY_ID], rows[end - DELIVERY_WIDTH + D_DELIVERY_ID]
    count = last - first
    if sum(settled) in (0, count):
        size = sum(rows[start + D_LENGTH : end : DELIVERY_WIDTH])
        is_range = (last_id - first_id) & _MASK == count - 1
        ids = DeliveryRange(first_id, last_id) if is_range else rows[start + D_DELIVERY_ID : end : DELIVERY_WIDTH]
        return [Submission(submitter, ids, count, size, bool(settled[0]))]
    found: list[Submission] = []
    begin = first
    for row in range(first + 1, last + 1):
        if row == last or _breaks(rows, row):
            found += submissions_of(submitter, rows, begin, row)
            begin = row
    return found


def _breaks(rows: array[int], row: int) -> bool:
    """True when a submission cannot go on from the row before to this one."""
    at = row * DELIVERY_WIDTH
    before = at - DELIVERY_WIDTH
    follows = (rows[at + D_DELIVERY_ID] - rows[before + D_DELIVERY_ID]) & _MASK == 1
    return not follows or rows[at + D_SETTLED] != rows[before + D_SETTLED]


def ranges_of(scattered: Iterable[array[int]]) -> list[DeliveryRange]:
    """Ids in any order, each once, as ranges; no look at each where there are few gaps. See merge_ranges."""
    ids = array("q")
    for part in scattered:
        ids.extend(part)
    if not ids:
        return []
    ordered = sorted(ids)
    if ordered[-1] - ordered[0] >= _HALF:  # they wrap: the small ones are the later ones
        ordered = [one for one in ordered if one >= _HALF] + [one for one in ordered if one < _HALF]
    found: list[DeliveryRange] = []
    waiting = [(0, len(ordered) - 1)]
    while waiting:
        first, last = waiting.pop()
        if (ordered[last] - ordered[first]) & _MASK == last - first:
            found.append(DeliveryRange(ordered[first], ordered[last]))
        else:
            middle = (first + last) // 2
            waiting += (first, middle), (middle + 1, last)
    return found


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
