"""Where captured files go, as an interface; and the local folder.

A destination is used on threads of the offload pool: all of it blocks. A file is there whole or not at all under its
name: what `commit` returned for stays through a power cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from hubweir.env import Buffer, File, Files
from hubweir.messaging_store.layout import join

TMP_SUFFIX = ".tmp"
# Synced in pieces: one sync of hundreds of megabytes would hold up the syncs of logs on the same disk.
SYNC_BYTES = 16 * 1024 * 1024


class Archive(Protocol):
    """One file that is being made. One thread at a time."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Add bytes at its end. Raises OSError."""

    def commit(self) -> None:
        """Make it durable under its name, in place of one that is there. Raises OSError; then begin again."""

    def abandon(self) -> None:
        """Give up what was written; the name is as it was. Raises nothing."""


class Destination(Protocol):
    """A place for files. Names are paths with `/`, relative."""

    def exists(self, name: str) -> bool:
        """Whether a whole file of that name is there. Raises OSError."""

    def begin(self, name: str) -> Archive:
        """Start a file; what another start of the same name left in part is overwritten. Raises OSError."""


class LocalArchive:
    """A file of a local folder. After a crash: `<name>` is there whole or not; `<name>.tmp` may be there in part."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path
        self._folder, _, _ = path.rpartition("/")
        _make_durable_folder(files, self._folder)
        unfinished = path + TMP_SUFFIX
        if files.exists(unfinished):
            files.remove(unfinished)
        self._file: File | None = files.open(unfinished, create=True)
        self._size = self._synced = 0

    def write(self, buffers: Sequence[Buffer]) -> None:
        """See Archive.write."""
        assert self._file is not None
        self._file.write(self._size, buffers)
        self._size += sum(len(buffer) for buffer in buffers)
        if self._size - self._synced >= SYNC_BYTES:
            self._file.sync()
            self._synced = self._size

    def commit(self) -> None:
        """See Archive.commit: sync, rename, sync the folder."""
        assert self._file is not None
        self._file.sync()
        self._file.close()
        self._file = None
        self._files.rename(self._path + TMP_SUFFIX, self._path)
        self._files.sync_folder(self._folder)

    def abandon(self) -> None:
        """See Archive.abandon."""
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None:
                file.close()
            if self._files.exists(self._path + TMP_SUFFIX):
                self._files.remove(self._path + TMP_SUFFIX)


class LocalFolder:
    """Files below a folder of files."""

    def __init__(self, files: Files, folder: str) -> None:
        """folder: of files; empty: its root."""
        self._files = files
        self._folder = folder

    def exists(self, name: str) -> bool:
        """See Destination.exists."""
        return self._files.exists(join(self._folder, name))

    def begin(self, name: str) -> LocalArchive:
        """See Destination.begin."""
        return LocalArchive(self._files, join(self._folder, name))


def _make_durable_folder(files: Files, folder: str) -> None:
    """Make a folder with those above it, each name durable in the one above."""
    parts = folder.split("/")
    for count in range(1, len(parts) + 1):
        path = "/".join(parts[:count])
        if path and not files.exists(path):
            files.make_folder(path)
            files.sync_folder("/".join(parts[: count - 1]))
