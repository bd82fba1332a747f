"""Description of a hub's capture: length and size of a window, destination, names of files.

The names and ranges are those of resource templates of the cloud. (Event Hubs Capture overview; ARM reference)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.names import NAMESPACE_NAME_LIMIT

INTERVAL_MIN_S, INTERVAL_LIMIT_S, INTERVAL_DEFAULT_S = 60, 900, 300
SIZE_MIN_BYTES, SIZE_LIMIT_BYTES, SIZE_DEFAULT_BYTES = 10_485_760, 524_288_000, 314_572_800
ARCHIVE_NAME_FORMAT = "{Namespace}/{EventHub}/{PartitionId}/{Year}/{Month}/{Day}/{Hour}/{Minute}/{Second}"
TOKENS = ("Namespace", "EventHub", "PartitionId", "Year", "Month", "Day", "Hour", "Minute", "Second")
# A blob's name has at most 1,024 characters; a hub's may have 256, a namespace's 50.
FORMAT_LIMIT = 512
# Of one name in a folder: 255 on most file systems, less what stands behind it.
FILE_NAME_LIMIT = 255 - len(".avro.claim")
_TOKEN = re.compile(r"\{([^{}]*)\}")
_LITERAL = re.compile(r"[A-Za-z0-9._~=+,@ /-]*")
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}")
_ACCOUNT = re.compile(r"[A-Za-z0-9._()/-]{0,512}")


class CaptureDestination(Enum):
    """Where files go. The first two are the cloud's words; both are written through the blob interface."""

    AZURE_BLOCK_BLOB = "EventHubArchive.AzureBlockBlob"
    AZURE_DATA_LAKE = "EventHubArchive.AzureDataLake"
    LOCAL_FOLDER = "EventHubArchive.LocalFolder"


@dataclass(frozen=True, slots=True)
class CaptureDescription:
    """Capture of one hub. container: of blobs; of a local folder a folder below it, which may be empty.

    storage_account: its name, or the cloud's resource id of it; empty: the one that the service is set up with.
    """

    enabled: bool = False
    interval_s: int = INTERVAL_DEFAULT_S
    size_limit_bytes: int = SIZE_DEFAULT_BYTES
    destination: CaptureDestination = CaptureDestination.LOCAL_FOLDER
    container: str = ""
    storage_account: str = ""
    archive_name_format: str = ARCHIVE_NAME_FORMAT
    skip_empty_archives: bool = False

    @property
    def account_name(self) -> str:
        """The storage account's name: the last part of a resource id."""
        return self.storage_account.rpartition("/")[2]


def parse_destination(name: str) -> CaptureDestination:
    """The destination of that name, in any case. Raises ServiceError ARGUMENT_ERROR."""
    for destination in CaptureDestination:
        if destination.value.casefold() == name.casefold():
            return destination
    known = ", ".join(destination.value for destination in CaptureDestination)
    raise ServiceError(ARGUMENT_ERROR, f"There is no capture destination '{name[:64]}'; there are {known}.")


def check_encoding(encoding: str) -> None:
    """Raise ServiceError for another encoding than plain Avro."""
    if encoding.casefold() != "avro":
        raise ServiceError(
            ARGUMENT_ERROR,
            f"The capture encoding '{encoding[:32]}' is not served: AvroDeflate is deprecated; give 'Avro'.",
        )


def check_capture(hub: str, capture: CaptureDescription | None) -> CaptureDescription | None:
    """The description, when all of it is legal. Raises ServiceError with the hub, the value and the range."""
    if capture is None:
        return None
    _check_range(hub, "interval", "seconds", capture.interval_s, INTERVAL_MIN_S, INTERVAL_LIMIT_S)
    _check_range(hub, "size limit", "bytes", capture.size_limit_bytes, SIZE_MIN_BYTES, SIZE_LIMIT_BYTES)
    check_archive_name_format(hub, capture.archive_name_format)
    is_local = capture.destination is CaptureDestination.LOCAL_FOLDER
    if not (is_local and not capture.container) and _CONTAINER.fullmatch(capture.container) is None:
        raise _wrong(
            hub,
            f"the container is '{capture.container[:80]}'; 3 to 63 lower-case letters, digits and single hyphens, "
            "beginning and ending with a letter or digit, are allowed",
        )
    if is_local:
        _check_file_names(hub, capture.archive_name_format)
    if _ACCOUNT.fullmatch(capture.storage_account) is None:
        raise _wrong(hub, "the storage account is neither a name nor a resource id")
    return capture


