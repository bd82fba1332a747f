"""Event hubs of a file: every member, at and beyond its bounds, for the service and for the official emulator."""

import dataclasses
from typing import Any

import pytest

from hubweir.config.emulator_entities import CaptureEncoding, CleanupPolicy, HubConfig, Status
from hubweir.config.emulator_limits import OFFICIAL_EMULATOR, SERVICE, FileLimits
from hubweir.config.tests.emulator_texts import HUB, hubs_file, namespace_of, problems_of, told

HOUR_MS = 3_600_000


def hub_of(limits: FileLimits = SERVICE, **members: Any) -> HubConfig:
    return namespace_of(hubs_file({**HUB, **members}), limits=limits).hubs[0]


def wrong(limits: FileLimits = SERVICE, **members: Any) -> list[tuple[str, str]]:
    """Return the problems of a hub with these members, paths from the hub on."""
    found = told(hubs_file({**HUB, **members}), limits=limits)
    return [(kind, path.removeprefix("Entities[0]").removeprefix(".")) for kind, path in found]


def groups(*names: Any) -> list[dict[str, Any]]:
    return [{"Name": name} for name in names]


def test_a_hub_says_only_what_it_says() -> None:
    hub = hub_of()
    assert (hub.name, hub.partition_count, hub.consumer_groups, hub.rules) == ("h", 1, (), ())
    assert hub.retention_ms is hub.cleanup_policy is hub.status is hub.user_metadata is hub.capture is None


def test_the_count_of_partitions_knows_its_place() -> None:
    hub = hub_of()
    assert hub.partition_count_location.path == "$.UserConfig.NamespaceConfig[0].Entities[0].PartitionCount"
    assert hub.location.path == "$.UserConfig.NamespaceConfig[0].Entities[0].Name"
    assert hub.location.column < hub.partition_count_location.column


@pytest.mark.parametrize("limits", [SERVICE, OFFICIAL_EMULATOR])
def test_partitions_are_1_to_32(limits: FileLimits) -> None:
    for count, read in ((1, 1), ("2", 2), (32, 32), ("32", 32)):
        assert hub_of(limits, PartitionCount=count).partition_count == read
    for count in (0, 33, -1, "0", "33"):
        assert wrong(limits, PartitionCount=count) == [("bad value", "PartitionCount")]
    for count in ("two", 1.5, True, []):
        assert wrong(limits, PartitionCount=count) == [("wrong type", "PartitionCount")]
    assert wrong(limits, PartitionCount=None) == [("missing", "PartitionCount")]


def test_more_partitions_are_taken_where_they_are_allowed() -> None:
    limits = dataclasses.replace(SERVICE, partitions_limit=1024)
    assert hub_of(limits, PartitionCount=1024).partition_count == 1024
    assert wrong(limits, PartitionCount=1025) == [("bad value", "PartitionCount")]


@pytest.mark.parametrize("name", ["", "-h", "h b", "a//b", "h/partitions/1", "é", "a" * 257, "$default"])
def test_a_name_that_no_address_can_have_is_told(name: str) -> None:
    assert wrong(Name=name) == [("bad value", "Name")]


def test_a_name_is_needed_and_unique_in_any_case() -> None:
    assert told(hubs_file({"PartitionCount": 1})) == [("missing", "Entities[0].Name")]
    assert told(hubs_file({"Name": 5, "PartitionCount": 1})) == [("wrong type", "Entities[0].Name")]
    assert told(hubs_file(HUB, {**HUB, "Name": "i"}, {**HUB, "Name": "H"})) == [("duplicate name", "Entities[2].Name")]


@pytest.mark.parametrize("value", [None, []])
def test_consumer_groups_may_be_missing_null_or_empty(value: object) -> None:
    assert hub_of(ConsumerGroups=value).consumer_groups == ()
    assert hub_of(OFFICIAL_EMULATOR, ConsumerGroups=value).consumer_groups == ()


