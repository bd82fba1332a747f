"""A Config.json at start: made once, changed where it may be, told where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubweir.cli.given_settings import configured
from hubweir.config.namespace_settings import Said, SaidNamespaces
from hubweir.config.problems import EmulatorFileError
from hubweir.config.settings import ROOT_RULE, BadSetting, Settings
from hubweir.gateway.gateway import Gateway
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.service import Service
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
        "profile": namespace.profile.name,
        "host": gateway.settings.host_name,
        "units": (namespace.description.units.held, namespace.description.units.maximum),
        "rules": {rule.name: (rule.rights, rule.primary.reveal()) for rule in namespace.description.rules},
        "hubs": {hub.name: hub.description for hub in namespace.entities(EventHubDescription)},
        "version": namespace.version,
    }


def start(folder: Path, file: Path | None, **flags: object) -> dict[str, Any]:
    """Start on folder with the file as `hubweir serve` does, and say what is there; stopped again."""
    files = {} if file is None else {"emulator_config": (str(file),)}
    given = {"data": str(folder / "data"), "port": (0,), **files, **flags}
    settings, said = configured(given, {}, None)

    async def run() -> dict[str, Any]:
        service = await Service.start(settings, said)
        try:
            first, *further = (state_of(gateway) for gateway in service.process.gateways)
            return {**first, "notes": service.notes, "beside": {each["name"]: each for each in further}}
        finally:
            await service.stop()

    return run_on("asyncio", run())


# This machine, by a name of which nobody knows that it is no other: only localhost and addresses are trusted so far.
BY_NAME = "127.1"
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


def root_rule(key: str) -> dict[str, Any]:
    rights = ["Manage", "Send", "Listen"]
    return {"AuthorizationRules": [{"KeyName": ROOT_RULE, "PrimaryKey": key, "Rights": rights}]}


def root_keys(found: dict[str, Any]) -> list[str]:
    """Primary keys of the root rules, the default namespace's first."""
    return [each["rules"][ROOT_RULE][1] for each in (found, *found["beside"].values())]


def test_the_root_rules_key_of_a_file_holds_in_every_namespace_and_sources_that_disagree_are_told(
    tmp_path: Path,
) -> None:
    item = {"Name": "one", "Entities": [HUB], **root_rule("of one")}
    file = write(tmp_path, item, {"Name": "two", "Entities": [HUB], **root_rule("of two")})
    found = start(tmp_path, file)
    assert root_keys(found) == ["of one", "of two"] and found["notes"] == ()
    found = start(tmp_path, file, key="of the flag")
    assert root_keys(found) == ["of one", "of two"]
    assert [note.partition(" give ")[0] for note in found["notes"]] == [
        f"namespace one: {file} and the flag --key",
        f"namespace two: {file} and the flag --key",
    ]
    write(tmp_path, {"Name": "one", "Entities": [HUB]}, {"Name": "two", "Entities": [HUB], **root_rule("another")})
    found = start(tmp_path, file)
    assert root_keys(found) == ["of one", "another"]  # what no source gives stays as the data folder has it
    (note,) = found["notes"]
    assert note.startswith(f"namespace two: the primary key of the rule {ROOT_RULE} became that of {file}; the data")


def test_a_service_whose_files_give_every_namespace_a_key_listens_off_loopback_and_no_other(tmp_path: Path) -> None:
    hidden = {"Name": "one", "Entities": [HUB], **root_rule("of one")}
    file = write(tmp_path, hidden, {"Name": "two", "Entities": [HUB]})
    with pytest.raises(BadSetting, match="everybody knows the development key"):
        start(tmp_path, file, host=(BY_NAME,))
    file = write(tmp_path, hidden, {"Name": "two", "Entities": [HUB], **root_rule("of two")})
    assert root_keys(start(tmp_path, file, host=(BY_NAME,))) == ["of one", "of two"]
    assert root_keys(start(tmp_path, None, host=(BY_NAME,))) == ["of one", "of two"]
    with pytest.raises(BadSetting, match="everybody knows the development key"):
        start(tmp_path, None, host=(BY_NAME,), key="SAS_KEY_VALUE")
    assert root_keys(start(tmp_path, None)) == ["of one", "of two"]  # a refused start changes nothing


def test_a_start_without_file_and_flags_serves_all_that_the_folder_has_as_it_was(tmp_path: Path) -> None:
    two = {"Name": "two", "Sku": "Premium", "Hostnames": ["two.example"], "Entities": [HUB], "ThroughputUnits": 3}
    three = {"Name": "three", "Entities": [{**HUB, "Name": "eh3"}], **root_rule("of three")}
    before = start(tmp_path, write(tmp_path, {"Name": "one", "Sku": "Basic", "Entities": []}, two, three))
    after = start(tmp_path, None)
    assert after["name"] == "one" and list(after["beside"]) == ["two", "three"]
    for name in ("two", "three"):
        assert list(after["beside"][name]["hubs"]) == list(before["beside"][name]["hubs"])
        assert after["beside"][name]["profile"] == before["beside"][name]["profile"]
    assert after["beside"]["two"]["units"] == (3, 0) and after["beside"]["two"]["host"] == "two.example"
    assert root_keys(after) == root_keys(before) == ["SAS_KEY_VALUE", "SAS_KEY_VALUE", "of three"]
    assert (after["notes"], after["profile"]) == ((), "basic")
    # What is said of a namespace that is there is kept just so.
    changed = start(tmp_path, None, profile="standard", hostname=("one.example",))
    assert changed["profile"] == "standard" and len(changed["notes"]) == 4
    after = start(tmp_path, None)
    assert (after["notes"], after["profile"], after["host"]) == ((), "standard", "one.example")


def test_a_flag_holds_over_what_was_changed_while_the_service_ran_and_that_is_told(tmp_path: Path) -> None:
    assert start(tmp_path, None, throughput_units=5)["units"] == (5, 0)
    assert start(tmp_path, None)["units"] == (5, 0)
    found = start(tmp_path, None, throughput_units=1)
    assert found["units"] == (1, 0)
    assert found["notes"] == (
        "namespace hubweir: its throughput units became 1, by the flag --throughput-units; before: 5",
    )
    assert start(tmp_path, None, throughput_units=0)["units"] == (0, 0)


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
    settings, said = configured({"data": str(tmp_path)}, {}, None)
    assert settings == Settings(data=str(tmp_path))
    assert said == SaidNamespaces(Said())


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
        ({"Destination": {"Name": "EventHubArchive.AzureBlockBlob", "BlobContainer": "events"}}, "--capture-storage"),
        ({"Destination": {"ArchiveNameFormat": "{Year}"}}, "nine tokens"),
    ],
)
def test_capture_that_cannot_be_ends_the_start_with_its_place(
    tmp_path: Path, capture: dict[str, Any], needle: str
) -> None:
    wanted = {**HUB, "CaptureDescription": {"Enabled": True, **capture}}
    with pytest.raises(EmulatorFileError, match=needle):
        start(tmp_path, write(tmp_path, {"Entities": [wanted]}))
