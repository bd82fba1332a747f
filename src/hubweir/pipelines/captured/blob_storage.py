"""A container of a storage account as the place of captured files: `az://container/prefix`, as the broker writes it.

The account is a connection string, as the cloud's portal and Azurite give it: of the description (`storage`), else of
the variable that the broker takes it from. Tasks are given it by the driver.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from hubweir.broker.capture.blob_upload import BlobArchive, BlobContainer, parse_storage
from hubweir.capture.destination import Destination
from hubweir.pipelines.captured.local_attempts import LocalAttempts
from hubweir.pipelines.errors import IllegalDescription

SCHEME = "az"
VARIABLE = "HUBWEIR_CAPTURE_STORAGE"


class BlobPrefix:
    """Blobs below a prefix of a container."""

    def __init__(self, container: BlobContainer, prefix: str) -> None:
        self._container, self._prefix = container, prefix

    def exists(self, name: str) -> bool:
        """See Destination.exists."""
        return self._container.exists(self._prefix + name)

    def begin(self, name: str) -> BlobArchive:
        """See Destination.begin."""
        return self._container.begin(self._prefix + name)


def is_blobs(address: str) -> bool:
    """Whether an address is one of blobs."""
    return urlsplit(address).scheme == SCHEME


def storage_of(given: str) -> str:
    """The connection string that counts; empty when there is none."""
    return given or os.environ.get(VARIABLE, "")


def check_address(address: str, key: str) -> None:
    """IllegalDescription when this is no az://container/prefix. key: of the description, for the text."""
    parts = urlsplit(address)
    if parts.scheme != SCHEME or not parts.netloc or parts.query or parts.fragment:
        raise IllegalDescription(f"{key} is '{address[:200]}'; allowed: a folder, or az://container/prefix")


def destination_of(address: str, storage: str) -> Destination:
    """Where files go. storage: of az://…, a connection string. BadStorage when it is none, or obstore is missing."""
    if not is_blobs(address):
        return LocalAttempts(address)
    parts = urlsplit(address)
    prefix = parts.path.strip("/")
    return BlobPrefix(BlobContainer(parse_storage(storage), parts.netloc), f"{prefix}/" if prefix else "")


def store_settings(storage: str) -> dict[str, str]:
    """The same account as settings of the reader; none when nothing is said, so obstore asks the environment."""
    if not storage:
        return {}
    account = parse_storage(storage)
    access = {"account_key": account.key} if account.key else {"sas_key": account.signature}
    return {"account_name": account.name, "endpoint": account.endpoint, **access}
