"""Walk the stored batches of one segment file in bounded pieces, over damage, and say what was found where.

Three users: recovery (the newest segment), cold reads, replay. Each batch must be sound (both CRCs, nonce) and must
continue where the one before ended: index and offset. So a block that landed in the wrong place is damage, although
its checksums hold.

Behind damage the scan looks for the next sound batch with an index not seen yet, byte by byte: the nonce is secret,
so nothing that a client sent can pose as one. Memory: one piece, or one batch when that is larger.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from hubweir.env import File
from hubweir.errors import NewerFormat
from hubweir.kernels import scan_batches
from hubweir.kernels.contract import (
    B_COUNT,
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_KIND,
    B_LENGTH,
    B_POSITION,
    B_RECORDS,
    BATCH_WIDTH,
    BATCHES_NEWER,
    BATCHES_PARTIAL,
)
from hubweir.kernels.stored_batch import HEADER_SIZE, KIND_CONTROL, MAGIC
from hubweir.messaging_store.completion import end_of_batch
from hubweir.messaging_store.record import read_header

PIECE_BYTES = 256 * 1024
# No batch is longer: one event of the largest message there is, with room to spare. A larger length is damage.
LARGEST_BATCH_BYTES = 128 * 1024 * 1024
_ROWS = 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch starts: position in the file, index and offset of its first record."""

    position: int
    index: int
    offset: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Sound batches that follow each other. rows: a batch table (kernels/contract.py) with count rows; their
    positions count from the start of data, which lies at start.position of the file. end: behind the last one."""

    data: bytes
    rows: array[int]
    count: int
    start: Place
    end: Place


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no sound batch, from start to resume (None: no sound batch follows in this file)."""

    start: Place
    resume: Place | None


def scan(
    file: File, start: Place, end_position: int, nonce: int, piece_bytes: int = PIECE_BYTES
) -> Iterator[Piece | Damage]:
    """Yield what stands in file from start to end_position. Blocking. Raises OSError, NewerFormat.

    Zeros at the end (space set aside) come out as Damage without a resume, as does a torn tail: the caller knows
    which index the file ought to reach. Nothing is yielded for a file that ends exactly behind its last batch.
    """
    at, want = start, piece_bytes
    while at.position < end_position:
        data = file.read(at.position, min(want, end_position - at.position))
        rows = array("q", bytes(8 * BATCH_WIDTH * _ROWS))
        count, position, status = scan_batches(data, 0, len(data), nonce, rows)
        if status == BATCHES_NEWER:
            raise NewerFormat(f"a stored batch at {at.position + position} was written by a newer version")
        taken, end = _continuing(data, rows, count, at)
        if taken:
            yield Piece(data, rows, taken, at, end)
            at, want = end, piece_bytes
            if taken == count:
                continue
        elif count == 0 and status == BATCHES_PARTIAL and at.position + len(data) < end_position:
            want = _longer(data, want)
            if want:
                continue
        resume = find_sound(file, at, end_position, nonce)
        yield Damage(at, resume)
        if resume is None:
            return
        at, want = resume, piece_bytes


def _longer(data: bytes, want: int) -> int:
    """How much to read so that the batch at the start of data is whole; 0 when its length is absurd."""
    length = read_header(data).length if len(data) >= HEADER_SIZE else 2 * want
    return 0 if length > LARGEST_BATCH_BYTES or length <= want else length


def _continuing(data: bytes, rows: array[int], count: int, start: Place) -> tuple[int, Place]:
    """How many of the rows continue each other from start on, and the place behind them."""
    index, offset, position = start.index, start.offset, 0
    for row in range(count):
        at = row * BATCH_WIDTH
        if rows[at + B_FIRST_INDEX] != index or rows[at + B_FIRST_OFFSET] != offset:
            return row, Place(start.position + position, index, offset)
        if rows[at + B_KIND] == KIND_CONTROL:
            index, offset = end_of_batch(data, read_header(data, rows[at + B_POSITION]))
        else:
            index += rows[at + B_COUNT]
            offset += rows[at + B_POSITION] + rows[at + B_LENGTH] - rows[at + B_RECORDS]
        position = rows[at + B_POSITION] + rows[at + B_LENGTH]
    return count, Place(start.position + position, index, offset)


def find_sound(file: File, behind: Place, end_position: int, nonce: int) -> Place | None:
    """The first sound batch at or behind a damaged place that does not repeat an index from before it."""
    position, overlap = behind.position, len(MAGIC) - 1
    while position < end_position:
        data = file.read(position, min(PIECE_BYTES, end_position - position))
        found = data.find(MAGIC)
        while found >= 0:
            place = _sound_at(file, position + found, end_position, nonce)
            if (
                place is not None
                and place.index >= behind.index
                and (place.index, place.position)
                != (
                    behind.index,
                    behind.position,
                )
            ):
                return place
            found = data.find(MAGIC, found + 1)
        if len(data) <= overlap:
            return None
        position += len(data) - overlap
    return None


def _sound_at(file: File, position: int, end_position: int, nonce: int) -> Place | None:
    """The batch at position, if it is whole, sound and of this log."""
    head = file.read(position, HEADER_SIZE)
    if len(head) < HEADER_SIZE:
        return None
    header = read_header(head)
    if header.nonce != nonce or header.length > min(end_position - position, LARGEST_BATCH_BYTES):
        return None
    data = head + file.read(position + HEADER_SIZE, header.length - HEADER_SIZE)
    row = array("q", bytes(8 * BATCH_WIDTH))
    count, _, _ = scan_batches(data, 0, len(data), nonce, row)
    return Place(position, row[B_FIRST_INDEX], row[B_FIRST_OFFSET]) if count else None
