"""Cold reads: from segment files, in pieces, away from the loop. Also the blocking replay of a whole log.

Every batch that leaves here had both checksums verified in this read, and continues where the one before ended. What
is damaged is never returned: a read that asks for an index inside damage gets ReadDamaged, a read before it ends there.
Segments are looked up on the loop and passed in, so retention may drop one meanwhile: the file is then gone
(SegmentGone), and whoever asked finds out whether the log still counts on it.
"""

from __future__ import annotations

import errno
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from hubweir.env import Files
from hubweir.errors import CorruptStore
from hubweir.kernels import find_offset
from hubweir.kernels.contract import (
    B_COUNT,
    B_ENQUEUED_TIME,
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_LENGTH,
    B_POSITION,
    B_RECORDS,
    BATCH_WIDTH,
)
from hubweir.messaging_store.batch_scan import PIECE_BYTES, Damage, Piece, Place, scan
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.segment_files import Segment, load_indexes


@dataclass(frozen=True, slots=True)
class ReadDamaged:
    """The index asked for lies in damage. start, resume: first and next index of the damaged range."""

    segment: Segment
    damage: Damage
    start: int
    resume: int

    def error(self) -> CorruptStore:
        """What the reader is told: which records, in which file, and where to read on."""
        return CorruptStore(
            f"log {self.segment.header.log_id}: records {self.start} to {self.resume - 1} are damaged in "
            f"{self.segment.path}; read on from {self.resume}",
            resume_index=self.resume,
        )


