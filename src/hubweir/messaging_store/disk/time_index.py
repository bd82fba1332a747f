"""Sparse index of one segment: which index was enqueued when.

One entry where offset_index.py has one: the enqueued time of that batch and its first index. Enqueued times never go
back inside a log, so a binary search works. On disk (`.times`): a sealed file with all times, then all indexes.

After a crash: as offset_index.py; rebuilt from the log.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from hubweir.messaging_store.disk.offset_index import pack_arrays, unpack_arrays


class TimeIndex:
    """Entries in the order of the log."""

    __slots__ = ("_indexes", "_times")

    def __init__(self) -> None:
        self._times, self._indexes = array("q"), array("q")

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time_ms: int, index: int) -> None:
        """Note the enqueued time of the batch that starts with index."""
        self._indexes.append(index)
        self._times.append(time_ms)

    def extend(self, times_ms: array[int], indexes: array[int]) -> None:
        """Note the enqueued times of many batches, and which index each starts with."""
        self._indexes.extend(indexes)
        self._times.extend(times_ms)

    def before(self, time_ms: int) -> int | None:
        """Index of the last noted batch that was enqueued earlier than time_ms; None when there is none."""
        # The loop adds while a worker looks up: times are searched and added last, so what has one is whole.
        number = bisect_left(self._times, time_ms) - 1
        return self._indexes[number] if number >= 0 else None

    def pack(self) -> bytes:
        """The bytes of an index file."""
        return pack_arrays(self._times, self._indexes)

    @classmethod
    def unpack(cls, data: bytes) -> TimeIndex | None:
        """The index in an index file; None when the file is damaged."""
        arrays = unpack_arrays(data, 2)
        if arrays is None:
            return None
        index = cls()
        index._times, index._indexes = arrays
        return index
