"""The sparse indexes of one segment: which index and offset lie at which position of its file, and which came when.

One entry for every 64 KiB of the segment or so, in both: where a batch starts, and when it was enqueued with its first
index. In memory: arrays that grow together. Enqueued times never go back inside a log, so a binary search works.

On disk (`.offsets` and `.times`, written when the segment is finished): sealed files (whole_file.py) whose body is the
number of entries, 8 bytes, then column by column, 8 bytes each, big-endian: all indexes, offsets and positions; all
times and indexes.

After a crash: never synced, so a file may be absent, old or damaged; its checksum tells, and the log rebuilds it. An
entry that survived is only a hint: the scan that starts there verifies the batch it finds.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right

from hubweir.env import Buffer, Files
from hubweir.kernels.contract import SPARSE_WIDTH, W_ENTRY_BYTES, W_NEXT_ENTRY
from hubweir.messaging_store.disk.batch_scan import Place, new_walk
from hubweir.messaging_store.disk.layout import OFFSETS_SUFFIX, TIMES_SUFFIX
from hubweir.messaging_store.disk.whole_file import seal, unseal, write_whole
from hubweir.messaging_store.record import headers_of

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
        return _pack(self._indexes, self._offsets, self._positions)

    @classmethod
    def unpack(cls, data: bytes) -> OffsetIndex | None:
        """The index in an index file; None when the file is damaged."""
        arrays = _unpack(data, 3)
        if arrays is None:
            return None
        index = cls()
        index._indexes, index._offsets, index._positions = arrays
        return index


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
        return _pack(self._times, self._indexes)

    @classmethod
    def unpack(cls, data: bytes) -> TimeIndex | None:
        """The index in an index file; None when the file is damaged."""
        arrays = _unpack(data, 2)
        if arrays is None:
            return None
        index = cls()
        index._times, index._indexes = arrays
        return index


class SegmentIndexes:
    """Both sparse indexes of one segment; a batch that gets an entry gets one in each."""

    __slots__ = ("offsets", "times")

    def __init__(self, offsets: OffsetIndex | None = None, times: TimeIndex | None = None) -> None:
        self.offsets = OffsetIndex() if offsets is None else offsets
        self.times = TimeIndex() if times is None else times

    def note(self, place: Place, time_ms: int) -> None:
        """A batch starts at this place; it gets an entry when the last one is far enough away."""
        if place.position >= self.offsets.next_position:
            self.offsets.add(place)
            self.times.add(time_ms, place.index)

    def walk(self, start: Place) -> array[int]:
        """A walk (batch_scan.py) that asks for the entries behind those that are here."""
        walk = new_walk(start)
        walk[W_NEXT_ENTRY], walk[W_ENTRY_BYTES] = self.offsets.next_position, ENTRY_EVERY_BYTES
        return walk

    def note_entries(self, entries: array[int]) -> None:
        """Take over what such a walk found: sparse index rows (kernels/contract.py)."""
        positions, indexes, offsets, times = (entries[each::SPARSE_WIDTH] for each in range(SPARSE_WIDTH))
        self.offsets.extend(positions, indexes, offsets)
        self.times.extend(times, indexes)

    def note_run(self, run: Buffer, position: int) -> None:
        """Note every batch of a completed run, which starts at a position, that is far enough from the last.

        A run may hold many batches: without entries inside, each read of its middle would begin at its start.
        """
        if position + len(run) >= self.offsets.next_position:
            for header in headers_of(run):
                place = Place(position + header.position, header.first_index, header.first_offset)
                self.note(place, header.enqueued_time_ms)

    def save(self, files: Files, folder: str, stem: str) -> None:
        """Write both files. Not synced: they can be rebuilt."""
        write_whole(files, folder, stem + OFFSETS_SUFFIX, self.offsets.pack(), durable=False)
        write_whole(files, folder, stem + TIMES_SUFFIX, self.times.pack(), durable=False)


def _pack(*columns: array[int]) -> bytes:
    """A sealed file of columns of equal length."""
    body = array("q", [len(columns[0])])
    for column in columns:
        body.extend(column)
    if sys.byteorder == "little":
        body.byteswap()
    return seal(body.tobytes())


def _unpack(data: bytes, count: int) -> list[array[int]] | None:
    """The columns that _pack wrote; None when the file is damaged or holds another number of them."""
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
