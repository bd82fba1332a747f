"""The headers of the segments that a start finds; damaged ones are made again from the first batch, where that is safe.

A header says no more than its file's name, the log's nonce and where its first batch begins, and that batch says the
same: no client's byte ever stands there. When both are damaged, the segment's range is still known from its
neighbours, unless it is the newest: then nothing can be proved, and the log does not open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hubweir.env import Files, join_path
from hubweir.errors import CorruptStore
from hubweir.kernels.stored_batch import HEADER_SIZE, read_header
from hubweir.messaging_store.disk.batch_scan import PIECE_BYTES, Piece, Place, scan
from hubweir.messaging_store.disk.layout import SegmentName
from hubweir.messaging_store.disk.segment import SEGMENT_HEADER_SIZE, SegmentHeader, bare_header, unpack_header
from hubweir.messaging_store.log import Durability


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment's header, and how many bytes its file has, space kept ahead included."""

    header: SegmentHeader
    size: int


@dataclass(frozen=True, slots=True)
class SegmentHeaders:
    """files: in the order of the names that were asked for. nonce: the log's, None when there is no segment.

    damaged: what was found damaged, one text each.
    """

    files: list[SegmentFile]
    nonce: int | None
    damaged: list[str]


def read_headers(files: Files, folder: str, log_id: str, names: Sequence[SegmentName]) -> SegmentHeaders:
    """The segments that are usable. names: oldest first. Blocking, writes nothing.

    Raises OSError, NewerFormat, and CorruptStore when a damaged header cannot be made again and is the newest, or when
    no header at all tells the log's nonce.
    """
    found: list[SegmentFile] = []
    damaged: list[int] = []
    for number, name in enumerate(names):
        header, size = _read(files, join_path(folder, name.file_name))
        if header is None or header.log_id != log_id or header.name != name:
            damaged.append(number)
            header = bare_header(log_id, 0, name)
        found.append(SegmentFile(header, size))
    nonce = next((each.header.nonce for number, each in enumerate(found) if number not in damaged), None)
    told: list[str] = []
    for number in reversed(damaged):
        segment = found[number]
        path = join_path(folder, names[number].file_name)
        rebuilt = _rebuilt(files, path, segment, nonce)
        if rebuilt is not None:
            told.append(f"{path}: the segment header is damaged; rebuilt from the batch behind it")
            found[number] = SegmentFile(rebuilt, segment.size)
            nonce = rebuilt.nonce
        elif segment.header.first_index == 0 and len(names) == 1 and not _holds_anything(files, path, segment.size):
            told.append(f"{path}: the segment header is damaged; the log was empty")
            found.pop(number)
        elif number < len(found) - 1:
            assert nonce is not None  # the newest one tells it, or is refused
            # Its range is known from its neighbours; reads there find nothing sound and say so.
            told.append(f"{path}: the segment header and the batch behind it are damaged")
            # Offset and time where it begins are not known: those of its end are never too early. (segment_order.py)
            end = found[number + 1].header
            known = replace(segment.header, nonce=nonce, first_offset=end.first_offset, last_time_ms=end.last_time_ms)
            found[number] = SegmentFile(known, segment.size)
        else:
            raise CorruptStore(
                f"{path}: the newest segment's header and first batch are damaged; nothing can be proved"
            )
    return SegmentHeaders(found, nonce, told)


def _read(files: Files, path: str) -> tuple[SegmentHeader | None, int]:
    """The header, None when it is damaged, and the file's size."""
    file = files.open_to_read(path)
    try:
        return unpack_header(file.read(0, SEGMENT_HEADER_SIZE)), file.size()
    finally:
        file.close()


def _rebuilt(files: Files, path: str, segment: SegmentFile, nonce: int | None) -> SegmentHeader | None:
    """The header as the first batch implies it; None when that is unsound, or of another log."""
    file = files.open_to_read(path)
    try:
        head = file.read(SEGMENT_HEADER_SIZE, HEADER_SIZE)
        if len(head) < HEADER_SIZE:
            return None
        batch = read_header(head)
        if (nonce is not None and batch.nonce != nonce) or batch.first_index != segment.header.first_index:
            return None
        start = Place(SEGMENT_HEADER_SIZE, batch.first_index, batch.first_offset)
        first = next(scan(file, start, segment.size, batch.nonce), None)
    finally:
        file.close()
    if batch.nonce == 0 or not isinstance(first, Piece):
        return None
    # The mode is not known: RELAXED is the careful guess, since numbers are then skipped after an unclean stop.
    return replace(segment.header, nonce=batch.nonce, first_offset=batch.first_offset, durability=Durability.RELAXED)


def _holds_anything(files: Files, path: str, size: int) -> bool:
    """Whether any byte behind the header is not zero."""
    file = files.open_to_read(path)
    try:
        pieces = (file.read(at, PIECE_BYTES) for at in range(SEGMENT_HEADER_SIZE, size, PIECE_BYTES))
        return any(piece.count(0) != len(piece) for piece in pieces)
    finally:
        file.close()
