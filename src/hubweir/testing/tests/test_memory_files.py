from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from hubweir.env import SyncFailed
from hubweir.errors import StoreError, StoreLocked
from hubweir.messaging_store.disk.whole_file import write_whole
from hubweir.testing.memory_faults import Fault, Killed, PowerCut
from hubweir.testing.memory_files import MemoryFiles
from tests import closed_files


def written(seed: int, *, synced: bool = False) -> MemoryFiles:
    """A file of ten old sectors, synced, then ten new ones in their place."""
    files = MemoryFiles(seed)
    file = files.open("f", create=True)
    file.write_and_sync(0, [b"o" * 5120])
    files.sync_folder("")
    file.write(0, [b"n" * 5120])
    if synced:
        file.sync()
    return files


def test_what_is_written_is_readable_before_any_sync() -> None:
    assert written(1).open("f").read(0, 9999) == b"n" * 5120


def test_a_power_cut_tears_unsynced_sectors_each_for_itself() -> None:
    outcomes = set()
    for seed in range(30):
        files = written(seed)
        files.power_cut()
        data = files.bytes_of("f")
        sectors = [bytes(data[at : at + 512]) for at in range(0, 5120, 512)]
        assert all(sector in (b"o" * 512, b"n" * 512) for sector in sectors)
        outcomes.add(bytes(data[::512]))
    assert len(outcomes) > 20, "later sectors may survive where earlier ones do not"


def test_what_was_synced_survives() -> None:
    for seed in range(10):
        files = written(seed, synced=True)
        files.power_cut()
        assert files.bytes_of("f") == b"n" * 5120


def test_a_failed_sync_leaves_pages_that_no_later_sync_writes() -> None:
    files = written(1)
    files.plan(Fault.SYNC_EIO)
    file = files.open("f")
    files.plan(Fault.SYNC_EIO)
    with pytest.raises(SyncFailed):
        file.sync()
    file.sync()  # "succeeds", and is worth nothing
    assert file.read(0, 9999) == b"n" * 5120
    files.power_cut()
    assert files.bytes_of("f") != b"n" * 5120


def test_a_lying_sync_does_nothing() -> None:
    lost = 0
    for seed in range(10):
        files = written(seed)
        file = files.open("f")
        files.plan(Fault.LYING_SYNC)
        file.sync()
        files.power_cut()
        lost += files.bytes_of("f") != b"n" * 5120
    assert lost == 10


def test_names_are_durable_after_their_folders_sync_only() -> None:
    kept = {"unsynced": 0, "synced": 0}
    for seed in range(40):
        for name in kept:
            files = MemoryFiles(seed)
            files.open("f", create=True).sync()
            if name == "synced":
                files.sync_folder("")
            files.power_cut()
            kept[name] += "f" in files.paths()
    assert kept["synced"] == 40 and 5 < kept["unsynced"] < 35


def test_a_rename_happens_whole_or_not_at_all() -> None:
    seen = set()
    for seed in range(40):
        files = MemoryFiles(seed)
        for name in ("new", "old"):
            files.open(name, create=True).write_and_sync(0, [name.encode()])
        files.sync_folder("")
        files.rename("new", "old")
        files.power_cut()
        seen.add((tuple(files.paths()), bytes(files.bytes_of("old"))))
    assert seen == {(("new", "old"), b"old"), (("old",), b"new")}


def test_the_nth_call_fails_once_or_for_ever() -> None:
    files = MemoryFiles()
    file = files.open("f", create=True)
    files.plan(Fault.EIO, 2)
    file.write(0, [b"fine"])
    with pytest.raises(OSError) as caught:
        file.write(0, [b"fails"])
    assert caught.value.errno == errno.EIO
    file.write(0, [b"fine again"])
    files.plan(Fault.EIO, forever=True)
    for _ in range(3):
        with pytest.raises(OSError):
            file.read(0, 1)
    files.heal()
    assert file.read(0, 4) == b"fine"


