"""What a program is given, without a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job, local_folder

TEXT = "Endpoint=sb://localhost;SharedAccessKeyName=r;SharedAccessKey=k;UseDevelopmentEmulator=true"


def job(checkpoint: str) -> Job:
    raw = {
        "pipeline": "to-lake",
        "checkpoint": checkpoint,
        "source": {"eventHub": "o", "connectionString": TEXT},
        "sink": {"path": "lake", "compactAfter": "2m"},
    }
    return Job(None, describe(raw, "test"))  # type: ignore[arg-type]


def test_values_have_their_kinds() -> None:
    one = job("c")
    assert (one.text("schema"), one.flag("compact"), one.sink("path"), one.sink_number("compactAfter")) == (
        "", True, "lake", 120.0,
    )  # fmt: skip
    assert one.options.event_hub == "o"


def test_notes_are_kept_in_the_checkpoint(tmp_path: Path) -> None:
    assert job(f"file://{tmp_path}/c").notes() == tmp_path / "c" / "hubweir"
    assert (tmp_path / "c" / "hubweir").is_dir()
    with pytest.raises(IllegalDescription, match="hdfs://host/c: to-lake keeps notes"):
        job("hdfs://host/c").notes()


def test_local_folders_are_told_from_others() -> None:
    assert (local_folder("a/b"), local_folder("file:///a%20b"), local_folder("s3a://b/c")) == (
        Path("a/b"), Path("/a b"), None,
    )  # fmt: skip


def test_identity_is_the_checkpoints_own_and_stays(tmp_path: Path) -> None:
    first, other = job(str(tmp_path / "a")).identity(), job(str(tmp_path / "b")).identity()
    assert job(str(tmp_path / "a")).identity() == first != other
