"""Names of folders and files in a store, and the version of the whole.

    store-N/FORMAT                         "hubweir store 2": refused, untouched, when it names another version
    store-N/LOCK                           held (flock) while a process owns the store
    store-N/EPOCH                          the newest writer epoch, made durable at each open and each failed sync
    store-N/RESERVE                        space kept for what must work on a full disk (reserve.py)
    store-N/CLOCK                          the time that the store saw pass, of the last minute (trusted_clock.py)
    store-N/newest/<log id>                the log's newest segment, and a limit of its numbers (newest_segment.py)
    store-N/logs/<log id>/                 one log; the id is generated, 32 hexadecimal digits
        <first index, 20 digits>-<epoch, 8 hex>.log      a segment (segment.py)
        <the same>.offsets, <the same>.times             its sparse indexes (sparse_index.py)
        snapshot, snapshot.previous                      the owner's state (snapshot.py)
        notes-<epoch, 8 hex>                             the owner's notes (notes.py)
    *.new                                  a file that was being written when the process ended: removed at open
    store-N/logs/<log id>.removed/         a folder of no log, taken from whoever would show it: removed at open

No name ever holds text that a client chose (rule R15).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FORMAT_VERSION, FORMAT_TEXT = 2, "hubweir store "  # what stands in FORMAT: the text, then the version
FORMAT_NAME, LOCK_NAME, EPOCH_NAME, LOGS_FOLDER = "FORMAT", "LOCK", "EPOCH", "logs"
RESERVE_NAME, CLOCK_NAME, NEWEST_FOLDER = "RESERVE", "CLOCK", "newest"
SNAPSHOT_NAME, PREVIOUS_SNAPSHOT_NAME, NOTES_PREFIX = "snapshot", "snapshot.previous", "notes-"
SEGMENT_SUFFIX, OFFSETS_SUFFIX, TIMES_SUFFIX = ".log", ".offsets", ".times"
UNFINISHED_SUFFIX, REMOVED_SUFFIX = ".new", ".removed"

_SEGMENT = re.compile(r"([0-9]{20})-([0-9a-f]{8})\.log")
_LOG_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class SegmentName:
    """What a segment's file name says. Order: by epoch, then by first index, so later ones supersede earlier ones."""

    writer_epoch: int
    first_index: int

    @property
    def stem(self) -> str:
        return f"{self.first_index:020d}-{self.writer_epoch:08x}"

    @property
    def file_name(self) -> str:
        return self.stem + SEGMENT_SUFFIX


def parse_segment_name(name: str) -> SegmentName | None:
    """The two numbers of a segment's file name; None for any other file."""
    match = _SEGMENT.fullmatch(name)
    return SegmentName(int(match[2], 16), int(match[1])) if match else None


def is_log_id(name: str) -> bool:
    """Whether a folder name is the id of a log."""
    return _LOG_ID.fullmatch(name) is not None
