"""notes.py: what is noted comes back byte for byte, from the newest sound file."""

from __future__ import annotations

import pytest

from hubweir.errors import NewerFormat
from hubweir.messaging_store.disk.notes import (
    load_notes,
    note_files,
    notes_name,
    pack_notes,
    remove_older,
    save_notes,
    unpack_notes,
)
from hubweir.messaging_store.log import Note
from hubweir.testing.memory_files import MemoryFiles

NOTES = [
    Note(b"", b"", 0, 0, 0),
    Note(b"\xff" * 64, b"b" * 65_536, 2**63 - 1, 2**64 - 1, -1),
    Note(b"capture", b"where it is", 7, 900, 1_700_000_000_000),
]


def by_key(*notes: Note) -> dict[bytes, Note]:
    return {note.key: note for note in notes}


def spoil_both(files: MemoryFiles, path: str) -> None:
    """Flip a byte of each of the two copies."""
    for at in (5, -5):
        files.bytes_of(path)[at] ^= 1


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles("notes")
    files.make_folder("log")
    return files


def test_notes_come_back_as_they_were(files: MemoryFiles) -> None:
    save_notes(files, "log", 3, by_key(*NOTES))
    assert load_notes(files, "log").notes == by_key(*NOTES) and load_notes(files, "log").damage is None
    assert unpack_notes(pack_notes([])) == {}


def test_every_byte_of_the_file_is_vouched_for_and_no_flipped_one_loses_a_note(files: MemoryFiles) -> None:
    save_notes(files, "log", 3, by_key(NOTES[2]))
    path = f"log/{notes_name(3)}"
    assert load_notes(files, "log").half_damage is None
    for at in range(len(files.bytes_of(path))):
        files.bytes_of(path)[at] ^= 1
        found = load_notes(files, "log")
        assert found.notes == by_key(NOTES[2]) and found.damage is None
        assert found.half_damage is not None and path in found.half_damage
        files.bytes_of(path)[at] ^= 1


def test_damage_of_both_copies_loses_the_notes_and_is_told(files: MemoryFiles) -> None:
    save_notes(files, "log", 3, by_key(NOTES[2]))
    path = f"log/{notes_name(3)}"
    spoil_both(files, path)
    found = load_notes(files, "log")
    assert found.notes == {} and found.damage is not None and path in found.damage and found.half_damage is None


def test_another_format_is_refused(files: MemoryFiles) -> None:
    with pytest.raises(NewerFormat, match="format 02.*reads 01"):
        unpack_notes(b"\x02")
    with pytest.raises(NewerFormat):
        unpack_notes(b"")


def test_the_newest_epoch_counts_and_the_one_before_it_takes_the_place_of_a_damaged_file(files: MemoryFiles) -> None:
    assert load_notes(files, "log").notes == {} and load_notes(files, "log").damage is None
    for epoch in (9, 10, 0x100):
        save_notes(files, "log", epoch, by_key(Note(b"epoch", b"%d" % epoch, 0, 0, 0)))
    assert note_files(files, "log") == ["notes-00000009", "notes-0000000a", "notes-00000100"]
    assert load_notes(files, "log").notes[b"epoch"].body == b"256"
    spoil_both(files, "log/notes-00000100")
    found = load_notes(files, "log")
    assert found.notes[b"epoch"].body == b"10" and found.damage == "log/notes-00000100: the checksums do not fit"
    remove_older(files, "log", 10)
    assert note_files(files, "log") == ["notes-0000000a", "notes-00000100"]


def test_a_file_that_is_gone_since_it_was_listed_holds_no_note(monkeypatch) -> None:
    """As a look beside the owner may find it, who removes the one of the epoch before."""
    files = MemoryFiles()
    files.make_folder("log")
    save_notes(files, "log", 2, {})
    listed = files.list
    monkeypatch.setattr(files, "list", lambda folder: [*listed(folder), notes_name(3)])
    found = load_notes(files, "log")
    assert found.notes == {} and found.damage is not None and notes_name(3) in found.damage


def test_other_files_are_no_notes(files: MemoryFiles) -> None:
    for name in ("notes-", "notes-1", "notes-0000000G", "notes-00000001.new", "snapshot"):
        files.set_bytes(f"log/{name}", b"")
    assert note_files(files, "log") == []
