"""The notes of a log's owner on disk: under each key, the newest.

`notes-<writer epoch, 8 hex>` is replaced as a whole. It holds two sealed copies (whole_file.py) of one body: a flipped
bit loses no note. The body is one byte of version, then the notes, back to back, big-endian:

| size | name        | meaning |
|-----:|-------------|---------|
|    8 | index       | the log's next index when it was noted: it stands behind every record with a smaller one |
|    8 | offset      | the log's next offset then |
|    8 | time        | signed, ms since 1970 |
|    2 | key length  | bytes of the key |
|    4 | body length | bytes of the body |
|    … | key, body   | the owner's bytes |

The file of the newest epoch counts, and those of older ones are removed behind it. So a process that lost the store
writes into a file that nobody reads any more (writer_epochs.py).

After a crash: the notes before or the ones after, whole; never a note whose records are not durable. A file whose two
copies are damaged is passed over for the one of the epoch before, if that is still there; otherwise all notes are lost,
and the owner is told.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from hubweir.env import Files, join_path
from hubweir.errors import NewerFormat
from hubweir.messaging_store.disk.layout import NOTES_PREFIX
from hubweir.messaging_store.disk.whole_file import read_whole, seal_twice, unseal_twice, write_whole
from hubweir.messaging_store.log import Note

VERSION = 1
KEY_LIMIT, BODY_LIMIT = 64, 64 * 1024  # bytes: all notes of a log are written again with each new one
_HEAD = struct.Struct(">QQqHI")
_NAME = re.compile(re.escape(NOTES_PREFIX) + "([0-9a-f]{8})")


@dataclass(frozen=True, slots=True)
class FoundNotes:
    """What a start finds. damage: which files could not be read, for people; None: every note is there.

    half_damage: which file was read from the one copy of two that is whole; no note is lost.
    """

    notes: dict[bytes, Note] = field(default_factory=dict)
    damage: str | None = None
    half_damage: str | None = None


def pack_notes(notes: Iterable[Note]) -> bytes:
    """The body of the file."""
    out = bytearray((VERSION,))
    for note in notes:
        out += _HEAD.pack(note.index, note.offset, note.time_ms, len(note.key), len(note.body))
        out += note.key
        out += note.body
    return bytes(out)


def unpack_notes(body: bytes) -> dict[bytes, Note]:
    """The notes in a file's body, by key. Raises NewerFormat; the seal vouches for the rest."""
    if body[:1] != bytes((VERSION,)):
        raise NewerFormat(f"the notes of a log have format {body[:1].hex()}; this version reads {VERSION:02x}")
    found, at = {}, 1
    while at < len(body):
        index, offset, time_ms, key_length, body_length = _HEAD.unpack_from(body, at)
        at += _HEAD.size
        key, at = body[at : at + key_length], at + key_length
        found[key] = Note(key, body[at : at + body_length], index, offset, time_ms)
        at += body_length
    return found


def save_notes(files: Files, folder: str, writer_epoch: int, notes: Mapping[bytes, Note]) -> None:
    """Make the notes durable. Blocking; raises OSError, and then the ones before, or these, are there."""
    write_whole(files, folder, notes_name(writer_epoch), seal_twice(pack_notes(notes.values())))


def remove_older(files: Files, folder: str, writer_epoch: int) -> None:
    """Remove the files that the one of this epoch takes the place of. Blocking; what fails is done the next time."""
    with suppress(OSError):
        for name in note_files(files, folder):
            if name < notes_name(writer_epoch):
                files.remove(join_path(folder, name))


def load_notes(files: Files, folder: str) -> FoundNotes:
    """The notes of a log. Blocking; raises OSError, NewerFormat."""
    damaged: list[str] = []
    for name in reversed(note_files(files, folder)):
        path = join_path(folder, name)
        body, is_whole = unseal_twice(read_whole(files, path) or b"")
        if body is not None:
            half = None if is_whole else f"{path}: one of its two copies is damaged, and the other was read"
            return FoundNotes(unpack_notes(body), _damage(damaged), half)
        damaged.append(path)
    return FoundNotes({}, _damage(damaged))


def note_files(files: Files, folder: str) -> list[str]:
    """The names of the files that hold notes, the newest last. Blocking."""
    return sorted(name for name in files.list(folder) if _NAME.fullmatch(name))


def notes_name(writer_epoch: int) -> str:
    """The name of the file that is written under an epoch."""
    return f"{NOTES_PREFIX}{writer_epoch:08x}"


def _damage(paths: list[str]) -> str | None:
    return f"{', '.join(paths)}: the checksums do not fit" if paths else None
