"""Two folders change names in one step."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest

from hubweir.pipelines.lake.folder_exchange import exchange


def two(folder: Path) -> tuple[Path, Path]:
    first, second = folder / "first ü", folder / "second"
    for path in (first, second):
        path.mkdir()
        (path / "name").write_text(path.name)
    return first, second


@pytest.mark.skipif(sys.platform != "linux", reason="no such call here: then two renames do")
def test_what_was_in_the_one_is_in_the_other(tmp_path: Path) -> None:
    first, second = two(tmp_path)
    assert exchange(first, second)
    assert [(path / "name").read_text() for path in (first, second)] == ["second", "first ü"]
    with pytest.raises(FileNotFoundError):
        exchange(first, tmp_path / "nowhere")


def test_where_there_is_no_such_call_nothing_is_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = two(tmp_path)
    monkeypatch.setattr(ctypes, "CDLL", lambda name, use_errno: object())
    assert not exchange(first, second)
    assert (first / "name").read_text() == "first ü"
