"""SystemFiles on a real folder; what the system does badly is done to `os` by hand.

Long because each call of the system is tried as it works and as it fails.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.env import SyncFailed
from hubweir.errors import StoreError, StoreLocked
from hubweir.messaging_store.disk import files as module
from hubweir.messaging_store.disk.files import SYNCED_WRITE, SystemFile, SystemFiles, write_all
from hubweir.messaging_store.disk.whole_file import write_whole
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.answers import made_log, runs_of
from hubweir.testing.simulated_env import SimulatedEnv


@pytest.fixture
def files(tmp_path: Path) -> SystemFiles:
    return SystemFiles(tmp_path / "data")


def test_what_is_written_is_read(files: SystemFiles) -> None:
    file = files.open("f", create=True)
    file.write(3, [b"abc", bytearray(b"def"), memoryview(b"ghi"), b""])
    file.write_and_sync(12, [b"!"])
    assert file.read(0, 100) == b"\0\0\0abcdefghi!" and file.read(4, 2) == b"bc" and file.read(50, 1) == b""
    assert file.size() == 13 and files.open_to_read("f").read(0, 4) == b"\0\0\0a"


def test_creating_a_file_twice_fails(files: SystemFiles) -> None:
    files.open("f", create=True)
    with pytest.raises(FileExistsError):
        files.open("f", create=True)
    with pytest.raises(FileNotFoundError):
        files.open("absent")


def test_more_buffers_than_one_call_takes(files: SystemFiles) -> None:
    file = files.open("f", create=True)
    file.write(0, [b"%d," % number for number in range(5000)])
    assert file.read(0, 1 << 20) == b"".join(b"%d," % number for number in range(5000))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8])
def test_short_reads_are_gone_on_with(files: SystemFiles, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    read = os.pread
    file = files.open("f", create=True)
    file.write(0, [b"0123456789"])
    monkeypatch.setattr(os, "pread", lambda fd, size, position: read(fd, min(size, most), position))
    assert file.read(1, 8) == b"12345678" and file.read(5, 100) == b"56789" and file.read(10, 5) == b""


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8])
def test_short_writes_are_gone_on_with(files: SystemFiles, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    write = os.pwritev

    def short(fd: int, buffers: list[memoryview], position: int) -> int:
        return write(fd, [b"".join(buffers)[:most]], position)

    file = files.open("f", create=True)
    monkeypatch.setattr(os, "pwritev", short)
    file.write(5, [b"abc", b"", b"defgh", b"i"])
    assert file.read(5, 100) == b"abcdefghi"


def test_an_interrupted_call_is_repeated_by_the_interpreter(tmp_path: Path) -> None:
    """PEP 475: no EINTR reaches us while handlers return. A signal storm during many writes shows it."""
    code = f"""
import os, signal
from hubweir.messaging_store.disk.files import SystemFiles
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
file = SystemFiles({str(tmp_path)!r}).open("f", create=True)
for number in range(200):
    file.write_and_sync(number * 1000, [b"x" * 500, b"y" * 500])
