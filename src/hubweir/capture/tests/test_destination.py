"""The local folder: whole files or none, over power cuts, in the place of what was left in part."""

from __future__ import annotations

import pytest

from hubweir.capture.destination import SYNC_BYTES, LocalFolder
from hubweir.testing.memory_files import Fault, MemoryFiles, PowerCut

NAME = "ns/hub/0/2020/x.avro"


def folder() -> tuple[MemoryFiles, LocalFolder]:
    files = MemoryFiles("folder")
    return files, LocalFolder(files, "films")


def test_a_committed_file_is_there_whole_after_a_power_cut() -> None:
    files, local = folder()
    archive = local.begin(NAME)
    archive.write([b"abc", b"def"])
    archive.write([b"ghi"])
    assert not local.exists(NAME)
    archive.commit()
    files.power_cut()
    assert local.exists(NAME)
    assert files.bytes_of(f"films/{NAME}") == b"abcdefghi"


def test_a_large_file_is_synced_in_pieces() -> None:
    files, local = folder()
    archive = local.begin(NAME)
    files.call_names = []
    for _ in range(5):
        archive.write([b"x" * (SYNC_BYTES // 2)])
    assert files.call_names.count("sync") == 2


def test_an_abandoned_file_leaves_nothing() -> None:
    files, local = folder()
    archive = local.begin(NAME)
    archive.write([b"abc"])
    archive.abandon()
    assert not local.exists(NAME)
    assert not local.exists(NAME + ".tmp")


def test_what_another_start_left_in_part_is_overwritten() -> None:
    files, local = folder()
    local.begin(NAME).write([b"longer than the next"])
    archive = local.begin(NAME)
    archive.write([b"next"])
    archive.commit()
    assert files.bytes_of(f"films/{NAME}") == b"next"
    assert not local.exists(NAME + ".tmp")


def test_a_power_cut_at_any_call_leaves_the_whole_file_or_none() -> None:
    for nth in range(1, 30):
        files, local = folder()
        files.plan(nth, Fault.POWER_CUT)
        try:
            archive = local.begin(NAME)
            archive.write([b"abc" * 1000])
            archive.commit()
        except PowerCut:
            files.power_cut()
        else:
            assert nth > 5
            break
        if local.exists(NAME):
            assert files.bytes_of(f"films/{NAME}") == b"abc" * 1000
    else:
        pytest.fail("a commit takes more calls than it should")


def test_an_empty_folder_name_is_the_root() -> None:
    files = MemoryFiles("root")
    archive = LocalFolder(files, "").begin("x.avro")
    archive.commit()
    assert files.exists("x.avro")
