"""data_folder.py: a fresh folder is marked once, and one of another version is left as it is."""

from __future__ import annotations

import errno

import pytest

from hubweir.errors import CatalogLost, NewerFormat, OldFormat
from hubweir.service.data_folder import (
    FORMAT_NAME,
    FORMAT_TEXT,
    StoredLog,
    check_catalogs,
    own_data_folder,
    store_count,
    store_folder,
    stored_logs,
)
from hubweir.testing.memory_faults import Fault, PowerCut
from hubweir.testing.memory_files import MemoryFiles


def start(files: MemoryFiles) -> None:
    """What a start does with the format."""
    own_data_folder(files, "/srv/data").release()


def test_a_fresh_folder_is_marked_and_known_again() -> None:
    files = MemoryFiles()
    start(files)
    assert bytes(files.bytes_of(FORMAT_NAME)) == FORMAT_TEXT == b"hubweir data 3\n"
    calls = files.paths()
    start(files)
    assert files.paths() == calls and bytes(files.bytes_of(FORMAT_NAME)) == FORMAT_TEXT


@pytest.mark.parametrize("text", [b"hubweir data 4\n", b"hubweir data 2\n", b"hubweir data 3", b"", b"\xff" * 1000])
def test_any_other_format_is_refused_with_both_named_and_nothing_changed(text: bytes) -> None:
    files = MemoryFiles()
    files.open(FORMAT_NAME, create=True)
    files.set_bytes(FORMAT_NAME, text)
    is_old = text == b"hubweir data 2\n"
    with pytest.raises(
        OldFormat if is_old else NewerFormat, match="reads 'hubweir data 3'.*nothing was changed"
    ) as refused:
        start(files)
    assert "the data folder /srv/data says" in str(refused.value) and "another --data folder" in str(refused.value)
    assert len(str(refused.value)) < 300
    assert files.paths() == [FORMAT_NAME] and bytes(files.bytes_of(FORMAT_NAME)) == text


@pytest.mark.parametrize("seed", range(5))
def test_a_power_cut_leaves_a_folder_that_starts(seed: int) -> None:
    for nth in range(1, 20):
        files = MemoryFiles(seed)
        files.plan(Fault.POWER_CUT, nth)
        try:
            start(files)
        except PowerCut:
            files.heal()
            files.power_cut()
            start(files)
            assert bytes(files.bytes_of(FORMAT_NAME)) == FORMAT_TEXT
        else:
            break
    assert 3 < nth < 19  # cut at every call of it


def test_stores_are_numbered_as_placements_number_them() -> None:
    assert [store_folder(index) for index in (0, 12)] == ["store-0", "store-12"]


@pytest.mark.parametrize(
    ("names", "count"), [([], 0), (["store-0"], 1), (["store-0", "store-12"], 13), (["catalog", "store-x", "tls"], 0)]
)
def test_stores_are_counted_with_those_between_them_that_are_not_there(names: list[str], count: int) -> None:
    files = MemoryFiles()
    for name in names:
        files.make_folder(f"{name}/logs")
    assert store_count(files) == count


class OneBadDisk(MemoryFiles):
    """Nothing of store-1 can be read."""

    def list(self, folder: str) -> list[str]:
        if folder.startswith("store-1"):
            raise OSError(errno.EIO, "Input/output error", folder)
        return super().list(folder)


def test_a_store_that_cannot_be_read_hides_no_log_of_another() -> None:
    files = OneBadDisk()
    files.make_folder("store-1/logs/" + "cd" * 16)
    with pytest.raises(OSError, match="Input/output"):
        stored_logs(files)
    files.make_folder("store-0/logs/" + "ab" * 16)
    assert stored_logs(files) == [StoredLog("store-0", "ab" * 16)]


@pytest.mark.parametrize("part", ["logs", "newest"])
def test_logs_without_any_catalog_end_a_start_with_nothing_touched(part: str) -> None:
    files = MemoryFiles()
    check_catalogs(files)
    files.make_folder("store-0/logs")
    check_catalogs(files)
    if part == "logs":
        files.make_folder("store-0/logs/" + "ab" * 16)
    else:
        files.make_folder("store-0/newest")
        files.set_bytes("store-0/newest/" + "ab" * 16, b"")
    before = files.paths()
    with pytest.raises(CatalogLost, match="Put catalog back from a backup"):
        check_catalogs(files)
    assert files.paths() == before and not files.exists("catalog")
    files.make_folder("catalog/logs/" + "cd" * 16)
    check_catalogs(files)


def test_a_folder_without_its_catalogs_is_left_unlocked() -> None:
    files = MemoryFiles()
    files.make_folder("store-0/logs/" + "ab" * 16)
    with pytest.raises(CatalogLost):
        own_data_folder(files, "/srv/data")
    assert not files.locks
