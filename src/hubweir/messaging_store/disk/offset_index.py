"""Sparse index of one segment: which index and offset lie at which position of the file.

In memory: three arrays that grow together, one entry for every 64 KiB of the segment or so. On disk (`.offsets`,
written when the segment is finished): a sealed file (whole_file.py) whose body is the number of entries, 8 bytes, then
all indexes, all offsets, all positions, 8 bytes each, big-endian.

After a crash: never synced, so it may be absent, old or damaged; its checksum tells, and the log rebuilds it. An entry
that survived is only a hint: the scan that starts there verifies the batch it finds.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right

from hubweir.messaging_store.disk.batch_scan import Place
from hubweir.messaging_store.disk.whole_file import seal, unseal

ENTRY_EVERY_BYTES = 64 * 1024


class OffsetIndex:
    """Entries in the order of the file; index, offset and position rise together."""

    __slots__ = ("_indexes", "_offsets", "_positions")

    def __init__(self) -> None:
        self._indexes, self._offsets, self._positions = array("q"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._indexes)

    @property
    def next_position(self) -> int:
        """A batch at this position, or behind it, is far enough from the last entry to get one."""
        return self._positions[-1] + ENTRY_EVERY_BYTES if self._positions else 0

    def add(self, place: Place) -> None:
        """Note a place behind all noted before."""
        self._indexes.append(place.index)
        self._offsets.append(place.offset)
        self._positions.append(place.position)

    def extend(self, positions: array[int], indexes: array[int], offsets: array[int]) -> None:
        """Note many places behind all noted before, column by column."""
        self._indexes.extend(indexes)
        self._offsets.extend(offsets)
        self._positions.extend(positions)

    def before_index(self, index: int) -> Place | None:
        """The last entry at or before an index."""
        return self._entry(bisect_right(self._indexes, index) - 1)

    def before_offset(self, offset: int) -> Place | None:
        """The last entry at or before an offset."""
        return self._entry(bisect_right(self._offsets, offset) - 1)

    def last(self) -> Place | None:
        """The newest entry."""
        return self._entry(len(self._indexes) - 1)

    def _entry(self, number: int) -> Place | None:
        # The loop adds while a worker looks up: positions are added last, so what has one is whole.
        number = min(number, len(self._positions) - 1)
        if number < 0:
            return None
        return Place(self._positions[number], self._indexes[number], self._offsets[number])

    def pack(self) -> bytes:
        """The bytes of an index file."""
        return pack_arrays(self._indexes, self._offsets, self._positions)

    @classmethod
    def unpack(cls, data: bytes) -> OffsetIndex | None:
        """The index in an index file; None when the file is damaged."""
        arrays = unpack_arrays(data, 3)
        if arrays is None:
            return None
        index = cls()
        index._indexes, index._offsets, index._positions = arrays
        return index


def pack_arrays(*columns: array[int]) -> bytes:
    """A sealed file of columns of equal length."""
    body = array("q", [len(columns[0])])
    for column in columns:
        body.extend(column)
    if sys.byteorder == "little":
        body.byteswap()
    return seal(body.tobytes())


def unpack_arrays(data: bytes, count: int) -> list[array[int]] | None:
    """The columns that pack_arrays wrote; None when the file is damaged or holds another number of them."""
    body = unseal(data)
    if not body or len(body) % 8:
        return None
    values = array("q", body)
    if sys.byteorder == "little":
        values.byteswap()
    length = values[0]
    if len(values) != 1 + count * length:
        return None
    return [values[1 + column * length : 1 + (column + 1) * length] for column in range(count)]
