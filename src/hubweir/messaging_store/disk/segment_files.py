"""The segments of one log as a list: which file holds which indexes, what was found damaged, where scans start.

`Segment` is what the log knows of one file; `SegmentIndexes` are its two sparse indexes, loaded when they are first
needed and rebuilt by a scan when their files are absent or damaged.
"""

from __future__ import annotations

from array import array
from contextlib import suppress
from dataclasses import dataclass, field

from hubweir.env import Buffer, Files, join_path
from hubweir.kernels.contract import (
    SPARSE_WIDTH,
    W_ENTRY_BYTES,
    W_LIMIT,
    W_NEXT_ENTRY,
)
from hubweir.messaging_store.disk.batch_scan import EVERY_INDEX, Damage, Place, Stretch, follow, new_walk
from hubweir.messaging_store.disk.layout import OFFSETS_SUFFIX, TIMES_SUFFIX
from hubweir.messaging_store.disk.offset_index import ENTRY_EVERY_BYTES, OffsetIndex
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, SegmentHeader
from hubweir.messaging_store.disk.time_index import TimeIndex
from hubweir.messaging_store.disk.whole_file import read_whole, write_whole
from hubweir.messaging_store.record import headers_of


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


@dataclass(slots=True)
class Segment:
    """One file and the indexes header.first_index .. end_index - 1 that are valid in it (None: it is the newest).

    end_position: no batch of the log lies at or beyond it. end_number: its batches have smaller numbers, control
    batches too, and reach up to it; None when that is not known. damage: ranges found unreadable, in order. is_lost:
    its file ought to be there and is not (segment_order.py).
    """

    header: SegmentHeader
    folder: str
    end_index: int | None
    end_position: int
    indexes: SegmentIndexes | None = None
    damage: list[Damage] = field(default_factory=list)
    is_lost: bool = False
    end_number: int | None = None

    @property
    def first_index(self) -> int:
        return self.header.first_index

    @property
    def path(self) -> str:
        return join_path(self.folder, self.header.name.file_name)

    @property
    def start(self) -> Place:
        """Where its first batch is."""
        return Place(SEGMENT_HEADER_SIZE, self.header.first_index, self.header.first_offset, self.header.first_number)

    def names(self) -> list[str]:
        """Every file that belongs to it."""
        stem = self.header.name.stem
        return [self.header.name.file_name, stem + OFFSETS_SUFFIX, stem + TIMES_SUFFIX]


def load_indexes(files: Files, segment: Segment) -> SegmentIndexes:
    """The indexes of a finished segment from their files, else by a scan of the segment. Blocking."""
    saved = read_saved_indexes(files, segment)
    if saved is not None:
        return saved
    built = SegmentIndexes()
    file = files.open_to_read(segment.path)
    try:
        walk = built.walk(segment.start)
        walk[W_LIMIT] = EVERY_INDEX if segment.end_index is None else segment.end_index
        for item in follow(file, walk, segment.end_position, segment.header.nonce):
            if isinstance(item, Stretch):
                built.note_entries(item.entries)
    finally:
        file.close()
    if segment.end_index is not None:
        # A full or failing disk must not stop a read. The next one builds it again.
        with suppress(OSError):
            built.save(files, segment.folder, segment.header.name.stem)
    return built


def read_saved_indexes(files: Files, segment: Segment) -> SegmentIndexes | None:
    """The indexes as their files hold them; None unless both are there and sound."""
    stem = join_path(segment.folder, segment.header.name.stem)
    try:
        offsets_data = read_whole(files, stem + OFFSETS_SUFFIX)
        times_data = read_whole(files, stem + TIMES_SUFFIX)
    except OSError:
        return None
    offsets = OffsetIndex.unpack(offsets_data) if offsets_data else None
    times = TimeIndex.unpack(times_data) if times_data else None
    return SegmentIndexes(offsets, times) if offsets is not None and times is not None else None
