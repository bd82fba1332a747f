"""Capture settings: ranges to the number, formats that could name two files alike, destinations that are not there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.errors import ServiceError
from hubweir.namespace.capture_description import (
    ARCHIVE_NAME_FORMAT,
    CaptureDescription,
    CaptureDestination,
    check_capture,
    check_destination_is_served,
    check_encoding,
    parse_destination,
)

TIMES = "{Year}{Month}{Day}{Hour}{Minute}{Second}"


@pytest.mark.parametrize(
    "legal",
    [
        {"interval_s": 60},
        {"interval_s": 900},
        {"size_limit_bytes": 10_485_760},
        {"size_limit_bytes": 524_288_000},
        {"archive_name_format": "{PartitionId}-x/{EventHub}/{Namespace}/" + TIMES},
        {"archive_name_format": TIMES + "{Namespace}{EventHub}/{PartitionId}"},
        {"destination": CaptureDestination.AZURE_BLOCK_BLOB, "container": "captured-events"},
        {"container": "below"},
    ],
)
def test_what_is_in_range_is_taken(legal: dict[str, object]) -> None:
    capture = replace(CaptureDescription(enabled=True), **legal)  # type: ignore[arg-type]
    assert check_capture("hub", capture) is capture


@pytest.mark.parametrize(
    ("wrong", "needle"),
    [
        ({"interval_s": 59}, "59 seconds; 60 to 900"),
        ({"interval_s": 901}, "901 seconds"),
        ({"size_limit_bytes": 10_485_759}, "10485760 to 524288000"),
        ({"size_limit_bytes": 524_288_001}, "524288001 bytes"),
        ({"archive_name_format": ARCHIVE_NAME_FORMAT.replace("{Second}", "x")}, "{Second}"),
        ({"archive_name_format": ARCHIVE_NAME_FORMAT + "{Second}"}, "{Second}"),
        ({"archive_name_format": ARCHIVE_NAME_FORMAT + "{Other}"}, "{Other}"),
        ({"archive_name_format": "../" + ARCHIVE_NAME_FORMAT}, "dots alone"),
        ({"archive_name_format": "/" + ARCHIVE_NAME_FORMAT}, "empty"),
        ({"archive_name_format": "\\" + ARCHIVE_NAME_FORMAT}, "are allowed"),
        ({"archive_name_format": "x" * 500 + ARCHIVE_NAME_FORMAT}, "at most 512"),
        ({"archive_name_format": "{Namespace}/{EventHub}{PartitionId}/" + TIMES}, "no digit"),
        ({"archive_name_format": "{Namespace}/{EventHub}/7{PartitionId}/" + TIMES}, "no digit"),
        ({"archive_name_format": "{Namespace}/{EventHub}/{PartitionId}" + TIMES}, "no digit"),
        ({"destination": CaptureDestination.AZURE_BLOCK_BLOB}, "container is ''"),
        ({"container": "Upper"}, "container is 'Upper'"),
        ({"container": "../up"}, "container is"),
        ({"storage_account": "a b"}, "storage account"),
    ],
)
def test_what_is_out_of_range_is_refused_with_the_hub_and_the_range(wrong: dict[str, object], needle: str) -> None:
    with pytest.raises(ServiceError) as refused:
        check_capture("orders", replace(CaptureDescription(enabled=True), **wrong))  # type: ignore[arg-type]
    assert needle in refused.value.text
    assert "orders" in refused.value.text


def test_names_that_a_folder_does_not_take_are_refused_for_the_local_one_only() -> None:
    local = CaptureDescription(enabled=True)
    assert check_capture("h" * 244, local) is local
    with pytest.raises(ServiceError, match="245 characters"):
        check_capture("h" * 245, local)
    assert check_capture("h/" * 120 + "h", local) is local
    joined = replace(local, archive_name_format=ARCHIVE_NAME_FORMAT.replace("/", "-"))
    with pytest.raises(ServiceError, match="put slashes"):
        check_capture("h" * 200, joined)
    blobs = replace(joined, destination=CaptureDestination.AZURE_BLOCK_BLOB, container="captured")
    assert check_capture("h" * 200, blobs) is blobs


def test_destinations_have_the_clouds_names_in_any_case() -> None:
    assert parse_destination("eventhubarchive.azureblockblob") is CaptureDestination.AZURE_BLOCK_BLOB
    with pytest.raises(ServiceError, match="LocalFolder"):
        parse_destination("EventHubArchive.Tape")


def test_deflate_is_refused_and_plain_avro_is_not() -> None:
    check_encoding("Avro")
    with pytest.raises(ServiceError, match="deprecated"):
        check_encoding("AvroDeflate")


def test_blobs_need_the_account_that_the_service_is_set_up_with() -> None:
    blobs = CaptureDescription(enabled=True, destination=CaptureDestination.AZURE_DATA_LAKE, container="captured")
    with pytest.raises(ServiceError, match="--capture-storage"):
        check_destination_is_served("hub", blobs, "")
    check_destination_is_served("hub", blobs, "mine")
    resource = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/"
    check_destination_is_served("hub", replace(blobs, storage_account=resource + "mine"), "mine")
    with pytest.raises(ServiceError, match="'other'"):
        check_destination_is_served("hub", replace(blobs, storage_account=resource + "other"), "mine")
    check_destination_is_served("hub", replace(blobs, enabled=False), "")
