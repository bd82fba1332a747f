"""A store's note of each log's newest segment, kept beside the log, with a limit that none of its numbers reaches.

A segment, or a log's whole folder, that is lost leaves nothing that says it was there. So each store has a folder
`newest` with a small sealed file (whole_file.py) for each log, named by the log's id. Its body, big-endian:

| offset | size | name         | meaning |
|-------:|-----:|--------------|---------|
|      0 |    4 | writer epoch | of the newest segment; 0: the log was made, and has no segment yet |
|      4 |    8 | first index  | of the newest segment |
|     12 |    8 | index limit  | no record of the log has this index or a higher one |
|     20 |    8 | offset limit | no record of the log reaches this offset |

The file is written when a log is made, and with every new segment, before anything in that segment is answered for.
The limits are what the segment can hold at most, so they cost nothing more until the next one.

After a crash: the file names the newest segment, or the one before it when the newest is empty.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass

from hubweir.env import Files, join_path
from hubweir.messaging_store.disk.layout import (
    LOGS_FOLDER,
    NEWEST_FOLDER,
    UNFINISHED_SUFFIX,
    SegmentName,
    is_log_id,
    parse_segment_name,
)
from hubweir.messaging_store.disk.whole_file import read_sealed, seal, write_whole

_BODY = struct.Struct(">IQQQ")
# No record is shorter: an operation's length alone. (kernels/stored_batch.py)
LEAST_RECORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class NewestSegment:
    """See the table above."""

    writer_epoch: int
    first_index: int
    index_limit: int
    offset_limit: int

    @property
    def name(self) -> SegmentName:
        return SegmentName(self.writer_epoch, self.first_index)

    @property
    def had_segments(self) -> bool:
        """Whether the log ever had one."""
        return self.writer_epoch > 0


NEVER_WRITTEN = NewestSegment(0, 0, 0, 0)


def newest_behind(name: SegmentName, *, index: int, offset: int, room_bytes: int) -> NewestSegment:
    """A new segment whose content ends before an index and an offset, and that takes at most room_bytes more."""
    return NewestSegment(
        name.writer_epoch, name.first_index, index + room_bytes // LEAST_RECORD_BYTES, offset + room_bytes
    )


def save_newest(files: Files, store_folder: str, log_id: str, newest: NewestSegment) -> None:
    """Make it durable. Blocking; raises OSError, and then the one before, or this one, is there."""
    folder = join_path(store_folder, NEWEST_FOLDER)
    body = _BODY.pack(newest.writer_epoch, newest.first_index, newest.index_limit, newest.offset_limit)
    try:
        write_whole(files, folder, log_id, seal(body))
    except OSError:
        with suppress(OSError):
            files.remove(join_path(folder, log_id + UNFINISHED_SUFFIX))
        raise


def load_newest(files: Files, store_folder: str, log_id: str) -> NewestSegment | None:
    """What the store remembers of a log; None when that is absent or damaged. Blocking; raises OSError."""
    body = read_sealed(files, join_path(store_folder, NEWEST_FOLDER, log_id))
    return None if body is None or len(body) != _BODY.size else NewestSegment(*_BODY.unpack(body))


def forget_newest(files: Files, store_folder: str, log_id: str) -> None:
    """The log is removed: nothing is remembered of it, durably. Blocking; raises OSError, and is to be called again."""
    path = join_path(store_folder, NEWEST_FOLDER, log_id)
    if files.exists(path):
        files.remove(path)
    files.sync_folder(join_path(store_folder, NEWEST_FOLDER))  # also when it is gone: a sync before may have failed


def log_ids_in(files: Files, store_folder: str) -> list[str]:
    """The ids of all logs that are in a store, or were and are lost, sorted. Blocking."""
    names = [name for folder in (LOGS_FOLDER, NEWEST_FOLDER) for name in files.list(join_path(store_folder, folder))]
    return sorted({name for name in names if is_log_id(name)})


def has_segments(files: Files, store_folder: str, log_id: str) -> bool:
    """Whether the folder of a log holds any segment. Blocking."""
    names = files.list(join_path(store_folder, LOGS_FOLDER, log_id))
    return any(parse_segment_name(name) is not None for name in names)


def is_lost(files: Files, store_folder: str, log_id: str) -> bool:
    """Whether a log that was made has lost its folder, or all that was in it. Blocking; raises OSError."""
    if has_segments(files, store_folder, log_id):
        return False
    newest = load_newest(files, store_folder, log_id)
    return newest is None or newest.had_segments or not files.exists(join_path(store_folder, LOGS_FOLDER, log_id))


def make_log(files: Files, store_folder: str, log_id: str) -> None:
    """Make the folder of a log that never had a segment, and remember it, durably; it may be there. Blocking.

    What is lost of a log that had records is never made anew.
    """
    parent = join_path(store_folder, LOGS_FOLDER)
    newest = load_newest(files, store_folder, log_id)
    if newest is not None and newest.had_segments:
        return  # whatever is there now, it is not being made: opening it says what is the matter
    files.make_folder(join_path(parent, log_id))
    files.sync_folder(parent)
    if newest is None and not has_segments(files, store_folder, log_id):
        save_newest(files, store_folder, log_id, NEVER_WRITTEN)