class SegmentGone(FileNotFoundError):
    """A segment's file is not there: retention took it meanwhile, or it is lost."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(errno.ENOENT, "no such file", segment.path)
        self.segment = segment

    def error(self) -> CorruptStore:
        """What is told when the log still counts on the file."""
        segment = self.segment
        last = "the end" if segment.end_index is None else str(segment.end_index - 1)
        behind = "" if segment.end_index is None else f"; read on from {segment.end_index}, or put the file back"
        return CorruptStore(
            f"log {segment.header.log_id}: records {segment.first_index} to {last} are lost: {segment.path} "
            f"is missing{behind}",
            resume_index=segment.end_index,
        )


def segment_of(segments: list[Segment], index: int) -> int:
    """Number of the segment that holds an index; the first one for a smaller index."""
    return max(0, bisect_right(segments, index, key=lambda segment: segment.first_index) - 1)


def _pieces(files: Files, segment: Segment, start: Place, piece_bytes: int) -> Iterator[Piece | Damage]:
    try:
        file = files.open_to_read(segment.path)
        try:
            yield from scan(file, start, segment.end_position, segment.header.nonce, piece_bytes)
        finally:
            file.close()
    except FileNotFoundError as error:  # by a read too: descriptors are closed and opened again on demand
        raise SegmentGone(segment) from error


def _indexes(files: Files, segment: Segment) -> None:
    if segment.indexes is None:
        try:
            segment.indexes = load_indexes(files, segment)
        except FileNotFoundError as error:
            raise SegmentGone(segment) from error


def read_run(files: Files, segments: list[Segment], index: int, limit: int, max_bytes: int) -> Run | ReadDamaged:
    """Batches from the one that holds index on, all below limit; blocking. The empty Run when there is none.

    segments: in order, the first one holds index. Raises OSError, NewerFormat.
    """
    for segment in segments:
        end = limit if segment.end_index is None else min(limit, segment.end_index)
        if index >= end:
            continue
        _indexes(files, segment)
        assert segment.indexes is not None
        start = segment.indexes.offsets.before_index(index) or segment.start
        answer = _read_in(files, segment, start, index, end, max_bytes)
        if answer is not None:
            return answer
    return Run(b"", limit, limit)


def _read_in(
    files: Files, segment: Segment, start: Place, index: int, end: int, max_bytes: int
) -> Run | ReadDamaged | None:
    """As read_run, in one segment; None when nothing in it lies between index and end."""
    reached = start.index
    for item in _pieces(files, segment, start, max(PIECE_BYTES, max_bytes)):
        if isinstance(item, Damage):
            resume = end if item.resume is None else min(item.resume.index, end)
            if item.start.index >= end:
                return None
            if index < resume:
                return ReadDamaged(segment, item, item.start.index, resume)
            reached = resume
            continue
        run = _cut(item, index, end, max_bytes)
        if run is not None:
            return run
        reached = item.end.index
        if reached >= end:
            return None
    if reached < end:
        missing = Damage(Place(segment.end_position, reached, 0), None)
        return ReadDamaged(segment, missing, reached, end)
    return None


def _cut(piece: Piece, index: int, end: int, max_bytes: int) -> Run | None:
    """The part of a piece from index on, at least one batch, up to max_bytes; None when it has none below end."""
    rows = piece.rows
    first = last = -1
    for at in range(0, piece.count * BATCH_WIDTH, BATCH_WIDTH):
        if rows[at + B_FIRST_INDEX] >= end:
            break
        if first < 0 and rows[at + B_FIRST_INDEX] + rows[at + B_COUNT] <= index:
            continue
        stop = rows[at + B_POSITION] + rows[at + B_LENGTH]
        if first >= 0 and stop - rows[first + B_POSITION] > max_bytes:
            break
        if first < 0:
            if not rows[at + B_COUNT]:
                continue
            first = at
        if rows[at + B_COUNT]:
            last = at
    if first < 0:
        return None
    data = memoryview(piece.data)[rows[first + B_POSITION] : rows[last + B_POSITION] + rows[last + B_LENGTH]]
    if 2 * len(data) < len(piece.data):
        data = memoryview(bytes(data))  # a short run must not hold the whole piece for as long as it is kept
    return Run(data, rows[first + B_FIRST_INDEX], rows[last + B_FIRST_INDEX] + rows[last + B_COUNT])


def replay_runs(files: Files, segments: list[Segment], index: int, limit: int) -> Iterator[Run]:
    """Every batch below limit from index on, control batches included; blocking. CorruptStore at damage."""
    try:
        yield from _replay(files, segments, index, limit)
    except SegmentGone as gone:  # blocking, so retention removes nothing that was passed in
        raise gone.error() from gone


def _replay(files: Files, segments: list[Segment], index: int, limit: int) -> Iterator[Run]:
    for segment in segments:
        end = limit if segment.end_index is None else min(limit, segment.end_index)
        if segment.end_index is not None and segment.end_index <= index:
            continue
        _indexes(files, segment)
        assert segment.indexes is not None
        # Any number of control batches may stand at index: begin before all of them.
        start = segment.indexes.offsets.before_index(index - 1) or segment.start
        reached = start.index
        for item in _pieces(files, segment, start, PIECE_BYTES):
            if isinstance(item, Damage):
                resume = end if item.resume is None else item.resume.index
                if item.start.index < end and resume > index:
                    raise ReadDamaged(segment, item, item.start.index, resume).error()
                reached = resume
                continue
            rows = item.rows
            wanted = [
                at
                for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH)
                if rows[at + B_FIRST_INDEX] + rows[at + B_COUNT] > index
                and rows[at + B_FIRST_INDEX] + rows[at + B_COUNT] <= end
                or not rows[at + B_COUNT]
                and index <= rows[at + B_FIRST_INDEX] <= end
            ]
            if wanted:
                first, last = wanted[0], wanted[-1]
                data = item.data[rows[first + B_POSITION] : rows[last + B_POSITION] + rows[last + B_LENGTH]]
                yield Run(data, rows[first + B_FIRST_INDEX], rows[last + B_FIRST_INDEX] + rows[last + B_COUNT])
            reached = item.end.index
            if reached > end:
                break
        if reached < end:
            missing = Damage(Place(segment.end_position, reached, 0), None)
            raise ReadDamaged(segment, missing, reached, end).error()


def find_offset_in(files: Files, segments: list[Segment], offset: int, limit: int) -> int:
    """Index of the first record below limit whose offset is at least offset; limit when there is none. Blocking.

    Damaged ranges are stepped over: the answer is then the first sound record behind them.
    """
    for segment in segments:
        end = limit if segment.end_index is None else min(limit, segment.end_index)
        _indexes(files, segment)
        assert segment.indexes is not None
        start = segment.indexes.offsets.before_offset(offset) or segment.start
        for item in _pieces(files, segment, start, PIECE_BYTES):
            if isinstance(item, Damage):
                continue
            rows = item.rows
            for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH):
                if rows[at + B_FIRST_INDEX] >= end:
                    break
                size = rows[at + B_POSITION] + rows[at + B_LENGTH] - rows[at + B_RECORDS]
                if rows[at + B_COUNT] and rows[at + B_FIRST_OFFSET] + size > offset:
                    return rows[at + B_FIRST_INDEX] + place_of_offset(item.data, rows[at + B_POSITION], offset)
            if item.end.index >= end:
                break
    return limit


def place_of_offset(run: bytes | memoryview, batch_at: int, offset: int) -> int:
    """The place in its batch of the first record at or behind offset; the batch's count when there is none."""
    return find_offset(run, batch_at, offset)[1]


def find_time_in(files: Files, segments: list[Segment], time_ms: int, limit: int) -> int:
    """Index of the first record below limit enqueued at time_ms or later; limit when there is none. Blocking."""
    for segment in segments:
        end = limit if segment.end_index is None else min(limit, segment.end_index)
        _indexes(files, segment)
        assert segment.indexes is not None
        index = segment.indexes.times.before(time_ms)
        start = None if index is None else segment.indexes.offsets.before_index(index)
        for item in _pieces(files, segment, start or segment.start, PIECE_BYTES):
            if isinstance(item, Damage):
                continue
            rows = item.rows
            for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH):
                if rows[at + B_FIRST_INDEX] >= end:
                    break
                if rows[at + B_COUNT] and rows[at + B_ENQUEUED_TIME] >= time_ms:
                    return rows[at + B_FIRST_INDEX]
            if item.end.index >= end:
                break
    return limit
