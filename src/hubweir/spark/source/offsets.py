"""Offsets of a stream, as its checkpoint keeps them, and the end of the next micro-batch.

An offset is the next sequence number to read of every partition, as JSON: `{"0": 1250000, "1": 1249800}`. Two marks may
stand beside the numbers, of the first batch only:

| key | in | says |
|---|---|---|
| `initial` | what initialOffset gave | these numbers were resolved from the starting position and are in no log yet |
| `from` | the end of the first batch | where that batch truly starts |

Spark writes only ends into its log and asks for the initial offset a second time before it plans the first batch, and a
third time when it starts again after a crash in it. On a live hub "latest" would then be elsewhere. So the true start
travels in the end, and neither moves it.

Everything here is a pure function: a batch that is repeated gets the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hubweir.spark.errors import IllegalOffset

INITIAL, FROM = "initial", "from"
Offset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """Bounds of a partition: the oldest sequence number, and the one behind the newest. Equal: it is empty."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class EventRange:
    """Events of one partition: sequence numbers from start up to, not including, end. Travels to a task."""

    partition_id: str
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start


def plain(offset: Mapping[str, Any]) -> dict[str, int]:
    """The numbers of an offset without its marks. IllegalOffset when it is none of ours."""
    numbers = {key: value for key, value in offset.items() if key not in (INITIAL, FROM)}
    wrong = [
        key for key, value in numbers.items() if isinstance(value, bool) or not isinstance(value, int) or value < 0
    ]
    if wrong or not all(key.isdigit() for key in numbers):
        raise IllegalOffset(
            f"the checkpoint's offset {str(dict(offset))[:200]} was not written by this source: "
            "give the query another checkpoint folder"
        )
    return numbers


def initial_offset(numbers: Mapping[str, int]) -> Offset:
    """The offset that a query starts from."""
    return {**numbers, INITIAL: True}


def end_offset(start: Offset, end: Mapping[str, int]) -> Offset:
    """The end of the batch that begins at start: start itself when there is nothing in between."""
    begin = plain(start)
    if begin == end:
        return start
    return {**end, FROM: begin} if INITIAL in start else dict(end)


def batch_range(start: Offset, end: Offset) -> tuple[dict[str, int], dict[str, int]]:
    """Where a batch truly starts and ends, whatever Spark says its start is. Equal: it has no events."""
    if INITIAL in end and FROM not in end:  # an empty first batch: nothing had come yet
        return plain(end), plain(end)
    begin = end[FROM] if FROM in end and INITIAL in start else start
    return plain(begin), plain(end)


def split_by_lag(begin: Mapping[str, int], high: Mapping[str, int], limit: int | None) -> dict[str, int]:
    """The end of a batch of at most limit events: each partition gets a share by what it has, at least one.

    A partition that is ahead of high stays where it is. When there are fewer events to give than partitions that wait,
    those that wait longest get one each.
    """
    lag = {key: max(0, high[key] - begin[key]) for key in begin}
    total = sum(lag.values())
    if limit is None or total <= limit:
        return {key: begin[key] + lag[key] for key in begin}
    waiting = sorted((key for key in lag if lag[key]), key=lambda key: (-lag[key], int(key)))
    share = {key: 1 for key in waiting[:limit]}
    left, total = limit - len(share), total - len(share)
    # In whole numbers, each from what is still to give: the shares add up to the limit exactly.
    for key in share:
        more = left * (lag[key] - 1) // total if total else 0
        share[key] += more
        left, total = left - more, total - (lag[key] - 1)
    return {key: begin[key] + share.get(key, 0) for key in begin}


def ranges(begin: Mapping[str, int], end: Mapping[str, int]) -> list[EventRange]:
    """One range for each partition with events, in the order of their ids. A partition that begin does not know is read
    from its first event. IllegalOffset when a partition is missing from end, or runs backwards.
    """
    if missing := sorted(set(begin) - set(end)):
        raise IllegalOffset(f"partition {', '.join(missing)} was read before and is gone: an event hub never loses one")
    found = []
    for key in sorted(end, key=int):
        start = begin.get(key, 0)
        if start > end[key]:
            raise IllegalOffset(f"the batch of partition {key} runs backwards, from {start} to {end[key]}")
        if start < end[key]:
            found.append(EventRange(key, start, end[key]))
    return found
