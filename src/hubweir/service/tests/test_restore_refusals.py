"""A restore that would touch what is there is refused, and so is a damaged backup: neither changes anything."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from hubweir.cli.tests.test_chosen_namespace import create
from hubweir.errors import ENTITY_EXISTS, INTERNAL_ERROR, ServiceError
from hubweir.namespace.queue_description import QueueDescription
from hubweir.service.served_namespaces import ServedNamespaces
from hubweir.service.tests.test_running_restores import (
    WAIT_S,
    administration,
    back_up,
    holds_two,
    make_two,
    names,
    refusal,
    restored,
)
from hubweir.testing.running_namespace import RunningNamespace, running_namespace


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a service that has `two` beside the default namespace."""
    folder = tmp_path_factory.mktemp("backup")
    with running_namespace(data=str(folder / "data")) as running:
        make_two(running)
        back_up(folder / "data", folder / "copy")
    return folder / "copy"


async def fails(*_: object) -> None:
    raise ServiceError(INTERNAL_ERROR, "It cannot be served now.")


def is_there_already(running: RunningNamespace, name: str, source: Path, data: Path) -> str:
    """The refusal of a restore whose catalog the data folder has, which exchanged no file of it."""
    before = {path: path.stat().st_ino for path in data.glob("*/logs/*/*.log")}  # marks are written meanwhile
    found, text = refusal(lambda: administration(running).restore_namespace(name, str(source)))
    assert (found.http, "The data folder has" in text) == (ENTITY_EXISTS.http, True), text
    assert {path: path.stat().st_ino for path in data.glob("*/logs/*/*.log")} == before
    return text


# What is there


def test_a_namespace_that_is_served_under_another_name_keeps_its_catalog(tmp_path: Path) -> None:
    """It has no logs of the backup, so that its catalog alone says that it is the same one."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    home = {"namespace": "home", "key": "a key of the home"}
    with running_namespace(data=str(data)) as running:
        back_up(data, copy)
    with running_namespace(data=str(data), **home) as running:
        is_there_already(running, "hubweir", copy, data)
        running.create_queue("later")
    with running_namespace(data=str(data), key=home["key"]) as running:
        assert names(running) == ["home"] and administration(running).find_namespace("home")["queues"] == 1


def test_a_namespace_whose_deletion_waits_for_a_process_is_not_restored_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is served no more, and its logs go when every process says so: they would be those that were restored."""
    data, is_followed = tmp_path / "data", threading.Event()
    followed = ServedNamespaces._followed

    async def later(self: ServedNamespaces) -> None:
        while not is_followed.is_set():
            await asyncio.sleep(0.01)
        await followed(self)

    with running_namespace(data=str(data)) as running:
        make_two(running)
        back_up(data, tmp_path / "copy")
        with monkeypatch.context() as planted:
            planted.setattr(ServedNamespaces, "_followed", later)
            deletion = threading.Thread(target=administration(running).delete_namespace, args=("two",))
            deletion.start()
            until = time.monotonic() + WAIT_S
            while len(names(running)) > 1 and time.monotonic() < until:
                time.sleep(0.01)
            try:
                assert "in the middle of its deletion" in is_there_already(running, "two", tmp_path / "copy", data)
            finally:
                is_followed.set()
                deletion.join(WAIT_S)
        assert restored(running, tmp_path / "copy") == ""
        holds_two(running)


def test_a_namespace_that_waits_for_the_next_start_stays_as_it_is(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same restore again would exchange files of a catalog that is open; one of the data folder would end it."""
    data, link = tmp_path / "data", tmp_path / "link"
    link.symlink_to(data)
    with running_namespace(data=str(data)) as running:
        with monkeypatch.context() as planted:
            planted.setattr("hubweir.service.served_namespaces.start_gateway", fails)
            assert "the next start of the service serves it" in restored(running, backup)
        for source in (backup, data, link):
            assert "for the next start" in is_there_already(running, "two", source, data)
    with running_namespace(data=str(data)) as running:
        assert names(running) == ["hubweir", "two"]
        holds_two(running)
        create(running, "two", QueueDescription("later"))