def test_every_kind_of_fault_shows_as_the_system_would_show_it() -> None:
    cases = {Fault.ENOSPC: errno.ENOSPC, Fault.SHORT: errno.EIO, Fault.EINTR: errno.EINTR}
    for fault, number in cases.items():
        files = MemoryFiles(3)
        file = files.open("f", create=True)
        files.plan(fault)
        with pytest.raises(OSError) as caught:
            file.write(0, [b"x" * 100])
        assert caught.value.errno == number
        assert file.size() < 100
    files.plan(Fault.POWER_CUT)
    with pytest.raises(PowerCut):
        file.read(0, 1)


def test_a_full_disk_refuses_and_a_removed_file_makes_room() -> None:
    files = MemoryFiles(capacity_bytes=1000)
    files.open("a", create=True).reserve(800)
    file = files.open("b", create=True)
    for call in (lambda: file.reserve(300), lambda: file.write(0, [b"x" * 300])):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.ENOSPC
    files.remove("a")
    file.reserve(300)
    assert files.free_bytes() == 700


def test_a_dead_process_frees_its_lock_and_its_files_may_not_be_used() -> None:
    files = MemoryFiles()
    files.lock_folder("s")
    with pytest.raises(StoreLocked):
        files.lock_folder("s")
    file = files.open("f", create=True)
    files.process_died()
    files.lock_folder("s")
    with pytest.raises(AssertionError):
        file.read(0, 1)


def test_space_that_is_set_aside_reads_as_zeros() -> None:
    file = MemoryFiles().open("f", create=True)
    file.write(0, [b"abc"])
    file.reserve(10)
    assert file.read(0, 20) == b"abc" + bytes(7)
    file.truncate(2)
    file.reserve(5)
    assert file.read(0, 20) == b"ab" + bytes(3)


def test_a_folder_is_durable_after_its_parents_sync_and_takes_what_is_in_it_otherwise() -> None:
    kept = {"neither": 0, "inside": 0, "both": 0}
    for seed in range(40):
        for name in kept:
            files = MemoryFiles(seed)
            files.make_folder("a/b")
            files.open("a/b/f", create=True).write_and_sync(0, [b"f"])
            for folder in {"neither": (), "inside": ("a", "a/b"), "both": ("", "a", "a/b")}[name]:
                files.sync_folder(folder)
            files.power_cut()
            assert files.exists("a/b/f") or files.paths() == []
            kept[name] += files.exists("a/b/f")
    assert kept["both"] == 40 and kept["neither"] < 15 and 5 < kept["inside"] < 35


def test_a_removed_folder_comes_back_with_a_part_of_its_files_unless_its_parent_was_synced() -> None:
    seen = set()
    for seed in range(60):
        files = MemoryFiles(seed)
        files.make_folder("a")
        for name in ("f", "g"):
            files.open(f"a/{name}", create=True).write_and_sync(0, [b"x"])
        files.sync_folder("a")
        files.sync_folder("")
        files.remove_folder("a")
        assert files.list("") == []
        if seed % 2:
            files.sync_folder("")
        files.power_cut()
        assert not (seed % 2 and files.exists("a"))
        seen.add((files.exists("a"), tuple(files.list("a"))))
    assert seen == {(False, ()), (True, ()), (True, ("f",)), (True, ("g",)), (True, ("f", "g"))}


def test_a_renamed_folder_has_one_name_after_a_power_cut_with_all_that_is_in_it() -> None:
    names = set()
    for seed in range(60):
        files = MemoryFiles(seed)
        files.make_folder("a/in")
        files.open("a/f", create=True).write_and_sync(0, [b"f"])
        files.sync_folder("a")
        files.sync_folder("")
        files.rename("a", "b")
        assert (files.list(""), files.list("b"), files.exists("a/f")) == (["b"], ["f", "in"], False)
        if seed % 2:
            files.sync_folder("")
        files.power_cut()
        (name,) = files.list("")
        assert files.list(name) == ["f", "in"] and files.bytes_of(f"{name}/f") == b"f"
        names.add((seed % 2, name))
    assert names == {(0, "a"), (0, "b"), (1, "b")}