def test_the_default_group_may_be_named_in_any_case_and_often() -> None:
    assert hub_of(ConsumerGroups=groups("$default", "g", "$DEFAULT", "$Default")).consumer_groups == ("g",)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (groups("g", "G"), ("duplicate name", "[1].Name")),
        (groups(""), ("bad value", "[0].Name")),
        (groups("g/h"), ("bad value", "[0].Name")),
        (groups("g" * 51), ("bad value", "[0].Name")),
        (groups("$other"), ("bad value", "[0].Name")),
        (groups(None), ("missing", "[0].Name")),
        ([{}], ("missing", "[0].Name")),
        (["g"], ("wrong type", "[0]")),
        ({"Name": "g"}, ("wrong type", "")),
        ([{"Name": "g", "Nmae": 1}], ("unknown member", "[0].Nmae")),
    ],
)
def test_a_consumer_group_that_cannot_be_is_told(value: object, problem: tuple[str, str]) -> None:
    assert wrong(ConsumerGroups=value) == [(problem[0], f"ConsumerGroups{problem[1]}")]


def test_the_number_of_consumer_groups_is_bounded_besides_the_default_one() -> None:
    twenty = groups("$default", *(f"g{number}" for number in range(20)))
    assert len(hub_of(OFFICIAL_EMULATOR, ConsumerGroups=twenty).consumer_groups) == 20
    more = [*twenty, *groups("one-more", "two-more")]
    assert wrong(OFFICIAL_EMULATOR, ConsumerGroups=more) == [("wrong count", "ConsumerGroups[21]")]
    assert len(hub_of(ConsumerGroups=more).consumer_groups) == 22
    assert wrong(ConsumerGroups=groups(*(f"g{number}" for number in range(1_000)))) == [
        ("wrong count", "ConsumerGroups[999]")
    ]


@pytest.mark.parametrize(
    ("members", "retention_ms"),
    [
        ({"MessageRetentionInDays": 1}, 24 * HOUR_MS),
        ({"MessageRetentionInDays": "90"}, 90 * 24 * HOUR_MS),
        ({"RetentionTimeInHours": 1}, HOUR_MS),
        ({"RetentionTimeInHours": 2160}, 2160 * HOUR_MS),
        ({"RetentionTimeInHours": 48, "MessageRetentionInDays": 2}, 48 * HOUR_MS),
    ],
)
def test_retention_is_days_or_hours(members: dict[str, Any], retention_ms: int) -> None:
    assert hub_of(**members).retention_ms == retention_ms


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"MessageRetentionInDays": 0}, ("bad value", "MessageRetentionInDays")),
        ({"MessageRetentionInDays": 91}, ("bad value", "MessageRetentionInDays")),
        ({"RetentionTimeInHours": 0}, ("bad value", "RetentionTimeInHours")),
        ({"RetentionTimeInHours": 2161}, ("bad value", "RetentionTimeInHours")),
        ({"RetentionTimeInHours": 47, "MessageRetentionInDays": 2}, ("contradiction", "RetentionTimeInHours")),
        ({"CleanupPolicy": "Compact"}, ("bad value", "CleanupPolicy")),
        ({"Status": "Off"}, ("bad value", "Status")),
        ({"CaptureDescription": 1}, ("wrong type", "CaptureDescription")),
        ({"Partitioncount": 1}, ("unknown member", "Partitioncount")),
    ],
)
def test_an_extension_member_that_cannot_be_is_told(members: dict[str, Any], problem: tuple[str, str]) -> None:
    assert wrong(**members) == [problem]


def test_policy_and_status_are_read_in_any_case() -> None:
    hub = hub_of(CleanupPolicy="delete", Status="receivedisabled")
    assert (hub.cleanup_policy, hub.status) == (CleanupPolicy.DELETE, Status.RECEIVE_DISABLED)


