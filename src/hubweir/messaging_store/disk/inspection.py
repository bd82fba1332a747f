"""Look at a log from outside, while its owner may be writing it: what it holds, batch by batch, and what is damaged.

All reading is recovery's and the scan's own; nothing is locked and nothing is written (read_only_files.py). What is
seen is what stands in the files at that moment, so the newest batches may not be visible to readers yet. A segment
that retention removes meanwhile raises FileNotFoundError: look again.

Kinds of finding:

| kind        | meaning |
|-------------|---------|
| damage      | bytes that were vouched for and are no sound batch: they are never served |
| missing     | a segment that ends before the next one begins, or that is not there |
| torn tail   | bytes behind the last batch that counts: a crash in the middle of a write, dropped at the next start |
| header      | a segment's header is damaged; recovery makes it again where that is safe |
| newest      | what the store remembers of the log's newest segment is damaged or not there |
| snapshot    | a snapshot is damaged; the one before it, or a longer replay, takes its place |
| notes       | one copy of the owner's notes is damaged, or both: the file before, if there, takes their place |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hubweir.env import Files, join_path
from hubweir.kernels.contract import B_FIRST_INDEX, B_POSITION, BATCH_WIDTH
from hubweir.kernels.stored_batch import AT_RECORD_LENGTH, KIND_CONTROL, BatchHeader, read_header
from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES, Damage, Piece, Place, scan
from hubweir.messaging_store.disk.layout import (
    LOGS_FOLDER,
    NEWEST_FOLDER,
    OFFSETS_SUFFIX,
    PREVIOUS_SNAPSHOT_NAME,
    SEGMENT_SUFFIX,
    SNAPSHOT_NAME,
    TIMES_SUFFIX,
)
from hubweir.messaging_store.disk.newest_segment import load_newest
from hubweir.messaging_store.disk.notes import load_notes, note_files
from hubweir.messaging_store.disk.recovery import Recovered, numbers_used, recover
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, unpack_header
from hubweir.messaging_store.disk.segment_files import Segment, load_indexes
from hubweir.messaging_store.disk.snapshot import load_snapshot, load_snapshots
from hubweir.messaging_store.disk.whole_file import read_whole, unseal_twice
from hubweir.messaging_store.operations import operations_of
from hubweir.messaging_store.record import Producer, name_of, producer_of

_LENGTH = struct.Struct(">I")
_KNOWN_SUFFIXES = (SEGMENT_SUFFIX, OFFSETS_SUFFIX, TIMES_SUFFIX)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written. position: of its first byte in the file; text: what, and how far."""

    kind: str
    path: str
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a batch. data: its bytes, header included; valid as long as the batch is kept."""

    index: int
    offset: int
    data: memoryview


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A sound batch and where it stands: position counts in the file of segment, header.position in data."""

    segment: Segment
    position: int
    header: BatchHeader
    name: bytes
    producer: Producer | None
    data: bytes

    def records(self) -> Iterator[Record]:
        """Its records in order; none for a control batch."""
        if self.header.kind == KIND_CONTROL:
            return
        view, at = memoryview(self.data), self.header.records_at
        for place in range(self.header.count):
            (length,) = _LENGTH.unpack_from(view, at + AT_RECORD_LENGTH)
            offset = self.header.first_offset + at - self.header.records_at
            yield Record(self.header.first_index + place, offset, view[at : at + length])
            at += length


def look_at_log(files: Files, store_folder: str, log_id: str) -> Recovered:
    """What a start would make of a log. Blocking. files: ReadOnlyFiles. Raises OSError, NewerFormat, CorruptStore."""
    folder = join_path(store_folder, LOGS_FOLDER, log_id)
    used = numbers_used(load_snapshots(files, folder), load_notes(files, folder).notes.values())
    return recover(files, folder, log_id, newest=load_newest(files, store_folder, log_id), used=used)


def pieces(files: Files, segment: Segment, start: Place | None = None) -> Iterator[Piece | Damage]:
    """What stands in the part of a segment that counts, as batch_scan.scan; its last piece may reach further."""
    file = files.open_to_read(segment.path)
    try:
        for item in scan(file, start or segment.start, segment.end_position, segment.header.nonce):
            first = item.start.index
            if segment.end_index is not None and first >= segment.end_index:
                return
            yield item
    finally:
        file.close()


def batches(files: Files, segments: list[Segment], index: int = 0) -> Iterator[StoredBatch | tuple[Segment, Damage]]:
    """Every batch from the one that holds index on, and every damaged range between. Blocking."""
    for segment in segments:
        if segment.end_index is not None and segment.end_index <= index:
            continue
        if segment.is_lost:
            yield segment, Damage(segment.start, None)
            continue
        start = None
        if index > segment.first_index:
            start = (segment.indexes or load_indexes(files, segment)).offsets.before_index(index)
        for item in pieces(files, segment, start):
            if isinstance(item, Damage):
                if item.resume is None or item.resume.index > index:
                    yield segment, item
                continue
            for at in range(0, item.count * BATCH_WIDTH, BATCH_WIDTH):
                if segment.end_index is not None and item.rows[at + B_FIRST_INDEX] >= segment.end_index:
                    break
                header = read_header(item.data, item.rows[at + B_POSITION])
                if header.first_index + max(header.count, 1) > index:
                    position = item.start.position + header.position
                    named, producer = name_of(item.data, header), producer_of(item.data, header)
                    yield StoredBatch(segment, position, header, named, producer, item.data)


