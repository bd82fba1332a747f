"""The file FORMAT of a store, which says the version of all that is in its folder. (layout.py)"""

from __future__ import annotations

from hubweir.env import Files, join_path
from hubweir.errors import CorruptStore, NewerFormat, OldFormat
from hubweir.messaging_store.disk.layout import FORMAT_NAME, FORMAT_TEXT, FORMAT_VERSION
from hubweir.messaging_store.disk.whole_file import read_whole, write_whole


def check_format(files: Files, folder: str) -> None:
    """See that a store has this version's format; a new one gets it. Blocking.

    Raises NewerFormat or OldFormat (nothing was changed then), CorruptStore, OSError.
    """
    data = read_whole(files, join_path(folder, FORMAT_NAME))
    if data is None:
        write_whole(files, folder, FORMAT_NAME, f"{FORMAT_TEXT}{FORMAT_VERSION}\n".encode())
        return
    text = data.decode("ascii", "replace")
    number = text.removeprefix(FORMAT_TEXT).strip()
    if not text.startswith(FORMAT_TEXT) or not (number.isascii() and number.isdigit()):
        raise CorruptStore(f"{folder}/{FORMAT_NAME} is damaged; it should say {FORMAT_TEXT}{FORMAT_VERSION}")
    if int(number) != FORMAT_VERSION:
        other = NewerFormat if int(number) > FORMAT_VERSION else OldFormat
        raise other(
            f"{folder} has store format {number}; this version reads {FORMAT_VERSION}. "
            "Nothing was changed: use the version that wrote it"
        )
