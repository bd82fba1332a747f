"""A file takes its name when it is whole, in place of the one before."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.pipelines.durable_file import publish, sync


def test_the_new_file_has_the_name_and_the_unfinished_one_is_gone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / ".a.new").write_text("new")
    publish(tmp_path / ".a.new", tmp_path / "a")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "new")]


def test_what_is_not_there_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / ".a.new", tmp_path / "a")
    assert (tmp_path / "a").read_text() == "old"
    sync(tmp_path)
