"""A namespace of a backup comes whole into a folder of others, or not at all, and the next try ends what was left."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from hubweir.alarms import RECORDS_LOST
from hubweir.env import join_path
from hubweir.errors import HubweirError, StoreError
from hubweir.limits import MIB
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX
from hubweir.service.namespace_restore import NoNamespaceRestore, restore_namespace
from hubweir.service.stopped_folder import SPARE_BYTES
from hubweir.service.tests.restore_world import HOME, TWO, MemoryFolder, RestoreWorld
from hubweir.testing.memory_faults import Fault, Killed


@pytest.fixture
def world() -> RestoreWorld:
    return RestoreWorld()


def restore_is_refused(world: RestoreWorld) -> str:
    """The refusal, which changed no log of the folder."""
    before = world.home.logs()
    with pytest.raises(NoNamespaceRestore) as refused:
        world.restore()
    world.home.end_process()
    assert world.home.logs() == before and world.home.served() == HOME
    return str(refused.value)


def test_it_comes_with_all_logs_beside_what_is_there_and_the_backup_is_only_read(world: RestoreWorld) -> None:
    kept, told = world.backup.contents(), list[int]()
    world.restore(on_bytes=told.append)
    assert world.home.served() == HOME | TWO
    assert world.backup.contents() == kept
    copied = sum(len(kept[path]) for path in kept if path.endswith(".log"))
    assert sum(told) >= copied > 0, "catalog and logs are told alike"


def test_what_is_written_behind_it_is_there_after_the_next_start(world: RestoreWorld) -> None:
    """Else a segment of a lower epoch than the copied ones would be taken for one that a former writer left."""
    world.restore()
    for log in world.two.logs:
        world.home.append(log, b"later")
        world.home.end_process()
    assert world.home.served()["two"] == {"orders": [b"ordered", b"later"], "bills": [b"billed", b"later"]}


def test_a_store_that_the_folder_has_not_is_made(world: RestoreWorld) -> None:
    assert not world.home.env.files.exists("store-1/FORMAT")
    world.restore()
    assert world.home.env.files.exists("store-1/FORMAT")


def test_it_is_made_on_a_real_disk_too_where_its_space_is_that_of_the_data_folder(
    world: RestoreWorld, tmp_path: Path
) -> None:
    for name, folder in (("data", world.home), ("backup", world.backup)):
        for path, data in folder.contents().items():
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    restore_namespace(str(tmp_path / "backup"), str(tmp_path / "data"), world.two, lambda count: None, lambda: None)
    for log in world.two.logs:
        assert (tmp_path / "data" / log.store / "logs" / log.log_id).is_dir()


def test_a_namespace_without_entities_comes_too(world: RestoreWorld) -> None:
    bare = MemoryFolder(9)
    world.home.restore(bare, bare.add("bare", {}))
    assert world.home.served() == HOME | {"bare": {}}


@pytest.mark.parametrize(("home_rank", "two_rank"), [(5, 1), (5, 5), (1, 7), (0, 0)])
def test_the_default_namespace_stays_the_default_one(home_rank: int, two_rank: int) -> None:
    world = RestoreWorld(home_rank=home_rank, two_rank=two_rank)
    world.restore()
    assert list(world.home.served()) == ["home", "two"]


def test_captured_files_are_copied_when_logs_are_there_and_before_anybody_is_told_of_the_namespace(
    world: RestoreWorld,
) -> None:
    found: list[list[str]] = []
    world.restore(copy_captured=lambda: found.append(world.home.logs()))
    [logs] = found
    assert set(logs) > {join_path(log.store, log.log_id) for log in world.two.logs}
    assert not any(world.two.catalog_id in name for name in logs)


# What is refused


def test_a_name_that_is_taken_is_refused_in_any_case(world: RestoreWorld) -> None:
    world.two = world.backup.add("HOME", {})
    assert restore_is_refused(world).startswith("data has a namespace home already: delete it")


def test_a_host_that_is_taken_is_refused_with_both_names(world: RestoreWorld) -> None:
    world.two = world.backup.add("three", {}, hostnames=("home.example",))
    assert "home.example leads to the namespace home and cannot lead to three too" in restore_is_refused(world)


def test_logs_that_another_namespace_has_are_never_overwritten(world: RestoreWorld) -> None:
    """They are of a namespace that got another name: its logs are served here under the old one."""
    world.restore()
    renamed = world.backup.add("renamed", {})
    world.two = replace(renamed, logs=world.two.logs)
    with pytest.raises(NoNamespaceRestore, match="data serves what renamed was copied of as two"):
        world.restore()
    assert world.home.served() == HOME | TWO


def test_a_catalog_that_the_folder_has_under_another_name_is_never_overwritten(world: RestoreWorld) -> None:
    world.restore()
    description = replace(world.two.description, name="renamed", hostnames=())
    world.two = replace(world.two, description=description, logs=())
    with pytest.raises(NoNamespaceRestore, match="data has renamed of this backup under another name"):
        world.restore()
    assert world.home.served() == HOME | TWO


@pytest.mark.parametrize("held", ["", "catalog", "store-0", "store-1", "store-2"])
def test_a_folder_that_a_service_or_one_of_its_processes_holds_is_refused(world: RestoreWorld, held: str) -> None:
    world.home.take_epochs(1, "store-1", "store-2")
    world.home.env.files.lock_folder(held)
    refusal = restore_is_refused(world)
    assert refusal.startswith("a service runs on data (") and "stop it, restore, and start it again" in refusal


def test_a_disk_without_room_is_refused_with_both_sizes(world: RestoreWorld) -> None:
    files = world.home.env.files
    files.capacity_bytes -= files.free_bytes() - 3 * SPARE_BYTES
    refusal = restore_is_refused(world)
    assert "MiB free, and the namespace needs 24 there: nothing was changed; make room" in refusal
    assert refusal.startswith("the disk of store-0, store-1, catalog has ")
    assert not files.exists("store-1"), "a refusal makes no store"
    files.capacity_bytes += 16 * MIB  # beside the reserves of three stores
    world.restore()
    assert world.home.served() == HOME | TWO


# What goes wrong


@pytest.fixture(scope="module")
def calls() -> int:
    """How many file calls a restore is."""
    world = RestoreWorld()
    begun = world.home.env.files.calls
    world.restore()
    return world.home.env.files.calls - begun


def some(calls: int, measure: Callable[[int], int]) -> Iterator[int]:
    """Numbers of calls, evenly over all of them."""
    step = max(1, calls // measure(calls))
    return iter(range(random.randrange(step) + 1, calls + 1, step))


@pytest.mark.parametrize("fault", [Fault.KILL, Fault.POWER_CUT])
def test_an_end_at_any_file_call_leaves_the_others_and_the_same_command_finishes(
    fault: Fault, calls: int, measure: Callable[[int], int]
) -> None:
    for nth in some(calls, measure):
        world = RestoreWorld()
        assert world.home.ends(fault, nth, world.restore)
        served = world.home.served(may_tell=[RECORDS_LOST])
        assert served in (HOME, HOME | TWO), nth
        if served == HOME:
            world.restore()
        assert world.home.served() == HOME | TWO, nth


def test_behind_the_last_rename_an_end_has_one_start_tell_of_the_catalog_and_loses_nothing(calls: int) -> None:
    """The store does not remember the catalog yet; if it did so first, an end in between would lose the catalog."""
    for nth in range(calls, 0, -1):
        world = RestoreWorld()
        assert world.home.ends(Fault.KILL, nth, world.restore)
        if world.home.served(may_tell=[RECORDS_LOST]) == HOME:
            break
        world.home.end_process()
        assert world.home.served() == HOME | TWO
    assert nth < calls - 1, "some ends are behind it"


@pytest.mark.parametrize("fault", [Fault.EIO, Fault.ENOSPC, Fault.SYNC_EIO])
def test_a_call_that_fails_takes_back_what_was_done_and_the_same_command_finishes(
    fault: Fault, calls: int, measure: Callable[[int], int]
) -> None:
    for nth in some(calls, measure):
        world = RestoreWorld()
        before = world.home.logs()
        plan = world.home.env.files.plan(fault, nth)
        failed = True
        with suppress(OSError, HubweirError):
            world.restore()
            failed = False
        world.home.env.files.heal()
        world.home.end_process()
        if not plan.fired:
            break
        if failed:
            assert [name for name in world.home.logs() if UNFINISHED_SUFFIX not in name] == before, nth
            assert world.home.served() == HOME
            world.restore()
        assert world.home.served() == HOME | TWO, nth


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), OSError("no more"), StoreError("no more")])
@pytest.mark.parametrize("place", ["on_bytes", "copy_captured"])
def test_a_copy_that_is_stopped_leaves_nothing(world: RestoreWorld, stop: BaseException, place: str) -> None:
    before = world.home.logs()

    def stopped(*_: object) -> None:
        raise stop

    with pytest.raises(type(stop)):
        world.restore(**{place: stopped})
    assert world.home.logs() == before and world.home.served() == HOME
    world.restore()
    assert world.home.served() == HOME | TWO


@pytest.mark.parametrize("place", ["on_bytes", "copy_captured"])
def test_a_store_that_was_made_for_what_did_not_come_is_removed(world: RestoreWorld, place: str) -> None:
    def fails(*_: object) -> None:
        assert world.home.env.files.exists("store-1/FORMAT")
        raise OSError("no more")

    with pytest.raises(OSError, match="^no more$"):
        world.restore(**{place: fails})
    assert world.home.env.files.list("") == ["catalog", "store-0"]
    world.restore()
    assert world.home.served() == HOME | TWO


@pytest.mark.parametrize("there", ["store-1/photo", "store-1/FORMAT"])
def test_a_folder_of_a_store_that_was_there_before_stays(world: RestoreWorld, there: str) -> None:
    """A disk that was just put there has no store yet, and may have anything else."""
    if there.endswith("FORMAT"):
        world.home.take_epochs(1, "store-1")
    else:
        world.home.env.files.set_bytes(there, b"of somebody")
    world.home.end_process()
    with pytest.raises(OSError, match="^no more$"):
        world.restore(copy_captured=partial(_raises, "no more"))
    assert world.home.env.files.exists(there)
    world.restore()
    assert world.home.served() == HOME | TWO and world.home.env.files.exists(there)


def test_an_end_while_a_failed_restore_is_taken_back_leaves_what_the_same_command_goes_on_with(
    calls: int, measure: Callable[[int], int]
) -> None:
    for nth in {1, *some(calls // 2, measure)}:  # what is taken back may be fewer calls
        world = RestoreWorld()

        def fails(world: RestoreWorld = world, nth: int = nth) -> None:
            world.home.env.files.plan(Fault.KILL, nth, forever=True)
            raise OSError("no more")

        with suppress(OSError, Killed):
            world.restore(copy_captured=fails)
        world.home.env.files.heal()
        world.home.end_process()
        assert world.home.served() == HOME, nth
        world.restore()
        assert world.home.served() == HOME | TWO, nth


def test_what_could_not_be_taken_back_is_told_of_and_keeps_its_store(world: RestoreWorld) -> None:
    def fails() -> None:
        world.home.env.files.plan(Fault.EIO, forever=True, call="rename")
        raise OSError("no more")

    with pytest.raises(
        NoNamespaceRestore, match=r"^no more\. What was copied could not be removed \(.*: the same command"
    ):
        world.restore(copy_captured=fails)
    world.home.env.files.heal()
    assert world.home.env.files.exists(join_path("store-1", "logs", world.two.logs[-1].log_id))
    world.restore()
    assert world.home.served() == HOME | TWO


def test_a_store_that_cannot_be_removed_hides_not_what_went_wrong_and_the_same_command_goes_on(
    world: RestoreWorld,
) -> None:
    def fails() -> None:
        world.home.env.files.plan(Fault.EIO, forever=True, call="list")
        raise OSError("no more")

    with pytest.raises(OSError, match="^no more$"):
        world.restore(copy_captured=fails)
    world.home.env.files.heal()
    assert world.home.env.files.exists("store-1/FORMAT") and world.home.served() == HOME
    world.restore()
    assert world.home.served() == HOME | TWO


def _raises(text: str) -> None:
    raise OSError(text)


def test_a_copy_that_is_not_what_was_copied_is_not_served(world: RestoreWorld) -> None:
    """Control of the look at the copy."""
    before, files = world.home.logs(), world.home.env.files

    def damage(count: int) -> None:
        for path in files.paths():
            if UNFINISHED_SUFFIX in path and path.endswith(".log"):
                files.bytes_of(path)[-5:] = bytes(5)

    with pytest.raises(HubweirError, match="is not what was copied"):
        world.restore(on_bytes=damage)
    assert world.home.logs() == before and world.home.served() == HOME


def test_what_an_interrupted_restore_left_is_replaced_not_added_to(world: RestoreWorld) -> None:
    """What it left is from an older backup: the events that came since must be there."""
    for nth in range(1, 10_000):
        world = RestoreWorld()
        assert world.home.ends(Fault.KILL, nth, world.restore)
        if any(world.two.logs[0].log_id in name and UNFINISHED_SUFFIX not in name for name in world.home.logs()):
            break
    world.backup.append(world.two.logs[0], b"since")
    world.restore()
    assert world.home.served()["two"]["orders"] == [b"ordered", b"since"]
