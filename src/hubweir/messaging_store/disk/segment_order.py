"""The segments that count, in order, from the files that a start finds; and those that ought to be there and are not.

Segments are put in the order of epoch and first index; each one supersedes what older files hold at or beyond its
first index. A file that is lost is missed in two ways: every segment names the one before it, and the store remembers
the newest one of each log (newest_segment.py). A lost one keeps its place: what it superseded does not come back to
life, its range is refused to readers, and its numbers are not used again.

Retention takes the oldest files only, so one that is named by the oldest that is there was not lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hubweir.messaging_store.disk.layout import SegmentName
from hubweir.messaging_store.disk.newest_segment import NewestSegment
from hubweir.messaging_store.disk.segment import SegmentHeader, bare_header
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.disk.segment_headers import SegmentFile


@dataclass(slots=True)
class Arranged:
    """segments: those that count, oldest first, lost ones among them. superseded: names of files that do not."""

    segments: list[Segment] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)


def arrange(
    files: Sequence[SegmentFile],
    folder: str,
    names: Sequence[SegmentName],
    *,
    log_id: str,
    nonce: int | None,
    newest: NewestSegment | None,
) -> Arranged:
    """files: the usable ones of names, both in order. newest: what the store remembers, None when it is not asked."""
    known, lost = list(files), set[SegmentName]()
    missing = _newest_missing(names, newest)
    while True:
        if missing is not None:
            lost.add(missing)
            found = SegmentFile(bare_header(log_id, nonce or 0, missing), 0)
            known = sorted([*known, found], key=lambda file: order(file.header.name))
        arranged = _live(known, folder, lost)
        missing = _missing_between(arranged.segments, {*names, *lost})
        if missing is None:
            return _with_bounds_of_lost(arranged)


def order(name: SegmentName) -> tuple[int, int]:
    """Later ones supersede earlier ones."""
    return name.writer_epoch, name.first_index


def _newest_missing(names: Sequence[SegmentName], newest: NewestSegment | None) -> SegmentName | None:
    """The segment that the store remembers as the newest, when neither it nor a newer one is there."""
    if newest is None or not newest.had_segments or any(order(name) >= order(newest.name) for name in names):
        return None
    return newest.name


def _missing_between(segments: Sequence[Segment], known: set[SegmentName]) -> SegmentName | None:
    """A segment that one of these names as the one before it, behind the oldest, and that is not known."""
    for segment in segments[1:]:
        previous = segment.header.previous
        if previous is not None and previous not in known:
            return previous
    return None


def _live(files: Sequence[SegmentFile], folder: str, lost: set[SegmentName]) -> Arranged:
    """Cut each where a later one begins; what is cut whole is superseded."""
    arranged, end_index = Arranged(), None
    for file in reversed(files):
        header = file.header
        if end_index is not None and header.first_index >= end_index:
            if header.name not in lost:
                arranged.superseded.append(header.name.file_name)
            continue
        arranged.segments.insert(0, Segment(header, folder, end_index, file.size, is_lost=header.name in lost))
        end_index = header.first_index
    return arranged


def _with_bounds_of_lost(arranged: Arranged) -> Arranged:
    """Offset and time where a lost segment begins are not known: those of its end are never too early."""
    following: SegmentHeader | None = None
    for segment in reversed(arranged.segments):
        if segment.is_lost and following is not None:
            segment.header = replace(
                segment.header, first_offset=following.first_offset, last_time_ms=following.last_time_ms
            )
        following = segment.header
    return arranged
