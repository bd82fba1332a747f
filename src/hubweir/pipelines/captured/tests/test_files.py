"""Blocks into captured files, and the second that names them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

from hubweir.capture.avro import long
from hubweir.namespace.capture_description import ARCHIVE_NAME_FORMAT
from hubweir.pipelines.captured.blocks import sync_marker
from hubweir.pipelines.captured.files import BatchNote, CaptureNotes, FileNames, write_blocks

NOON_S = 1_769_860_800  # 2026-01-31T12:00:00Z
RECORD = long(7) + long(1) + b"9" + long(0) + long(0) + long(0) + b"\x02" + long(1) + b"x"


def names(folder: Path, size_limit_bytes: int = 10_000) -> FileNames:
    return FileNames(str(folder), ARCHIVE_NAME_FORMAT, "ns", "orders", size_limit_bytes, NOON_S)


def blocks(partition: str, count: int) -> pa.RecordBatch:
    """Blocks of two events each."""
    block = long(2) + long(2 * len(RECORD)) + 2 * RECORD + sync_marker("orders", partition)
    return pa.record_batch({"partition": [partition] * count, "events": [2] * count, "block": [block] * count})


def test_blocks_of_a_partition_become_a_file_that_others_can_read(tmp_path: Path) -> None:
    made = [
        row for batch in write_blocks([blocks("0", 2), blocks("1", 1)], names(tmp_path)) for row in batch.to_pylist()
    ]
    assert [(row["partition"], row["name"], row["events"]) for row in made] == [
        ("0", "ns/orders/0/2026/01/31/12/00/00.avro", 4),
        ("1", "ns/orders/1/2026/01/31/12/00/00.avro", 2),
    ]
    for row in made:
        data = (tmp_path / row["name"]).read_bytes()
        assert len(data) == row["size"]
        assert [one["SequenceNumber"] for one in fastavro.reader(io.BytesIO(data))] == [7] * row["events"]


def test_a_full_file_is_followed_by_one_of_the_next_second(tmp_path: Path) -> None:
    made = [row for batch in write_blocks([blocks("0", 3)], names(tmp_path, 1)) for row in batch.to_pylist()]
    assert [row["name"][-6:] for row in made] == ["0.avro", "1.avro", "2.avro"]
    assert [row["second"] for row in made] == [NOON_S, NOON_S + 1, NOON_S + 2]


def test_a_batch_that_is_repeated_writes_the_same_files(tmp_path: Path) -> None:
    list(write_blocks([blocks("0", 2)], names(tmp_path)))
    first = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    list(write_blocks([blocks("0", 2)], names(tmp_path)))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == first and len(first) == 1


def test_a_task_that_fails_leaves_nothing_under_a_final_name(tmp_path: Path) -> None:
    def failing():  # type: ignore[no-untyped-def]
        yield blocks("0", 1)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        list(write_blocks(failing(), names(tmp_path)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_repeated_batch_has_its_second_again_and_the_next_a_later_one(tmp_path: Path) -> None:
    notes, mine = CaptureNotes(tmp_path), names(Path("/films"))
    assert notes.begin(0, mine, lambda: NOON_S * 1000).second == NOON_S
    again = CaptureNotes(tmp_path).begin(0, mine, lambda: (NOON_S + 99) * 1000)
    assert again.second == NOON_S
    notes.finish(again, NOON_S + 4)
    # The clock stands still, or runs back: names must not meet.
    assert notes.begin(1, mine, lambda: (NOON_S - 99) * 1000).second == NOON_S + 5
    assert CaptureNotes(tmp_path).begin(1, mine, lambda: 0).second == NOON_S + 5


def test_a_batch_that_is_repeated_under_a_changed_description_ends_as_it_was_begun(tmp_path: Path) -> None:
    """With a larger limit it would make fewer files, and those of the first attempt would stay beside them."""
    begun = names(Path("/films"), 1_000)
    changed = replace(begun, place="az://films", pattern="x/" + ARCHIVE_NAME_FORMAT, namespace="other", storage="key")
    changed = replace(changed, size_limit_bytes=9_000_000)
    CaptureNotes(tmp_path).begin(3, begun, lambda: NOON_S * 1000)
    again = CaptureNotes(tmp_path).begin(3, changed, lambda: 0)
    assert again.of(changed) == replace(begun, storage="key")
    assert CaptureNotes(tmp_path).begin(4, changed, lambda: 0).of(changed) == replace(changed, second=NOON_S + 1)
    assert BatchNote(1, 7).of(changed) == replace(changed, second=7)  # a note of an earlier version
    assert "key" not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_a_partition_without_events_has_a_file_without_records(tmp_path: Path) -> None:
    empty = pa.record_batch({"partition": ["1"], "events": [0], "block": [b""]})
    made = [row for one in write_blocks([blocks("0", 1), empty], names(tmp_path)) for row in one.to_pylist()]
    assert [row["events"] for row in made] == [2, 0]
    assert list(fastavro.reader(io.BytesIO((tmp_path / made[1]["name"]).read_bytes()))) == []


def test_old_notes_go(tmp_path: Path) -> None:
    notes = CaptureNotes(tmp_path)
    for batch in range(130):
        notes.finish(notes.begin(batch, names(tmp_path), lambda: NOON_S * 1000), 0)
    assert len(list(tmp_path.iterdir())) == 100
    assert notes.begin(130, names(tmp_path), lambda: NOON_S * 1000).second == NOON_S + 130
