"""Walk the stored batches of one segment file in bounded pieces, over damage, and say what was found where.

Two walks, one law. scan gives a row for each batch: cold reads, replay. follow gives sums: recovery (the newest
segment), sparse indexes. Each batch must be sound (both CRCs, nonce) and must continue where the one before ended:
index and offset, and a batch number that is higher. So a block that landed in the wrong place is damage, although its
checksums hold. The kernel judges all that (follow_batches): nothing here is done once a batch.

Behind damage the scan looks for the next sound batch with an index not seen yet, byte by byte: the nonce is secret,
so nothing that a client sent can pose as one. Memory: one piece, or one batch when that is larger.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

from hubweir.env import File
from hubweir.errors import NewerFormat
from hubweir.kernels import follow_batches, scan_batches
from hubweir.kernels.contract import (
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_NUMBER,
    BATCH_WIDTH,
    BATCHES_LIMIT,
    BATCHES_NEWER,
    BATCHES_PARTIAL,
    SPARSE_WIDTH,
    W_CHAIN_POSITION,
    W_INDEX,
    W_LAST_BATCH,
    W_LIMIT,
    W_MARKS_FROM,
    W_NEXT_ENTRY,
    W_NUMBER,
    W_OFFSET,
    W_POSITION,
    WALK_WIDTH,
)
from hubweir.kernels.stored_batch import HEADER_SIZE, MAGIC, read_header

PIECE_BYTES = 256 * 1024
# No batch is longer: one event of the largest message there is, with room to spare. A larger length is damage.
LARGEST_BATCH_BYTES = 128 * 1024 * 1024
EVERY_INDEX = 2**63 - 1  # no batch has it, and no file a byte there
_ZEROS = bytes(PIECE_BYTES)
_ROWS = 1024
_ENTRIES = 8


@dataclass(frozen=True, slots=True)
class Place:
    """Where a batch starts: position in the file, index and offset of its first record.

    number: no batch from here on has a smaller one. It is not compared: a sparse index does not keep it, and says 0.
    """

    position: int
    index: int
    offset: int
    number: int = field(default=0, compare=False)


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
class Stretch:
    """Sound batches that follow each other, by their number. entries: those of the sparse index, as table rows."""

    data: bytes
    count: int
    start: Place
    entries: array[int]


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are no sound batch, from start to resume (None: no sound batch follows in this file)."""

    start: Place
    resume: Place | None


def new_walk(start: Place) -> array[int]:
    """A walk row (kernels/contract.py) for follow, which stands at a place and has met nothing. It has no limit, and
    asks for no entries of the sparse index."""
    walk = array("q", bytes(8 * WALK_WIDTH))
    walk[W_LIMIT] = walk[W_NEXT_ENTRY] = EVERY_INDEX
    walk[W_LAST_BATCH] = walk[W_MARKS_FROM] = -1
    _go_to(walk, start)
    return walk


def place_of(walk: array[int]) -> Place:
    """Where a walk stands."""
    return Place(walk[W_POSITION], walk[W_INDEX], walk[W_OFFSET], walk[W_NUMBER])


def _go_to(walk: array[int], place: Place) -> None:
    """Move a walk over damage: a chain that was open there has no end."""
    walk[W_POSITION], walk[W_INDEX], walk[W_OFFSET] = place.position, place.index, place.offset
    walk[W_NUMBER], walk[W_CHAIN_POSITION] = place.number, -1


def scan(
    file: File, start: Place, end_position: int, nonce: int, piece_bytes: int = PIECE_BYTES
) -> Iterator[Piece | Damage]:
    """Yield what stands in file from start to end_position. Blocking. Raises OSError, NewerFormat.

    Zeros at the end (space set aside) come out as Damage without a resume, as does a torn tail: the caller knows
    which index the file ought to reach. Nothing is yielded for a file that ends exactly behind its last batch.
    """
    walk, table = new_walk(start), array("q", bytes(8 * BATCH_WIDTH * _ROWS))
    for item in follow(file, walk, end_position, nonce, piece_bytes, table):
        if isinstance(item, Stretch):
            yield Piece(item.data, table[: item.count * BATCH_WIDTH], item.count, item.start, place_of(walk))
        else:
            yield item


def follow(
    file: File,
    walk: array[int],
    end_position: int,
    nonce: int,
    piece_bytes: int = PIECE_BYTES,
    table: array[int] | None = None,
) -> Iterator[Stretch | Damage]:
    """As scan, from where a walk stands to its limit or to end_position, without a word about each batch.

    The walk is moved on, and says all that is to be known: behind each stretch, and in front of each damage, while the
    caller has it. table: gets the batch rows of each stretch.
    """
    entries, want = array("q", bytes(8 * SPARSE_WIDTH * _ENTRIES)), piece_bytes
    while walk[W_POSITION] < end_position:
        start = place_of(walk)
        data = file.read(start.position, min(want, end_position - start.position))
        count, noted, status = follow_batches(data, nonce, walk, entries, table)
        if status == BATCHES_NEWER:
            raise NewerFormat(f"a stored batch at {walk[W_POSITION]} was written by a newer version")
        if count:
            yield Stretch(data, count, start, entries[: noted * SPARSE_WIDTH])
            want = piece_bytes
        if status == BATCHES_LIMIT:
            return
        if count:
            continue
        if status == BATCHES_PARTIAL and start.position + len(data) < end_position:
            want = _longer(data, want)
            if want:
                continue
        resume = find_sound(file, start, end_position, nonce)
        yield Damage(start, resume)
        if resume is None:
            return
        _go_to(walk, resume)
        want = piece_bytes


def _longer(data: bytes, want: int) -> int:
    """How much to read so that the batch at the start of data is whole; 0 when its length is absurd."""
    length = read_header(data).length if len(data) >= HEADER_SIZE else 2 * want
    return 0 if length > LARGEST_BATCH_BYTES or length <= want else length


def find_sound(file: File, behind: Place, end_position: int, nonce: int) -> Place | None:
    """The first sound batch at or behind a damaged place that does not repeat an index from before it."""
    position, overlap = behind.position, len(MAGIC) - 1
    while position < end_position:
        data = file.read(position, min(PIECE_BYTES, end_position - position))
        # Space that was set aside, tens of MiB of it: to compare takes a fortieth of the time of a search.
        found = -1 if data == _ZEROS[: len(data)] else data.find(MAGIC)
        while found >= 0:
            place = _sound_at(file, position + found, end_position, nonce)
            if (
                place is not None
                and place.index >= behind.index
                and place.number >= behind.number
                and (place.index, place.position) != (behind.index, behind.position)
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
    return Place(position, row[B_FIRST_INDEX], row[B_FIRST_OFFSET], row[B_NUMBER]) if count else None
