"""hubweir store: what lies in a data folder, under a running server, after a crash, and damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hubweir.capture.capture_mark import MARK_KEY, CaptureMark, pack_mark
from hubweir.cli.data_folder import DataFolder, NoSuchLog, Unreadable
from hubweir.cli.main import hubweir
from hubweir.errors import StoreError
from hubweir.messaging_store.disk.notes import notes_name, pack_notes
from hubweir.messaging_store.disk.whole_file import seal_twice
from hubweir.messaging_store.log import Note
from hubweir.testing.running_namespace import RunningNamespace
from hubweir.testing.server_process import ServerProcess

BODIES = [f"event number {number}" for number in range(12)]


@pytest.fixture(scope="module")
def data(namespace: RunningNamespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data folder of the live namespace: a hub of two partitions that holds BODIES, and one that was deleted."""
    environment = {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}

    def typed(*arguments: str) -> None:
        result = CliRunner().invoke(hubweir, arguments, env=environment)
        assert result.exit_code == 0, result.output

    typed("eventhub", "create", "Seen", "--partitions", "2")
    typed("eventhub", "create", "gone", "--partitions", "1")
    typed("eventhub", "delete", "gone", "--yes")
    typed("authorization-rule", "create", "mine", "--rights", "send")
    for body in BODIES:
        typed("send", "Seen", body, "--partition", "1")
    typed("send", "Seen", "kept by its key", "--key", "table-7")
    typed("send", "Seen", "sent in a name", "--publisher", "device-7")
    yield Path(namespace.service.settings.data)


@pytest.fixture
def copy(data: Path, tmp_path: Path) -> Path:
    """The folder as a killed process leaves it, to be damaged."""
    shutil.copytree(data, tmp_path / "data", ignore=shutil.ignore_patterns("*.new"))
    return tmp_path / "data"


def look(*arguments: str, data: Path) -> Result:
    return CliRunner().invoke(hubweir, ["store", *arguments, "--data", str(data)])


def document(*arguments: str, data: Path) -> Any:
    result = look(*arguments, "--json", data=data)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def newest_segment(folder: Path, name: str) -> Path:
    log = DataFolder(folder).find(name)
    return max((folder / log.store / "logs" / log.log_id).glob("*.log"), key=lambda path: path.name.split("-")[1])


def test_every_log_is_listed_with_its_entity_while_the_server_runs(data: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.rglob("*")}
    rows = {row["entity"]: row for row in document("list", data=data)}
    assert list(rows) == ["catalog of hubweir", "hub Seen, partition 0", "hub Seen, partition 1"]
    held = rows["hub Seen, partition 1"]
    assert (held["first"], held["state"], held["durability"], held["hub"]) == (0, "", "durable", "Seen")
    assert held["last"] >= len(BODIES) - 1 and held["last_offset"] > 0 and held["segments"] == 1
    assert held["first_enqueued_time_ms"] <= held["last_enqueued_time_ms"]
    assert held["bytes"] > 0 and held["epoch"] == 1
    output = look("list", data=data).output
    assert "hub Seen, partition 1" in output and held["log"] in output
    assert {path: path.stat().st_mtime_ns for path in data.rglob("*")}.keys() == before.keys()


def test_one_log_is_shown_by_hub_and_partition_by_id_and_as_the_catalog(data: Path) -> None:
    by_name = document("show", "seen/1", data=data)
    assert by_name == document("show", by_name["log"], data=data)
    (segment,) = by_name["segments_in_order"]
    assert (segment["first_index"], segment["end_index"], segment["epoch"]) == (0, None, 1)
    assert by_name["next_index"] == by_name["last"] + 1
    assert document("show", "catalog", data=data)["entity"] == "catalog of hubweir"
    assert "hub Seen, partition 1" in look("show", "seen/1", data=data).output
    for name in ("seen/2", "nothing", "seen"):
        assert isinstance(look("show", name, data=data).exception, NoSuchLog)


