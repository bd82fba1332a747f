"""What a start makes of the files it finds in a log's folder (rule R10).

1. Files that were being written (`*.new`) are removed. Segments are put in the order of epoch and first index; each
   one supersedes what older files hold at or beyond its first index. (Damaged headers: segment_headers.py)
2. Only the newest segment is scanned, from its last saved index entry on: every older one was whole and durable
   before the next was made, and reads verify it.
3. D is the largest `durable_upto` in any sound batch of it, its own first index at least: all below was durable.
4. Damage at or after D is a torn tail: it and what follows is dropped, back to the first batch of an unfinished chain.
   Damage before D is corruption: the sound ranges stay, the rest is quarantined and reported.
5. Nothing is written into the old file. What stands at or after D was never vouched for (the page cache is no
   evidence: a sync may have failed before the process ended), so `content_to_rewrite` copies it into the first new
   segment, which becomes durable before anything of it is visible.

Memory: one piece of the file, and the sparse index. Time: one pass over the tail of one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hubweir.env import Buffer, File, Files
from hubweir.kernels.contract import (
    B_COUNT,
    B_DURABLE_UPTO,
    B_ENQUEUED_TIME,
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_FLAGS,
    B_KIND,
    B_POSITION,
    BATCH_WIDTH,
)
from hubweir.kernels.stored_batch import FLAG_CONTINUES, HEADER_SIZE, KIND_CONTROL
from hubweir.messaging_store.batch_scan import PIECE_BYTES, Damage, Piece, Place, scan
from hubweir.messaging_store.completion import last_record_offset
from hubweir.messaging_store.control_batch import CLOSED, CONTROL_IDLE_MARK, control_of
from hubweir.messaging_store.layout import UNFINISHED_SUFFIX, SegmentName, join, parse_segment_name
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import BatchHeader, read_header
from hubweir.messaging_store.segment_files import Segment, SegmentIndexes, read_saved_indexes
from hubweir.messaging_store.segment_headers import read_headers


@dataclass(slots=True)
class Recovered:
    """What a log holds. next_*: where the next record goes. vouched: the place of D in the newest segment; what stands
    between it and end must be rewritten. nonce None: there is no segment yet."""

    segments: list[Segment] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    nonce: int | None = None
    end: Place = Place(0, 0, 0)
    vouched: Place = Place(0, 0, 0)
    last_offset: int = -1
    last_time_ms: int = -1
    last_index: int = -1
    clean: bool = True
    durability: Durability = Durability.DURABLE
    alarms: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _State:
    """How far the scan is: the place behind the last batch that counts, and what was the last record there."""

    end: Place
    chain_start: Place | None = None
    last_batch: int | None = None  # position in the file of the last batch with records
    last_time_ms: int = -1
    closed: bool = False
    before_chain: tuple[int | None, int] = (None, -1)  # last_batch and last_time_ms before the open chain


def recover(files: Files, folder: str, log_id: str, *, upto: int | None = None) -> Recovered:
    """Look at a log's folder; blocking, writes nothing but the removal of unfinished files.

    upto: after a failed sync, the index below which all is known to be durable; everything from there on is dropped.
    Raises OSError, NewerFormat, and CorruptStore when not even the log's nonce can be found.
    """
    found = Recovered()
    names: list[SegmentName] = []
    for name in files.list(folder):
        if name.endswith(UNFINISHED_SUFFIX):
            files.remove(join(folder, name))
        elif (parsed := parse_segment_name(name)) is not None:
            names.append(parsed)
    names.sort(key=lambda name: (name.writer_epoch, name.first_index))
    headers = read_headers(files, folder, log_id, names)
    found.nonce = headers.nonce
    found.alarms += headers.alarms
    end_index: int | None = None
    for segment in reversed(headers.files):
        header = segment.header
        if end_index is not None and header.first_index >= end_index:
            found.superseded.append(header.name.file_name)
            continue
        found.segments.insert(0, Segment(header, folder, end_index, segment.size))
        end_index = header.first_index
    if found.segments:
        _scan_newest(files, found, upto)
    return found


def _scan_newest(files: Files, found: Recovered, upto: int | None) -> None:
    """Scan the newest segment; fill in where the log ends, D, damage and the sparse index."""
    segment = found.segments[-1]
    header = segment.header
    found.nonce, found.durability = header.nonce, header.durability
    file = files.open_to_read(segment.path)
    try:
        saved = read_saved_indexes(files, segment)
        start = saved.offsets.last() if saved is not None else None
        if saved is None or start is None or not _run_scan(file, found, segment, start, saved, upto):
            _run_scan(file, found, segment, segment.start, SegmentIndexes(), upto)
    finally:
        file.close()


def _run_scan(
    file: File, found: Recovered, segment: Segment, start: Place, indexes: SegmentIndexes, upto: int | None
) -> bool:
    """One pass from start. False: it started in the middle, and found damage there or no record: start at the front."""
    header, whole = segment.header, start == segment.start
    state = _State(start, last_time_ms=header.last_time_ms)
    vouched = header.first_index if upto is None else upto
    damages: list[tuple[Damage, _State]] = []
    stopped = False
    for item in scan(file, start, segment.end_position, header.nonce):
        if isinstance(item, Damage):
            if item.start == start and not whole:
                return False
            damages.append((item, replace(state)))
            state.chain_start = None
            if item.resume is not None:
                state.end = item.resume
            continue
        vouched, stopped = _take(item, state, vouched, upto)
        indexes.note_piece(item, upto)
        if stopped:
            break
    kept = len(damages)
    for number, (damage, before) in enumerate(damages):
        if damage.start.index >= vouched:
            state, kept, stopped = before, number, True
            break
    if not stopped and damages and damages[-1][0].resume is None:
        state = damages[-1][1]
    if state.chain_start is not None:
        state.end = state.chain_start
        state.last_batch, state.last_time_ms = state.before_chain
    if state.last_batch is None and not whole:
        return False
    segment.damage = [damage for damage, _ in damages[:kept] if damage.start.index < state.end.index]
    for damage in segment.damage:
        found.alarms.append(describe_damage(segment, damage))
    segment.end_position, segment.indexes = state.end.position, indexes
    found.end = state.end
    found.last_time_ms = state.last_time_ms
    found.last_offset, found.last_index = header.last_offset, header.last_index
    if state.last_batch is not None:
        found.last_offset, found.last_index = _last_record(file, state.last_batch)
    found.clean = state.closed
    found.vouched = _place_of(file, segment, indexes, min(vouched, state.end.index), state.end)
    return True


def _take(piece: Piece, state: _State, vouched: int, upto: int | None) -> tuple[int, bool]:
    """Move the state over the batches of a piece, up to an index; the new D, and whether it stopped there."""
    rows = piece.rows
    for at in range(0, piece.count * BATCH_WIDTH, BATCH_WIDTH):
        position = piece.start.position + rows[at + B_POSITION]
        here = Place(position, rows[at + B_FIRST_INDEX], rows[at + B_FIRST_OFFSET])
        if upto is not None and here.index >= upto:
            state.end = here
            return vouched, True
        if rows[at + B_DURABLE_UPTO] > vouched and upto is None:
            vouched = rows[at + B_DURABLE_UPTO]
        continues = bool(rows[at + B_FLAGS] & FLAG_CONTINUES)
        if continues and state.chain_start is None:
            state.chain_start, state.before_chain = here, (state.last_batch, state.last_time_ms)
        elif not continues:
            state.chain_start = None
        state.closed = False
        if rows[at + B_COUNT]:
            state.last_batch, state.last_time_ms = position, rows[at + B_ENQUEUED_TIME]
        elif rows[at + B_KIND] == KIND_CONTROL:
            control = control_of(piece.data, read_header(piece.data, rows[at + B_POSITION]))
            state.closed = control == (CONTROL_IDLE_MARK, CLOSED)
    state.end = piece.end
    return vouched, False


def _last_record(file: File, position: int) -> tuple[int, int]:
    """Offset and index of the last record of the batch at position."""
    batch: BatchHeader = read_header(file.read(position, HEADER_SIZE))
    data = file.read(position, batch.length)
    offset = last_record_offset(data, 0, batch.count, batch.first_offset, batch.records_at)
    return offset, batch.first_index + batch.count - 1


def _place_of(file: File, segment: Segment, indexes: SegmentIndexes, index: int, end: Place) -> Place:
    """The place of the first batch at or behind an index; end when there is none before it."""
    if index >= end.index:
        return end
    start = indexes.offsets.before_index(index) or segment.start
    for item in scan(file, start, end.position, segment.header.nonce):
        if isinstance(item, Piece):
            for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH):
                if item.rows[at + B_FIRST_INDEX] >= index:
                    position = item.start.position + item.rows[at + B_POSITION]
                    return Place(position, item.rows[at + B_FIRST_INDEX], item.rows[at + B_FIRST_OFFSET])
    return end


def describe_damage(segment: Segment, damage: Damage) -> str:
    """One line for the operator."""
    where = f"{segment.path} from byte {damage.start.position}"
    if damage.resume is None:
        return f"{where}: damaged from index {damage.start.index} to {segment.end_index}"
    return f"{where} to {damage.resume.position}: damaged from index {damage.start.index} to {damage.resume.index}"


def content_to_rewrite(files: Files, found: Recovered) -> Iterator[list[Buffer]]:
    """The sound batches between D and the end, byte for byte, in pieces. They were verified by the scan."""
    if found.vouched.position >= found.end.position:
        return
    file = files.open_to_read(found.segments[-1].path)
    try:
        for at in range(found.vouched.position, found.end.position, PIECE_BYTES):
            yield [file.read(at, min(PIECE_BYTES, found.end.position - at))]
    finally:
        file.close()
