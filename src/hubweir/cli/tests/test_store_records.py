"""hubweir store records: how far it reads, what it shows of damage and of a torn tail, in rows and in JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hubweir.cli.data_folder import DataFolder
from hubweir.cli.main import hubweir
from hubweir.testing.running_namespace import RunningNamespace

# One batch each, so that batches have 2, 3, 1 and 4 records.
SENDS = [["a0", "a1"], ["b2", "b3", "b4"], ["c5"], ["d6", "d7", "d8", "d9"]]


@pytest.fixture(scope="module")
def data(namespace: RunningNamespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of the live namespace with one hub of one partition."""
    environment = {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
    namespace.create_event_hub("kept")
    for bodies in SENDS:
        result = CliRunner().invoke(hubweir, ["send", "kept", *bodies, "--partition", "0"], env=environment)
        assert result.exit_code == 0, result.output
    yield Path(namespace.service.settings.data)


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    """The folder as a killed process leaves it, to be damaged."""
    shutil.copytree(data, tmp_path / "data", ignore=shutil.ignore_patterns("*.new"))
    return tmp_path / "data"


def records(data: Path, *arguments: str) -> Any:
    """The JSON of one call."""
    shown = CliRunner().invoke(hubweir, ["store", "records", "kept/0", *arguments, "--data", str(data), "--json"])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def rows(data: Path, *arguments: str) -> str:
    shown = CliRunner().invoke(hubweir, ["store", "records", "kept/0", *arguments, "--data", str(data)])
    assert shown.exit_code == 0, shown.output
    return shown.stdout


def events_of(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in found if each["kind"] == "events"]


def segment_of(folder: Path) -> tuple[Path, int]:
    """The one segment file of the log, and where its batches end."""
    seen = DataFolder(folder)
    log = seen.find("kept/0")
    (path,) = (folder / log.folder).glob("*.log")
    return path, seen.recovered(log).end.position


def test_batches_are_shown_whole_and_reading_ends_with_the_one_that_has_the_last_record(data: Path) -> None:
    assert [each["count"] for each in events_of(records(data))] == [2, 3, 1, 4]
    for count, batches in ((1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (7, 4)):
        assert len(events_of(records(data, "--count", str(count)))) == batches, count
    found = events_of(records(data, "--from", "3", "--count", "2"))
    assert [(each["sequence_number"], each["count"]) for each in found] == [(2, 3)], "3 and 4 stand in one batch"
    found = events_of(records(data, "--from", "4", "--count", "2"))
    assert [each["sequence_number"] for each in found] == [2, 5], "the count begins at --from, not at its batch"


def test_records_are_exactly_those_that_were_asked_for(data: Path) -> None:
    everything = [body for bodies in SENDS for body in bodies]
    for start, count in ((0, 100), (0, 3), (4, 1), (4, 3), (9, 5), (10, 5)):
        found = records(data, "--body", "--from", str(start), "--count", str(count))
        assert [each["body"] for each in found] == everything[start : start + count], (start, count)
    assert "c5" in rows(data, "--body", "--from", "5", "--count", "1")


def test_a_damaged_batch_stands_between_the_sound_ones(copy: Path) -> None:
    path, _ = segment_of(copy)
    damaged = events_of(records(copy))[1]
    content = bytearray(path.read_bytes())
    content[damaged["position"] + damaged["bytes"] - 1] ^= 1
    path.write_bytes(content)
    found = records(copy)
    hurt = [each for each in found if each["crc"] == "damaged"]
    assert [(each["position"], each["sequence_number"]) for each in hurt] == [(damaged["position"], 2)]
    assert hurt[0]["resumes_at_sequence_number"] == 5
    bodies = records(copy, "--body")
    assert [each.get("body") for each in bodies] == ["a0", "a1", None, "c5", "d6", "d7", "d8", "d9"]
    assert f"damage from byte {damaged['position']}" in rows(copy, "--body")


def test_a_torn_tail_is_a_line_below_the_table_and_leaves_the_json_as_it_was(copy: Path) -> None:
    path, end = segment_of(copy)
    before = records(copy)
    content = bytearray(path.read_bytes())
    content[end : end + 40] = content[128:168]
    path.write_bytes(content)
    *_, last = rows(copy).splitlines()
    assert last.startswith(f"{DataFolder(copy).find('kept/0').folder}") and f"from byte {end}: torn tail" in last
    assert records(copy) == before


def test_a_count_of_none_or_a_start_below_zero_is_a_usage_error(data: Path) -> None:
    for wrong in (("--count", "0"), ("--from", "-1")):
        typed = CliRunner().invoke(hubweir, ["store", "records", "kept/0", *wrong, "--data", str(data)])
        assert typed.exit_code == 2
