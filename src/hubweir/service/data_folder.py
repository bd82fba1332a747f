"""The folder in which a service keeps everything, from its top: what stands where, and its version.

    LOCK                held (flock) while a service runs on the folder
    FORMAT              "hubweir data 3": a start refuses any other, with nothing touched
    catalog/            the messaging store of the catalogs, a log for each namespace (messaging_store/disk/layout.py)
    store-N/            the messaging stores of the partitions; N is what a Placement says
    tls/                the development certificates
    capture/            captured files, when no setting names another folder

After a crash: FORMAT is there whole, or the folder is as fresh as before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hubweir.env import Files, FolderLock
from hubweir.errors import CatalogLost, HubweirError, NewerFormat, OldFormat
from hubweir.messaging_store.disk.newest_segment import log_ids_in
from hubweir.messaging_store.disk.whole_file import read_whole, write_whole

# 1 had logs that knew producers; 1 and 2 had catalogs of event hubs alone.
FORMAT_NAME, FORMAT_VERSION = "FORMAT", 3
FORMAT_TEXT = b"hubweir data %d\n" % FORMAT_VERSION
_FORMAT = re.compile(rb"hubweir data ([0-9]{1,9})\n")
CATALOG_FOLDER, STORE_PREFIX, TLS_FOLDER, CAPTURE_FOLDER = "catalog", "store-", "tls", "capture"
ABOUT_CATALOGS = "the catalogs"  # as texts name their store


class DataFolderUnusable(HubweirError):
    """The disk refused something that a start needs: no folder can be there, no right to it, no space left."""


def unusable(folder: str, error: OSError) -> DataFolderUnusable:
    """What an error of the disk means to a start. Taken ports and bad certificates have errors of their own.

    folder: the data folder, as texts name it.
    """
    place = error.filename or Path(folder).absolute()
    reason = error.strerror or error
    return DataFolderUnusable(f"the service cannot start on the data folder {folder}: {place}: {reason}")


def store_folder(store_index: int) -> str:
    """The folder of a messaging store of partitions, by the number that placements have."""
    return f"{STORE_PREFIX}{store_index}"


def about_store(store_index: int) -> str:
    """The same store, as texts name it."""
    return f"messaging store {store_folder(store_index)}"


def check_data_format(files: Files, folder: str) -> None:
    """OldFormat or NewerFormat when the data folder has another format than this version's; nothing is written.

    folder: how texts name it. Called before the folder is locked, so that not even LOCK is touched. Blocking.
    """
    found = read_whole(files, FORMAT_NAME)
    if found is None or found == FORMAT_TEXT:
        return
    number = _FORMAT.fullmatch(found)
    other = OldFormat if number is not None and int(number[1]) < FORMAT_VERSION else NewerFormat
    raise other(
        f"the data folder {folder} says {_printable(found)!r}, and this version reads {_printable(FORMAT_TEXT)!r}: "
        "nothing was changed; use the version that wrote it, or another --data folder"
    )


def own_data_folder(files: Files, folder: str) -> FolderLock:
    """Lock the folder for a start, and mark it with its format when it is fresh. Blocking.

    Raises as check_data_format and check_catalogs do, and StoreLocked; then the lock is free.
    """
    check_data_format(files, folder)
    lock = files.lock_folder("")
    try:
        if read_whole(files, FORMAT_NAME) is None:
            write_whole(files, "", FORMAT_NAME, FORMAT_TEXT)
        check_catalogs(files)
    except BaseException:
        lock.release()
        raise
    return lock


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log of a partition, and the folder of the store that has it."""

    store: str
    log_id: str


def stored_logs(files: Files) -> list[StoredLog]:
    """All logs of partitions that are in the folder, or were and are lost. Blocking.

    What is in a store that cannot be read, beside others, nobody knows: its own start says so.
    """
    stores = [name for name in files.list("") if name.startswith(STORE_PREFIX)]
    found: list[StoredLog] = []
    for store in stores:
        try:
            found += (StoredLog(store, log_id) for log_id in log_ids_in(files, store))
        except OSError:
            if len(stores) == 1:
                raise
    return found


def store_count(files: Files) -> int:
    """How many messaging stores there are, those without a folder between others counted. Blocking."""
    numbers = [name.removeprefix(STORE_PREFIX) for name in files.list("") if name.startswith(STORE_PREFIX)]
    return max((int(number) + 1 for number in numbers if number.isdecimal()), default=0)


def check_catalogs(files: Files) -> None:
    """CatalogLost, and nothing touched, when there are logs of partitions and no catalog at all. Blocking."""
    stored = stored_logs(files)
    if stored and not log_ids_in(files, CATALOG_FOLDER):
        raise CatalogLost(
            f"the folder {CATALOG_FOLDER}, which says whose logs are whose, is lost, and there are the logs of "
            f"{len(stored)} partitions: nothing was changed. Put {CATALOG_FOLDER} back from a backup (`hubweir store "
            "list` shows what is there); or begin afresh with another --data folder, without these events"
        )


def _printable(line: bytes) -> str:
    """The first line of a small file, for a message."""
    return line[:40].decode("ascii", "replace").strip()
