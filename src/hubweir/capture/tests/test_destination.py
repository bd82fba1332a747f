"""The local folder: whole files or none, over power cuts, in the place of what was left in part."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hubweir.capture.archive_name import SUFFIX
from hubweir.capture.destination import CLAIM_SUFFIX, SYNC_BYTES, TMP_SUFFIX, LocalFolder
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.namespace.capture_description import FILE_NAME_LIMIT
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFiles

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
    archive.abandon()


@pytest.mark.parametrize("ends_there", [False, True], ids=["sync fails", "process ends"])
def test_a_folder_that_was_made_and_not_synced_is_synced_for_the_next_file(ends_there: bool) -> None:
    for nth in range(1, 6):
        for seed in range(5):
            files = MemoryFiles(seed)
            local = LocalFolder(files, "films")
            files.plan(Fault.SYNC_EIO, nth)
            with pytest.raises(OSError):
                local.claim(NAME)
            local = LocalFolder(files, "films") if ends_there else local
            local.claim(NAME)
            archive = local.begin(NAME)
            archive.write([b"abc"])
            archive.commit()
            files.power_cut()
            assert local.exists(NAME), f"sync {nth} failed, and a folder of the finished file was lost"


def test_folders_are_synced_once_and_again_when_somebody_removed_them() -> None:
    files, local = folder()
    local.claim(NAME)
    files.call_names = []
    local.claim(NAME + "2")
    assert files.call_names == ["create", "sync_folder"]
    files.remove_folder("films/ns")
    local.claim(NAME + "3")
    files.power_cut()
    assert files.exists(f"films/{NAME}3{CLAIM_SUFFIX}")


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
    files.process_died()
    archive = local.begin(NAME)
    archive.write([b"next"])
    archive.commit()
    assert files.bytes_of(f"films/{NAME}") == b"next"
    assert not local.exists(NAME + ".tmp")


def test_a_power_cut_at_any_call_leaves_the_whole_file_or_none() -> None:
    for nth in range(1, 30):
        files, local = folder()
        files.plan(Fault.POWER_CUT, nth)
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


@pytest.mark.parametrize("seed", range(8))
def test_a_claim_keeps_others_away_through_a_power_cut_until_it_is_let_go_of(seed: int) -> None:
    files = MemoryFiles(seed)
    local = LocalFolder(files, "films")
    assert local.claim(NAME)
    files.power_cut()
    assert not local.claim(NAME)
    local.release(NAME)
    assert local.claim(NAME)


def test_a_name_whose_file_is_there_is_not_claimed() -> None:
    files, local = folder()
    archive = local.begin(NAME)
    archive.commit()
    assert not local.claim(NAME)
    assert files.list("films/ns/hub/0/2020") == ["x.avro"]


def test_of_many_that_want_a_name_at_once_one_has_it(tmp_path: Path) -> None:
    places = [LocalFolder(SystemFiles(tmp_path), "films") for _ in range(8)]  # as eight services have them
    with ThreadPoolExecutor(8) as threads:
        for number in range(20):
            won = list(threads.map(lambda place, name=f"a/{number}.avro": place.claim(name), places))
            assert won.count(True) == 1


def test_the_longest_name_that_a_format_may_give_has_room_for_what_stands_behind_it() -> None:
    for suffix in (TMP_SUFFIX, CLAIM_SUFFIX):
        assert FILE_NAME_LIMIT + len(SUFFIX + suffix) <= 255
