"""The folder in which a service keeps everything, from its top: what stands where, and its version.

    LOCK                held (flock) while a service runs on the folder
    FORMAT              "hubweir data 1": a start refuses any other, with nothing touched
    catalog/            the messaging store of the catalogs, a log for each namespace (messaging_store/layout.py)
    store-N/            the messaging stores of the partitions; N is what a Placement says
    tls/                the development certificates
    capture/            captured files, when no setting names another folder

After a crash: FORMAT is there whole, or the folder is as fresh as before.
"""

from __future__ import annotations

from hubweir.env import Files
from hubweir.errors import NewerFormat
from hubweir.messaging_store.whole_file import read_whole, write_whole

FORMAT_NAME, FORMAT_TEXT = "FORMAT", b"hubweir data 1\n"
CATALOG_FOLDER, STORE_PREFIX, TLS_FOLDER, CAPTURE_FOLDER = "catalog", "store-", "tls", "capture"


def store_folder(store_index: int) -> str:
    """The folder of a messaging store of partitions, by the number that placements have."""
    return f"{STORE_PREFIX}{store_index}"


def check_data_format(files: Files) -> None:
    """Mark a fresh data folder with its format; NewerFormat, and nothing touched, when it has another one. Blocking."""
    found = read_whole(files, FORMAT_NAME)
    if found is None:
        write_whole(files, "", FORMAT_NAME, FORMAT_TEXT)
    elif found != FORMAT_TEXT:
        raise NewerFormat(
            f"the data folder says {_printable(found)!r}, and this version reads {_printable(FORMAT_TEXT)!r}: "
            "nothing was changed; "
            "use the version that wrote it, or another --data folder"
        )


def _printable(line: bytes) -> str:
    """The first line of a small file, for a message."""
    return line[:40].decode("ascii", "replace").strip()
