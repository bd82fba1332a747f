"""A checkpoint is one pipeline's over one hub, and one run's at a time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hubweir.pipelines.checkpoint_owner import CheckpointOwner, locked_checkpoint
from hubweir.pipelines.errors import CheckpointInUse, IllegalDescription

MINE = CheckpointOwner("to-lake", "orders", "sb://here")
MINE_MISSPELT = CheckpointOwner("to-lake", "ordrs", "sb://here")


def test_a_second_run_is_refused_while_the_first_goes_on_and_let_in_afterwards(tmp_path: Path) -> None:
    with locked_checkpoint(tmp_path / "c", MINE):
        text = f"c is in use by another run, process {os.getpid()}: stop it first"
        with pytest.raises(CheckpointInUse, match=text), locked_checkpoint(tmp_path / "c", MINE):
            pass
        with locked_checkpoint(tmp_path / "other", MINE):
            pass
    with locked_checkpoint(tmp_path / "c", MINE):
        pass


def test_a_second_run_by_another_way_to_the_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "c")
    monkeypatch.chdir(tmp_path / "c")
    for way in (tmp_path / "link", Path(".")):
        with locked_checkpoint(tmp_path / "c", MINE), pytest.raises(CheckpointInUse), locked_checkpoint(way, MINE):
            pass


def test_a_run_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from hubweir.pipelines.checkpoint_owner import CheckpointOwner, locked_checkpoint\n"
        "owner = CheckpointOwner('to-lake', 'orders', 'sb://here')\n"
        "with locked_checkpoint(Path(sys.argv[1]), owner): print(1, flush=True); input()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "c")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(CheckpointInUse, match=f"process {holder.pid}"), locked_checkpoint(tmp_path / "c", MINE):
            pass
        holder.send_signal(signal.SIGKILL)
    with locked_checkpoint(tmp_path / "c", MINE):
        pass


def begin(note: Path) -> None:
    """As Spark, or a program, does when something is read for the first time."""
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text("{}")


def test_a_start_that_failed_before_anything_was_read_binds_nobody(tmp_path: Path) -> None:
    """Such as over a misspelt hub: the same command, spelt right, has to work."""
    for owner in (MINE_MISSPELT, MINE):
        with locked_checkpoint(tmp_path / "c", owner):
            begin(tmp_path / "c" / "hubweir" / "identity")
    begin(tmp_path / "c" / "hubweir" / "history.json")  # where history ends is of this hub
    with (
        pytest.raises(IllegalDescription, match="over event hub 'orders'"),
        locked_checkpoint(tmp_path / "c", MINE_MISSPELT),
    ):
        pass


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(MINE, pipeline="capture"), id="another pipeline"),
        pytest.param(replace(MINE, event_hub="bills"), id="another hub"),
        pytest.param(replace(MINE, endpoint="sb://there"), id="another namespace"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused_with_the_way_out(tmp_path: Path, other: CheckpointOwner) -> None:
    with locked_checkpoint(tmp_path / "c", MINE):
        begin(tmp_path / "c" / "offsets" / "0")
    text = "is of the pipeline to-lake over event hub 'orders' of sb://here"
    with pytest.raises(IllegalDescription, match=text), locked_checkpoint(tmp_path / "c", other):
        pass
    (tmp_path / "c" / "hubweir" / "owner.json").unlink()  # as the text says
    with locked_checkpoint(tmp_path / "c", other):
        pass


def test_a_claim_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    note = tmp_path / "c" / "hubweir" / "owner.json"
    note.parent.mkdir(parents=True)
    for text in ("", "[]", '{"pipeline": "to-lake"}', "{"):
        note.write_text(text)
        with (
            pytest.raises(IllegalDescription, match="does not say whose checkpoint"),
            locked_checkpoint(tmp_path / "c", MINE),
        ):
            pass


def test_a_checkpoint_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "hubweir").write_text("")
    for checkpoint in (tmp_path / "file" / "c", tmp_path / "file", tmp_path / "whole"):
        text = f"checkpoint {checkpoint} cannot be used: .*; give this pipeline a folder that it may write"
        with pytest.raises(IllegalDescription, match=text), locked_checkpoint(checkpoint, MINE):
            pass
