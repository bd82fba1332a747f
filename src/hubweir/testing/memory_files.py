"""A disk in memory that behaves as badly as a disk may, by a seed. Same interface as the real one (hubweir.env.Files).

What is written is in the page cache: readable, and gone or torn at a power cut unless it was synced. The rules, per
power cut: every unsynced 512-byte sector ends as it was at its last sync (zeros, when it is new) or as it is,
independently; an unsynced length ends as it was or as it is; every unsynced name change of a folder happened or not,
independently, and with a folder goes what is in it (memory_names.py). A sector is written as a whole or not at all: so
disks promise.

What no rule of a disk covers, tests do by hand: `lose` a file or a folder, `bring_back` an older version of one.

A sync that fails leaves its sectors in the page cache as clean: no later sync writes them, and a power cut takes
them. That is what Linux does, and why a sync must never be tried again.

Faults: `plan` makes the n-th call from now on fail (memory_faults.py). `write_and_sync` is two calls.
"""

from __future__ import annotations

import builtins
import errno
import hashlib
import os
from collections.abc import Callable, Sequence
from random import Random

from hubweir.env import Buffer, File, FolderLock, SyncFailed
from hubweir.errors import StoreError, StoreLocked
from hubweir.testing.memory_faults import Fault, Plan, fail, system_error
from hubweir.testing.memory_inode import Inode
from hubweir.testing.memory_names import Folder, Names

SEGMENT_SUFFIX = ".log"  # of the one kind of file that is kept open from call to call


class MemoryFile:
    """An open file of MemoryFiles. See hubweir.env.File."""

    __slots__ = ("_files", "_generation", "_inode", "_path", "_writable", "is_closed")

    def __init__(self, files: MemoryFiles, path: str, inode: Inode, *, writable: bool) -> None:
        self._files = files
        self._path = path
        self._inode = inode
        self._writable = writable
        self._generation = files.generation
        self.is_closed = False
        files.open_files[self] = path

    def _call(self, name: str) -> Fault | None:
        self._expect_open()
        return self._files.count(name, self._path)

    def _expect_open(self) -> None:
        assert self._generation == self._files.generation, "a file of a process that has died is used"
        if self.is_closed:
            raise StoreError(f"{self._path} is used after it was closed")

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
        if fault in (Fault.SHORT, Fault.ENOSPC):
            self._inode.write(position, data[: self._files.random.randrange(max(1, len(data)))])
            raise system_error(errno.ENOSPC if fault is Fault.ENOSPC else errno.EIO)
        grows = position + len(data) - self._inode.size
        if grows > 0 and grows > (free := self._files.free_bytes()):
            # As a real disk: the part that fits may be there.
            self._inode.write(position, data[: self._files.random.randrange(max(0, len(data) - grows + free) + 1)])
            raise system_error(errno.ENOSPC)
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
            raise system_error(errno.ENOSPC)
        self._files.take_space(max(0, size - self._inode.size))
        self._inode.size = max(self._inode.size, size)

    def truncate(self, size: int) -> None:
        self._call("truncate")
        self._inode.truncate(size)

    def size(self) -> int:
        self._expect_open()
        return self._inode.size

    @property
    def is_appended_to(self) -> bool:
        """Whether it is a segment, open to write."""
        return self._writable and self._path.endswith(SEGMENT_SUFFIX)

    def close(self) -> None:
        """The descriptor is free again; closing does not sync."""
        self.is_closed = True
        self._files.open_files.pop(self, None)


class _MemoryLock:
    def __init__(self, files: MemoryFiles, path: str) -> None:
        self._files, self._path = files, path

    def release(self) -> None:
        self._files.locks.discard(self._path)


