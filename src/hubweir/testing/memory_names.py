"""The names on a disk in memory, files and folders: those that are there, and those that a power cut leaves.

A change of a name belongs to the folder that holds it, and is durable when that folder was synced. Until then a power
cut makes it happen or not, each for itself. A folder is a name like any other: while its own is not durable, a cut may
take it, with everything in it, whatever was synced inside.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from hubweir.testing.memory_inode import Inode

OLDER_KEPT = 8  # versions of one name


class Folder:
    """A folder: what is in it are the names below its own."""


@dataclass(slots=True)
class _Change:
    """Each path names an entry now, None: nothing. A rename is one change of two names."""

    names: tuple[tuple[str, Inode | Folder | None], ...]


class Names:
    """Paths of one disk; "" is its root, which is always there. Methods raise OSError as the system does."""

    def __init__(self) -> None:
        self._present: dict[str, Inode | Folder] = {"": Folder()}
        self._durable: dict[str, Inode | Folder] = dict(self._present)
        self._changes: dict[str, list[_Change]] = {}  # folder -> what its sync makes durable
        self._older: dict[str, list[Inode]] = {}  # what durable names named before

    # -- what is there

    def __contains__(self, path: str) -> bool:
        return path in self._present

    def files(self) -> dict[str, Inode]:
        """Every file that is there."""
        return {path: entry for path, entry in self._present.items() if isinstance(entry, Inode)}

    def all_inodes(self) -> list[Inode]:
        """Every file that is there, or would be after a power cut."""
        found = {id(entry): entry for names in (self._present, self._durable) for entry in names.values()}
        return [entry for entry in found.values() if isinstance(entry, Inode)]

    def folders(self) -> list[str]:
        """Every folder that is there."""
        return [path for path, entry in self._present.items() if isinstance(entry, Folder)]

    def durable_files(self) -> list[str]:
        """The files that a power cut now would certainly leave."""
        return sorted(path for path, entry in self._durable.items() if isinstance(entry, Inode))

    def inode(self, path: str) -> Inode:
        entry = self._present.get(path)
        if not isinstance(entry, Inode):
            raise _absent(path)
        return entry

    def within(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        return sorted(path.rpartition("/")[2] for path in self._present if path and _parent(path) == folder)

    # -- changes

    def add(self, path: str, entry: Inode | Folder) -> None:
        """Name a new file or folder, in a folder that is there."""
        self._check_folder(_parent(path))
        self._change(path, ((path, entry),))

    def make_folders(self, path: str) -> None:
        """Add the folder, and those above it, where they are absent."""
        for part in _with_parents(path):
            if part not in self._present:
                self.add(part, Folder())

    def rename(self, old: str, new: str) -> None:
        """A file, in the place of one that may be there; or a folder, with what is in it.

        Names in a renamed folder are durable from then on, if the folder is: file systems note them in order.
        """
        if isinstance(self._present.get(old), Folder):
            self._rename_folder(old, new)
        else:
            self._change(new, ((old, None), (new, self.inode(old))))

    def _rename_folder(self, old: str, new: str) -> None:
        if new in self._present:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        names = [*_below(self._present, old), old]
        for name in names:
            if isinstance(self._present[name], Folder):
                self.sync(name)
        gone: list[tuple[str, Inode | Folder | None]] = [(name, None) for name in names]
        moved = [(new + name.removeprefix(old), self._present[name]) for name in reversed(names)]
        self._change(new, (*gone, *moved))

    def remove(self, path: str) -> None:
        if path not in self._present:
            raise _absent(path)
        for below in [*_below(self._present, path), path]:
            self._change(below, ((below, None),))

    def sync(self, folder: str) -> None:
        """Make the changes of this folder durable, those of folders in it not."""
        self._check_folder(folder)
        for change in self._changes.pop(folder, []):
            self._settle(change)

    def cut(self, random: Random) -> None:
        """The power is gone: changes that were not synced happened or not, and only what is durable is there."""
        for _, changes in sorted(self._changes.items()):
            for change in changes:
                if random.random() < 0.5:
                    self._settle(change)
        self._changes.clear()
        for path in sorted(self._durable):
            if path and not isinstance(self._durable.get(_parent(path)), Folder):
                del self._durable[path]  # its folder's name was lost
        self._present = dict(self._durable)

    # -- for tests

    def put(self, path: str, entry: Inode | Folder) -> None:
        """Name it durably, whatever stood there."""
        for part in _with_parents(_parent(path)):
            self._present.setdefault(part, Folder())
            self._durable.setdefault(part, self._present[part])
        self._present[path] = self._durable[path] = entry

    def lose(self, path: str) -> None:
        """The file, or the folder with all in it, is gone for good."""
        if path not in self._present:
            raise _absent(path)
        gone = {*_below(self._present, path), *_below(self._durable, path), path}
        for name in gone:
            self._present.pop(name, None)
            self._durable.pop(name, None)
        for changes in self._changes.values():
            changes[:] = [change for change in changes if gone.isdisjoint(name for name, _ in change.names)]

    def older(self, path: str) -> list[Inode]:
        """What the name durably named before, newest last."""
        return self._older.get(path, [])

    # -- inside

    def _check_folder(self, folder: str) -> None:
        if not isinstance(self._present.get(folder), Folder):
            raise _absent(folder)

    def _change(self, path: str, names: tuple[tuple[str, Inode | Folder | None], ...]) -> None:
        for name, entry in names:
            if entry is None:
                del self._present[name]
            else:
                self._present[name] = entry
        self._changes.setdefault(_parent(path), []).append(_Change(names))

    def _settle(self, change: _Change) -> None:
        for path, entry in change.names:
            before = self._durable.get(path)
            if entry is None:
                for below in [*_below(self._durable, path), path]:
                    self._durable.pop(below, None)
            else:
                self._durable[path] = entry
            if isinstance(before, Inode) and before is not entry:
                self._older.setdefault(path, []).append(before)
                del self._older[path][:-OLDER_KEPT]


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _with_parents(path: str) -> Iterator[str]:
    """a, a/b, a/b/c of a/b/c; nothing of the root."""
    parts = path.split("/") if path else []
    return ("/".join(parts[: count + 1]) for count in range(len(parts)))


def _below(names: dict[str, Inode | Folder], path: str) -> list[str]:
    """What is in a folder, the deepest first."""
    return sorted((name for name in names if name.startswith(path + "/")), reverse=True)


def _absent(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