def test_capture_is_read_with_its_destination_flat_or_nested() -> None:
    place = {"StorageAccountResourceId": "id", "BlobContainer": "c", "ArchiveNameFormat": "f"}
    flat = hub_of(CaptureDescription={"Destination": {"Name": "n", **place}}).capture
    nested = hub_of(CaptureDescription={"Destination": {"Name": "n", "Properties": place}}).capture
    assert flat == nested and flat is not None
    assert (flat.destination_name, flat.storage_account_resource_id) == ("n", "id")
    assert (flat.blob_container, flat.archive_name_format) == ("c", "f")
    assert not flat.enabled and flat.encoding is flat.interval_s is flat.size_limit_bytes is None
    full = hub_of(
        CaptureDescription={
            "Enabled": "true", "Encoding": "AvroDeflate", "IntervalInSeconds": 60, "SizeLimitInBytes": 524_288_000,
            "SkipEmptyArchives": False, "Destination": {},
        }
    ).capture  # fmt: skip
    assert full is not None and full.enabled and full.encoding is CaptureEncoding.AVRO_DEFLATE
    assert (full.interval_s, full.size_limit_bytes, full.skip_empty_archives) == (60, 524_288_000, False)


@pytest.mark.parametrize(
    ("capture", "problem"),
    [
        ({"Enabled": "on"}, ("wrong type", "Enabled")),
        ({"Encoding": "Parquet"}, ("bad value", "Encoding")),
        ({"IntervalInSeconds": 59}, ("bad value", "IntervalInSeconds")),
        ({"IntervalInSeconds": 901}, ("bad value", "IntervalInSeconds")),
        ({"SizeLimitInBytes": 10_485_759}, ("bad value", "SizeLimitInBytes")),
        ({"SizeLimitInBytes": 524_288_001}, ("bad value", "SizeLimitInBytes")),
        ({"SkipEmptyArchives": 1}, ("wrong type", "SkipEmptyArchives")),
        ({"Destination": "blob"}, ("wrong type", "Destination")),
        ({"Enabled": True, "Destination": "blob"}, ("wrong type", "Destination")),
        ({"Destination": {"name": "n"}}, ("unknown member", "Destination.name")),
        ({"Destination": {"Properties": {"Container": "c"}}}, ("unknown member", "Destination.Properties.Container")),
        ({"Interval": 60}, ("unknown member", "Interval")),
    ],
)
def test_a_capture_that_cannot_be_is_told(capture: dict[str, Any], problem: tuple[str, str]) -> None:
    assert wrong(CaptureDescription=capture) == [(problem[0], f"CaptureDescription.{problem[1]}")]


def test_every_problem_of_every_hub_is_told_at_once() -> None:
    data = hubs_file({"Name": "a b", "PartitionCount": 0, "ConsumerGroups": 5}, "x", {"Status": 1})
    assert told(data) == [
        ("bad value", "Entities[0].Name"),
        ("bad value", "Entities[0].PartitionCount"),
        ("wrong type", "Entities[0].ConsumerGroups"),
        ("wrong type", "Entities[1]"),
        ("missing", "Entities[2].Name"),
        ("missing", "Entities[2].PartitionCount"),
        ("wrong type", "Entities[2].Status"),
    ]


def test_the_number_of_hubs_is_bounded_for_the_official_emulator() -> None:
    hubs = [{"Name": f"h{number}", "PartitionCount": 1} for number in range(11)]
    assert len(namespace_of(hubs_file(*hubs[:10]), limits=OFFICIAL_EMULATOR).hubs) == 10
    [problem] = problems_of(hubs_file(*hubs), limits=OFFICIAL_EMULATOR)
    assert (problem.found, problem.allowed) == ("an array of 11", "an array of 1 to 10")
    assert len(namespace_of(hubs_file(*hubs)).hubs) == 11
    assert told(hubs_file(), limits=OFFICIAL_EMULATOR) == [("wrong count", "Entities")]
    assert namespace_of(hubs_file()).hubs == ()
