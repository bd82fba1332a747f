"""A file's CaptureDescription as what a hub is given."""

from __future__ import annotations

import json

import pytest

from hubweir.config.emulator_capture import capture_description, capture_document
from hubweir.config.emulator_entities import CaptureConfig, CaptureEncoding
from hubweir.config.problems import Location
from hubweir.config.tests.emulator_texts import parse_emulator_file
from hubweir.errors import ServiceError
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination

NOTHING = {
    "enabled": False, "encoding": None, "interval_s": None, "size_limit_bytes": None, "skip_empty_archives": None,
    "destination_name": None, "storage_account_resource_id": None, "blob_container": None, "archive_name_format": None,
}  # fmt: skip


def described(**given: object) -> CaptureDescription:
    place = Location("Config.json", 1, 1, "$")
    return capture_description(CaptureConfig(**{**NOTHING, **given}, location=place))  # type: ignore[arg-type]


def test_what_is_left_out_has_the_default() -> None:
    assert described() == CaptureDescription()
    assert described(enabled=True) == CaptureDescription(enabled=True)


def test_every_member_has_its_place() -> None:
    full = described(
        enabled=True, encoding=CaptureEncoding.AVRO, interval_s=60, size_limit_bytes=10_485_760,
        skip_empty_archives=True, destination_name="EventHubArchive.AzureBlockBlob",
        storage_account_resource_id="/x/films", blob_container="c", archive_name_format="f",
    )  # fmt: skip
    assert full == CaptureDescription(
        True, 60, 10_485_760, CaptureDestination.AZURE_BLOCK_BLOB, "c", "/x/films", "f", True
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"enabled": True, "destination_name": "EventHubArchive.AzureDataLake", "blob_container": "films"},
        {"interval_s": 60, "size_limit_bytes": 10_485_760, "skip_empty_archives": True, "archive_name_format": "f"},
    ],
)
def test_a_document_reads_back_as_the_same_capture(given: dict[str, object]) -> None:
    wanted = described(**given)
    hub = {"Name": "a", "PartitionCount": 1, "CaptureDescription": capture_document(wanted)}
    text = json.dumps({"UserConfig": {"NamespaceConfig": [{"Entities": [hub]}]}})
    (namespace,) = parse_emulator_file(text.encode(), file="f").namespaces
    assert namespace.hubs[0].capture is not None
    assert capture_description(namespace.hubs[0].capture) == wanted


@pytest.mark.parametrize("given", [{"encoding": CaptureEncoding.AVRO_DEFLATE}, {"destination_name": "Tape"}])
def test_what_is_not_served_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ServiceError):
        described(**given)
