"""Captured files in a container of an Azure storage account, by obstore: block blobs, also of Data Lake accounts.

A file goes up in blocks while it is made, a few at a time, and is there by one commit of the list of its blocks: whole,
or not at all. Blocks that were never committed are nobody's, and the account drops them after a week.

All of it blocks, on threads of the pool; every request has a time limit. What the account says comes as OSError.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from hubweir.broker.capture.blob_delete import DeleteRefused, delete_blob
from hubweir.capture.destination import CLAIM_SUFFIX
from hubweir.env import Buffer
from hubweir.errors import HubweirError

logger = logging.getLogger(__name__)

BLOCK_BYTES = 8 * 1024 * 1024
BLOCKS_AT_ONCE = 4
CONNECT_TIMEOUT, REQUEST_TIMEOUT = timedelta(seconds=5), timedelta(seconds=30)
# Few, because a step that failed is done again by whoever captures.
RETRIES: dict[str, Any] = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}
# A name that no file has, nor begins with, to ask for.
_NOBODY = "hubweir-may-capture"
_FORBIDDEN = "403 Forbidden"
_NO_DELETE = (
    "the shared access signature of --capture-storage does not let blobs be removed, or holds no more: without the "
    "right to delete each file would leave the claim of its name behind; give one that may read, create, write and "
    "delete"
)


class BadStorage(HubweirError):
    """A connection string of a storage account that cannot be used; the text holds no key."""


class BlobFailure(OSError):
    """The account is away, or refuses."""


@dataclass(frozen=True, slots=True)
class StorageAccount:
    """What a connection string says. key may be empty when there is a signature."""

    name: str
    endpoint: str
    key: str
    signature: str

    def __repr__(self) -> str:
        return f"StorageAccount({self.name!r}, {self.endpoint!r})"


def parse_storage(text: str) -> StorageAccount:
    """A connection string as the cloud's portal and Azurite give it. Raises BadStorage."""
    parts = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    name, key = parts.get("AccountName", ""), parts.get("AccountKey", "")
    endpoint, signature = parts.get("BlobEndpoint", ""), parts.get("SharedAccessSignature", "")
    if not endpoint:
        protocol, suffix = (
            parts.get("DefaultEndpointsProtocol", "https"),
            parts.get("EndpointSuffix", "core.windows.net"),
        )
        endpoint = f"{protocol}://{name}.blob.{suffix}"
    url = urlsplit(endpoint)
    if not name and url.hostname:
        name = url.hostname.partition(".")[0]
    if not name or url.scheme not in ("http", "https") or not (key or signature):
        raise BadStorage(
            "what --capture-storage gives is no connection string of a storage account: AccountName with AccountKey, "
            "or BlobEndpoint with SharedAccessSignature, are needed"
        )
    return StorageAccount(name, endpoint.rstrip("/"), key, signature.lstrip("?"))


class BlobArchive:
    """One blob that is being made. After a crash: it is there whole, or not at all."""

    def __init__(self, writer: Any) -> None:
        """writer: obstore's, which commits when it is closed, and nothing when it is dropped."""
        self._writer = writer

    def write(self, buffers: Sequence[Buffer]) -> None:
        """See Archive.write."""
        with _as_blob_failures():
            for buffer in buffers:
                self._writer.write(bytes(buffer))

    def commit(self) -> None:
        """See Archive.commit: what is left goes up, then the list of blocks is committed."""
        with _as_blob_failures():
            self._writer.close()

    def abandon(self) -> None:
        """See Archive.abandon."""
        self._writer = None


