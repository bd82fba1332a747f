"""The segments of one log: those that it counts on, the one that is written, and the files that count no more.

Used on the owner's loop only; nobody else changes it. It is what recovery.py found, and what began since.
"""

from __future__ import annotations

from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX, SegmentName
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, ActiveSegment
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes


class LogSegments:
    """kept: what the log counts on, oldest first. first_index, first_offset: where it begins; 0 before the first.

    active: the one being written, None before the first append of this open, after a failure, and when it is closed;
    active_segment: what is known of it, or of the last one. superseded: names of files that count no more.
    """

    __slots__ = ("_begun", "active", "active_segment", "first_index", "first_offset", "folder", "kept", "superseded")

    def __init__(self, folder: str, kept: list[Segment], superseded: list[str]) -> None:
        """folder: the log's."""
        self.folder = folder
        self.kept = kept
        self.superseded = superseded
        self.active: ActiveSegment | None = None
        self.active_segment: Segment | None = None
        self._begun: list[SegmentName] = []  # may be there, made by who failed: started() supersedes them
        self.first_index = self.first_offset = 0
        self._note_first()

    def name_before(self, index: int) -> SegmentName | None:
        """Which segment one that begins at this index follows."""
        return next((each.header.name for each in reversed(self.kept) if each.first_index < index), None)

    def begun(self, name: SegmentName) -> None:
        """A segment of this name is about to be made; its file may be there afterwards, whatever became of it."""
        self._begun.append(name)

    def started(self, active: ActiveSegment) -> None:
        """A new segment is durable: it supersedes what older files hold from its first index on."""
        first, own = active.header.first_index, active.header.name
        while self.kept and self.kept[-1].first_index >= first:
            old = self.kept.pop()
            if old.header.name != own:
                self.superseded.extend(old.names())
        for name in self._begun:
            if name != own:
                self.superseded += [name.file_name, name.file_name + UNFINISHED_SUFFIX]
        self._begun.clear()
        if self.kept:
            self.kept[-1].end_index = first
            self.kept[-1].end_number = active.header.first_number or None
        self.active = active
        self.active_segment = Segment(active.header, self.folder, None, active.end)
        if active.end > SEGMENT_HEADER_SIZE:  # it begins with content: replay must find that
            self.active_segment.indexes = SegmentIndexes()
            self.active_segment.indexes.note(self.active_segment.start, max(0, active.header.last_time_ms))
        self.kept.append(self.active_segment)
        self._note_first()

    def give_up(self) -> ActiveSegment | None:
        """Nothing is written to the active one any more: the next append goes into a new segment. Returns it."""
        active, self.active = self.active, None
        return active

    def drop(self, count: int) -> list[Segment]:
        """The log counts no more on the first ones, never all of them; returns these. Their files are still there."""
        gone, self.kept = self.kept[:count], self.kept[count:]
        self._note_first()
        return gone

    def take_superseded(self) -> list[str]:
        """The names of the files to remove, oldest first; whoever does not remove them puts them back."""
        names, self.superseded = self.superseded, []
        return names

    def put_back_superseded(self, names: list[str]) -> None:
        """These files are still there: remove them before the others."""
        self.superseded = names + self.superseded

    def _note_first(self) -> None:
        if self.kept:
            first = self.kept[0].header
            self.first_index, self.first_offset = first.first_index, first.first_offset
