"""The mark of capture, as people and programs read it: whole, with a file under way, damaged, newer."""

from __future__ import annotations

import json

import msgspec
import pytest

from hubweir.capture.capture_mark import FORMAT_VERSION, MARK_KEY, CaptureMark, Intent, pack_mark
from hubweir.cli.capture_mark import ShownMark, shown_mark
from hubweir.messaging_store.disk.notes import notes_name, save_notes
from hubweir.messaging_store.log import Note
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles

INTENT = Intent(7, 19, 4_000, 1_700_000_000, "a/b.avro", CaptureDestination.AZURE_BLOCK_BLOB, "films")
MARK = CaptureMark(b"s" * 16, 7, 2_000, 1_600_000_000_000, 12, INTENT, "a/a.avro", 3, 5, ((1, 3), (4, 7)))


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles("log")
    files.make_folder("log")
    return files


def save(files: MemoryFiles, body: bytes) -> None:
    """Note a mark of this body."""
    save_notes(files, "log", 1, {MARK_KEY: Note(MARK_KEY, body, 30, 0, 0)})


def shown(files: MemoryFiles, next_index: int = 30) -> ShownMark:
    found = shown_mark(files, "log", next_index)
    assert found is not None
    return found


def test_a_log_without_capture_has_none(files: MemoryFiles) -> None:
    assert shown_mark(files, "log", 30) is None


def test_a_mark_tells_how_far_it_is_what_it_makes_and_what_it_missed(files: MemoryFiles) -> None:
    save(files, pack_mark(MARK))
    document = json.loads(json.dumps(shown(files).document()))
    assert (document["next_sequence_number"], document["behind_events"], document["files"]) == (7, 23, 3)
    assert (document["last_file"], document["uncaptured_events"], document["problem"]) == ("a/a.avro", 5, None)
    assert document["uncaptured_ranges"] == [{"first": 1, "last": 2}, {"first": 4, "last": 6}]
    assert document["intent"] == {
        "first": 7, "last": 18, "name": "a/b.avro", "destination": "EventHubArchive.AzureBlockBlob",
        "container": "films",
    }  # fmt: skip
    lines = "\n".join(shown(files).lines())
    for part in ("number 7, 23 behind", "3 files, the newest a/a.avro", "a/b.avro of films", "7 to 18", "1 to 2, 4 to"):
        assert part in lines


def test_what_is_not_there_is_not_told(files: MemoryFiles) -> None:
    save(files, pack_mark(CaptureMark(b"s" * 16, 30, 0, 0)))
    assert shown(files).lines() == ["capture: next sequence number 30, 0 behind; 0 files"]
    empty = msgspec.structs.replace(MARK, intent=msgspec.structs.replace(INTENT, end=7, container=""), uncaptured=0)
    save(files, pack_mark(empty))
    assert "no events" in shown(files).lines()[-1]
    intent = shown(files).document()["intent"]
    assert isinstance(intent, dict) and intent["last"] is None


def test_the_seed_is_not_shown(files: MemoryFiles) -> None:
    save(files, pack_mark(MARK))
    assert "ssss" not in json.dumps(shown(files).document()) + "".join(shown(files).lines())


def test_a_damaged_mark_says_what_a_start_makes_of_it(files: MemoryFiles) -> None:
    save(files, pack_mark(MARK))
    for at in (5, -5):  # both copies
        files.bytes_of(f"log/{notes_name(1)}")[at] ^= 1
    assert "damaged" in shown(files).lines()[0] and "two files" in shown(files).lines()[0]
    assert "checksum" in str(shown(files).document()["problem"])
    save(files, b"")
    assert "empty" in shown(files).lines()[0]


def test_a_newer_mark_is_not_called_damaged(files: MemoryFiles) -> None:
    save(files, bytes((FORMAT_VERSION + 1,)))
    (line,) = shown(files).lines()
    assert "format 2" in line and "damaged" not in line
