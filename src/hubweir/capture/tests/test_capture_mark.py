"""The mark: comes back as it was, refuses what it is not, is replaced as a whole."""

from __future__ import annotations

import msgspec
import pytest

from hubweir.capture.capture_mark import MARK_NAME, CaptureMark, Intent, pack_mark, save_mark, unpack_mark
from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.whole_file import read_sealed
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles

INTENT = Intent(7, 19, 4_000, 1_700_000_000, "a/b.avro", CaptureDestination.AZURE_BLOCK_BLOB, "films")
MARK = CaptureMark(b"s" * 16, 7, 2_000, 1_600_000_000_000, 12, INTENT, "a/a.avro", 3, 5, ((1, 3), (4, 7)))


@pytest.mark.parametrize("mark", [MARK, CaptureMark(b"", 0, 0, 0), msgspec.structs.replace(MARK, intent=None)])
def test_a_mark_comes_back_as_it_was(mark: CaptureMark) -> None:
    assert unpack_mark(pack_mark(mark)) == mark


def test_fields_that_a_later_version_adds_are_passed_over() -> None:
    body = msgspec.msgpack.decode(pack_mark(MARK)[1:])
    assert unpack_mark(b"\x01" + msgspec.msgpack.encode({**body, "later": 1})) == MARK


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(NewerFormat, match="format 2"):
        unpack_mark(b"\x02" + pack_mark(MARK)[1:])


def test_no_part_of_a_mark_is_a_mark() -> None:
    whole = pack_mark(MARK)
    for end in range(len(whole)):
        with pytest.raises(CorruptStore):
            unpack_mark(whole[:end])


def test_sync_markers_depend_on_the_seed_and_the_first_event_only() -> None:
    other = msgspec.structs.replace(MARK, last_file="x", files=9)
    assert MARK.sync_marker(7) == other.sync_marker(7)
    assert len({MARK.sync_marker(7), MARK.sync_marker(8), CaptureMark(b"t" * 16, 7, 0, 0).sync_marker(7)}) == 3
    assert len(MARK.sync_marker(7)) == 16


def test_a_saved_mark_survives_a_power_cut() -> None:
    files = MemoryFiles("mark")
    files.make_folder("log")
    save_mark(files, "log", MARK)
    files.power_cut()
    body = read_sealed(files, f"log/{MARK_NAME}")
    assert body is not None and unpack_mark(body) == MARK
