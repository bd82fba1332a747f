"""Maps the captured files of a partition to sequence numbers, which a replay needs before it reads.

A block's count stands before it, and the number of its first event at its start. So a file costs a few small reads and
is not decoded. Files of one partition follow each other; where one begins behind the end of the one before, the last
block of that is decoded: there may be a gap in it. What is in between then is in no file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hubweir.capture.avro import SYNC_SIZE
from hubweir.spark.captured.avro_file import HEADER_BYTES, EventTimes, read_blocks, read_header
from hubweir.spark.captured.places import BlobPlace, CapturedName, LocalPlace, name_pattern, parse_name, place_of
from hubweir.spark.errors import IllegalCapture

# An Avro long has at most ten bytes; the count of a block is followed by its size.
_LONG_BYTES = 10
# Of a file in memory at once; a block has some 1 MiB.
PIECE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class HistoryFile:
    """A captured file with events: sequence numbers start up to, not including, end. Travels.

    There may be gaps in between. last_block: the byte where it begins.
    """

    path: str
    size_bytes: int
    partition_id: str
    start: int
    end: int
    last_block: int = 0


def read_history(path: str, name_format: str, store: Mapping[str, str]) -> dict[str, list[HistoryFile]]:
    """The files with events below a place, by partition, in the order of their events.

    IllegalCapture when two files hold the same events, or one cannot be read.
    """
    place, pattern = place_of(path, store), name_pattern(name_format)
    names = [parse_name(pattern, place.prefix, found, size) for found, size in place.files()]
    found = in_order(one for name in names if (one := history_file(place, name)) is not None)
    for files in found.values():
        for at, file in enumerate(files):
            if at + 1 == len(files) or file.end < files[at + 1].start:
                files[at] = replace(file, end=last_number(place, file) + 1)
    # Not before: until then ends may be too low.
    return in_order(file for files in found.values() for file in files)


def last_number(place: LocalPlace | BlobPlace, file: HistoryFile) -> int:
    """The sequence number of a file's last event, out of its last block. IllegalCapture when that is damaged."""
    header = read_header(place.read(file.path, 0, min(file.size_bytes, HEADER_BYTES)), file.path)
    block = place.read(file.path, file.last_block, file.size_bytes)
    last = -1
    for batch in read_blocks(
        block,
        0,
        header,
        name=file.path,
        partition_id=file.partition_id,
        columns=("sequenceNumber",),
        times=EventTimes(),
    ):
        last = batch.column(0)[-1].as_py()
    return last


def in_order(files: Iterable[HistoryFile]) -> dict[str, list[HistoryFile]]:
    """The files by partition, by their numbers. IllegalCapture when two hold the same events."""
    found: dict[str, list[HistoryFile]] = {}
    for file in sorted(files, key=lambda each: (int(each.partition_id), each.start)):
        before = found.setdefault(file.partition_id, [])
        if before and before[-1].end > file.start:
            raise IllegalCapture(
                f"{before[-1].path} and {file.path} both have event {file.start} of partition {file.partition_id}: is "
                "this place the capture of one event hub? Name its folder alone"
            )
        before.append(file)
    return found


def history_file(place: LocalPlace | BlobPlace, name: CapturedName) -> HistoryFile | None:
    """What one file holds; None when it has no event. IllegalCapture when it is damaged."""
    header = read_header(place.read(name.path, 0, min(name.size_bytes, HEADER_BYTES)), name.path)
    at, first, end, last_block = header.size, -1, 0, 0
    while at < name.size_bytes:
        start = place.read(name.path, at, min(name.size_bytes, at + 3 * _LONG_BYTES))
        count, behind_count = avro_long(start, 0)
        size, behind_size = avro_long(start, behind_count)
        if count < 1 or size < 1 or header.is_deflated:
            raise IllegalCapture(f"{name.path} cannot be replayed: it is damaged at byte {at}, or compressed")
        # A record begins with its sequence number.
        number, _ = avro_long(start, behind_size)
        first, end, last_block = number if first < 0 else first, number + count, at
        at += behind_size + size + SYNC_SIZE
    if at != name.size_bytes:
        raise IllegalCapture(f"{name.path} is cut off: move it away; the hub may have its events")
    return HistoryFile(name.path, name.size_bytes, name.partition_id, first, end, last_block) if end else None


def whole_blocks(
    place: LocalPlace | BlobPlace, file: HistoryFile, start: int, piece_bytes: int = PIECE_BYTES
) -> Iterator[bytes]:
    """A file from byte start on, where a block begins, in pieces of whole blocks: it may be larger than memory is.

    IllegalCapture when a block does not end within a piece, which is larger than any.
    """
    at = start
    while at < file.size_bytes:
        data = place.read(file.path, at, min(file.size_bytes, at + piece_bytes))
        end, is_last = 0, at + len(data) >= file.size_bytes
        while end < len(data) and (is_last or end + 2 * _LONG_BYTES <= len(data)):
            _, behind = avro_long(data, end)
            size, behind = avro_long(data, behind)
            if size < 0 or behind + size + SYNC_SIZE > len(data):
                break
            end = behind + size + SYNC_SIZE
        if not end:
            raise IllegalCapture(f"{file.path} is cut off or damaged behind byte {at}")
        yield data[:end]
        at += end


def avro_long(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number, and where it ends. IllegalCapture when the bytes end before it does."""
    value = shift = 0
    for place in range(at, min(len(data), at + _LONG_BYTES)):
        value |= (data[place] & 0x7F) << shift
        shift += 7
        if data[place] < 0x80:
            return (value >> 1) ^ -(value & 1), place + 1
    raise IllegalCapture("a captured file is cut off or damaged: a number does not end")
