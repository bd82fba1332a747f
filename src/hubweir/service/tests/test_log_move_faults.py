"""Any end and any failure of a move leaves one store that has the log whole, and the next try ends it."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from hubweir.errors import STORE_OFFLINE, TIMED_OUT, HubweirError, ServiceError, StoreError
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.service.log_move import Moved, NoMove
from hubweir.service.tests.move_world import World, calls_of_a_move
from hubweir.testing.memory_faults import Fault


def finish(world: World) -> None:
    """Whatever an interrupted move left: the log is whole; a service writes on and is killed; the next try ends it."""
    world.check()
    world.append(2)
    world.end_process()
    served = world.check()
    try:
        assert world.move().is_finished == (served == 1)
    except NoMove as refused:
        assert served == 1 and "already" in str(refused)
    assert world.check() == 1 and world.traces(0) == []


@pytest.mark.parametrize("fault", [Fault.KILL, Fault.POWER_CUT])
def test_an_end_at_any_file_call_leaves_one_store_that_has_it_whole_and_the_next_try_ends_it(
    fault: Fault, measure: Callable[[int], int]
) -> None:
    found, stores = calls_of_a_move(), set()
    calls, committed = found["all"], found["move.committed"]
    first = random.randrange(step := calls // measure(calls))
    behind = random.randrange(committed, calls) + 1  # few calls are, and one of them is always tried
    for nth in sorted({*range(1 + first, calls + 1, step), behind}):
        world = World()
        assert world.move_ends(fault, nth)
        stores.add(world.check())
        finish(world)
    assert stores == {0, 1}, "some ends come before the catalog says so, some behind it"


def test_a_second_try_that_ends_anywhere_is_as_good(measure: Callable[[int], int]) -> None:
    """The first one left a whole copy that nobody names, and that is out of date by now."""
    calls = calls_of_a_move()
    first = random.randrange(step := calls["all"] // measure(calls["all"]))
    for nth in range(1 + first, calls["all"], step):
        world = World()
        assert world.move_ends(Fault.KILL, calls["move.shown"] + 1)
        assert world.traces(1) == [world.log_id, world.log_id]
        world.append(1)
        world.end_process()
        assert world.move_ends(Fault.POWER_CUT, nth)
        finish(world)


def test_files_that_are_left_behind_the_catalog_go_with_the_next_try_and_it_says_so() -> None:
    world = World()
    assert world.move_ends(Fault.KILL, calls_of_a_move()["move.committed"] + 1)
    assert world.check() == 1 and world.traces(0) != []
    assert world.move() == Moved("store-0", "store-1", is_finished=True)
    assert world.traces(0) == [] and world.check() == 1
    with pytest.raises(NoMove, match=r"lies in store-1 already"):
        world.move()


def test_a_service_removes_a_copy_that_was_not_finished() -> None:
    world = World()
    assert world.move_ends(Fault.KILL, calls_of_a_move()["move.copied"])
    assert world.traces(1) == [world.log_id + UNFINISHED_SUFFIX]
    store = world.open("store-1")
    store.remove_unfinished()
    world.close(store)
    assert world.traces(1) == [] and world.check() == 0


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.ENOSPC, Fault.SYNC_EIO])
def test_a_call_that_fails_takes_the_move_back_or_leaves_what_the_next_try_ends(
    fault: Fault, measure: Callable[[int], int]
) -> None:
    calls = calls_of_a_move()["all"]
    first = random.randrange(step := calls // measure(calls))
    for nth in range(1 + first, calls + 1, step):
        world = World()
        plan = world.files.plan(fault, nth)
        with suppress(OSError, HubweirError):
            world.move()
        world.files.heal()
        if not plan.fired:
            break
        world.end_process()
        finish(world)


def test_what_fails_before_the_catalog_says_so_leaves_nothing() -> None:
    world = World()
    world.env.faults["move.shown"] = OSError("planted")
    with pytest.raises(OSError, match="planted"):
        world.move()
    assert world.traces(1) == [] and world.check() == 0


def test_a_copy_that_is_stopped_by_hand_leaves_nothing() -> None:
    def stop(count: int) -> None:
        raise KeyboardInterrupt

    world = World()
    with pytest.raises(KeyboardInterrupt):
        world.move(1, stop)
    assert world.traces(1) == [] and world.check() == 0


def test_a_copy_that_is_not_what_was_copied_is_not_served() -> None:
    """Control of the look at the copy."""
    world = World()
    copied = 0

    def damage(count: int) -> None:
        nonlocal copied
        copied += count
        for path in world.files.paths():
            if UNFINISHED_SUFFIX in path and path.endswith(".log"):
                world.files.bytes_of(path)[-5:] = bytes(5)

    with pytest.raises(StoreError, match="is not what was copied"):
        world.move(1, damage)
    assert copied and world.traces(1) == [] and world.check() == 0


@pytest.mark.parametrize("is_written", [True, False])
def test_a_catalog_that_may_have_been_written_takes_nothing_back(
    monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    """Both stores have the log then, whichever the catalog names."""
    world, move_log = World(), CatalogWriter.move_log

    def unknown(writer: CatalogWriter, log_id: str, target: int, on_done: Callable[[Any], None]) -> None:
        doubt = ServiceError(TIMED_OUT, "It is unknown whether it holds.")
        if is_written:
            move_log(writer, log_id, target, lambda _: on_done(doubt))
        else:
            on_done(doubt)

    with monkeypatch.context() as patched:
        patched.setattr(CatalogWriter, "move_log", unknown)
        with pytest.raises(NoMove, match="whole in store-0 and in store-1: run the same command again"):
            world.move()
    assert world.check() == is_written
    assert all(world.traces(index) == [world.log_id, world.log_id] for index in (0, 1))
    world.move()
    assert world.check() == 1 and world.traces(0) == []


def test_a_catalog_that_cannot_be_written_takes_the_move_back(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def offline(writer: CatalogWriter, log_id: str, target: int, on_done: Callable[[Any], None]) -> None:
        on_done(ServiceError(STORE_OFFLINE, "nothing was changed"))

    with monkeypatch.context() as patched:
        patched.setattr(CatalogWriter, "move_log", offline)
        with pytest.raises(ServiceError, match="nothing was changed"):
            world.move()
    assert world.traces(1) == [] and world.check() == 0
