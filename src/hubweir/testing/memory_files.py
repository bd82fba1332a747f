"""A disk in memory that behaves as badly as a disk may, by a seed. Same interface as the real one (hubweir.env.Files).

What is written is in the page cache: readable, and gone or torn at a power cut unless it was synced. The rules, per
power cut: every unsynced 512-byte sector ends as it was at its last sync (zeros, when it is new) or as it is,
independently; an unsynced length ends as it was or as it is; every unsynced name change of a folder happened or not,
independently. A sector is written as a whole or not at all: so disks promise.

A sync that fails leaves its sectors in the page cache as clean: no later sync writes them, and a power cut takes
them. That is what Linux does, and why a sync must never be tried again.

Faults: `plan` makes the n-th call fail, once or from then on. Calls are counted from 1; `write_and_sync` is two.
"""

from __future__ import annotations

import builtins
import errno
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from hubweir.env import Buffer, File, FolderLock, SyncFailed
from hubweir.errors import StoreLocked
from hubweir.testing.memory_inode import Inode


class PowerCut(BaseException):
    """The world ends here. Not an Exception: no code under test may catch it."""


class Fault(Enum):
    """How a planned call fails. Calls that a fault does not fit succeed."""

    EIO = "any call fails with EIO"
    ENOSPC = "a call that needs space fails with ENOSPC; a sync too"
    SHORT = "a write stores a part and fails with EIO"
    EINTR = "a read or a write fails with EINTR"
    EMFILE = "a call that may have to open a file fails with EMFILE"
    SYNC_EIO = "a sync fails with EIO"
    LYING_SYNC = "a sync succeeds and does nothing"
    POWER_CUT = "the power goes before the call"


# What needs a descriptor: a file's own may have been closed meanwhile, but not between a write and its sync.
_OPENING = {"create", "open", "list", "sync_folder", "lock_folder", "read", "write", "reserve"}


@dataclass(slots=True)
class _Plan:
    nth: int
    fault: Fault
    forever: bool


class MemoryFile:
    """An open file of MemoryFiles. See hubweir.env.File."""

    __slots__ = ("_files", "_generation", "_inode", "_path", "_writable")

    def __init__(self, files: MemoryFiles, path: str, inode: Inode, *, writable: bool) -> None:
        self._files = files
        self._path = path
        self._inode = inode
        self._writable = writable
        self._generation = files.generation

    def _call(self, name: str) -> Fault | None:
        assert self._generation == self._files.generation, "a file of a process that has died is used"
        return self._files.count(name, self._path)

    def read(self, position: int, size: int) -> bytes:
        if self._call("read") is Fault.EINTR:
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        return self._inode.read(position, size)

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        assert self._writable, f"{self._path} was opened to read"
        data = b"".join(buffers)
        fault = self._call("write")
        if fault is Fault.EINTR:
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        if fault in (Fault.SHORT, Fault.ENOSPC) and data:
            self._inode.write(position, data[: self._files.random.randrange(len(data))])
            raise _error(errno.ENOSPC if fault is Fault.ENOSPC else errno.EIO)
        self._files.take_space(max(0, position + len(data) - self._inode.size))
        self._inode.write(position, data)

    def write_and_sync(self, position: int, buffers: Sequence[Buffer]) -> None:
        self.write(position, buffers)
        self.sync()

    def sync(self) -> None:
        fault = self._call("sync")
        if fault in (Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC):
            self._inode.fail_sync(self._files.random)
            raise SyncFailed(errno.ENOSPC if fault is Fault.ENOSPC else errno.EIO, "sync failed", self._path)
        if fault is not Fault.LYING_SYNC:
            self._inode.sync()

    def reserve(self, size: int) -> None:
        if self._call("reserve") is Fault.ENOSPC:
            raise _error(errno.ENOSPC)
        self._files.take_space(max(0, size - self._inode.size))
        self._inode.size = max(self._inode.size, size)

    def truncate(self, size: int) -> None:
        self._call("truncate")
        self._inode.truncate(size)

    def size(self) -> int:
        return self._inode.size

    def close(self) -> None:
        """Nothing happens: closing does not sync."""


class _MemoryLock:
    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files, self._path = files, path

    def release(self) -> None:
        self._files.locks.discard(self._path)


@dataclass(slots=True)
class _Change:
    """A change of names that its folder's sync makes durable: `path` names `inode` now, None: nothing. A rename is
    one change of two names."""

    names: tuple[tuple[str, Inode | None], ...]


