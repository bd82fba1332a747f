"""The segments of one log as a list: which file holds which indexes, what was found damaged, where scans start.

`Segment` is what the log knows of one file. Its sparse indexes are loaded when they are first needed, and rebuilt by a
scan when their files are absent or damaged.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from hubweir.env import Files, join_path
from hubweir.kernels.contract import (
    W_LIMIT,
)
from hubweir.messaging_store.disk.batch_scan import EVERY_INDEX, Damage, Place, Stretch, follow
from hubweir.messaging_store.disk.layout import OFFSETS_SUFFIX, TIMES_SUFFIX
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, SegmentHeader
from hubweir.messaging_store.disk.sparse_index import OffsetIndex, SegmentIndexes, TimeIndex
from hubweir.messaging_store.disk.whole_file import read_whole


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
