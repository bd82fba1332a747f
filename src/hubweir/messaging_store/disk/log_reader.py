"""Cold reads: from segment files, in pieces, away from the loop. Also the replay of a whole log.

Every batch that leaves here had both checksums verified in this read, and continues where the one before ended. What
is damaged is never returned: a read that asks for an index inside damage gets ReadDamaged, a read before it ends there.
Segments are looked up on the loop and passed in, so retention may drop one meanwhile: the file is then gone
(SegmentGone), and whoever asked finds out whether the log still counts on it.
"""

from __future__ import annotations

import errno
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
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
    B_NUMBER,
    B_POSITION,
    B_RECORDS,
    BATCH_WIDTH,
)
from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES, Damage, Piece, Place, scan
from hubweir.messaging_store.disk.segment_files import Segment, load_indexes
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Run


def name_range(first: int, end: int) -> str:
    """Records first to end, exclusive, for people; what the log notes between records takes no number."""
    return f"records {first} to {end - 1}" if end > first else f"notes of the log before record {first}"


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
            f"log {self.segment.header.log_id}: {name_range(self.start, self.resume)} are damaged in "
            f"{self.segment.path}; read on from {self.resume}",
            first_index=self.start,
            resume_index=self.resume,
        )


class SegmentGone(FileNotFoundError):
    """A segment's file is not there: retention took it meanwhile, or it is lost."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(errno.ENOENT, "no such file", segment.path)
        self.segment = segment

    def error(self, end: int) -> CorruptStore:
        """What is told when the log still counts on the file. end: index behind the last record that it held."""
        segment = self.segment
        return CorruptStore(
            f"log {segment.header.log_id}: records {segment.first_index} to {end - 1} are lost: {segment.path} "
            f"is missing; read on from {end}, or put the file back",
            first_index=segment.first_index,
            resume_index=end,
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


def replay_runs(
    files: Files,
    segments: list[Segment],
    index: int,
    *,
    limit: int,
    limit_number: int,
    on_damage: Callable[[ReadDamaged], None],
) -> Iterator[Run]:
    """Every batch from index on, control batches included; blocking.

    limit: below it lie all indexes; limit_number: and below this all batch numbers. on_damage: told of damage, in
    control batches too, before what follows it is yielded; it may raise.
    """
    try:
        for segment in segments:
            if segment.end_index is None or segment.end_index > index:
                yield from _replay(files, segment, index, _End.of(segment, limit, limit_number), on_damage)
    except SegmentGone as gone:  # blocking, so retention removes nothing that was passed in
        end = limit if gone.segment.end_index is None else gone.segment.end_index
        raise gone.error(end) from gone


@dataclass(frozen=True, slots=True)
class _End:
    """Where the part of a segment that counts ends. number: its batches reach up to it, so that some are missing when
    they do not; None when only the index is known."""

    index: int
    number: int | None

    @classmethod
    def of(cls, segment: Segment, limit: int, limit_number: int) -> _End:
        if segment.end_index is None:
            # Zero where numbers begin anew behind lost records: it says nothing about the batches that are there.
            return cls(limit, limit_number or None)
        return cls(min(limit, segment.end_index), segment.end_number)

    def is_behind(self, rows: array[int], at: int) -> bool:
        """Whether the batch of a row counts no more."""
        if self.number is not None:
            return rows[at + B_NUMBER] >= self.number
        return rows[at + B_FIRST_INDEX] + rows[at + B_COUNT] > self.index

    def is_before(self, place: Place) -> bool:
        """Whether what stands at a place counts."""
        return place.index < self.index if self.number is None else place.number < self.number

    def is_reached(self, place: Place) -> bool:
        return place.index >= self.index and place.number >= (self.number or 0)


def _replay(
    files: Files, segment: Segment, index: int, end: _End, on_damage: Callable[[ReadDamaged], None]
) -> Iterator[Run]:
    _indexes(files, segment)
    assert segment.indexes is not None
    # Any number of control batches may stand at index: begin before all of them.
    reached = start = segment.indexes.offsets.before_index(index - 1) or segment.start
    for item in _pieces(files, segment, start, PIECE_BYTES):
        if isinstance(item, Damage):
            resume = end.index if item.resume is None else item.resume.index
            is_wanted = resume > index or item.start.index >= index
            if end.is_before(item.start) and is_wanted:
                on_damage(ReadDamaged(segment, item, item.start.index, resume))
            reached = item.resume or Place(segment.end_position, end.index, 0, end.number or 0)
            continue
        rows = item.rows
        wanted = [
            at
            for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH)
            if rows[at + B_FIRST_INDEX] + max(rows[at + B_COUNT], 1) > index and not end.is_behind(rows, at)
        ]
        if wanted:
            first, last = wanted[0], wanted[-1]
            data = item.data[rows[first + B_POSITION] : rows[last + B_POSITION] + rows[last + B_LENGTH]]
            yield Run(data, rows[first + B_FIRST_INDEX], rows[last + B_FIRST_INDEX] + rows[last + B_COUNT])
        reached = item.end
        if reached.index > end.index or end.number is not None and reached.number >= end.number:
            break
    if not end.is_reached(reached):
        missing = Damage(Place(segment.end_position, reached.index, 0, reached.number), None)
        on_damage(ReadDamaged(segment, missing, reached.index, end.index))


def find_offset_in(files: Files, segments: list[Segment], offset: int, limit: int) -> int:
    """Index of the first record below limit whose offset is at least offset; limit when there is none. Blocking.

    Where damage may hold that record, the answer is the damage's first index: who reads there is told what is lost.
    """
    lost: int | None = None  # the first index of damage that nothing sound before the offset follows
    for piece, at in _batches(files, segments, limit, lambda indexes: indexes.offsets.before_offset(offset)):
        if piece is None:
            lost = at if lost is None else lost
            continue
        rows = piece.rows
        if lost is not None and rows[at + B_FIRST_OFFSET] > offset:
            return lost
        lost = None
        size = rows[at + B_POSITION] + rows[at + B_LENGTH] - rows[at + B_RECORDS]
        if rows[at + B_COUNT] and rows[at + B_FIRST_OFFSET] + size > offset:
            return rows[at + B_FIRST_INDEX] + place_of_offset(piece.data, rows[at + B_POSITION], offset)
    return limit if lost is None else lost


def place_of_offset(run: bytes | memoryview, batch_at: int, offset: int) -> int:
    """The place in its batch of the first record at or behind offset; the batch's count when there is none."""
    return find_offset(run, batch_at, offset)[1]


