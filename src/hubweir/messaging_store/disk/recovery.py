"""Recovers a log from the files that a start finds in its folder (rule R10).

1. Segments are put in order, lost ones among them (segment_order.py; damaged headers: segment_headers.py).
2. Only the newest segment is scanned, from its last saved index entry on: every older one was whole and durable
   before the next was made, and reads verify it.
3. D is the largest `durable_upto` in any sound batch of it, its own first number at least: every batch with a smaller
   number was durable. Control batches have numbers as others have.
4. Damage at or after D is a torn tail: it and what follows is dropped, back to the first batch of an unfinished chain.
   Damage before D is corruption: the sound ranges stay, the rest is quarantined and reported.
5. Nothing is written into the old file. What stands at or after D was never vouched for (the page cache is no
   evidence: a sync may have failed before the process ended), so `content_to_rewrite` copies it into the first new
   segment, which becomes durable before anything of it is visible. Marks alone say nothing that is needed: when only
   such stand there, they are left where they are, and their numbers are used again.
6. When the newest segment is lost, or somebody durably noted a number that the log does not reach, the log goes on
   behind every number that can have been used (promise P4): readers are refused what lies between, by name, and an
   alarm tells it.

Memory: one piece of the file, and the sparse index. Time: one pass over the tail of one file.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from hubweir.env import Buffer, File, Files, join_path
from hubweir.kernels.contract import (
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_NUMBER,
    B_POSITION,
    BATCH_WIDTH,
    W_BEFORE_BATCH,
    W_BEFORE_TIME,
    W_CHAIN_INDEX,
    W_CHAIN_NUMBER,
    W_CHAIN_OFFSET,
    W_CHAIN_POSITION,
    W_DURABLE_UPTO,
    W_FIRST_NUMBER,
    W_IS_CLOSED,
    W_LAST_BATCH,
    W_LAST_TIME,
    W_LIMIT,
    W_MARKS_FROM,
)
from hubweir.kernels.stored_batch import HEADER_SIZE, BatchHeader, read_header
from hubweir.messaging_store.completion import last_record_offset
from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES, Damage, Piece, Place, follow, place_of, scan
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX, parse_segment_name
from hubweir.messaging_store.disk.newest_segment import NewestSegment
from hubweir.messaging_store.disk.segment_files import Segment, read_saved_indexes
from hubweir.messaging_store.disk.segment_headers import read_headers
from hubweir.messaging_store.disk.segment_order import arrange, order
from hubweir.messaging_store.disk.sparse_index import SegmentIndexes
from hubweir.messaging_store.log import Durability, Note, Snapshot

# After an unclean stop a relaxed log skips this many indexes and offset bytes: more than can have been shown and lost,
# since at most 16 MiB are visible and not synced, and a record has at least 4 bytes. (Promise P4)
SKIPPED_NUMBERS = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class UsedNumbers:
    """Somebody noted durably that the log held every index and offset below these."""

    index: int = 0
    offset: int = 0

    def or_more(self, other: UsedNumbers) -> UsedNumbers:
        """The higher of both."""
        return UsedNumbers(max(self.index, other.index), max(self.offset, other.offset))


NOTHING_USED = UsedNumbers()


def numbers_used(snapshots: Iterable[Snapshot], notes: Iterable[Note]) -> UsedNumbers:
    """What the owner's durable state says was used: it was saved behind these records, so the log held them."""
    used = NOTHING_USED
    for snapshot in snapshots:
        used = used.or_more(UsedNumbers(snapshot.index, snapshot.offset))
    for note in notes:
        used = used.or_more(UsedNumbers(note.index, note.offset))
    return used


EVERY_NUMBER = 2**63  # no batch has it


@dataclass(slots=True)
class Recovered:
    """What a log holds. end: where the next record goes; its position is that of the newest segment's end. vouched: the
    place of D in the newest segment; what stands between it and end must be rewritten. nonce None: there is no segment
    yet. damaged_headers, lost: one text each. lost_from: the records from this index on are lost."""

    segments: list[Segment] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    nonce: int | None = None
    end: Place = Place(0, 0, 0)
    vouched: Place = Place(0, 0, 0)
    last_offset: int = -1
    last_time_ms: int = -1
    last_index: int = -1
    clean: bool = True
    needs_rewrite: bool = False
    durability: Durability = Durability.DURABLE
    damaged_headers: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    lost_from: int | None = None

    def findings(self) -> list[str]:
        """All damage that is known, one line each."""
        ranges = [(segment, damage) for segment in self.segments for damage in segment.damage]
        ends = [self.end.index if damage.resume is None else damage.resume.index for _, damage in ranges]
        told = zip(ranges, ends, strict=True)
        return (
            self.damaged_headers
            + self.lost
            + [
                f"{place_of_damage(segment, damage)}: records {damage.start.index} to {end - 1}"
                for (segment, damage), end in told
            ]
        )


