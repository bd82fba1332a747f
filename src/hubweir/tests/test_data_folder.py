"""data_folder.py: a fresh folder is marked once, and one of another version is left as it is."""

from __future__ import annotations

import pytest

from hubweir.data_folder import FORMAT_NAME, FORMAT_TEXT, check_data_format, store_folder
from hubweir.errors import NewerFormat
from hubweir.testing.memory_files import Fault, MemoryFiles, PowerCut


def test_a_fresh_folder_is_marked_and_known_again() -> None:
    files = MemoryFiles()
    check_data_format(files)
    assert bytes(files.bytes_of(FORMAT_NAME)) == FORMAT_TEXT == b"hubweir data 1\n"
    calls = files.paths()
    check_data_format(files)
    assert files.paths() == calls and bytes(files.bytes_of(FORMAT_NAME)) == FORMAT_TEXT


@pytest.mark.parametrize("text", [b"hubweir data 2\n", b"hubweir data 1", b"", b"\xff" * 1000])
def test_any_other_format_is_refused_with_both_named_and_nothing_changed(text: bytes) -> None:
    files = MemoryFiles()
    files.open(FORMAT_NAME, create=True)
    files.set_bytes(FORMAT_NAME, text)
    with pytest.raises(NewerFormat, match="reads 'hubweir data 1'.*nothing was changed") as refused:
        check_data_format(files)
    assert len(str(refused.value)) < 300
    assert files.paths() == [FORMAT_NAME] and bytes(files.bytes_of(FORMAT_NAME)) == text


@pytest.mark.parametrize("seed", range(5))
def test_a_power_cut_leaves_a_folder_that_starts(seed: int) -> None:
    for nth in range(1, 20):
        files = MemoryFiles(seed)
        files.plan(nth, Fault.POWER_CUT)
        try:
            check_data_format(files)
        except PowerCut:
            files.heal()
            files.power_cut()
            check_data_format(files)
            assert bytes(files.bytes_of(FORMAT_NAME)) == FORMAT_TEXT
        else:
            break
    assert 3 < nth < 19  # cut at every call of it


def test_stores_are_numbered_as_placements_number_them() -> None:
    assert [store_folder(index) for index in (0, 12)] == ["store-0", "store-12"]
