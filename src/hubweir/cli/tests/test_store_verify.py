"""A verification tells how far it is, finds marks of capture that are wrong, and takes nothing that is being written
for torn or missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hubweir.cli import store_verify
from hubweir.cli.data_folder import DataFolder
from hubweir.cli.main import hubweir
from hubweir.messaging_store.disk.notes import notes_name
from hubweir.namespace.capture_description import CaptureDescription
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


def test_one_log_is_no_logs(folder: Path) -> None:
    assert verify(folder).stdout.startswith("1 log, ")


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


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of a stopped service: one hub of one partition that is captured."""
    data = tmp_path_factory.mktemp("captured") / "data"
    with running_namespace(data=str(data)) as namespace:
        namespace.create_event_hub("hub", capture=CaptureDescription(enabled=True))
    return data


@pytest.fixture
def mark(captured: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The mark of its capture, put back afterwards. A second look comes at once."""
    monkeypatch.setattr(store_verify.time, "sleep", float)
    [path] = (captured / DataFolder(captured).find("hub/0").folder).glob("notes-*")
    whole = path.read_bytes()
    yield path
    path.write_bytes(whole)


def test_a_captured_hub_whose_mark_is_whole_is_sound(captured: Path, mark: Path) -> None:
    result = verify(captured)
    assert (result.exit_code, "everything is sound" in result.output) == (0, True), result.output


def test_a_damaged_mark_is_a_finding_with_what_a_start_makes_of_it(captured: Path, mark: Path) -> None:
    data = bytearray(mark.read_bytes())
    data[-1] ^= 1
    mark.write_bytes(data)
    result = verify(captured)
    assert result.exit_code == 1 and "one of its two copies" in result.output and "two files" not in result.output
    data[0] ^= 1
    mark.write_bytes(data)
    result = verify(captured)
    assert result.exit_code == 1
    for part in ("capture mark", str(mark.relative_to(captured)), "damaged", "events may be in two files", "hub hub"):
        assert part in result.output


def test_a_missing_mark_of_a_captured_hub_is_a_finding(captured: Path, mark: Path) -> None:
    mark.unlink()
    result = CliRunner().invoke(hubweir, ["store", "verify", "--data", str(captured), "--json"])
    assert result.exit_code == 1
    (finding,) = json.loads(result.output)["findings"]
    assert (finding["kind"], finding["path"]) == ("capture mark", str(mark.parent.relative_to(captured)))
    assert "not there" in finding["text"]


def test_a_mark_that_is_there_at_the_second_look_was_only_being_made(
    captured: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = mark.read_bytes()
    mark.unlink()
    monkeypatch.setattr(store_verify.time, "sleep", lambda seconds: mark.write_bytes(whole))
    assert verify(captured).exit_code == 0


def test_a_hub_that_is_not_captured_needs_no_mark_and_damaged_notes_are_told(folder: Path) -> None:
    assert verify(folder).exit_code == 0
    path = folder / DataFolder(folder).find("hub/0").folder / notes_name(1)
    path.write_bytes(b"anything")
    result = verify(folder)
    assert result.exit_code == 1 and "capture mark" not in result.output
    assert "notes" in result.output and "checksums do not fit" in result.output