def test_a_folder_is_not_renamed_over_another() -> None:
    files = MemoryFiles()
    files.make_folder("a")
    files.make_folder("b")
    with pytest.raises(OSError, match="not empty"):
        files.rename("a", "b")
    assert files.list("") == ["a", "b"]


def test_calls_below_a_folder_that_is_absent_fail() -> None:
    files = MemoryFiles()
    for call in (lambda: files.open("a/f", create=True), lambda: files.sync_folder("a"), lambda: files.remove("a")):
        with pytest.raises(FileNotFoundError):
            call()
    assert files.list("a") == []


def test_what_is_lost_does_not_come_back_at_a_power_cut() -> None:
    for seed in range(10):
        files = MemoryFiles(seed)
        files.make_folder("a")
        files.sync_folder("")
        for name in ("f", "g"):
            files.open(f"a/{name}", create=True).write_and_sync(0, [b"x"])
        files.lose("a/f")
        files.sync_folder("a")
        files.power_cut()
        assert files.paths() == ["a/g"]
        files.lose("a")
        files.power_cut()
        assert files.paths() == [] and not files.exists("a")


def test_an_older_version_of_a_file_stands_there_again() -> None:
    files = MemoryFiles()
    for version in (b"one", b"two", b"three"):
        write_whole(files, "", "f", version)
    assert files.bring_back("f", 2) and files.bytes_of("f") == b"one"
    files.power_cut()
    assert files.bytes_of("f") == b"one"
    assert not files.bring_back("f", 9) and not MemoryFiles().bring_back("g")


def test_a_full_disk_keeps_the_part_of_a_write_that_fitted() -> None:
    sizes = set()
    for seed in range(20):
        files = MemoryFiles(seed, capacity_bytes=1000)
        file = files.open("f", create=True)
        with pytest.raises(OSError):
            file.write(0, [b"x" * 3000])
        sizes.add(file.size())
    assert max(sizes) <= 1000 and len(sizes) > 10


def test_a_kill_leaves_the_page_cache() -> None:
    files = written(1)
    files.plan(Fault.KILL)
    with pytest.raises(Killed):
        files.open("f").sync()
    files.process_died()
    assert files.bytes_of("f") == b"n" * 5120


def test_a_file_is_not_used_after_it_was_closed() -> None:
    file = written(1).open("f")
    file.close()
    file.close()
    for use in (lambda: file.read(0, 1), lambda: file.write(0, [b"x"]), file.sync, file.size):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_files_that_nobody_closed_are_told_but_for_the_segments_of_a_store_that_is_in_use() -> None:
    files = MemoryFiles()
    lock = files.lock_folder("store-1")
    for path in ("store-1/logs/0.log", "store-10/logs/0.log", "store-1/EPOCH", "by-hand"):
        files.set_bytes(path, b"")
        files.open(path)
    files.open("store-1/EPOCH").close()
    files.open_to_read("store-1/logs/0.log")
    left = ["store-10/logs/0.log", "store-1/EPOCH", "store-1/logs/0.log"]
    assert files.left_open() == left
    lock.release()
    assert files.left_open() == ["store-1/logs/0.log", *left]
    files.process_died()
    assert not files.left_open()


def test_a_test_that_leaves_a_file_open_fails() -> None:
    files = MemoryFiles()
    files.set_bytes("store-0/EPOCH", b"")
    files.open_to_read("store-0/EPOCH")
    item = SimpleNamespace(name="test_of_a_store")
    with pytest.raises(AssertionError, match="test_of_a_store leaves files open: store-0/EPOCH"):
        closed_files.pytest_runtest_teardown(item)  # type: ignore[arg-type]
    closed_files.pytest_runtest_teardown(item)  # type: ignore[arg-type]  # once told, it is no fault of the next test