class MemoryFiles:
    """The whole disk. It outlives processes: `process_died` after a kill, `power_cut` after a cut."""

    def __init__(self, seed: int | str = 0, *, capacity_bytes: int = 1 << 40) -> None:
        self.random = Random(f"disk {seed}")
        self.capacity_bytes = capacity_bytes
        self.calls = 0
        self.call_names: builtins.list[str] | None = None  # set to [] to note every call
        self.generation = 0
        self.locks: set[str] = set()
        self.trace = hashlib.sha256()
        self._names: dict[str, Inode] = {}
        self._durable: dict[str, Inode] = {}
        self._folders: set[str] = {""}
        self._changes: dict[str, list[_Change]] = {}
        self._plans: list[_Plan] = []

    # -- faults

    def plan(self, nth: int, fault: Fault, *, forever: bool = False) -> None:
        """Let the nth call from the very first one (self.calls counts) fail, or every call from it on."""
        self._plans.append(_Plan(nth, fault, forever))

    def heal(self) -> None:
        """Forget every planned fault."""
        self._plans.clear()

    def count(self, name: str, path: str) -> Fault | None:
        """Count a call; raise what is planned for it, or return a fault that the call itself has to act out."""
        self.calls += 1
        self.trace.update(f"{self.calls} {name} {path}\n".encode())
        if self.call_names is not None:
            self.call_names.append(name)
        for plan in self._plans:
            if self.calls == plan.nth or (plan.forever and self.calls > plan.nth):
                if plan.fault is Fault.POWER_CUT:
                    raise PowerCut
                if plan.fault is Fault.EIO and name not in ("sync", "sync_folder"):
                    raise _error(errno.EIO)
                if plan.fault is Fault.EMFILE and name in _OPENING:
                    raise _error(errno.EMFILE)
                return plan.fault
        return None

    def take_space(self, size: int) -> None:
        """ENOSPC when size more bytes do not fit."""
        if size and size > self.free_bytes():
            raise _error(errno.ENOSPC)

    def process_died(self) -> None:
        """Locks are free, files are closed; the page cache stays."""
        self.generation += 1
        self.locks.clear()

    def power_cut(self) -> None:
        """Everything that was not synced is at the mercy of the seed."""
        self.process_died()
        for _, changes in sorted(self._changes.items()):
            for change in changes:
                if self.random.random() < 0.5:
                    _apply(self._durable, change)
        self._changes.clear()
        self._names = dict(self._durable)
        for _, inode in sorted(self._names.items()):
            inode.cut(self.random)

    # -- the interface

    def open(self, path: str, *, create: bool = False) -> File:
        fault = self.count("create" if create else "open", path)
        if create:
            if path in self._names:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            if fault is Fault.ENOSPC:
                raise _error(errno.ENOSPC)
            self._change(path, ((path, Inode()),))
        return MemoryFile(self, path, self._inode(path), writable=True)

    def open_to_read(self, path: str) -> File:
        self.count("open", path)
        return MemoryFile(self, path, self._inode(path), writable=False)

    def list(self, folder: str) -> list[str]:
        self.count("list", folder)
        prefix = folder + "/" if folder else ""
        known = [*self._names, *self._folders]
        return sorted({name[len(prefix) :].split("/")[0] for name in known if name.startswith(prefix)} - {""})

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._folders

    def make_folder(self, path: str) -> None:
        self.count("make_folder", path)
        parts = path.split("/")
        # Folders are few and made once: they are durable at once, so that tests of logs are about logs.
        self._folders.update("/".join(parts[: count + 1]) for count in range(len(parts)))

    def rename(self, old: str, new: str) -> None:
        if self.count("rename", new) is Fault.ENOSPC:
            raise _error(errno.ENOSPC)
        self._change(new, ((old, None), (new, self._inode(old))))

    def remove(self, path: str) -> None:
        self.count("remove", path)
        self._inode(path)
        self._change(path, ((path, None),))

    def remove_folder(self, path: str) -> None:
        self.count("remove_folder", path)
        for name in [name for name in self._names if name.startswith(path + "/")]:
            self._change(name, ((name, None),))
        self._folders = {name for name in self._folders if name != path and not name.startswith(path + "/")}

    def sync_folder(self, path: str) -> None:
        fault = self.count("sync_folder", path)
        if fault in (Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC):
            raise SyncFailed(errno.EIO, "sync failed", path)
        if fault is not Fault.LYING_SYNC:
            for change in self._changes.pop(path, []):
                _apply(self._durable, change)

    def lock_folder(self, path: str) -> FolderLock:
        self.count("lock_folder", path)
        if path in self.locks:
            raise StoreLocked(f"{path} is held")
        self.locks.add(path)
        return _MemoryLock(self, path)

    def free_bytes(self) -> int:
        return self.capacity_bytes - sum(inode.size for inode in self._names.values())

    # -- for tests

    def bytes_of(self, path: str) -> bytearray:
        """The bytes of a file as they lie there; change them to damage it. Space set aside is not in them."""
        return self._inode(path).data

    def set_bytes(self, path: str, data: bytes) -> None:
        """Put these bytes there, durably."""
        inode = self._inode(path)
        inode.data, inode.size = bytearray(data), len(data)
        inode.sync()
        self._durable[path] = inode

    def paths(self) -> builtins.list[str]:
        """Every file, sorted."""
        return sorted(self._names)

    def copy(self, seed: int | str = 0) -> MemoryFiles:
        """Another disk with the same durable bytes and names: the page cache is taken as synced."""
        other = MemoryFiles(seed, capacity_bytes=self.capacity_bytes)
        other._folders = set(self._folders)
        for path, inode in self._names.items():
            other._names[path] = other._durable[path] = Inode(bytearray(inode.data), inode.size, inode.size)
        return other

    def _inode(self, path: str) -> Inode:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._names[path]

    def _change(self, path: str, names: tuple[tuple[str, Inode | None], ...]) -> None:
        change = _Change(names)
        _apply(self._names, change)
        self._changes.setdefault(path.rpartition("/")[0], []).append(change)


def _apply(names: dict[str, Inode], change: _Change) -> None:
    for path, inode in change.names:
        if inode is None:
            names.pop(path, None)
        else:
            names[path] = inode


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
