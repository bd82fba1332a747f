"""A verification tells how far it is, and does not take a log that is being written for a torn one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hubweir.cli import store_verify
from hubweir.cli.data_folder import DataFolder
from hubweir.cli.main import hubweir
from hubweir.testing.running_namespace import running_namespace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder of a stopped service: one hub of one partition with three events, its reserved space cut off."""
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("hub")
        environment = {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
        sent = CliRunner().invoke(hubweir, ["send", "hub", "one", "two", "three"], env=environment)
        assert sent.exit_code == 0, sent.output
    return tmp_path / "data"


def verify(folder: Path) -> Result:
    return CliRunner().invoke(hubweir, ["store", "verify", "hub/0", "--data", str(folder)])


def segment_of(folder: Path) -> Path:
    (segment,) = (folder / DataFolder(folder).find("hub/0").folder).glob("*.log")
    return segment


def test_progress_is_told_on_standard_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_verify, "PROGRESS_EVERY_S", 0)
    result = verify(folder)
    assert result.exit_code == 0 and "MiB verified" in result.stderr
    assert "MiB verified" not in result.stdout


@pytest.mark.parametrize("second_look", ["the rest has come", "nothing has come"])
def test_a_tail_that_is_whole_at_the_second_look_was_only_being_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, second_look: str
) -> None:
    segment = segment_of(folder)
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-20])  # inside the closing mark

    def rest_comes(seconds: float) -> None:
        if second_look == "the rest has come":
            segment.write_bytes(whole)

    pause: Callable[[float], None] = rest_comes
    monkeypatch.setattr(store_verify.time, "sleep", pause)
    result = verify(folder)
    torn = second_look == "nothing has come"
    assert (result.exit_code, "torn tail" in result.output) == (int(torn), torn), result.output
