"""The steps of a restore by themselves; whole restores are tests of both ways that take them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.limits import MIB
from hubweir.messaging_store.disk.moved_log import remove_log_files
from hubweir.service import copied_logs
from hubweir.service.copied_logs import CopiedLogs
from hubweir.service.stopped_folder import SPARE_BYTES
from hubweir.service.tests.restore_world import RestoreWorld
from hubweir.testing.memory_files import MemoryFiles


@pytest.fixture
def world() -> RestoreWorld:
    return RestoreWorld()


def logs_of(world: RestoreWorld) -> CopiedLogs:
    logs = CopiedLogs(world.home.env.files, world.backup.env.files, world.two)
    logs.look()
    return logs


def test_the_newest_epoch_is_told_of_each_store_and_is_that_of_its_newest_log(world: RestoreWorld) -> None:
    before, later = logs_of(world).newest_epochs, world.two.logs[0]
    assert set(before) == {"catalog", *(log.store for log in world.two.logs)} and min(before.values()) > 0
    world.backup.take_epochs(3, later.store)
    world.backup.append(later, b"later")
    after = logs_of(world).newest_epochs
    assert after[later.store] >= before[later.store] + 3
    assert {store for store in before if after[store] != before[store]} == {later.store}


@pytest.mark.parametrize("is_newest_first", [True, False])
def test_of_several_logs_of_a_store_the_newest_epoch_is_told(world: RestoreWorld, is_newest_first: bool) -> None:
    newest = world.two.logs[0]
    [older] = world.backup.add("third", {"more": (0, b"more")}).logs
    world.backup.take_epochs(3, newest.store)
    world.backup.append(newest, b"later")
    alone = logs_of(world).newest_epochs[newest.store]
    world.two = replace(world.two, logs=(newest, older) if is_newest_first else (older, newest))
    assert logs_of(world).newest_epochs[newest.store] == alone
    world.two = replace(world.two, logs=(older,))
    assert logs_of(world).newest_epochs[newest.store] < alone


def test_the_disk_that_has_too_little_room_is_named(world: RestoreWorld) -> None:
    logs, full = logs_of(world), world.two.logs[-1].store
    disks = {store: MemoryFiles() for store in logs.newest_epochs}
    assert logs.lacks_room(disks.__getitem__) == ""
    disks[full].capacity_bytes = 0
    lacking = logs.lacks_room(disks.__getitem__)
    assert lacking == f"the disk of {full} has 0 MiB free, and the namespace needs 8 there"


def test_stores_on_one_disk_must_fit_there_together(world: RestoreWorld) -> None:
    world.backup.append(world.two.logs[0], bytes(3 * MIB))
    world.backup.append(world.two.logs[1], bytes(5 * MIB))
    logs, one, other = logs_of(world), MemoryFiles(capacity_bytes=30 * MIB), MemoryFiles(capacity_bytes=9 * MIB)
    one.capacity_bytes = 2 * SPARE_BYTES + sum(logs._copies[log].space_bytes for log in world.two.logs)
    assert one.capacity_bytes > 24 * MIB
    assert logs.lacks_room(lambda store: other if store == "catalog" else one) == ""
    one.capacity_bytes -= 1
    lacking = "the disk of store-0, store-1 has 24 MiB free, and the namespace needs 24 there"
    assert logs.lacks_room(lambda store: other if store == "catalog" else one) == lacking
    one.capacity_bytes = 30 * MIB
    lacking = "the disk of store-0, store-1, catalog has 30 MiB free, and the namespace needs 32 there"
    assert logs.lacks_room(lambda store: one) == lacking


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_catalog_that_cannot_be_removed_keeps_the_logs_that_it_names(
    world: RestoreWorld, monkeypatch: pytest.MonkeyPatch, is_shown: bool
) -> None:
    before, catalog = world.home.logs(), world.two.catalog_id
    logs = logs_of(world)
    logs.copy(lambda count: None)
    logs.show()
    logs.copy_catalog(lambda count: None)
    if is_shown:
        logs.show_catalog()

    def stuck(files: object, store: str, log_id: str) -> None:
        if log_id == catalog:
            raise OSError("the disk is away")
        remove_log_files(files, store, log_id)  # type: ignore[arg-type]  # files of the world

    with monkeypatch.context() as planted:
        planted.setattr(copied_logs, "remove_log_files", stuck)
        assert str(logs.remove()) == "the disk is away"
    named = {f"{log.store}/{log.log_id}" for log in world.two.logs}
    assert named.intersection(world.home.logs()) == (named if is_shown else set())
    assert logs.remove() is None and world.home.logs() == before


def test_one_log_that_cannot_be_removed_keeps_no_other_from_being_removed(
    world: RestoreWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = world.home.logs()
    logs = logs_of(world)
    logs.copy(lambda count: None)
    logs.show()
    first = world.two.logs[-1]  # behind the catalog the first to be removed

    def stuck(files: object, store: str, log_id: str) -> None:
        if log_id == first.log_id:
            raise OSError("the disk is away")
        remove_log_files(files, store, log_id)  # type: ignore[arg-type]  # files of the world

    with monkeypatch.context() as planted:
        planted.setattr(copied_logs, "remove_log_files", stuck)
        assert str(logs.remove()) == "the disk is away"
    assert [name for name in world.home.logs() if name not in before] == [f"{first.store}/{first.log_id}"]
    assert logs.remove() is None and world.home.logs() == before
