"""Destinations of captured files, as an interface; and the local folder.

A destination is used on threads of the offload pool: all of it blocks. A file is there whole or not at all under its
name: what `commit` returned for stays through a power cut.

A destination may be shared by several services, and partitions of one service may have names in common. So a name is
claimed before anything is written under it: an empty file `<name>.claim`, which only one can make. It is there from
before the intent is durable until the mark is behind it (capture_mark.py), so whoever finds an intent at a start has
its name still. A kill before or behind that leaves a claim that nobody needs: its name is passed over. So one attempt
at a file follows the other, and all may use one unfinished name.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from hubweir.env import Buffer, File, Files, join_path

TMP_SUFFIX, CLAIM_SUFFIX = ".tmp", ".claim"
# Synced in pieces: one sync of hundreds of megabytes would hold up the syncs of logs on the same disk.
SYNC_BYTES = 16 * 1024 * 1024
# Names that one place remembers as durable: some years of hours. It begins anew then, which costs one sync a folder.
FOLDERS_KNOWN = 50_000


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


class SharedDestination(Destination, Protocol):
    """A destination of several writers that know nothing of one another: each claims its names."""

    def check(self) -> None:
        """Whether files can be made here, as far as it can be known before there is one. Raises OSError."""

    def claim(self, name: str) -> bool:
        """Take a name that nobody has, for good; False when somebody has claimed it, or a file of it is there.

        Raises OSError; then it may be claimed or not. After a crash: what was claimed stays so.
        """

    def release(self, name: str) -> None:
        """Give up a claim of one's own. Does nothing when it is not there. Raises OSError."""


class DurableFolders:
    """Makes folders whose names are durable, and remembers them: a folder that is there may not be durable yet.

    After a failed sync, or an end between the making and the sync, the next `make` syncs what is there already.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: set[str] = set()

    def make(self, folder: str) -> None:
        """Make a folder with those above it, each name durable in the one above. Blocking, in any thread."""
        parts = folder.split("/")
        for count in range(1, len(parts) + 1):
            path = "/".join(parts[:count])
            is_there = not path or self._files.exists(path)
            if is_there and (not path or path in self._known):
                continue
            if not is_there:
                self._files.make_folder(path)
            self._files.sync_folder("/".join(parts[: count - 1]))
            if len(self._known) >= FOLDERS_KNOWN:
                self._known.clear()
            self._known.add(path)


class LocalArchive:
    """A file of a local folder. After a crash: `<name>` is there whole or not; `<name>.tmp` may be there in part."""

    def __init__(
        self, files: Files, path: str, unfinished: str | None = None, *, folders: DurableFolders | None = None
    ) -> None:
        """unfinished: what it is called while it is made, in the same folder, where that is not `<name>.tmp`."""
        self._files = files
        self._path = path
        self._unfinished = unfinished or path + TMP_SUFFIX
        self._folder, _, _ = path.rpartition("/")
        (folders or DurableFolders(files)).make(self._folder)
        if files.exists(self._unfinished):
            files.remove(self._unfinished)
        self._file: File | None = files.open(self._unfinished, create=True)
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
        self._files.rename(self._unfinished, self._path)
        self._files.sync_folder(self._folder)

    def abandon(self) -> None:
        """See Archive.abandon."""
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None:
                file.close()
            if self._files.exists(self._unfinished):
                self._files.remove(self._unfinished)


class LocalFolder:
    """Files below a folder of files."""

    def __init__(self, files: Files, folder: str, folders: DurableFolders | None = None) -> None:
        """folder: of files; empty: its root. folders: those of files that are known to be durable."""
        self._files = files
        self._folder = folder
        self._folders = folders or DurableFolders(files)

    def exists(self, name: str) -> bool:
        """See Destination.exists."""
        return self._files.exists(join_path(self._folder, name))

    def check(self) -> None:
        """See SharedDestination.check: a folder is made when it is needed."""

    def claim(self, name: str) -> bool:
        """See SharedDestination.claim."""
        path = join_path(self._folder, name + CLAIM_SUFFIX)
        folder, _, _ = path.rpartition("/")
        self._folders.make(folder)
        try:
            self._files.open(path, create=True).close()
        except FileExistsError:
            return False
        self._files.sync_folder(folder)
        # Whoever had the claim before let go of it behind the file.
        if self.exists(name):
            self.release(name)
            return False
        return True

    def release(self, name: str) -> None:
        """See SharedDestination.release."""
        with suppress(FileNotFoundError):
            self._files.remove(join_path(self._folder, name + CLAIM_SUFFIX))

    def begin(self, name: str) -> LocalArchive:
        """See Destination.begin."""
        return LocalArchive(self._files, join_path(self._folder, name), folders=self._folders)
