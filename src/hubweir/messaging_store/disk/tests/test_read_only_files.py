"""Files that nobody can change."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from hubweir.messaging_store.disk.read_only_files import LOOKS, ReadOnlyFiles, read_again
from hubweir.testing.memory_files import MemoryFiles


def disk() -> MemoryFiles:
    files = MemoryFiles()
    files.make_folder("folder")
    for path, data in (("folder/there", b"bytes"), ("folder/there.new", b"half of the by")):
        files.set_bytes(path, data)
    return files


def test_what_is_there_is_read_and_what_is_being_written_is_not_shown() -> None:
    files = ReadOnlyFiles(disk())
    assert files.list("folder") == ["there"]
    assert (files.exists("folder/there"), files.exists("folder/there.new")) == (True, False)
    file = files.open_to_read("folder/there")
    assert file.read(1, 3) == b"yte"
    file.close()


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.open("folder/there"),
        lambda files: files.open("folder/more", create=True),
        lambda files: files.make_folder("more"),
        lambda files: files.rename("folder/there", "folder/more"),
        lambda files: files.remove("folder/there"),
        lambda files: files.remove_folder("folder"),
        lambda files: files.sync_folder("folder"),
        lambda files: files.lock_folder("folder"),
    ],
)
def test_every_change_is_refused_and_none_happens(change: Callable[[ReadOnlyFiles], object]) -> None:
    files = disk()
    with pytest.raises(OSError) as refused:
        change(ReadOnlyFiles(files))
    assert refused.value.errno == errno.EROFS
    assert files.paths() == ["folder/there", "folder/there.new"] and not files.locks


def test_a_look_that_met_a_removal_looks_again_and_says_so_in_the_end() -> None:
    def removed_times(times: int) -> Callable[[], int]:
        looks = iter(range(times + 1))

        def look() -> int:
            if (nth := next(looks)) < times:
                raise FileNotFoundError("trimmed")
            return nth

        return look

    assert [read_again(removed_times(times)) for times in (0, 1, LOOKS - 1)] == [0, 1, LOOKS - 1]
    with pytest.raises(FileNotFoundError, match="trimmed"):
        read_again(removed_times(LOOKS))
