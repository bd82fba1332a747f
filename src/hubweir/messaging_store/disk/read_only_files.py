"""Files that can be read and nothing else: for whoever looks at a store that another process may own.

Files that are being written (`*.new`) are not shown, so that nobody tries to clean them up: they are the owner's.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import NoReturn, TypeVar

from hubweir.env import File, Files
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX

T = TypeVar("T")

# Retention may remove a segment between the listing and the read, but seldom twice within one look.
LOOKS = 5


class ReadOnlyFiles:
    """See the module's text. Implements Files; whatever would change something raises OSError EROFS."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def open_to_read(self, path: str) -> File:
        return self._files.open_to_read(path)

    def list(self, folder: str) -> list[str]:
        return [name for name in self._files.list(folder) if not name.endswith(UNFINISHED_SUFFIX)]

    def read_small(self, path: str) -> bytes | None:
        return self._files.read_small(path)

    def exists(self, path: str) -> bool:
        return not path.endswith(UNFINISHED_SUFFIX) and self._files.exists(path)

    def free_bytes(self) -> int:
        return self._files.free_bytes()

    def file_system(self) -> int:
        return self._files.file_system()

    def open(self, path: str, *, create: bool = False) -> NoReturn:
        raise _refused(path)

    def make_folder(self, path: str) -> NoReturn:
        raise _refused(path)

    def rename(self, old: str, new: str) -> NoReturn:
        raise _refused(old)

    def remove(self, path: str) -> NoReturn:
        raise _refused(path)

    def remove_folder(self, path: str) -> NoReturn:
        raise _refused(path)

    def sync_folder(self, path: str) -> NoReturn:
        raise _refused(path)

    def lock_folder(self, path: str) -> NoReturn:
        raise _refused(path)


def _refused(path: str) -> OSError:
    return OSError(errno.EROFS, "this view of a store changes nothing", path)


def read_again(read: Callable[[], T]) -> T:
    """Return what read returns; when its owner removed a file meanwhile, read once more, LOOKS times at most.

    Raises what the last read raises, FileNotFoundError among it.
    """
    for _ in range(LOOKS - 1):
        try:
            return read()
        except FileNotFoundError:
            pass
    return read()
