"""The mark of a captured partition: a note of its log under the key `capture` (messaging_store/log.py, rule R11).

Its body is one version byte, then a MessagePack map:

| key             | type          | meaning |
|-----------------|---------------|---------|
| seed            | 16 bytes      | drawn when capture was enabled; sync markers are made of it |
| next_index      | int           | sequence number of the first event that is in no finished file |
| next_offset     | int           | the log's offset where the open window begins; sizes are counted from it |
| window_start_ms | int           | wall clock, when the open window began |
| last_second     | int           | the second that the newest file is named by |
| intent          | map, or nil   | a file that is being made: see Intent |
| last_file       | text          | name of the newest finished file; empty: there is none |
| files           | int           | how many files were finished |
| uncaptured      | int           | how many events went uncaptured in all: retention or damage took them |
| lost            | list of pairs | the newest LOST_RANGES ranges of them: first, end (exclusive) |

After a crash: the mark before or the one after, whole. With an intent, its file is there whole, or not, or in part
under another name (.tmp): it is made again under the same name, and the bytes are equal, because everything that
they depend on stands here and in the log. Without an intent nothing behind next_index is in any finished file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from hubweir.errors import CorruptStore, NewerFormat, StoreError
from hubweir.messaging_store.log import Log, Note, Refused
from hubweir.namespace.capture_description import CaptureDestination

MARK_KEY = b"capture"
FORMAT_VERSION = 1
SEED_SIZE, SYNC_SIZE = 16, 16
# So that the note stays small; `uncaptured` counts on.
LOST_RANGES = 16


class Intent(msgspec.Struct, frozen=True, forbid_unknown_fields=False):
    """A file that is being made: events first to end (exclusive), and where it goes.

    end_offset: the log's offset at end. second: what the name was made of.
    """

    first: int
    end: int
    end_offset: int
    second: int
    name: str
    destination: CaptureDestination
    container: str


class CaptureMark(msgspec.Struct, frozen=True):
    """See the table above."""

    seed: bytes
    next_index: int
    next_offset: int
    window_start_ms: int
    last_second: int = 0
    intent: Intent | None = None
    last_file: str = ""
    files: int = 0
    uncaptured: int = 0
    lost: tuple[tuple[int, int], ...] = ()

    def sync_marker(self, first: int) -> bytes:
        """The 16 bytes between the blocks of the file whose first event is first: always the same, never to guess."""
        return hashlib.sha256(self.seed + first.to_bytes(8, "big")).digest()[:SYNC_SIZE]


def pack_mark(mark: CaptureMark) -> bytes:
    """The body of the note."""
    return bytes((FORMAT_VERSION,)) + msgspec.msgpack.encode(mark)


def unpack_mark(body: bytes) -> CaptureMark:
    """The mark in a note's body. Raises NewerFormat, or CorruptStore when it is none."""
    if not body:
        raise CorruptStore("the mark of capture is empty")
    if body[0] != FORMAT_VERSION:
        raise NewerFormat(f"the mark of capture has format {body[0]}; this version reads {FORMAT_VERSION}")
    try:
        return msgspec.msgpack.decode(body[1:], type=CaptureMark)
    except msgspec.MsgspecError as error:
        raise CorruptStore(f"the mark of capture cannot be read: {error}") from None


def note_mark(log: Log, mark: CaptureMark | None, *, now_ms: int, on_done: Callable[[Refused | None], None]) -> None:
    """Make a mark durable, or that there is none. on_done may come inside the call, when the log refuses at once.

    Refused and not `known`: a start may find this mark, or the one before.
    """

    def done(outcome: Note | Refused) -> None:
        on_done(outcome if isinstance(outcome, Refused) else None)

    try:
        log.note(MARK_KEY, None if mark is None else pack_mark(mark), now_ms=now_ms, on_done=done)
    except StoreError as error:
        on_done(Refused(error))
