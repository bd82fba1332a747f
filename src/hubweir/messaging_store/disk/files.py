"""SystemFiles: the Files interface on the operating system. The only module that opens, writes and syncs files.

File objects keep a path, not a descriptor: descriptors live in a bounded cache and are opened again on demand, so a
store may have more files than the process may have descriptors. A file that was written and not synced keeps its
descriptor, because the kernel reports a failed write-back to descriptors that were open when it happened.

Worker threads use files while the loop does: the cache has a lock, held for look-ups only, never during a call of the
system: a file that takes long to open must not hold up the sync of another. `os` calls release the interpreter lock.

After a crash: what `sync` returned for is there, names after `sync_folder`; nothing else is promised.

Long because all calls of the operating system for files stand here, and nowhere else.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from hubweir.env import Buffer, File, FolderLock, SyncFailed
from hubweir.errors import StoreError, StoreLocked
from hubweir.messaging_store.disk.layout import LOCK_NAME

DESCRIPTORS = 512
SMALL_BYTES = 4096
# POSIX promises at least 16, Linux takes 1,024 buffers in one call.
_BUFFERS_PER_WRITE = min(1024, os.sysconf("SC_IOV_MAX") if hasattr(os, "sysconf") else 16)
_ZEROS = bytes(1024 * 1024)
# The flag of a write that is synced when it returns, which is a third faster than two calls; 0: not on this system.
SYNCED_WRITE = getattr(os, "RWF_DSYNC", 0)
_NO_SUCH_CALL = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class _Descriptor:
    """An open descriptor, how many calls use it now, and how many writes it had in all and by its last sync."""

    __slots__ = ("fd", "synced_writes", "users", "writes")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0
        self.writes = 0
        self.synced_writes = 0


class _Descriptors:
    """Open descriptors by file object, least recently used first; idle clean ones are closed beyond the bound."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._lock = threading.Lock()
        self._open: OrderedDict[int, _Descriptor] = OrderedDict()

    def take(self, file: SystemFile) -> _Descriptor:
        """The file's descriptor, opened if need be, in use until `give`."""
        with self._lock:
            held = self._open.get(id(file))
            if held is not None:
                self._open.move_to_end(id(file))
                held.users += 1
                over = self._over_bound()
        if held is None:
            return self._reopen(file)
        if over:
            _close_all(over)
        return held

    def _reopen(self, file: SystemFile) -> _Descriptor:
        spare = [os.open(file.path, file.flags)]
        with self._lock:
            held = self._open.get(id(file))
            if held is None and not file.is_closed:
                held = self._open[id(file)] = _Descriptor(spare.pop())
            if held is not None:
                held.users += 1
                spare += self._over_bound()
        _close_all(spare)
        if held is None:
            raise file.closed_error()
        return held

    def give(self, held: _Descriptor) -> None:
        with self._lock:
            held.users -= 1

    def add(self, file: SystemFile, fd: int) -> None:
        with self._lock:
            self._open[id(file)] = _Descriptor(fd)
            over = self._over_bound()
        _close_all(over)

    def drop(self, file: SystemFile) -> None:
        """Close the file's descriptor if it has one."""
        with self._lock:
            held = self._open.pop(id(file), None)
        if held is not None:
            os.close(held.fd)

    def count(self) -> int:
        return len(self._open)

    def _over_bound(self) -> list[int]:
        """Take the descriptors out that are over the bound; whoever asked closes them, without the lock."""
        over: list[int] = []
        if len(self._open) <= self._bound:
            return over
        for key, held in list(self._open.items()):
            if len(self._open) <= self._bound:
                break
            if not held.users and held.writes == held.synced_writes:
                del self._open[key]
                over.append(held.fd)
        return over