def check_archive_name_format(hub: str, text: str) -> None:
    """Raise ServiceError unless text has all nine tokens once, and no two files can have one name by it."""
    found = _TOKEN.findall(text)
    literals = _TOKEN.split(text)[::2]
    if sorted(found) != sorted(TOKENS):
        missing = [f"{{{token}}}" for token in TOKENS if found.count(token) != 1]
        unknown = [f"{{{token[:32]}}}" for token in found if token not in TOKENS]
        what = f"unknown: {', '.join(unknown)}" if unknown else f"not there exactly once: {', '.join(missing)}"
        raise _wrong(hub, f"the archive name format must hold each of the nine tokens once; {what}")
    if len(text) > FORMAT_LIMIT or not all(_LITERAL.fullmatch(literal) for literal in literals):
        raise _wrong(
            hub,
            f"an archive name format has at most {FORMAT_LIMIT} characters; between its tokens letters, digits, spaces "
            "and . _ ~ = + , @ / - are allowed",
        )
    segments = text.split("/")
    if any(segment.strip(". ") == "" for segment in segments):
        raise _wrong(hub, "a part between slashes of the archive name format is empty, or dots alone")
    before, behind = text.split("{PartitionId}")
    if any(neighbour in "{}0123456789" for neighbour in (before[-1:], behind[:1]) if neighbour):
        raise _wrong(
            hub,
            "in the archive name format a character that is no digit must stand before and behind {PartitionId}: "
            "else two partitions could have one name",
        )


def _check_file_names(hub: str, text: str) -> None:
    """Raise ServiceError when a part between slashes is longer than a file system takes, with .avro.claim behind it."""
    widths = {"Namespace": NAMESPACE_NAME_LIMIT, "EventHub": max(map(len, hub.split("/"))), "Year": 4}
    longest = max(
        sum(len(literal) for literal in _TOKEN.split(segment)[::2])
        + sum(widths.get(token, 2) for token in _TOKEN.findall(segment))
        for segment in text.split("/")
    )
    if longest > FILE_NAME_LIMIT:
        raise _wrong(
            hub,
            f"its file names would have parts of up to {longest} characters, and a folder takes {FILE_NAME_LIMIT}: put "
            "slashes between the tokens of the archive name format, or capture to a storage account",
        )


def check_destination_is_served(hub: str, capture: CaptureDescription | None, account: str) -> None:
    """Raise ServiceError when enabled capture names a storage account that the service has no access to.

    account: the name of the one it has, or empty.
    """
    if capture is None or not capture.enabled or capture.destination is CaptureDestination.LOCAL_FOLDER:
        return
    if not account:
        raise ServiceError(
            ARGUMENT_ERROR,
            f"Event hub '{hub}': capture to {capture.destination.value} needs a storage account. Give the service its "
            "connection string (serve --capture-storage), or capture to EventHubArchive.LocalFolder.",
        )
    if capture.account_name.casefold() not in ("", account.casefold()):
        raise ServiceError(
            ARGUMENT_ERROR,
            f"Event hub '{hub}': capture to the storage account '{capture.account_name}' is not possible; the service "
            f"is set up with '{account}' (serve --capture-storage).",
        )


def _check_range(hub: str, what: str, unit: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise ServiceError(
            ARGUMENT_OUT_OF_RANGE,
            f"Event hub '{hub}': the capture {what} is {value} {unit}; {least} to {most} are allowed.",
        )


def _wrong(hub: str, what: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"Event hub '{hub}': capture: {what}.")
