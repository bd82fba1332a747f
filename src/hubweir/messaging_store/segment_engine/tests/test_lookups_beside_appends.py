"""The loop notes a batch in the indexes of the newest segment while a worker looks something up in them.

Each test tries every place of the one where the other may come in between, and has a control arm: an index that is
filled in an order which such a look-up notices.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.messaging_store.disk.batch_scan import Place
from hubweir.messaging_store.disk.sparse_index import ENTRY_EVERY_BYTES, OffsetIndex, SegmentIndexes, TimeIndex
from hubweir.testing.interleaving import interleaved

Lookup = Callable[[SegmentIndexes], Any]


class TimesFirst(TimeIndex):
    """The control arm: what is searched is there before what it leads to."""

    __slots__ = ()

    def add(self, time_ms: int, index: int) -> None:
        self._times.append(time_ms)
        self._indexes.append(index)


class IndexesFirst(OffsetIndex):
    """The control arm for look-ups by index: an entry counts before it has an offset."""

    __slots__ = ()

    def add(self, place: Place) -> None:
        self._positions.append(place.position)
        self._indexes.append(place.index)
        self._offsets.append(place.offset)


class OffsetsFirst(OffsetIndex):
    """The control arm for look-ups by offset: an entry counts before it has an index."""

    __slots__ = ()

    def add(self, place: Place) -> None:
        self._positions.append(place.position)
        self._offsets.append(place.offset)
        self._indexes.append(place.index)


def place(number: int) -> Place:
    return Place(128 + number * ENTRY_EVERY_BYTES, 10 * number, 1000 * number)


def noted(count: int, *, offsets: type[OffsetIndex], times: type[TimeIndex]) -> SegmentIndexes:
    indexes = SegmentIndexes(offsets(), times())
    for number in range(count):
        indexes.note(place(number), 100 * number)
    return indexes


def by_time(indexes: SegmentIndexes) -> Place | None:
    """Where a search for a time begins (log_reader.py)."""
    index = indexes.times.before(1 << 60)
    return None if index is None else indexes.offsets.before_index(index)


LOOKUPS: dict[str, Lookup] = {
    "by time": by_time,
    "by index": lambda indexes: indexes.offsets.before_index(1 << 60),
    "by offset": lambda indexes: indexes.offsets.before_offset(1 << 60),
    "the newest": lambda indexes: indexes.offsets.last(),
}


def every_gap(lookup: Lookup, **kinds: Any) -> set[Place | None]:
    """What a look-up finds that runs in a gap of an append, and one that an append runs in a gap of."""
    seen = set()
    for before in (0, 3):

        def pair(before: int = before) -> tuple[Callable[[], Any], Callable[[], Any]]:
            indexes = noted(before, **kinds)
            return (lambda: indexes.note(place(before), 100 * before)), (lambda: lookup(indexes))

        seen.update(found for _, found in interleaved(pair))
        seen.update(found for found, _ in interleaved(lambda pair=pair: pair()[::-1]))  # type: ignore[misc]
    return seen


@pytest.mark.parametrize("name", LOOKUPS)
def test_a_lookup_beside_an_append_finds_the_entry_before_it_or_the_new_one(name: str) -> None:
    seen = every_gap(LOOKUPS[name], offsets=OffsetIndex, times=TimeIndex)
    assert seen == {None, place(0), place(2), place(3)}


def test_control_times_that_are_there_before_their_indexes_are_noticed() -> None:
    with pytest.raises(IndexError):
        every_gap(by_time, offsets=OffsetIndex, times=TimesFirst)


@pytest.mark.parametrize(
    "name, kind", [("by index", IndexesFirst), ("by offset", OffsetsFirst), ("the newest", IndexesFirst)]
)
def test_control_an_entry_that_counts_before_it_is_whole_is_noticed(name: str, kind: type[OffsetIndex]) -> None:
    with pytest.raises(IndexError):
        every_gap(LOOKUPS[name], offsets=kind, times=TimeIndex)


def test_a_thread_that_looks_up_all_the_time_finds_nothing_wrong() -> None:
    """The same without tracing, in real threads: whatever the interpreter does, for as long as 50,000 appends take."""
    indexes = noted(1, offsets=OffsetIndex, times=TimeIndex)
    wrong: list[object] = []
    over = threading.Event()

    def look() -> None:
        newest = -1
        while not over.is_set() and not wrong:
            try:
                found = [lookup(indexes) for lookup in LOOKUPS.values()]
            except Exception as fault:
                wrong.append(fault)
                return
            if any(each is None or each.index * 100 != each.offset for each in found) or found[0].index < newest:
                wrong.append(found)
            newest = found[0].index

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=look)
    thread.start()
    try:
        for number in range(1, 50_000):
            indexes.note(place(number), 100 * number)
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not wrong
