"""One file of a log: its header, how it is made, and the one that is being appended to.

A segment is named by its first index and its writer epoch (layout.py), and starts with this header of 128 bytes,
big-endian; stored batches follow back to back from byte 128 on. Behind the last batch there is zero-filled space set
aside for the next ones, until the segment is finished.

| offset | size | name             | meaning |
|-------:|-----:|------------------|---------|
|      0 |    4 | magic            | `hWs\\x01` |
|      4 |    2 | version          | 1; a newer one is refused, the file untouched |
|      6 |    1 | durability       | 1 durable, 2 relaxed: a change of mode starts a new segment |
|      7 |    1 | reserved         | zero |
|      8 |   16 | log id           | so that a file in the wrong folder is noticed |
|     24 |    8 | nonce            | the log's secret; every batch carries it |
|     32 |    4 | writer epoch     | as in the name |
|     36 |    4 | reserved         | zero |
|     40 |    8 | first index      | as in the name |
|     48 |    8 | first offset     | of the first record to come |
|     56 |    8 | last offset      | signed: of the newest record before this segment; -1 when there never was one |
|     64 |    8 | last time        | signed: its enqueued time, ms; -1 when there never was one |
|     72 |    8 | created          | signed: when this segment was made, ms since 1970 |
|     80 |    8 | skipped          | numbers right before first index that no record has; 0 in files of older versions |
|     88 |    4 | previous epoch   | writer epoch of the segment before this one; 0 when there was none |
|     92 |    8 | previous index   | its first index |
|    100 |    8 | first number     | it supersedes batches of older epochs from this number on; 0: may be unknown |
|    108 |   16 | reserved         | zero |
|    124 |    4 | header CRC       | CRC-32C, seed CRC_SEED, of bytes 0 to 124 |

Last offset, last time and, by skipped, the last record's index survive here when retention empties the log. The segment
before is named so that one that is lost from the middle is missed.

After a crash: a segment is there with a durable header, and with what `create` was told to put in it, or not at all:
it is written under another name, synced, renamed, and its folder synced. From then on it supersedes everything at or
beyond its first index in files of an older epoch. What was appended later may be torn behind the last synced byte.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hubweir.env import Buffer, File, Files, join_path
from hubweir.errors import NewerFormat
from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import CRC_SEED
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX, SegmentName
from hubweir.messaging_store.log import Durability

SEGMENT_HEADER_SIZE = 128
_MAGIC, _VERSION = b"hWs\x01", 1
_HEADER = struct.Struct(">4sHBB16sQIIQQqqqQIQQ16s")
_CRC = struct.Struct(">I")

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# Opening a file failed, so nothing was done with it: the next try may succeed, and tells nothing wrong.
NO_FILES = (errno.EMFILE, errno.ENFILE)
# Space is set aside in steps that double, so that many quiet logs do not fill the disk with nothing.
FIRST_STEP_BYTES, STEP_LIMIT_BYTES = 1024 * 1024, 64 * 1024 * 1024
# One step takes at most this share of what is free: the last space of a disk is for all partitions.
STEP_SHARE_OF_FREE = 16
_ZEROS = bytes(256 * 1024)
# Kept free behind every append: an idle mark must not fail for want of space.
MARK_ROOM_BYTES = 4096


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """What a segment says about itself (table above)."""

    log_id: str
    nonce: int
    writer_epoch: int
    first_index: int
    first_offset: int
    last_offset: int
    last_time_ms: int
    created_ms: int
    durability: Durability
    skipped: int = 0
    previous: SegmentName | None = None
    first_number: int = 0

    @property
    def last_index(self) -> int:
        """Index of the newest record before this segment; -1 when there never was one."""
        return self.first_index - 1 - self.skipped

    @property
    def name(self) -> SegmentName:
        return SegmentName(self.writer_epoch, self.first_index)

    def pack(self) -> bytes:
        """The 128 bytes."""
        previous = self.previous or SegmentName(0, 0)
        head = _HEADER.pack(
            _MAGIC, _VERSION, self.durability, 0, bytes.fromhex(self.log_id), self.nonce, self.writer_epoch, 0,
            self.first_index, self.first_offset, self.last_offset, self.last_time_ms, self.created_ms, self.skipped,
            previous.writer_epoch, previous.first_index, self.first_number, bytes(16),
        )  # fmt: skip
        return head + _CRC.pack(crc32c(head, CRC_SEED))


# Of a log in which nothing was stored before; the rest tells the name of the file.
_BARE = SegmentHeader("", 0, 0, 0, 0, -1, -1, 0, Durability.DURABLE)


def bare_header(log_id: str, nonce: int, name: SegmentName) -> SegmentHeader:
    """The header of a segment before which nothing is known: of a renewed log, or of a file that is damaged or lost."""
    return replace(_BARE, log_id=log_id, nonce=nonce, writer_epoch=name.writer_epoch, first_index=name.first_index)


def unpack_header(data: bytes) -> SegmentHeader | None:
    """The header in the first 128 bytes; None when they are damaged. NewerFormat when a newer version wrote it."""
    if len(data) < SEGMENT_HEADER_SIZE or data[:4] != _MAGIC:
        return None
    if _CRC.unpack_from(data, _HEADER.size)[0] != crc32c(data[: _HEADER.size], CRC_SEED):
        return None
    (
        _, version, durability, _, log_id, nonce, writer_epoch, _, first_index, first_offset, last_offset,
        last_time_ms, created_ms, skipped, previous_epoch, previous_index, first_number, _,
    ) = _HEADER.unpack_from(data)  # fmt: skip
    if version > _VERSION:
        raise NewerFormat(f"segment of log {log_id.hex()} has format {version}; this version reads up to {_VERSION}")
    return SegmentHeader(
        log_id.hex(), nonce, writer_epoch, first_index, first_offset, last_offset, last_time_ms, created_ms,
        Durability(durability), skipped, SegmentName(previous_epoch, previous_index) if previous_epoch else None,
        first_number,
    )  # fmt: skip


class ActiveSegment:
    """The segment that is being appended to. One thread at a time uses it; positions are bytes of the file.

    is_torn: a write behind end failed and may have left a part of what it should write. Nobody may be told that this
    was refused before `forget_behind` or `finish` has cut it off: a start would find it.
    """

    __slots__ = ("_files", "end", "file", "header", "is_torn", "path", "reserved")

    def __init__(self, files: Files, file: File, path: str, header: SegmentHeader, end: int) -> None:
        self._files = files
        self.file = file
        self.path = path
        self.header = header
        self.end = end  # where the next batch goes
        self.reserved = end
        self.is_torn = False

    def set_aside(self, size: int, mark_room: int = MARK_ROOM_BYTES) -> None:
        """Make sure that size bytes fit behind end, and a mark behind them. OSError ENOSPC or EDQUOT if not."""
        needed = self.end + size + mark_room
        if needed <= self.reserved:
            return
        short = self._files.free_bytes() // STEP_SHARE_OF_FREE
        step = min(max(self.reserved, FIRST_STEP_BYTES), STEP_LIMIT_BYTES, short)
        wanted = max(needed, self.reserved + step)
        try:
            self._reserve(wanted)
        except OSError as error:
            if wanted == needed or error.errno not in NO_SPACE:
                raise
            wanted = needed
            self._reserve(wanted)  # the big step does not fit; what is needed now may
        self.reserved = wanted

    def _reserve(self, wanted: int) -> None:
        try:
            self.file.reserve(wanted)
        except OSError as error:
            if error.errno in NO_SPACE:
                # A file system may have set a part of it aside: others need that now.
                self.file.truncate(self.reserved)
            raise

    def write(self, buffers: Sequence[Buffer], *, is_synced: bool) -> None:
        """Write behind end, which whoever shows the batches moves; with is_synced they are durable then."""
        call = self.file.write_and_sync if is_synced else self.file.write
        try:
            call(self.end, buffers)
        except OSError as error:
            self.is_torn = self.is_torn or error.errno not in NO_FILES
            raise
        self.is_torn = False

    def forget_behind(self) -> None:
        """Cut off what a failed write may have left behind end, durably: a start must not find it."""
        self.file.truncate(self.end)
        self.reserved = self.end
        self.file.sync()
        self.is_torn = False

    def finish(self) -> None:
        """Give back what was set aside and not used, cut off a torn write, and make the file durable as it is."""
        if self.reserved > self.end or self.is_torn:
            self.forget_behind()
        else:
            self.file.sync()


def give_back_space(files: Files, path: str, end: int) -> None:
    """Give back the zeros at a file's end: space that a process had set aside behind `end` when it was killed.

    Blocking; raises OSError. For the newest segment that a start finds, when its end is known: what counts lies before
    `end`, and zeros are no batch, so every later look at the file finds what this one found. A torn write behind `end`
    stays as it is, up to its last byte that is not zero. Nothing is synced: after a power cut the zeros may be back.
    """
    file = files.open(path)
    try:
        size = kept = file.size()
        while kept > end:
            start = max(end, kept - len(_ZEROS))
            data = file.read(start, kept - start)
            if data != _ZEROS[: len(data)]:
                kept = start + len(data.rstrip(b"\0"))
                break
            kept = start
        if kept < size:
            file.truncate(kept)
    finally:
        file.close()


def create(files: Files, folder: str, header: SegmentHeader, content: Iterable[Sequence[Buffer]] = ()) -> ActiveSegment:
    """Make a segment that holds content (pieces of stored batches) and make it durable, at once or not at all.

    Blocking: to be offloaded. Raises OSError; then nothing is there under the segment's name, or (when the last step
    failed) nobody knows, and its epoch must not be used for this log again. The unfinished file is removed, if that
    works: a disk that fails again and again must not be filled by the tries.
    """
    path = join_path(folder, header.name.file_name)
    unfinished = path + UNFINISHED_SUFFIX
    if files.exists(unfinished):
        files.remove(unfinished)
    try:
        segment = _write_whole(files, unfinished, path, header, content)
        files.rename(unfinished, path)
    except OSError:
        with suppress(OSError):
            files.remove(unfinished)
        raise
    files.sync_folder(folder)
    segment.file = files.open(path)
    return segment


def _write_whole(
    files: Files, unfinished: str, path: str, header: SegmentHeader, content: Iterable[Sequence[Buffer]]
) -> ActiveSegment:
    """Write a segment under the name of an unfinished file, and sync it."""
    file = files.open(unfinished, create=True)
    try:
        segment = ActiveSegment(files, file, path, header, SEGMENT_HEADER_SIZE)
        segment.reserved = 0
        segment.set_aside(0)
        file.write(0, [header.pack()])
        for buffers in content:
            size = sum(len(buffer) for buffer in buffers)
            segment.set_aside(size)
            file.write(segment.end, buffers)
            segment.end += size
        file.sync()
    finally:
        file.close()
    return segment
