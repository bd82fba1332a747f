"""moved_log.py: a store that the catalog does not name has the whole log, a folder that is no log, or nothing."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.inspection import look_at_log
from hubweir.messaging_store.disk.layout import NEWEST_FOLDER
from hubweir.messaging_store.disk.moved_log import (
    MovedLog,
    has_log_files,
    remove_log_files,
    remove_unfinished_log,
    unfinished_logs,
)
from hubweir.messaging_store.disk.read_only_files import ReadOnlyFiles
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.tests.conftest import FOLDER, LOG_ID, Bench
from hubweir.testing.memory_faults import Ended, Fault
from hubweir.testing.simulated_env import SimulatedEnv

UNFINISHED = f"{FOLDER}.new"


def filled(seed: int = 3) -> Bench:
    """A log of some segments, whose process has ended; store-1 is there, and empty."""
    bench = Bench(env=SimulatedEnv(seed))
    for number in range(20):
        bench.append(b"event %d " % number * 30)
    MessagingStore.open(bench.env, "store-1").close(lambda: None)
    bench.store.close(lambda: None)
    bench.env.run()
    bench.env.crash()
    return bench


def count_in(bench: Bench, store: str) -> int | None:
    """How many records a start would find there; None: no log."""
    files = bench.env.files
    return (
        look_at_log(ReadOnlyFiles(files), store, LOG_ID).end.index if files.exists(f"{store}/logs/{LOG_ID}") else None
    )


def test_a_log_is_shown_whole_in_the_other_store_and_removed_from_the_first() -> None:
    bench = filled()
    files, told = bench.env.files, []
    moved = MovedLog(files, LOG_ID, "store-0", "store-1")
    moved.copy(told.append)
    assert 0 < sum(told) <= moved.space_bytes
    assert count_in(bench, "store-1") is None and unfinished_logs(files, "store-1") == [LOG_ID]
    moved.show()
    assert count_in(bench, "store-1") == count_in(bench, "store-0") == 20
    assert has_log_files(files, "store-0", LOG_ID) and has_log_files(files, "store-1", LOG_ID)
    remove_log_files(files, "store-0", LOG_ID)
    assert not has_log_files(files, "store-0", LOG_ID) and count_in(bench, "store-1") == 20


@pytest.mark.parametrize("seed", range(12))
def test_a_power_cut_in_a_removal_leaves_the_whole_log_or_none_under_its_name(seed: int) -> None:
    """Part of a log that has the name of one would be taken for it."""
    nth, is_over = 0, False
    while not is_over:
        nth, bench = nth + 1, filled(seed)
        files = bench.env.files
        files.plan(Fault.POWER_CUT, nth, forever=True)
        with suppress(Ended):
            remove_log_files(files, "store-0", LOG_ID)
            is_over = True
        files.heal()
        files.power_cut()
        assert count_in(bench, "store-0") in (None, 20)
        remove_log_files(files, "store-0", LOG_ID)
        assert not has_log_files(files, "store-0", LOG_ID)
    assert nth > 5


def test_what_is_left_of_one_in_every_form_is_found_and_removed() -> None:
    bench = filled()
    files = bench.env.files
    files.make_folder(UNFINISHED)
    files.set_bytes(f"{UNFINISHED}/half.log", b"x")
    files.make_folder("store-0/logs/lost+found.new")
    assert unfinished_logs(files, "store-0") == [LOG_ID]
    remove_log_files(files, "store-0", LOG_ID)
    assert files.list("store-0/logs") == ["lost+found.new"] and files.list(f"store-0/{NEWEST_FOLDER}") == []
    for path in (f"{UNFINISHED}/f", f"store-0/{NEWEST_FOLDER}/{LOG_ID}"):
        files.set_bytes(path, b"x")
        assert has_log_files(files, "store-0", LOG_ID)
        remove_log_files(files, "store-0", LOG_ID)
        assert not has_log_files(files, "store-0", LOG_ID)


@pytest.mark.parametrize("suffixes", [(".new",), (".removed",), (".new", ".removed")])
def test_folders_that_are_no_logs_are_found_once_and_removed(suffixes: tuple[str, ...]) -> None:
    files = filled().env.files
    for suffix in suffixes:
        files.make_folder(FOLDER + suffix)
        files.set_bytes(f"{FOLDER}{suffix}/half.log", b"x")
    files.make_folder("store-0/logs/lost+found.removed")
    assert unfinished_logs(files, "store-0") == [LOG_ID]
    remove_unfinished_log(files, "store-0", LOG_ID)
    assert files.list("store-0/logs") == [LOG_ID, "lost+found.removed"]


def copied(folder: Path) -> MovedLog:
    """A log that is copied to the disk, and is to be shown there, by another process than the store's owner."""
    files = SystemFiles(folder)
    for each in ("logs", NEWEST_FOLDER):
        files.make_folder(f"store-1/{each}")
    moved = MovedLog(files, LOG_ID, "store-0", "store-1", source_files=filled().env.files)
    moved.copy(lambda _: None)
    return moved