class BlobContainer:
    """One container of an account. Raises BadStorage where obstore is not installed.

    A signature needs the rights to read, create, write and delete; with that to list, too, a container that is not
    there is told at once, else by the first file.
    """

    def __init__(self, account: StorageAccount, container: str) -> None:
        obstore = _obstore()
        self._signature = "" if account.key else account.signature
        self._url = f"{account.endpoint}/{container}"
        self._is_checked = self._has_told = False
        access = {"account_key": account.key} if account.key else {"sas_key": account.signature}
        self._store = obstore.store.AzureStore(
            container,
            account_name=account.name,
            endpoint=account.endpoint,
            client_options={
                "allow_http": account.endpoint.startswith("http:"),
                "connect_timeout": CONNECT_TIMEOUT,
                "timeout": REQUEST_TIMEOUT,
            },
            retry_config=RETRIES,
            **access,
        )

    def check(self) -> None:
        """See SharedDestination.check."""
        if self._is_checked:
            return
        with _as_blob_failures():
            self._look_at_container(_NOBODY)
        try:
            if self._signature:
                self._delete(_NOBODY + CLAIM_SUFFIX)
        except DeleteRefused as error:
            raise BlobFailure(_NO_DELETE if error.is_forbidden else str(error)) from error
        self._is_checked = True

    def exists(self, name: str) -> bool:
        """See Destination.exists. Raises BlobFailure, too, when the container is not there."""
        obstore = _obstore()
        with _as_blob_failures():
            try:
                obstore.head(self._store, name)
            except (FileNotFoundError, obstore.exceptions.NotFoundError):
                self._look_at_container(name)
                return False
        return True

    def claim(self, name: str) -> bool:
        """See SharedDestination.claim. The account makes a blob for one only (`If-None-Match: *`)."""
        self.check()  # or each file would leave a claim
        obstore = _obstore()
        with _as_blob_failures():
            try:
                obstore.put(self._store, name + CLAIM_SUFFIX, b"", mode="create", use_multipart=False)
            except (FileExistsError, obstore.exceptions.AlreadyExistsError):
                # A lost answer to a request of ours looks the same: then the name is passed over, and no more.
                return False
        # Whoever had the claim before let go of it behind the file.
        if not self.exists(name):
            return True
        with suppress(OSError):  # the name is taken, whether this claim can be removed or not
            self.release(name)
        return False

    def release(self, name: str) -> None:
        """See SharedDestination.release."""
        try:
            self._delete(name + CLAIM_SUFFIX)
        except OSError as error:
            self._is_checked = False  # the right may have been taken away
            if not self._has_told:  # whoever lets go does not fail of it, and each file might leave one
                self._has_told = True
                logger.warning("the claim %s%s stays in the container: %s", name, CLAIM_SUFFIX, error)
            raise

    def _delete(self, name: str) -> None:
        if self._signature:
            delete_blob(self._url, name, signature=self._signature, timeout_s=REQUEST_TIMEOUT.total_seconds())
            return
        obstore = _obstore()
        with _as_blob_failures(), suppress(FileNotFoundError, obstore.exceptions.NotFoundError):
            obstore.delete(self._store, name)

    def _look_at_container(self, name: str) -> None:
        """BlobFailure when the container itself is not there, which looks the same to who asks for a blob in it.

        So that no file is begun that can never be: the container may be given another name yet.
        """
        obstore = _obstore()
        try:
            next(iter(obstore.list(self._store, prefix=name, chunk_size=1)), None)
        except (OSError, obstore.exceptions.BaseError) as error:
            # Without the right to list it is found out when the file is written. Of a list that error has no type.
            if not self._signature or _FORBIDDEN not in str(error):
                raise

    def begin(self, name: str) -> BlobArchive:
        """See Destination.begin."""
        with _as_blob_failures():
            return BlobArchive(
                _obstore().open_writer(self._store, name, buffer_size=BLOCK_BYTES, max_concurrency=BLOCKS_AT_ONCE)
            )


def _obstore() -> Any:
    """The library, loaded when it is first needed: it takes a while, and most services capture to a folder."""
    try:
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise BadStorage("capture to a storage account needs obstore: pip install obstore") from None
    return obstore


@contextmanager
def _as_blob_failures() -> Iterator[None]:
    """What the library says, as one line without its debugging text."""
    try:
        yield
    except (OSError, _obstore().exceptions.BaseError) as error:
        text = " ".join(str(error).split())
        raise BlobFailure(text.partition(" Debug source")[0].partition(" <?xml")[0][:300] + _code(text)) from error


def _code(text: str) -> str:
    """The account's own word, out of the XML of its answer."""
    _, found, rest = text.partition("<Code>")
    return f" ({rest.partition('<')[0][:60]})" if found else ""