def operations(files: Files, found: Recovered, index: int = 0) -> Iterator[tuple[int, memoryview]]:
    """(index, bytes) of every operation record from index on; damaged ranges are stepped over. Blocking."""
    for item in batches(files, found.segments, index):
        if isinstance(item, StoredBatch):
            run = item.data[item.header.position : item.header.end]
            yield from ((at, data) for at, data in operations_of(run) if at >= index)


def newest_state(files: Files, folder: str) -> tuple[int, bytes] | None:
    """The newest snapshot that verifies: the index it covers up to, and the owner's bytes. Blocking."""
    snapshots = load_snapshots(files, folder)
    return (snapshots[0].index, snapshots[0].state) if snapshots else None


def findings(
    files: Files, folder: str, found: Recovered, on_bytes: Callable[[int], None] = lambda count: None
) -> Iterator[Finding]:
    """Everything that is wrong with a log, by a whole read of it, in the order of its files. Blocking.

    on_bytes: told how many bytes more were read.
    """
    store_folder, _, log_id = folder.rpartition(f"/{LOGS_FOLDER}/")
    if load_newest(files, store_folder, log_id) is None:
        text = "it is damaged or not there: a lost newest segment would not be missed; the next start skips numbers"
        yield Finding("newest", join_path(store_folder, NEWEST_FOLDER, log_id), 0, text)
    for name in (SNAPSHOT_NAME, PREVIOUS_SNAPSHOT_NAME):
        path = join_path(folder, name)
        if files.exists(path) and load_snapshot(files, path) is None:
            yield Finding("snapshot", path, 0, "its checksum does not fit")
    for name in note_files(files, folder):
        path = join_path(folder, name)
        data = read_whole(files, path)
        if data is None:
            continue
        body, is_whole = unseal_twice(data)
        if not is_whole:
            told = "its checksums do not fit" if body is None else "one of its two copies is damaged; the other counts"
            yield Finding("notes", path, 0, told)
    for segment in found.segments:
        if segment.is_lost:
            last = "the end" if segment.end_index is None else str(segment.end_index - 1)
            text = f"the segment is not there; records {segment.first_index} to {last} are lost"
            yield Finding("missing", segment.path, 0, text)
        else:
            yield from _findings_in(files, segment, on_bytes)
    if found.lost_from is not None and not found.segments[-1].is_lost:
        text = f"records from {found.lost_from} on are not there, though a snapshot or capture had them"
        yield Finding("missing", found.segments[-1].path, found.end.position, text)
    torn = torn_tail(files, found)
    if torn is not None:
        yield torn


def torn_tail(files: Files, found: Recovered) -> Finding | None:
    """What stands behind the last batch that counts, when it is more than space set aside. Blocking.

    An owner that writes just now looks the same: look at the log again, and see whether its end has moved.
    """
    newest = next((segment for segment in reversed(found.segments) if not segment.is_lost), None)
    if newest is None or newest is not found.segments[-1]:
        return None  # what followed the lost segment's begin was dropped long ago
    file = files.open_to_read(newest.path)
    try:
        size, end = file.size(), found.end.position
        for at in range(end, size, PIECE_BYTES):
            data = file.read(at, min(PIECE_BYTES, size - at))
            if data.count(0) != len(data):
                text = f"{size - end} bytes behind the last whole batch; the next index is {found.end.index}"
                return Finding("torn tail", newest.path, end, text)
    finally:
        file.close()
    return None


def _findings_in(files: Files, segment: Segment, on_bytes: Callable[[int], None]) -> Iterator[Finding]:
    file = files.open_to_read(segment.path)
    try:
        if unpack_header(file.read(0, SEGMENT_HEADER_SIZE)) is None:
            yield Finding("header", segment.path, 0, "the segment header's checksum does not fit")
    finally:
        file.close()
    reached = segment.start
    for item in pieces(files, segment):
        if isinstance(item, Damage):
            resume = _end_of(segment) if item.resume is None else item.resume.index
            if segment.end_index is not None:
                resume = min(resume, segment.end_index)
            if resume > item.start.index or item.resume is not None:
                text = f"no sound batch up to {_place(item.resume)}: records {item.start.index} to {resume - 1}"
                yield Finding("damage", segment.path, item.start.position, text)
            reached = item.resume or Place(segment.end_position, resume, 0)
        else:
            on_bytes(item.end.position - item.start.position)
            reached = item.end
    if segment.end_index is not None and reached.index < segment.end_index:
        text = f"the segment ends; records {reached.index} to {segment.end_index - 1} are not there"
        yield Finding("missing", segment.path, reached.position, text)


def _end_of(segment: Segment) -> int:
    """The index at which a segment ends for certain; 0 for the newest, whose end only its batches tell."""
    return 0 if segment.end_index is None else segment.end_index


def _place(resume: Place | None) -> str:
    return "the end of the segment" if resume is None else f"byte {resume.position}"


def other_files(files: Files, folder: str) -> list[str]:
    """The names in a log's folder that are no segment, index, snapshot or notes."""
    known = (SNAPSHOT_NAME, PREVIOUS_SNAPSHOT_NAME, *note_files(files, folder))
    return [name for name in files.list(folder) if not name.endswith(_KNOWN_SUFFIXES) and name not in known]