def _close_all(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        os.close(fd)


class SystemFile:
    """A File. See hubweir.env.File."""

    __slots__ = ("__weakref__", "_descriptors", "flags", "is_closed", "path")

    def __init__(self, descriptors: _Descriptors, path: str, flags: int, fd: int) -> None:
        self._descriptors = descriptors
        self.path = path
        self.flags = flags
        self.is_closed = False
        descriptors.add(self, fd)

    def _take(self) -> _Descriptor:
        if self.is_closed:
            raise self.closed_error()
        return self._descriptors.take(self)

    def closed_error(self) -> StoreError:
        """What is raised when it is used after `close`."""
        return StoreError(f"{self.path} is used after it was closed")

    def read(self, position: int, size: int) -> bytes:
        held = self._take()
        try:
            data = os.pread(held.fd, size, position)
            if len(data) in (0, size):
                return data
            parts = [data]
            while data and (size := size - len(data)):
                position += len(data)
                data = os.pread(held.fd, size, position)
                parts.append(data)
            return b"".join(parts)
        finally:
            self._descriptors.give(held)

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        held = self._take()
        try:
            held.writes += 1
            write_all(held.fd, position, buffers)
        finally:
            self._descriptors.give(held)

    def write_and_sync(self, position: int, buffers: Sequence[Buffer]) -> None:
        held = self._take()
        try:
            is_clean = held.writes == held.synced_writes
            held.writes += 1
            if not (is_clean and _write_synced(held, self.path, position, buffers)):
                write_all(held.fd, position, buffers)
                _sync(held, self.path)
        finally:
            self._descriptors.give(held)

    def sync(self) -> None:
        held = self._take()
        try:
            _sync(held, self.path)
        finally:
            self._descriptors.give(held)

    def reserve(self, size: int) -> None:
        held = self._take()
        try:
            held.writes += 1
            now = os.fstat(held.fd).st_size
            if now < size:
                _reserve(held.fd, now, size)
        finally:
            self._descriptors.give(held)

    def truncate(self, size: int) -> None:
        held = self._take()
        try:
            held.writes += 1
            os.ftruncate(held.fd, size)
        finally:
            self._descriptors.give(held)

    def size(self) -> int:
        held = self._take()
        try:
            return os.fstat(held.fd).st_size
        finally:
            self._descriptors.give(held)

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._descriptors.drop(self)


def write_all(fd: int, position: int, buffers: Sequence[Buffer]) -> None:
    """Write all buffers, however often the system takes only a part. (EINTR is retried by the interpreter.)"""
    views = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)]
    first = 0
    while first < len(views):
        written = os.pwritev(fd, views[first : first + _BUFFERS_PER_WRITE], position)
        position += written
        while first < len(views) and written >= len(views[first]):
            written -= len(views[first])
            first += 1
        if written:
            views[first] = views[first][written:]


def _write_synced(held: _Descriptor, path: str, position: int, buffers: Sequence[Buffer]) -> bool:
    """Write and sync in one call of the system, where all that was written before is synced; False: it cannot.

    What is wrong with it, but for a lack of space, may have been wrong with its sync: SyncFailed. Without space nothing
    but this write can be lost.
    """
    views, writes = [memoryview(buffer).cast("B") for buffer in buffers if len(buffer)], held.writes
    if not SYNCED_WRITE or len(views) > _BUFFERS_PER_WRITE:
        return False
    try:
        written = os.pwritev(held.fd, views, position, SYNCED_WRITE)
    except OSError as error:
        if error.errno in _NO_SUCH_CALL:
            return False
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise SyncFailed(error.errno, error.strerror, path) from error
    if written < sum(map(len, views)):
        return False
    held.synced_writes = writes
    return True


def _sync(held: _Descriptor, path: str) -> None:
    writes = held.writes  # one that comes while we wait is not covered for certain
    try:
        os.fdatasync(held.fd)
    except OSError as error:
        raise SyncFailed(error.errno, error.strerror, path) from error
    held.synced_writes = writes


def _reserve(fd: int, now: int, size: int) -> None:
    """posix_fallocate; where the file system has none, zeros are written instead."""
    try:
        os.posix_fallocate(fd, now, size - now)
        return
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
            raise
    while now < size:
        now += os.pwrite(fd, _ZEROS[: size - now], now)