def test_a_copy_that_is_being_removed_cannot_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The removal of a folder goes on in it when it gets another name: the log would lose its files behind the look."""
    moved, unlink, tries = copied(tmp_path), os.unlink, list[str]()

    def show_first(path: str, *, dir_fd: int | None = None) -> None:
        if not tries:
            tries.append(path)
            with pytest.raises(FileNotFoundError):
                moved.show()
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", show_first)
    remove_unfinished_log(SystemFiles(tmp_path), "store-1", LOG_ID)
    assert tries and os.listdir(tmp_path / "store-1/logs") == []


def test_a_copy_that_is_shown_just_before_its_removal_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved, rename, shown = copied(tmp_path), SystemFiles.rename, list[str]()

    def show_first(files: SystemFiles, old: str, new: str) -> None:
        if not shown:
            shown.append(new)
            moved.show()
        rename(files, old, new)

    monkeypatch.setattr(SystemFiles, "rename", show_first)
    with pytest.raises(FileNotFoundError):
        remove_unfinished_log(SystemFiles(tmp_path), "store-1", LOG_ID)
    assert os.listdir(tmp_path / "store-1/logs") == [LOG_ID]
    assert look_at_log(ReadOnlyFiles(SystemFiles(tmp_path)), "store-1", LOG_ID).end.index == 20


def left_in(folder: Path, *names: str) -> SystemFiles:
    """Folders of three files each, which are to be removed; no other process has done anything yet."""
    files = SystemFiles(folder)
    for each in ("logs", NEWEST_FOLDER, *names):
        files.make_folder(f"store-0/{each}")
    for each in names:
        for number in range(3):
            (folder / "store-0" / each / f"{number}.log").write_bytes(b"x")
    return files


@pytest.mark.parametrize("moment", ["before", "at a file", "at the folder"])
@pytest.mark.parametrize("name", [f"logs/{LOG_ID}", f"logs/{LOG_ID}.new"], ids=["a log", "no log yet"])
def test_a_removal_that_meets_the_one_of_the_stores_next_owner_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, moment: str
) -> None:
    """That one takes the folder's name and removes all that is in it, while this one is at it."""
    files, met = left_in(tmp_path, name), list[str]()
    target, called = {"before": (shutil, "rmtree"), "at a file": (os, "unlink"), "at the folder": (os, "rmdir")}[moment]
    call = getattr(target, called)

    def other_first(path: str, **given: object) -> None:
        if not met:
            met.append(path)
            remove_unfinished_log(files, "store-0", LOG_ID)
        call(path, **given)

    monkeypatch.setattr(target, called, other_first)
    remove_log_files(files, "store-0", LOG_ID)
    assert met and os.listdir(tmp_path / "store-0/logs") == []


@pytest.mark.parametrize("suffix", [".new", ".removed"])
def test_the_next_owner_removes_all_though_files_of_it_go_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """A removal that had begun goes on in the folder when that gets another name."""
    files, unlink, met = left_in(tmp_path, f"logs/{LOG_ID}{suffix}"), os.unlink, list[str]()

    def gone_before(path: str, *, dir_fd: int | None = None) -> None:
        if not met:
            met.append(path)
            unlink(path, dir_fd=dir_fd)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", gone_before)
    remove_unfinished_log(files, "store-0", LOG_ID)
    assert met and os.listdir(tmp_path / "store-0/logs") == []


def test_a_removal_that_the_disk_refuses_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for it calls again; it does not go on by itself for ever."""
    files = left_in(tmp_path, f"logs/{LOG_ID}.new")

    def refused(path: str) -> None:
        raise PermissionError(path)

    monkeypatch.setattr(shutil, "rmtree", refused)
    for remove in (remove_log_files, remove_unfinished_log):
        with pytest.raises(PermissionError):
            remove(files, "store-0", LOG_ID)