def test_the_mark_of_capture_is_shown_and_is_no_other_file(copy: Path) -> None:
    assert document("show", "Seen/1", data=copy)["capture"] is None
    mark = CaptureMark(b"s" * 16, 5, 0, 0, last_file="a/b.avro", files=2)
    path = newest_segment(copy, "Seen/1").parent / notes_name(1)
    path.write_bytes(seal_twice(pack_notes([Note(MARK_KEY, pack_mark(mark), 5, 0, 0)])))
    shown = document("show", "Seen/1", data=copy)
    assert (shown["capture"]["next_sequence_number"], shown["capture"]["last_file"]) == (5, "a/b.avro")
    assert shown["capture"]["behind_events"] == shown["next_index"] - 5 and path.name not in shown["other_files"]
    output = look("show", "Seen/1", data=copy).output
    assert "2 files, the newest a/b.avro" in output


def test_records_are_shown_with_their_bodies_from_any_number_on(data: Path) -> None:
    records = document("records", "Seen/1", "--body", "--count", str(len(BODIES)), data=data)
    assert [record["body"] for record in records] == BODIES
    assert [record["sequence_number"] for record in records] == list(range(len(BODIES)))
    few = document("records", "Seen/1", "--body", "--from", "5", "--count", "2", data=data)
    assert [record["body"] for record in few] == BODIES[5:7]
    assert few == records[5:7]
    assert BODIES[3] in look("records", "Seen/1", "--body", data=data).output


def test_batches_are_shown_with_key_publisher_and_checksum(data: Path) -> None:
    batches = [batch for part in "01" for batch in document("records", f"Seen/{part}", data=data)]
    assert {batch["crc"] for batch in batches} == {"sound"}
    assert "table-7" in {batch.get("partition_key") for batch in batches}
    assert "device-7" in {batch.get("publisher") for batch in batches}
    output = look("records", "Seen/1", data=data).output + look("records", "Seen/0", data=data).output
    assert "key table-7" in output and "publisher device-7" in output and "events" in output


def test_the_catalogs_records_are_named_and_no_key_is_shown(data: Path, namespace: RunningNamespace) -> None:
    output = look("records", "catalog", "--body", data=data).output + look("records", "catalog", data=data).output
    assert "IntendCreate" in output and "DescribeNamespace" in output
    rules = namespace.service.gateway.namespace.description.rules
    assert {rule.name for rule in rules} >= {"mine"}
    assert not any(rule.primary.reveal() in output for rule in rules)


def test_a_sound_folder_verifies_while_the_server_runs(data: Path) -> None:
    result = look("verify", data=data)
    assert result.exit_code == 0 and "everything is sound" in result.output, result.output
    found = document("verify", data=data)
    assert (found["logs"], found["findings"]) == (3, []) and found["verified_bytes"] > 0


def test_a_flipped_bit_is_found_at_its_place_and_the_rest_is_still_shown(copy: Path) -> None:
    segment = newest_segment(copy, "Seen/1")
    content = bytearray(segment.read_bytes())
    at = content.index(BODIES[4].encode())
    content[at] ^= 4
    segment.write_bytes(content)
    result = look("verify", data=copy)
    assert result.exit_code == 1
    (line,) = [line for line in result.output.splitlines() if "damage" in line]
    assert segment.name in line and "records 4 to 4" in line and "hub Seen, partition 1" in line
    place = int(line.split("from byte ")[1].split(":")[0])
    assert place < at < place + 400
    assert look("verify", "Seen/0", data=copy).exit_code == 0
    bodies = [record.get("body") for record in document("records", "Seen/1", "--body", data=copy)]
    assert bodies[:4] == BODIES[:4] and bodies[4] is None and bodies[5:9] == BODIES[5:9]
    assert "damage" in look("records", "Seen/1", data=copy).output
    assert f"damage from byte {place}" in look("records", "Seen/1", "--body", data=copy).output


def test_a_torn_tail_is_found_at_its_place(copy: Path) -> None:
    segment = newest_segment(copy, "Seen/1")
    content = segment.read_bytes()
    folder = DataFolder(copy)
    end = folder.recovered(folder.find("Seen/1")).end.position
    segment.write_bytes(content[:end] + content[128:200] + bytes(50))
    result = look("verify", "--json", data=copy)
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["kind"] == "torn tail" and finding["path"].endswith(segment.name)
    assert finding["position"] == end
    assert "torn tail" in look("records", "Seen/1", data=copy).output


