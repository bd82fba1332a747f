"""Capture as a configuration file says it, as what a hub can be given, and back. What is left out has the default.

No destination, or one without a name, is the local folder. Raises ServiceError for what is not served, as every check
of the namespace does.
"""

from __future__ import annotations

from hubweir.config.emulator_entities import CaptureConfig
from hubweir.namespace.capture_description import CaptureDescription, check_encoding, parse_destination


def capture_description(capture: CaptureConfig) -> CaptureDescription:
    """What the file asks for. Raises ServiceError for an encoding or a destination of no known name."""
    if capture.encoding is not None:
        check_encoding(capture.encoding.value)
    usual = CaptureDescription()
    name = capture.destination_name
    return CaptureDescription(
        enabled=capture.enabled,
        interval_s=capture.interval_s or usual.interval_s,
        size_limit_bytes=capture.size_limit_bytes or usual.size_limit_bytes,
        destination=parse_destination(name) if name else usual.destination,
        container=capture.blob_container or usual.container,
        storage_account=capture.storage_account_resource_id or usual.storage_account,
        archive_name_format=capture.archive_name_format or usual.archive_name_format,
        skip_empty_archives=capture.skip_empty_archives or False,
    )


def capture_document(capture: CaptureDescription) -> dict[str, object]:
    """The same as a file's CaptureDescription, every member of it; `capture_description` of that is capture again."""
    place = {
        "Name": capture.destination.value,
        "StorageAccountResourceId": capture.storage_account,
        "BlobContainer": capture.container,
        "ArchiveNameFormat": capture.archive_name_format,
    }
    return {
        "Enabled": capture.enabled,
        "Encoding": "Avro",
        "IntervalInSeconds": capture.interval_s,
        "SizeLimitInBytes": capture.size_limit_bytes,
        "SkipEmptyArchives": capture.skip_empty_archives,
        "Destination": {name: value for name, value in place.items() if value},
    }
