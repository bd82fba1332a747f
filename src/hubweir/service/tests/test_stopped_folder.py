"""A stopped folder is held as a whole, so that no process goes on with what it knew, and is free behind the command."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hubweir.env import FolderLock
from hubweir.errors import CorruptStore, HubweirError, LogFenced, NewerFormat, OldFormat, StoreError, StoreLocked
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.tests.conftest import events
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.service.data_folder import own_data_folder
from hubweir.service.stopped_folder import StoppedFolder, on_disk
from hubweir.service.tests.restore_world import MemoryFolder
from hubweir.testing.answers import opened_log


class InUse(HubweirError):
    """What a command says where a service runs."""


class Commands:
    """Of a folder with the namespaces `one` and `two`, and the stores 0 and 2."""

    def __init__(self) -> None:
        self.folder = MemoryFolder()
        self.one = self.folder.add("one", {"orders": (0, b"ordered")})
        self.two = self.folder.add("two", {"bills": (2, b"billed")})
        self.folder.end_process()

    def begin(self, ends: ExitStack) -> StoppedFolder:
        folder = self.folder
        return StoppedFolder(folder.env, lambda name: folder.env, folder.wait_for, ends, in_use)

    @property
    def held(self) -> set[str]:
        return self.folder.env.files.locks


def in_use(error: StoreLocked) -> InUse:
    return InUse(f"a service runs there ({error})")


@pytest.fixture
def commands() -> Commands:
    return Commands()


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_the_folder_its_catalogs_and_all_stores_are_held_until_the_command_ends(commands: Commands) -> None:
    with ExitStack() as ends:
        stopped = commands.begin(ends)
        assert commands.held == {""}
        stopped.catalogs()
        stopped.own(2)
        assert commands.held == {"", "catalog", "store-2"}
        stopped.lock_others()
        assert commands.held == {"", "catalog", "store-0", "store-2"}
    assert commands.held == set()
    assert commands.folder.served() == {"one": {"orders": [b"ordered"]}, "two": {"bills": [b"billed"]}}


def test_stores_are_known_by_their_numbers_also_where_one_between_them_is_missing(
    commands: Commands, ends: ExitStack
) -> None:
    stopped = commands.begin(ends)
    assert stopped.known() == [0, 2]
    stopped.own(1)
    assert stopped.known() == [0, 1, 2] and list(stopped.stores) == list(stopped.envs) == [1]


def test_catalogs_are_told_one_by_one_with_what_they_hold_and_can_be_changed(
    commands: Commands, ends: ExitStack
) -> None:
    _, writers = commands.begin(ends).catalogs()
    found = {writer.namespace.description.name: writer for writer in writers}
    hubs = {name: [hub.name for hub in found[name].namespace.entities(EventHubDescription)] for name in found}
    assert hubs == {"one": ["orders"], "two": ["bills"]}
    for name, namespace in (("one", commands.one), ("two", commands.two)):
        owner = found[name].namespace.owner_of(namespace.logs[0].log_id)
        assert owner is not None and owner.is_served


def test_a_catalog_that_cannot_be_read_is_no_empty_one(commands: Commands, ends: ExitStack) -> None:
    files = commands.folder.env.files
    [path] = [path for path in files.paths() if commands.one.catalog_id in path and path.endswith(".log")]
    files.set_bytes(path, b"\xff" * len(files.bytes_of(path)))
    with pytest.raises(CorruptStore):
        list(commands.begin(ends).catalogs()[1])


def test_a_catalog_that_is_damaged_in_its_middle_is_no_shorter_one(commands: Commands, ends: ExitStack) -> None:
    """What the damaged records did to its entities nobody knows."""
    files = commands.folder.env.files
    [path] = [path for path in files.paths() if commands.one.catalog_id in path and path.endswith(".log")]
    data = files.bytes_of(path)
    data[data.index(b"orders") + 2] ^= 1
    with pytest.raises(StoreError):
        list(commands.begin(ends).catalogs()[1])


# Where a service runs


@pytest.mark.parametrize("held", ["", "catalog", "store-0", "store-2"])
def test_what_a_service_holds_is_told_as_the_command_says_it(commands: Commands, held: str) -> None:
    lock = commands.folder.env.files.lock_folder(held)
    with pytest.raises(InUse, match="a service runs there") as refused, ExitStack() as ends:
        stopped = commands.begin(ends)
        stopped.catalogs()
        stopped.own(0)
        stopped.lock_others()
    assert isinstance(refused.value.__cause__, StoreLocked)
    assert commands.held == {held}, "what the command had taken is free"
    lock.release()


def test_a_service_does_not_start_while_a_command_works(commands: Commands, ends: ExitStack) -> None:
    commands.begin(ends)
    with pytest.raises(StoreLocked):
        own_data_folder(commands.folder.env.files, "data")
    ends.close()
    own_data_folder(commands.folder.env.files, "data").release()


def test_a_process_that_lost_its_lock_accepts_nothing_any_more(commands: Commands, ends: ExitStack) -> None:
    """One that a killed supervisor left, on a network disk that let go of the lock."""
    env = commands.folder.env
    [log] = commands.one.logs
    with commands.folder.store(log.store) as store:
        opened = opened_log(env, store, log.log_id)
        outcomes: list[object] = []
        opened.append(events([b"before"]), now_ms=env.now_ms(), on_done=outcomes.append)
        env.run_for(50)
        assert not isinstance(outcomes.pop(), Refused), "control: it is served"
        env.files.locks.clear()
        commands.begin(ends).own(0)
        opened.append(events([b"behind"]), now_ms=env.now_ms(), on_done=outcomes.append)
        env.run_for(50)
    [refused] = outcomes
    assert isinstance(refused, Refused) and isinstance(refused.error, LogFenced)


# A disk that fails


def fails(commands: Commands, folder: str) -> None:
    """Have the lock of one folder fail from now on."""
    files = commands.folder.env.files
    lock_folder = files.lock_folder

    def failing(path: str) -> FolderLock:
        if path == folder:
            raise OSError(errno.EIO, "Input/output error", path)
        return lock_folder(path)

    files.lock_folder = failing  # type: ignore[method-assign]


def test_a_store_that_cannot_be_read_keeps_no_command_from_the_others(commands: Commands, ends: ExitStack) -> None:
    fails(commands, "store-2")
    stopped = commands.begin(ends)
    stopped.lock_others()
    assert commands.held == {"", "store-0"}


@pytest.mark.parametrize("folder", ["", "store-2"])
def test_what_a_command_needs_and_cannot_read_ends_it(commands: Commands, ends: ExitStack, folder: str) -> None:
    fails(commands, folder)
    with pytest.raises(OSError, match="Input/output error"):
        commands.begin(ends).own(2)


# On a real disk


@pytest.mark.parametrize(("text", "error"), [("hubweir data 2\n", OldFormat), ("hubweir data 9\n", NewerFormat)])
def test_a_folder_of_another_format_is_refused_untouched(tmp_path: Path, text: str, error: type[HubweirError]) -> None:
    (tmp_path / "FORMAT").write_text(text)
    with pytest.raises(error, match=str(tmp_path)), on_disk(str(tmp_path)):
        raise AssertionError("it was opened")
    assert [path.name for path in tmp_path.iterdir()] == ["FORMAT"] and (tmp_path / "FORMAT").read_text() == text


def test_a_folder_on_the_disk_is_worked_on_and_free_behind_it(tmp_path: Path) -> None:
    (tmp_path / "FORMAT").write_text("hubweir data 3\n")
    for before in ([], [0]):
        with on_disk(str(tmp_path)) as (env, env_of, wait_for), ExitStack() as ends:
            stopped = StoppedFolder(env, env_of, wait_for, ends, in_use)
            assert stopped.known() == before
            stopped.own(0)
            assert stopped.envs[0] is not env and stopped.envs[0].files.free_bytes() > 0
            with pytest.raises(StoreLocked):
                env.files.lock_folder("store-0")
    with on_disk(str(tmp_path)) as (env, _, _):
        env.files.lock_folder("store-0").release()