def test_a_log_that_nobody_names_and_one_that_is_gone_are_told(copy: Path) -> None:
    gone = DataFolder(copy).find("Seen/0")
    shutil.rmtree(copy / gone.folder)
    (copy / "store-0" / "logs" / ("ef" * 16)).mkdir()
    rows = {row["log"]: row for row in document("list", data=copy)}
    assert rows[gone.log_id]["state"] == "missing"
    assert rows["ef" * 16]["entity"] == "unknown"
    result = look("verify", data=copy)
    assert result.exit_code == 1 and "its folder is not there" in result.output
    assert f"no catalog names log {'ef' * 16}" in result.output


def test_what_the_store_remembers_of_a_log_is_verified(copy: Path) -> None:
    log = DataFolder(copy).find("Seen/1")
    (copy / log.store / "newest" / log.log_id).write_bytes(b"junk")
    (line,) = look("verify", data=copy).output.splitlines()[:-1]
    assert ": newest: " in line and log.log_id in line


def test_a_lost_log_is_made_anew_behind_its_numbers_and_only_then(copy: Path) -> None:
    lost = DataFolder(copy).find("Seen/1")
    result = look("renew", "Seen/1", data=copy)
    assert isinstance(result.exception, StoreError) and "is not lost" in str(result.exception)
    shutil.rmtree(copy / lost.folder)
    result = look("renew", "Seen/1", data=copy)
    assert result.exit_code == 0, result.exception
    folder = DataFolder(copy)
    assert folder.recovered(folder.find("Seen/1")).end.index > len(BODIES)
    assert look("verify", data=copy).exit_code == 0
    assert isinstance(look("renew", "catalog", data=copy).exception, NoSuchLog)


def test_a_lost_log_that_the_store_forgot_is_made_anew_where_a_person_says(copy: Path) -> None:
    lost = DataFolder(copy).find("Seen/1")
    shutil.rmtree(copy / lost.folder)
    (copy / lost.store / "newest" / lost.log_id).unlink()
    result = look("renew", "Seen/1", data=copy)
    assert "nothing tells which numbers" in str(result.exception)
    assert look("list", data=copy).output.count("missing") == 1
    result = look("renew", "Seen/1", "--sequence-number", "5000", "--offset", "1000000", data=copy)
    assert result.exit_code == 0 and "next sequence number is 5000" in result.output
    folder = DataFolder(copy)
    end = folder.recovered(folder.find("Seen/1")).end
    assert (end.index, end.offset) == (5_000, 1_000_000)


def test_what_is_no_data_folder_is_said_and_not_made(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert isinstance(look("list", data=folder).exception, NoSuchLog)
    assert list(tmp_path.iterdir()) == []


def test_with_several_namespaces_a_log_is_named_with_its_own(tmp_path: Path) -> None:
    hub = {"Name": "same", "PartitionCount": 1}
    spaces = [{"Name": name, "Hostnames": [f"{name}.example"], "Entities": [hub]} for name in ("one", "two")]
    config = tmp_path / "Config.json"
    config.write_text(json.dumps({"UserConfig": {"NamespaceConfig": spaces}}))
    with ServerProcess(tmp_path / "data", arguments=("--emulator-config", str(config))):
        rows = document("list", data=tmp_path / "data")
        named = {row["entity"]: row for row in rows}
        assert set(named) == {
            "catalog of one",
            "catalog of two",
            "hub same, partition 0 of one",
            "hub same, partition 0 of two",
        }
        second = document("show", "two/SAME/0", data=tmp_path / "data")
        assert second["log"] == named["hub same, partition 0 of two"]["log"]
        assert document("show", "catalog/one", data=tmp_path / "data")["namespace"] == "one"
        for ambiguous in ("same/0", "catalog"):
            assert "several logs" in str(look("show", ambiguous, data=tmp_path / "data").exception)
        assert look("verify", data=tmp_path / "data").exit_code == 0


def test_what_the_system_does_not_let_be_read_is_one_line(copy: Path) -> None:
    segment = newest_segment(copy, "Seen/1")
    segment.unlink()
    segment.symlink_to(segment)
    result = look("show", "Seen/1", data=copy)
    assert isinstance(result.exception, Unreadable) and segment.name in str(result.exception)