def remove_unfinished(files: Files, folder: str) -> None:
    """Remove what was being written when a process ended. Blocking; raises OSError.

    For the first opening in a process only: later on such a file is somebody's who writes it now.
    """
    for name in files.list(folder):
        if name.endswith(UNFINISHED_SUFFIX):
            files.remove(join_path(folder, name))


def recover(
    files: Files,
    folder: str,
    log_id: str,
    *,
    newest: NewestSegment | None = None,
    used: UsedNumbers = NOTHING_USED,
) -> Recovered:
    """Look at a log's folder; blocking, writes nothing.

    newest: what the store remembers of the log; None: nothing is concluded from it. used: see UsedNumbers.
    Raises OSError, NewerFormat, and CorruptStore when not even the log's nonce can be found.
    """
    found = Recovered()
    names = [parsed for parsed in map(parse_segment_name, files.list(folder)) if parsed is not None]
    names.sort(key=order)
    headers = read_headers(files, folder, log_id, names)
    found.nonce = headers.nonce
    found.damaged_headers += headers.damaged
    arranged = arrange(headers.files, folder, names, log_id=log_id, nonce=headers.nonce, newest=newest)
    found.segments, found.superseded = arranged.segments, arranged.superseded
    found.lost += [_describe_lost(segment) for segment in found.segments[:-1] if segment.is_lost]
    for older, newer in pairwise(found.segments):
        older.end_number = newer.header.first_number or None
    if found.segments:
        _scan_newest(files, found)
        _go_on_behind_lost(found, newest, used)
    return found


def _scan_newest(files: Files, found: Recovered) -> None:
    """Scan the newest segment that is there; fill in where the log ends, D, damage and the sparse index."""
    segment = next((each for each in reversed(found.segments) if not each.is_lost), None)
    if segment is None:
        return
    header = segment.header
    found.nonce, found.durability = header.nonce, header.durability
    file = files.open_to_read(segment.path)
    try:
        saved = read_saved_indexes(files, segment)
        start = saved.offsets.last() if saved is not None else None
        if saved is None or start is None or not _run_scan(file, found, segment, start, saved):
            _run_scan(file, found, segment, segment.start, SegmentIndexes())
    finally:
        file.close()


def _go_on_behind_lost(found: Recovered, newest: NewestSegment | None, used: UsedNumbers) -> None:
    """Move the end behind every number that can have been used, when records are lost at the end."""
    last, end = found.segments[-1], found.end
    reach = SKIPPED_NUMBERS if found.durability is Durability.RELAXED and not found.clean else 0
    if last.is_lost:
        assert newest is not None
        lost_from, why = last.first_index, f"the segment {last.path}, the newest, is lost"
        last.header = replace(last.header, first_offset=end.offset, last_time_ms=found.last_time_ms)
    elif used.index > end.index + reach:
        lost_from, why = end.index, f"{last.path} ends before record {used.index - 1}, which was read or saved"
    else:
        return
    behind = used
    if newest is not None and newest.had_segments:
        behind = used.or_more(UsedNumbers(newest.index_limit, newest.offset_limit))
    else:
        behind = UsedNumbers(used.index + SKIPPED_NUMBERS, used.offset + SKIPPED_NUMBERS)
    found.lost_from = lost_from
    behind = behind.or_more(UsedNumbers(end.index, end.offset))
    found.lost.append(
        f"{why}: records from {lost_from} on cannot be read, and the next one is {behind.index}; put the file back "
        "from a backup while the service is stopped"
    )
    # What is there was durable before what is lost: it needs no rewriting, and the file that is put back goes on there.
    # How many batches are lost is not known either: their numbers begin anew, which the next segment tells by a zero.
    found.end = found.vouched = Place(end.position, behind.index, behind.offset)
    found.clean, found.needs_rewrite = True, False


def _describe_lost(segment: Segment) -> str:
    return (
        f"the segment {segment.path} is lost: records {segment.first_index} to {(segment.end_index or 0) - 1} cannot "
        "be read; put the file back from a backup while the service is stopped"
    )