class MemoryFiles:
    """The whole disk. It outlives processes: `process_died` after a kill, `power_cut` after a cut."""

    def __init__(self, seed: int | str = 0, *, capacity_bytes: int = 1 << 40) -> None:
        self.random = Random(f"disk {seed}")
        self.capacity_bytes = capacity_bytes
        self.frees_at_sync = False  # the space of a removed file is free when its removal is durable
        self.calls = 0
        self.call_names: builtins.list[str] | None = None  # set to [] to note every call
        self.before_call: Callable[[], None] | None = None  # where an offloaded call may stop
        self.generation = 0
        self.open_files: dict[MemoryFile, str] = {}  # with the path that each was opened at
        self.locks: set[str] = set()
        self.trace = hashlib.sha256()
        self.names = Names()
        self.plans: builtins.list[Plan] = []  # every plan there ever was
        self._planned: builtins.list[Plan] = []  # those that may still be met

    # -- faults

    def plan(
        self,
        fault: Fault,
        nth: int = 1,
        *,
        forever: bool = False,
        call: str = "",
        then: tuple[Fault, int] | None = None,
    ) -> Plan:
        """Let the nth call from now on that the fault fits fail, or every such call from it on; call: of this name.

        then: what is planned behind it, and its nth.
        """
        assert isinstance(fault, Fault) and nth >= 1, "a fault, then how many calls from now on"
        plan = Plan(fault, nth, forever, call, then)
        self.plans.append(plan)
        self._planned.append(plan)
        return plan

    def heal(self) -> None:
        """Let no planned fault happen any more."""
        self._planned.clear()

    def count(self, name: str, path: str) -> Fault | None:
        """Count a call; raise what is planned for it, or return a fault that the call itself has to act out."""
        if self.before_call is not None:
            self.before_call()
        self.calls += 1
        self.trace.update(f"{self.calls} {name} {path}\n".encode())
        if self.call_names is not None:
            self.call_names.append(name)
        met = [plan for plan in self._planned if plan.meets(name)] if self._planned else None
        if not met:
            return None
        self._planned = [plan for plan in self._planned if not plan.is_over]
        for plan in met:
            if plan.then is not None and plan.fired == 1:
                self.plan(*plan.then)
        return fail(met[0].fault, name)

    def take_space(self, size: int) -> None:
        """ENOSPC when size more bytes do not fit."""
        if size and size > self.free_bytes():
            raise system_error(errno.ENOSPC)

    def process_died(self) -> None:
        """Locks are free, files are closed; the page cache stays."""
        self.generation += 1
        self.open_files.clear()
        self.locks.clear()

    def power_cut(self) -> None:
        """Everything that was not synced is at the mercy of the seed."""
        self.process_died()
        self.names.cut(self.random)
        for _, inode in sorted(self.names.files().items()):
            inode.cut(self.random)

    # -- the interface

    def open(self, path: str, *, create: bool = False) -> File:
        fault = self.count("create" if create else "open", path)
        if create:
            if path in self.names:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            if fault is Fault.ENOSPC:
                raise system_error(errno.ENOSPC)
            self.names.add(path, Inode())
        return MemoryFile(self, path, self.names.inode(path), writable=True)

    def open_to_read(self, path: str) -> File:
        self.count("open", path)
        return MemoryFile(self, path, self.names.inode(path), writable=False)

    def read_small(self, path: str) -> bytes | None:
        self.count("open", path)
        return self.names.inode(path).read(0, 4096) if self.exists(path) else None

    def list(self, folder: str) -> list[str]:
        self.count("list", folder)
        return self.names.within(folder)

    def exists(self, path: str) -> bool:
        return path in self.names

    def make_folder(self, path: str) -> None:
        if self.count("make_folder", path) is Fault.ENOSPC:
            raise system_error(errno.ENOSPC)
        self.names.make_folders(path)

    def rename(self, old: str, new: str) -> None:
        if self.count("rename", new) is Fault.ENOSPC:
            raise system_error(errno.ENOSPC)
        self.names.rename(old, new)

    def remove(self, path: str) -> None:
        self.count("remove", path)
        self.names.inode(path)
        self.names.remove(path)

    def remove_folder(self, path: str) -> None:
        self.count("remove_folder", path)
        self.names.remove(path)

    def sync_folder(self, path: str) -> None:
        fault = self.count("sync_folder", path)
        if fault in (Fault.SYNC_EIO, Fault.EIO, Fault.ENOSPC):
            raise SyncFailed(errno.EIO, "sync failed", path)
        if fault is not Fault.LYING_SYNC:
            self.names.sync(path)

    def lock_folder(self, path: str) -> FolderLock:
        self.count("lock_folder", path)
        if path in self.locks:
            raise StoreLocked(f"{path} is held")
        self.locks.add(path)
        return _MemoryLock(self, path)

    def free_bytes(self) -> int:
        inodes = self.names.all_inodes() if self.frees_at_sync else self.names.files().values()
        return self.capacity_bytes - sum(inode.size for inode in inodes)

    def file_system(self) -> int:
        return id(self)

    # -- for tests

    def bytes_of(self, path: str) -> bytearray:
        """The bytes of a file as they lie there; change them to damage it. Space set aside is not in them."""
        return self.names.inode(path).data

    def size_of(self, path: str) -> int:
        """How long a file is, space set aside included."""
        return self.names.inode(path).size

    def set_bytes(self, path: str, data: bytes) -> None:
        """Put these bytes there, durably, with the folders above."""
        inode = self.names.inode(path) if path in self.names else Inode()
        inode.data, inode.size = bytearray(data), len(data)
        inode.sync()
        self.names.put(path, inode)

    def left_open(self) -> builtins.list[str]:
        """The files that are open though nobody goes on with them: a descriptor has leaked with each.

        Only a segment stays open from call to call, to be appended to, while its store is locked. Files that lie in no
        folder are a test's own.
        """
        return [
            path
            for file, path in self.open_files.items()
            if "/" in path and not (file.is_appended_to and any(path.startswith(f"{held}/") for held in self.locks))
        ]

    def paths(self) -> builtins.list[str]:
        """Every file, sorted."""
        return sorted(self.names.files())

    def lose(self, path: str) -> None:
        """A file is gone for good, or a folder with all in it: a hand or a broken disk took it."""
        self.names.lose(path)

    def bring_back(self, path: str, versions_ago: int = 1) -> bool:
        """An older durable version of a file stands there again, as a restored backup leaves it; False: there is none.

        Only of files that are replaced as a whole, by a rename.
        """
        older = self.names.older(path)
        if len(older) < versions_ago:
            return False
        self.lose(path)
        self.set_bytes(path, bytes(older[-versions_ago].data))
        return True

    def copy(self, seed: int | str = 0) -> MemoryFiles:
        """Another disk with the same durable bytes and names: the page cache is taken as synced."""
        other = MemoryFiles(seed, capacity_bytes=self.capacity_bytes)
        for path in self.names.folders():
            other.names.put(path, Folder())
        for path, inode in self.names.files().items():
            other.names.put(path, Inode(bytearray(inode.data), inode.size, inode.size))
        return other