def find_time_in(files: Files, segments: list[Segment], time_ms: int, limit: int) -> int:
    """Index of the first record below limit enqueued at time_ms or later; limit when there is none. Blocking.

    Where damage may hold that record: as find_offset_in.
    """

    def start_of(indexes: SegmentIndexes) -> Place | None:
        index = indexes.times.before(time_ms)
        return None if index is None else indexes.offsets.before_index(index)

    lost: int | None = None
    for piece, at in _batches(files, segments, limit, start_of):
        if piece is None:
            lost = at if lost is None else lost
            continue
        rows = piece.rows
        if not rows[at + B_COUNT]:
            continue
        if rows[at + B_ENQUEUED_TIME] >= time_ms:
            return rows[at + B_FIRST_INDEX] if lost is None else lost
        lost = None
    return limit if lost is None else lost


def _batches(
    files: Files, segments: list[Segment], limit: int, start_of: Callable[[SegmentIndexes], Place | None]
) -> Iterator[tuple[Piece | None, int]]:
    """Every batch below limit: the piece that it is in, and where its row begins. Damage: None, and its first index.

    start_of: where to begin in a segment; None: at its first batch. What lies behind a segment's records is no damage.
    """
    for segment in segments:
        if segment.is_lost:
            continue
        end = limit if segment.end_index is None else min(limit, segment.end_index)
        _indexes(files, segment)
        assert segment.indexes is not None
        for item in _pieces(files, segment, start_of(segment.indexes) or segment.start, PIECE_BYTES):
            if isinstance(item, Damage):
                if item.start.index < end:
                    yield None, item.start.index
                continue
            for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH):
                if item.rows[at + B_FIRST_INDEX] >= end:
                    break
                yield item, at
            if item.end.index >= end:
                break