def _run_scan(file: File, found: Recovered, segment: Segment, start: Place, indexes: SegmentIndexes) -> bool:
    """One pass from start. False: it started in the middle, and found damage there or no record: start at the front."""
    header, whole = segment.header, start == segment.start
    walk = indexes.walk(start)
    walk[W_LAST_TIME], walk[W_DURABLE_UPTO] = header.last_time_ms, header.first_number
    if segment.end_index is not None:
        walk[W_LIMIT] = segment.end_index
    pieces: list[Place] = []
    damages: list[tuple[Damage, array[int]]] = []
    for item in follow(file, walk, segment.end_position, header.nonce):
        if isinstance(item, Damage):
            if item.start == start and not whole:
                return False
            damages.append((item, walk[:]))
        else:
            at = item.start
            pieces.append(Place(at.position, at.index, at.offset, walk[W_FIRST_NUMBER]))
            indexes.note_entries(item.entries)
    # With an end, a lost segment follows: all below was durable before that was made, and what lies behind it went.
    vouched = walk[W_DURABLE_UPTO] if segment.end_index is None else EVERY_NUMBER
    kept = next((i for i, (damage, _) in enumerate(damages) if damage.start.number >= vouched), len(damages))
    if kept < len(damages):
        walk = damages[kept][1]
    end, last_batch, last_time_ms = place_of(walk), walk[W_LAST_BATCH], walk[W_LAST_TIME]
    if walk[W_CHAIN_POSITION] >= 0:
        end = Place(walk[W_CHAIN_POSITION], walk[W_CHAIN_INDEX], walk[W_CHAIN_OFFSET], walk[W_CHAIN_NUMBER])
        last_batch, last_time_ms = walk[W_BEFORE_BATCH], walk[W_BEFORE_TIME]
    if not whole and (last_batch < 0 or vouched < pieces[0].number):
        return False
    segment.damage = [damage for damage, _ in damages[:kept] if damage.start.number < end.number]
    segment.end_position, segment.indexes = end.position, indexes
    found.end, found.last_time_ms = end, last_time_ms
    found.last_offset, found.last_index = header.last_offset, header.last_index
    if last_batch >= 0:
        found.last_offset, found.last_index = _last_record(file, last_batch)
    found.clean = bool(walk[W_IS_CLOSED])
    found.vouched = _place_of(file, segment, pieces, vouched, end)
    is_marks = 0 <= walk[W_MARKS_FROM] <= found.vouched.position
    found.needs_rewrite = found.vouched.position < end.position and not is_marks
    return True


def _last_record(file: File, position: int) -> tuple[int, int]:
    """Offset and index of the last record of the batch at position."""
    batch: BatchHeader = read_header(file.read(position, HEADER_SIZE))
    data = file.read(position, batch.length)
    offset = last_record_offset(data, 0, batch.count, batch.first_offset, batch.records_at)
    return offset, batch.first_index + batch.count - 1


def _place_of(file: File, segment: Segment, pieces: Sequence[Place], number: int, end: Place) -> Place:
    """The place of the first batch with this number or a higher one; end when there is none before it.

    pieces: where the sound batches that were scanned begin, in order, some way apart.
    """
    at = max(0, bisect_right(pieces, number, key=lambda place: place.number) - 1)
    start = Place(pieces[at].position, pieces[at].index, pieces[at].offset) if pieces else end
    for item in scan(file, start, end.position, segment.header.nonce):
        if isinstance(item, Piece) and item.end.number > number:
            rows = item.rows
            row = bisect_left(rows[B_NUMBER : item.count * BATCH_WIDTH : BATCH_WIDTH], number) * BATCH_WIDTH
            position = item.start.position + rows[row + B_POSITION]
            return Place(position, rows[row + B_FIRST_INDEX], rows[row + B_FIRST_OFFSET], rows[row + B_NUMBER])
    return end


def place_of_damage(segment: Segment, damage: Damage) -> str:
    """Where it is, for the operator."""
    where = f"{segment.path} is damaged from byte {damage.start.position}"
    return where if damage.resume is None else f"{where} to {damage.resume.position}"


def content_to_rewrite(files: Files, found: Recovered) -> Iterator[list[Buffer]]:
    """The sound batches between D and the end, byte for byte, in pieces. They were verified by the scan."""
    if not found.needs_rewrite:
        return
    file = files.open_to_read(found.segments[-1].path)
    try:
        for at in range(found.vouched.position, found.end.position, PIECE_BYTES):
            yield [file.read(at, min(PIECE_BYTES, found.end.position - at))]
    finally:
        file.close()