signal.setitimer(signal.ITIMER_REAL, 0)
assert file.read(0, 1 << 20) == (b"x" * 500 + b"y" * 500) * 200
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_a_failed_sync_has_its_own_error(files: SystemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    file = files.open("f", create=True)

    def fail(fd: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fdatasync", fail)
    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr(module, "SYNCED_WRITE", 0)
    for call in (file.sync, lambda: file.write_and_sync(0, [b"x"]), lambda: files.sync_folder("")):
        with pytest.raises(SyncFailed) as caught:
            call()
        assert caught.value.errno == errno.EIO


class Calls:
    """The calls of the system that write and sync, in their order; the first synced writes fail or fall short."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, error: int = 0, most: int = 1 << 20) -> None:
        self.made: list[str] = []
        self._error, self._most = error, most
        self._pwritev, self._fdatasync = os.pwritev, os.fdatasync
        monkeypatch.setattr(os, "pwritev", self._write)
        monkeypatch.setattr(os, "fdatasync", self._sync)

    def _write(self, fd: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        self.made.append("synced write" if flags == os.RWF_DSYNC else "write")
        if flags and self._error:
            raise OSError(self._error, "planted")
        return self._pwritev(fd, [b"".join(buffers)[: self._most if flags else None]], position)

    def _sync(self, fd: int) -> None:
        self.made.append("sync")
        self._fdatasync(fd)


needs_synced_writes = pytest.mark.skipif(not SYNCED_WRITE, reason="this system has no synced writes")


@needs_synced_writes
def test_what_is_written_behind_synced_bytes_is_synced_by_its_own_call(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, calls = files.open("f", create=True), Calls(monkeypatch)
    file.write_and_sync(0, [b"abc", b"de"])
    file.write_and_sync(5, [b"f"])
    assert calls.made == ["synced write", "synced write"] and file.read(0, 9) == b"abcdef"


@needs_synced_writes
@pytest.mark.parametrize("dirty", [lambda file: file.write(9, [b"x"]), lambda file: file.reserve(99)])
def test_bytes_that_are_not_synced_yet_are_synced_with_the_next(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch, dirty: Callable[[SystemFile], None]
) -> None:
    file = files.open("f", create=True)
    dirty(file)
    calls = Calls(monkeypatch)
    file.write_and_sync(0, [b"abc"])
    file.write_and_sync(3, [b"d"])
    assert calls.made == ["write", "sync", "synced write"] and file.read(0, 4) == b"abcd"


@needs_synced_writes
@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_system_without_synced_writes_writes_then_syncs(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    file, calls = files.open("f", create=True), Calls(monkeypatch, error=error)
    file.write_and_sync(0, [b"abc"])
    assert calls.made == ["synced write", "write", "sync"] and file.read(0, 9) == b"abc"


@needs_synced_writes
def test_a_synced_write_that_falls_short_and_one_of_very_many_buffers_are_written_then_synced(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, calls = files.open("f", create=True), Calls(monkeypatch, most=2)
    file.write_and_sync(0, [b"abc"])
    assert calls.made == ["synced write", "write", "sync"] and file.read(0, 9) == b"abc"
    calls.made.clear()
    file.write_and_sync(0, [b"%d," % number for number in range(5000)])
    assert set(calls.made[:-1]) == {"write"} and calls.made[-1] == "sync"
    assert file.read(0, 1 << 20) == b"".join(b"%d," % number for number in range(5000))


@needs_synced_writes
def test_a_synced_write_fails_as_a_sync_but_where_there_is_no_space(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = files.open("f", create=True)
    with monkeypatch.context() as patched, pytest.raises(SyncFailed) as failed:
        Calls(patched, error=errno.EIO)
        file.write_and_sync(0, [b"abc"])
    assert failed.value.errno == errno.EIO
    file.sync()
    with monkeypatch.context() as patched, pytest.raises(OSError) as full:
        Calls(patched, error=errno.ENOSPC)
        file.write_and_sync(0, [b"abc"])
    assert not isinstance(full.value, SyncFailed) and full.value.errno == errno.ENOSPC
    calls = Calls(monkeypatch)
    file.write_and_sync(0, [b"abc"])
    assert calls.made == ["write", "sync"]  # nobody knows what the one before left


@needs_synced_writes
def test_a_write_during_a_synced_write_is_not_covered_by_it(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, calls, write = files.open("f", create=True), Calls(monkeypatch), os.pwritev

    def slow(fd: int, buffers: list[memoryview], position: int, flags: int = 0) -> int:
        monkeypatch.setattr(os, "pwritev", write)
        file.write(9, [b"meanwhile"])
        return write(fd, buffers, position, flags)

    monkeypatch.setattr(os, "pwritev", slow)
    file.write_and_sync(0, [b"abc"])
    calls.made.clear()
    file.write_and_sync(3, [b"d"])
    assert calls.made == ["write", "sync"]


def test_space_is_set_aside_and_given_back(files: SystemFiles) -> None:
    file = files.open("f", create=True)
    file.write(0, [b"abc"])
    file.reserve(100_000)
    assert file.size() == 100_000 and file.read(0, 5) == b"abc\0\0"
    file.reserve(10)
    assert file.size() == 100_000
    file.truncate(3)
    assert file.size() == 3


def test_space_is_set_aside_with_zeros_where_the_system_cannot(
    files: SystemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(fd: int, position: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, "not here")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    file = files.open("f", create=True)
    file.reserve(3_000_000)
    assert file.size() == 3_000_000 and file.read(2_999_990, 20) == bytes(10)


def test_no_space_is_told_as_the_system_tells_it(files: SystemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, position: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError) as caught:
        files.open("f", create=True).reserve(10)
    assert caught.value.errno == errno.ENOSPC


def test_more_files_than_descriptors(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path, descriptors=4)
    opened = [files.open(f"f{number}", create=True) for number in range(30)]
    for number, file in enumerate(opened):
        file.write_and_sync(0, [b"%d" % number])
    assert [file.read(0, 9) for file in opened] == [b"%d" % number for number in range(30)]
    assert files._descriptors.count() <= 5


def test_an_unsynced_file_keeps_its_descriptor(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path, descriptors=2)
    opened = [files.open(f"f{number}", create=True) for number in range(6)]
    for file in opened:
        file.write(0, [b"unsynced"])
    assert files._descriptors.count() == 6
    for file in opened:
        file.sync()
    opened[0].read(0, 1)
    assert files._descriptors.count() <= 3


def test_a_closed_file_is_not_used_again(files: SystemFiles) -> None:
    file = files.open("f", create=True)
    file.close()
    file.close()
    with pytest.raises(StoreError, match="closed"):
        file.read(0, 1)
    assert files._descriptors.count() == 0


def test_folders_and_names(files: SystemFiles) -> None:
    files.make_folder("a/b")
    files.make_folder("a/b")
    files.open("a/b/x", create=True).close()
    files.rename("a/b/x", "a/b/y")
    files.sync_folder("a/b")
    assert files.list("a/b") == ["y"] and files.list("nowhere") == [] and files.exists("a/b/y")
    files.remove("a/b/y")
    files.remove_folder("a/b")
    assert files.list("a") == [] and files.free_bytes() > 0


def test_the_space_that_is_left_is_that_of_the_folder_that_the_files_are_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    known = os.statvfs

    def ask(path: str) -> os.statvfs_result:
        asked.append(path)
        return known(path)

    monkeypatch.setattr(os, "statvfs", ask)
    (tmp_path / "store-1").mkdir()
    SystemFiles(tmp_path).free_bytes()
    SystemFiles(tmp_path, space_of="store-1").free_bytes()
    assert asked == [str(tmp_path), str(tmp_path / "store-1")]


def test_folders_of_one_file_system_say_so_and_others_say_another(tmp_path: Path) -> None:
    (tmp_path / "store-1").mkdir()
    (tmp_path / "store-2").symlink_to("/proc")  # the one that is another on every machine
    one, other = SystemFiles(tmp_path), SystemFiles(tmp_path, space_of="store-2")
    assert one.file_system() == SystemFiles(tmp_path, space_of="store-1").file_system() != other.file_system()


@pytest.mark.parametrize("path", ["../x", "a/../../x", ".", "a/\0"])
def test_no_path_leaves_the_root(files: SystemFiles, path: str) -> None:
    with pytest.raises(StoreError):
        files.open(path, create=True)


def test_one_owner_a_folder_and_children_inherit_nothing(files: SystemFiles, tmp_path: Path) -> None:
    files.make_folder("s")
    lock = files.lock_folder("s")
    with pytest.raises(StoreLocked, match="stop it first"):
        SystemFiles(tmp_path / "data").lock_folder("s")
    code = "print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False
    )
    try:
        assert child.stdout is not None and child.stdout.readline()  # it runs, so what closes on exec is closed
        lock.release()
        files.lock_folder("s").release()
    finally:
        child.communicate(b"\n")


def test_write_all_of_nothing_writes_nothing() -> None:
    write_all(-1, 0, [b"", b""])


class RealFilesEnv(SimulatedEnv):
    """Virtual time over real files."""

    def __init__(self, root: Path) -> None:
        super().__init__(1)
        self._system = SystemFiles(root)

    @property
    def files(self) -> SystemFiles:  # type: ignore[override]
        return self._system


def test_a_log_lives_in_real_files(tmp_path: Path, make_events, read_messages) -> None:
    for lifetime in range(3):
        env = RealFilesEnv(tmp_path)
        store = MessagingStore.open(env, "store-0")
        log = made_log(env, store, "cd" * 16)
        assert log.bounds.next_index == lifetime * 10 and not store.alarms.current()
        for number in range(10):
            log.append(make_events([b"%d-%d" % (lifetime, number)]), now_ms=env.now_ms(), on_done=lambda _: None)
            env.run_for(100)
        if lifetime:
            store.close(lambda: None)
            env.run()
        else:
            store._lock.release()  # as the end of the process would
    found = {index: message for run in runs_of(env, log) for index, message in read_messages(run.data).items()}
    assert found == {
        lifetime * 10 + number: b"%d-%d" % (lifetime, number) for lifetime in range(3) for number in range(10)
    }


def test_a_write_during_a_sync_is_not_covered_by_it_and_keeps_the_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SystemFiles(tmp_path, descriptors=1)
    file = files.open("f", create=True)
    file.write(0, [b"before"])
    sync = os.fdatasync

    def slow(fd: int) -> None:
        sync(fd)
        file.write(6, [b"meanwhile"])

    monkeypatch.setattr(os, "fdatasync", slow)
    file.sync()
    monkeypatch.setattr(os, "fdatasync", sync)
    for name in "abc":
        files.open(name, create=True)
    assert id(file) in files._descriptors._open, "closed before its last write was synced, an error of it would be lost"
    file.sync()
    files.open("d", create=True)
    assert id(file) not in files._descriptors._open


def test_a_small_file_is_read_through_its_name_each_time(files) -> None:
    assert files.read_small("EPOCH") is None
    for data in (b"1", b"22", b""):
        write_whole(files, "", "EPOCH", data)
        assert files.read_small("EPOCH") == data


def opened_paths(monkeypatch) -> list[str]:
    """What is opened from now on."""
    paths, open_file = list[str](), os.open

    def noted(path, *rest, **named):
        paths.append(os.path.basename(path))
        return open_file(path, *rest, **named)

    monkeypatch.setattr(os, "open", noted)
    return paths


@pytest.mark.parametrize(("device", "times"), [(8, 1), (0, 3)])
def test_a_small_file_that_is_the_same_is_opened_each_time_on_a_network_disk_alone(
    files, monkeypatch, device: int, times: int
) -> None:
    """There a name that is only looked at may be an old one."""
    monkeypatch.setattr(os, "major", lambda device_id: device)
    write_whole(files, "", "EPOCH", b"1")
    opened = opened_paths(monkeypatch)
    assert [files.read_small("EPOCH") for _ in range(3)] == [b"1"] * 3
    assert opened.count("EPOCH") == times
    write_whole(files, "", "EPOCH", b"2")
    assert files.read_small("EPOCH") == b"2"
    files.remove("EPOCH")
    assert files.read_small("EPOCH") is None


def test_reading_small_files_leaves_no_descriptor_open(files, monkeypatch) -> None:
    write_whole(files, "", "EPOCH", b"1")
    opened: list[int] = []
    open_file = os.open

    def noted(path, *rest, **named):
        opened.append(open_file(path, *rest, **named))
        return opened[-1]

    monkeypatch.setattr(os, "open", noted)
    assert files.read_small("EPOCH") == b"1"
    with pytest.raises(OSError, match="[Bb]ad file descriptor"):
        os.fstat(opened[-1])


def test_without_descriptors_a_small_file_is_known_as_long_as_it_is_the_same(files, monkeypatch) -> None:
    write_whole(files, "", "EPOCH", b"1")
    write_whole(files, "", "other", b"never read")
    assert files.read_small("EPOCH") == b"1"
    opened = os.open

    def none_left(path, *rest, **named):
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr(os, "open", none_left)
    assert files.read_small("EPOCH") == b"1"
    with pytest.raises(OSError, match="Too many"):
        files.read_small("other")
    monkeypatch.setattr(os, "open", opened)
    write_whole(files, "", "EPOCH", b"2")
    monkeypatch.setattr(os, "open", none_left)
    with pytest.raises(OSError, match="Too many"):
        files.read_small("EPOCH")
