"""Captured files are known by the names that hubs give, and copied once, with what ends a copy in the middle."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hubweir.service import captured_files as captured_files_module
from hubweir.service.captured_files import captured_files, copy_captured

TWO = re.compile(r"files/two/.*\.avro")


def made(top: Path, *names: str) -> Path:
    for name in names:
        path = top / "capture" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
        os.utime(path, (1_000, 2_000))
    return top


def held(top: Path) -> dict[str, bytes]:
    folder = top / "capture"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_still_being_made_and_what_others_have_is_left_out(tmp_path: Path) -> None:
    names = ("files/two/a.avro", "files/two/b.avro.tmp", "files/two/c.claim", "files/one/d.avro", "files/two/x/e.avro")
    source = made(tmp_path, *names)
    found = {path.as_posix() for path in captured_files(source, TWO)}
    assert found == {"capture/files/two/a.avro", "capture/files/two/x/e.avro"}
    everything = {path.as_posix() for path in captured_files(source, None)}
    assert everything == found | {"capture/files/one/d.avro"}


def test_a_folder_without_captured_files_has_none(tmp_path: Path) -> None:
    assert list(captured_files(tmp_path, None)) == []


def test_files_come_with_their_times_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    source = made(tmp_path / "source", "files/two/a.avro", "files/two/b.avro")
    target = made(tmp_path / "target", "files/two/a.avro")
    (target / "capture/files/two/a.avro").write_bytes(b"as it is")
    copy_captured(source, target, TWO)
    assert held(target) == {"files/two/a.avro": b"as it is", "files/two/b.avro": b"files/two/b.avro"}
    assert (target / "capture/files/two/b.avro").stat().st_mtime == 2_000


def test_what_a_crash_leaves_of_a_copy_is_not_taken_for_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next copy, which leaves what is there as it is, would never make it whole."""
    source, target = made(tmp_path / "source", "files/two/a.avro"), tmp_path / "target"

    def ends(path: Path) -> None:
        os.truncate(path, 3)
        raise InterruptedError

    with monkeypatch.context() as planted, pytest.raises(InterruptedError):
        planted.setattr(captured_files_module, "sync_path", ends)
        copy_captured(source, target, TWO)
    assert list(captured_files(target, None)) == []
    copy_captured(source, target, TWO)
    assert held(target) == {"files/two/a.avro": b"files/two/a.avro"}


def test_a_copy_can_be_ended_before_each_file(tmp_path: Path) -> None:
    source = made(tmp_path / "source", *(f"files/two/{number}.avro" for number in range(5)))
    left = [2]

    def go_on() -> None:
        if not left[0]:
            raise InterruptedError
        left[0] -= 1

    with pytest.raises(InterruptedError):
        copy_captured(source, tmp_path / "target", TWO, go_on)
    assert len(held(tmp_path / "target")) == 2