class _SmallFile:
    """What a file had when it was read.

    is_on_block_device: this machine alone renames files there, and to look at a name is as good as to open it. A
    network disk has no block device, and may show an old name for a while to whoever does not open it.
    """

    __slots__ = ("_identity", "data", "full", "is_on_block_device")

    def __init__(self, full: str, data: bytes, status: os.stat_result) -> None:
        self.full = full
        self.data = data
        self._identity = _identity(status)
        self.is_on_block_device = os.major(status.st_dev) != 0

    def is_there(self) -> bool:
        """Whether this file stands under its name. Raises OSError."""
        return _identity(os.stat(self.full)) == self._identity


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    """Another one when another file stands under the name; an inode's number may be used again, its time not."""
    return status.st_dev, status.st_ino, status.st_mtime_ns


class _FolderLock:
    """A held flock. Closing the descriptor gives it up."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class SystemFiles:
    """Files below a root folder, which is made when it is absent. See hubweir.env.Files.

    space_of: the folder below the root whose file system free_bytes and file_system are about; "" for the root's.
    """

    def __init__(self, root: str | os.PathLike[str], *, descriptors: int = DESCRIPTORS, space_of: str = "") -> None:
        self._root = os.path.abspath(root)
        self._space_of = self._path(space_of)
        os.makedirs(self._root, mode=0o700, exist_ok=True)
        self._descriptors = _Descriptors(descriptors)
        self._small: dict[str, _SmallFile] = {}  # what read_small found, by path

    def _path(self, path: str) -> str:
        parts = [part for part in path.split("/") if part]
        if any(part in (".", "..") or "\0" in part for part in parts):
            raise StoreError(f"{path!r} is no path below a store")
        return os.path.join(self._root, *parts)

    def open(self, path: str, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC
        full = self._path(path)
        fd = os.open(full, flags | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
        return SystemFile(self._descriptors, full, flags, fd)

    def open_to_read(self, path: str) -> File:
        flags = os.O_RDONLY | os.O_CLOEXEC
        full = self._path(path)
        return SystemFile(self._descriptors, full, flags, os.open(full, flags))

    def read_small(self, path: str) -> bytes | None:
        known = self._small.get(path)
        full = self._path(path) if known is None else known.full
        try:
            if known is not None and known.is_on_block_device and known.is_there():
                return known.data
            fd = os.open(full, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            # No descriptor is free. Who asks each round of writes needs none as long as the file is the same.
            if error.errno not in (errno.EMFILE, errno.ENFILE) or known is None or not known.is_there():
                raise
            return known.data
        try:
            data = os.read(fd, SMALL_BYTES)
            self._small[path] = _SmallFile(full, data, os.fstat(fd))
            return data
        finally:
            os.close(fd)

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(os.listdir(self._path(folder)))
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return os.path.lexists(self._path(path))

    def make_folder(self, path: str) -> None:
        os.makedirs(self._path(path), mode=0o700, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(self._path(old), self._path(new))

    def remove(self, path: str) -> None:
        os.remove(self._path(path))

    def remove_folder(self, path: str) -> None:
        shutil.rmtree(self._path(path))

    def sync_folder(self, path: str) -> None:
        full = self._path(path)
        fd = os.open(full, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror, full) from error
        finally:
            os.close(fd)

    def lock_folder(self, path: str) -> FolderLock:
        full = os.path.join(self._path(path), LOCK_NAME)
        fd = os.open(full, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise StoreLocked(f"{full} is held: another process owns this folder; stop it first") from error
            raise
        with suppress(OSError):
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())  # for the person who wonders who holds it
        return _FolderLock(fd)

    def free_bytes(self) -> int:
        status = os.statvfs(self._space_of)
        return status.f_bavail * status.f_frsize

    def file_system(self) -> int:
        return os.stat(self._space_of).st_dev
