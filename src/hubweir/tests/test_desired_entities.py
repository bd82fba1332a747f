"""A Config.json at start: made once, changed where it may be, told where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubweir.cli.given_settings import configured
from hubweir.config.problems import EmulatorFileError
from hubweir.config.settings import Settings
from hubweir.gateway.gateway import Gateway
from hubweir.launcher import Service
from hubweir.namespace.descriptions import Availability
from hubweir.testing.event_loops import run_on


def write(folder: Path, *namespaces: dict[str, Any]) -> Path:
    file = folder / "Config.json"
    text = json.dumps(
        {"UserConfig": {"NamespaceConfig": list(namespaces), "LoggingConfig": {"Type": "Console"}}}, indent=1
    )
    file.write_text(text)
    return file


def state_of(gateway: Gateway) -> dict[str, Any]:
    namespace = gateway.namespace
    return {
        "name": namespace.description.name,
        "units": (namespace.description.units.held, namespace.description.units.maximum),
        "rules": {rule.name: (rule.rights, rule.primary.reveal()) for rule in namespace.description.rules},
        "hubs": {hub.name: hub.description for hub in namespace.hubs()},
        "version": namespace.version,
    }


def start(folder: Path, file: Path, **flags: object) -> dict[str, Any]:
    """Start on folder with the file as `hubweir serve` does, and say what is there; stopped again."""
    given = {"data": str(folder / "data"), "port": (0,), "emulator_config": (str(file),), **flags}
    settings, namespaces = configured(given, {}, None)

    async def run() -> dict[str, Any]:
        service = await Service.start(settings, namespaces)
        try:
            first, *further = (state_of(gateway) for gateway in service.process.gateways)
            return {**first, "beside": {each["name"]: each for each in further}}
        finally:
            await service.stop()

    return run_on("asyncio", run())


HUB = {"Name": "eh1", "PartitionCount": 2, "ConsumerGroups": [{"Name": "cg1"}]}


def test_what_a_file_names_is_there_when_the_service_is_ready(tmp_path: Path) -> None:
    rules = [{"KeyName": "send-only", "PrimaryKey": "abc", "Rights": ["Send"]}]
    file = write(tmp_path, {"Name": "ns1", "ThroughputUnits": 2, "AuthorizationRules": rules, "Entities": [HUB]})
    found = start(tmp_path, file)
    assert (found["name"], found["units"]) == ("ns1", (2, 0))
    assert found["rules"]["send-only"][1] == "abc"
    assert (found["hubs"]["eh1"].partition_count, found["hubs"]["eh1"].consumer_groups) == (2, ("$Default", "cg1"))


def test_the_same_file_again_changes_nothing_and_a_changed_one_what_may_change(tmp_path: Path) -> None:
    file = write(tmp_path, {"Entities": [HUB]})
    first = start(tmp_path, file)
    again = start(tmp_path, file)
    assert first["name"] == "emulatorNs1"
    assert again["hubs"] == first["hubs"]
    write(tmp_path, {"Entities": [{**HUB, "ConsumerGroups": [{"Name": "cg2"}], "MessageRetentionInDays": 2}]})
    changed = start(tmp_path, file)["hubs"]["eh1"]
    assert changed.consumer_groups == ("$Default", "cg1", "cg2")
    assert changed.retention_ms == 2 * 86_400_000


def test_another_number_of_partitions_is_an_error_with_its_place_and_nothing_stays_open(tmp_path: Path) -> None:
    file = write(tmp_path, {"Entities": [HUB]})
    start(tmp_path, file)
    write(tmp_path, {"Entities": [{**HUB, "PartitionCount": 3}, {"Name": "other", "PartitionCount": 1}]})
    with pytest.raises(EmulatorFileError) as refused:
        start(tmp_path, file)
    (problem,) = refused.value.errors
    assert problem.location.path == "$.UserConfig.NamespaceConfig[0].Entities[0].PartitionCount"
    assert problem.location.line == 8
    assert "2 partitions for its whole life" in problem.what
    write(tmp_path, {"Entities": [HUB]})
    assert "eh1" in start(tmp_path, file)["hubs"]


def test_each_namespace_of_a_file_gets_its_own_entities_rules_units_and_quotas(tmp_path: Path) -> None:
    """The Premium one keeps events longer than the Standard one may; both have a hub and a rule of one name."""
    rule = {"KeyName": "send-only", "Rights": ["Send"]}
    plain = {
        "Name": "plain",
        "Sku": "Standard",
        "ThroughputUnits": 2,
        "AuthorizationRules": [{**rule, "PrimaryKey": "of plain"}],
        "Entities": [HUB],
    }
    large = {
        "Name": "large",
        "Sku": "Premium",
        "AuthorizationRules": [{**rule, "PrimaryKey": "of large"}],
        "Entities": [{**HUB, "PartitionCount": 4, "MessageRetentionInDays": 30}],
    }
    file = write(tmp_path, plain, large)
    for _ in range(2):  # another start finds both, and changes nothing
        found = start(tmp_path, file)
        beside = found["beside"]["large"]
        assert found["name"] == "plain"
        assert (found["units"], beside["units"]) == ((2, 0), (0, 0))
        assert (found["rules"]["send-only"][1], beside["rules"]["send-only"][1]) == ("of plain", "of large")
        assert (found["hubs"]["eh1"].partition_count, beside["hubs"]["eh1"].partition_count) == (2, 4)
        assert beside["hubs"]["eh1"].retention_ms == 30 * 86_400_000
    with pytest.raises(EmulatorFileError, match="profile 'standard'"):
        start(tmp_path, write(tmp_path, {**plain, "Entities": large["Entities"]}, large))


def test_several_files_make_one_service(tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    folder.mkdir()
    for name in ("a", "b"):
        write(folder, {"Name": name, "Entities": [HUB]}).rename(folder / f"{name}.json")
    found = start(tmp_path, folder)
    assert found["name"] == "a"
    assert list(found["beside"]) == ["b"]
    assert "eh1" in found["beside"]["b"]["hubs"]


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, {"Name": "ns1", "ThroughputUnits": 2, "Entities": []})
    found = start(tmp_path, file, namespace="mine", throughput_units=0)
    assert (found["name"], found["units"]) == ("mine", (0, 0))


def test_the_quotas_of_a_profile_hold_for_the_file(tmp_path: Path) -> None:
    hub = {"Name": "long", "PartitionCount": 1, "MessageRetentionInDays": 8}
    with pytest.raises(EmulatorFileError, match="profile 'standard'"):
        start(tmp_path, write(tmp_path, {"Sku": "Standard", "Entities": [hub]}))


def test_without_a_file_there_are_the_settings_alone(tmp_path: Path) -> None:
    settings, namespaces = configured({"data": str(tmp_path)}, {}, None)
    assert settings == Settings(data=str(tmp_path))
    assert [(each.name, each.entities) for each in namespaces] == [("hubweir", None)]


def test_status_and_user_metadata_are_as_the_file_says_and_stay_when_it_says_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, {"Entities": [{**HUB, "Status": "SendDisabled", "UserMetadata": "mine"}]})
    made = start(tmp_path, file)["hubs"]["eh1"]
    assert (made.availability, made.user_metadata) == (Availability.SEND_DISABLED, "mine")
    write(tmp_path, {"Entities": [HUB]})
    assert start(tmp_path, file)["hubs"]["eh1"] == made
    write(tmp_path, {"Entities": [{**HUB, "Status": "Active"}]})
    changed = start(tmp_path, file)["hubs"]["eh1"]
    assert (changed.availability, changed.user_metadata) == (Availability.ACTIVE, "mine")
    assert changed.updated_at_ms >= made.updated_at_ms


def test_capture_of_a_file_is_made_and_changed(tmp_path: Path) -> None:
    place = {"Name": "EventHubArchive.LocalFolder", "Properties": {"BlobContainer": "below"}}
    capture = {"Enabled": True, "IntervalInSeconds": 60, "Destination": place, "SkipEmptyArchives": True}
    made = start(tmp_path, write(tmp_path, {"Entities": [{**HUB, "CaptureDescription": capture}]}))
    its = made["hubs"]["eh1"].capture
    assert (its.enabled, its.interval_s, its.container, its.skip_empty_archives) == (True, 60, "below", True)
    file = write(tmp_path, {"Entities": [{**HUB, "CaptureDescription": {**capture, "IntervalInSeconds": 90}}]})
    assert start(tmp_path, file)["hubs"]["eh1"].capture.interval_s == 90
    same = start(tmp_path, write(tmp_path, {"Entities": [HUB]}))
    assert same["hubs"]["eh1"].capture.enabled


@pytest.mark.parametrize(
    ("capture", "needle"),
    [
        ({"Encoding": "AvroDeflate"}, "deprecated"),
        ({"Destination": {"Name": "EventHubArchive.AzureBlockBlob", "BlobContainer": "events"}}, "capture_storage"),
        ({"Destination": {"ArchiveNameFormat": "{Year}"}}, "nine tokens"),
    ],
)
def test_capture_that_cannot_be_ends_the_start_with_its_place(
    tmp_path: Path, capture: dict[str, Any], needle: str
) -> None:
    wanted = {**HUB, "CaptureDescription": {"Enabled": True, **capture}}
    with pytest.raises(EmulatorFileError, match=needle):
        start(tmp_path, write(tmp_path, {"Entities": [wanted]}))
