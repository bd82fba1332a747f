"""A log moves whole, to where the catalog says; what cannot be moved is refused with nothing changed."""

from __future__ import annotations

import errno
from functools import partial

import pytest

from hubweir.env import FolderLock
from hubweir.errors import ServiceError
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.disk.newest_segment import load_newest
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.tests.conftest import events
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.log_move import SPARE_BYTES, Moved, NoMove
from hubweir.service.tests.move_world import World, calls_of_a_move
from hubweir.testing.answers import answered, made_log, opened_log
from hubweir.testing.memory_faults import Fault


def test_a_moved_log_is_whole_in_the_other_store_and_nothing_of_it_is_left() -> None:
    world = World()
    told: list[int] = []
    assert world.move(1, told.append) == Moved("store-0", "store-1", is_finished=False)
    assert sum(told) > 40 * 200
    assert world.check() == 1 and world.traces(0) == []
    world.append(10)
    assert world.check() == 1
    newest = load_newest(world.files, "store-1", world.log_id)
    assert newest is not None and newest.had_segments and newest.index_limit >= 50


def test_it_moves_back_and_numbers_go_on() -> None:
    world = World()
    for target in (1, 0, 1):
        world.move(target)
        world.append(5)
        assert world.check() == target and world.traces(1 - target) == []
    assert list(world.expected) == list(range(55))


def test_a_store_takes_an_epoch_above_those_of_the_log() -> None:
    """Else the next start would say that the log is newer than its store."""
    world = World()
    for _ in range(5):
        world.append(1)
        world.end_process()
    world.move(1)
    world.end_process()
    assert world.check() == 1  # without an alarm


def test_a_log_that_was_never_written_moves_too() -> None:
    world = World(events_count=0)
    world.move(1)
    with world.served() as (store, log):
        assert log.bounds.next_index == 0 and not store.alarms.current()
    assert world.served_by() == 1 and world.traces(0) == []
    world.append(3)
    assert world.check() == 1


def test_a_relaxed_log_that_was_killed_skips_numbers_behind_the_move_as_it_would_have_without() -> None:
    world = World(durability=Durability.RELAXED)
    log = opened_log(world.env, world.open("store-0"), world.log_id, durability=Durability.RELAXED)
    outcomes: list[object] = []
    log.append(events([b"not synced"]), now_ms=world.env.now_ms(), on_done=outcomes.append)
    while not outcomes:
        world.env.run_for(1)
    world.end_process()
    world.move(1)
    with world.served() as (_, log):
        assert log.bounds.next_index > 32 * 1024 * 1024


# What is refused, with nothing changed


def refused(world: World, target: int = 1) -> str:
    before = {path: bytes(world.files.bytes_of(path)) for path in world.files.paths() if world.log_id in path}
    with pytest.raises((NoMove, ServiceError)) as refusal:
        world.move(target)
    assert before == {path: bytes(world.files.bytes_of(path)) for path in world.files.paths() if world.log_id in path}
    return str(refusal.value)


def test_a_store_that_is_not_there_or_has_the_log_is_refused_by_name() -> None:
    world = World()
    assert "has no store-7; it has store-0, store-1. A start with --stores 8" in refused(world, 7)
    assert "lies in store-0 already" in refused(world, 0)
    assert world.check() == 0


@pytest.mark.parametrize("held", ["", "catalog", "store-0", "store-1", "store-2"])
def test_a_folder_that_a_service_or_one_of_its_processes_holds_is_refused(held: str) -> None:
    """A broker process that a killed supervisor left may hold another store, and knows the old placement."""
    world = World()
    world.close(world.open("store-2"))
    lock = world.files.lock_folder(held)
    assert "a service runs on data" in refused(world) and "stop it, move the log" in refused(world)
    lock.release()
    world.move()


def test_a_disk_of_another_store_that_fails_keeps_no_log_from_moving() -> None:
    world = World()
    world.close(world.open("store-2"))
    lock_folder = world.files.lock_folder

    def fails_for_the_third(path: str) -> FolderLock:
        if path == "store-2":
            raise OSError(errno.EIO, "Input/output error", path)
        return lock_folder(path)

    world.files.lock_folder = fails_for_the_third  # type: ignore[method-assign]
    world.move()
    assert world.check() == 1


def test_a_log_that_no_catalog_names_is_refused() -> None:
    world = World()
    world.log_id = "cd" * 16
    with pytest.raises(NoMove, match="no catalog of data names log cdcd"):
        world.move()


def test_a_log_that_is_lost_is_refused_and_a_copy_elsewhere_is_kept() -> None:
    world = World()
    assert world.move_ends(Fault.KILL, calls_of_a_move()["move.shown"] + 1)
    world.files.lose(f"store-0/{LOGS_FOLDER}/{world.log_id}")
    assert "put it back from a backup first" in refused(world)
    assert world.traces(1) == [world.log_id, world.log_id]


def test_a_disk_without_room_is_refused_with_both_sizes() -> None:
    world = World()
    world.files.capacity_bytes -= world.files.free_bytes() - SPARE_BYTES
    assert "store-1 has 8 MiB free, and the log needs 8 there" in refused(world)
    world.files.capacity_bytes += 100_000
    world.move()
    assert world.check() == 1


@pytest.mark.parametrize("is_made", [True, False])
def test_a_hub_that_is_being_made_or_deleted_is_let_be(is_made: bool) -> None:
    world = World()
    store, writer = world.catalog()
    if is_made:
        entity = answered(world.env, partial(writer.begin_create, EventHubDescription("new", 1), (0,)))
    else:
        entity = answered(world.env, partial(writer.begin_delete, "orders", EventHubDescription))
    assert not isinstance(entity, ServiceError)
    world.log_id = entity.placements[0].log_id
    world.close(store)
    if is_made:
        made = world.open("store-0")
        made_log(world.env, made, world.log_id)
        world.close(made)
    assert ("is being made" if is_made else "is being deleted") in refused(world)
