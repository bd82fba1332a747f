"""The cache of descriptors of SystemFiles: files that are closed for the bound are opened again when they are used."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hubweir.errors import StoreError
from hubweir.messaging_store.disk.files import SystemFiles


def test_a_file_that_takes_long_to_open_again_holds_up_no_sync_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles(tmp_path, descriptors=1)
    evicted, other = files.open("evicted", create=True), files.open("other", create=True)
    files.open("third", create=True).close()
    opens, go_on, is_opening = os.open, threading.Event(), threading.Event()

    def hangs(path: str, *arguments: int) -> int:
        if path.endswith("evicted"):
            is_opening.set()
            assert go_on.wait(20)
        return opens(path, *arguments)

    monkeypatch.setattr(os, "open", hangs)
    size: list[int] = []
    thread = threading.Thread(target=lambda: size.append(evicted.size()))
    thread.start()
    assert is_opening.wait(20)
    other.write_and_sync(0, [b"not held up"])
    go_on.set()
    thread.join()
    assert size == [0] and other.size() == 11


def test_a_file_that_is_closed_while_it_is_opened_again_leaves_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles(tmp_path, descriptors=1)
    evicted = files.open("evicted", create=True)
    files.open("other", create=True).close()
    files._descriptors.drop(evicted)  # type: ignore[arg-type]
    opens, opened = os.open, []

    def closed_meanwhile(path: str, *arguments: int) -> int:
        opened.append(opens(path, *arguments))
        evicted.close()
        return opened[-1]

    monkeypatch.setattr(os, "open", closed_meanwhile)
    with pytest.raises(StoreError, match="closed"):
        evicted.size()
    assert files._descriptors.count() == 0
    with pytest.raises(OSError):
        os.fstat(opened[0])


def test_what_goes_over_the_bound_when_a_file_is_opened_again_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles(tmp_path, descriptors=2)
    opened = [files.open(f"f{number}", create=True) for number in range(5)]
    closes, closed = os.close, []

    def noted(fd: int) -> None:
        closed.append(fd)
        closes(fd)

    monkeypatch.setattr(os, "close", noted)
    for number in range(5):
        opened[number].size()
        assert files._descriptors.count() == 2 and len(closed) == number + 1


def test_two_threads_that_open_a_file_again_share_one_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles(tmp_path)
    file = files.open("f", create=True)
    files._descriptors.drop(file)  # type: ignore[arg-type]
    opens, opened = os.open, []

    def twice(path: str, *arguments: int) -> int:
        if not opened:
            opened.append(-1)
            file.size()  # as another thread would
        opened.append(opens(path, *arguments))
        return opened[-1]

    monkeypatch.setattr(os, "open", twice)
    assert file.size() == 0 and files._descriptors.count() == 1
    with pytest.raises(OSError):
        os.fstat(opened[-1])
