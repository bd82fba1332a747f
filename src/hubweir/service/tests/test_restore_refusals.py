"""A restore that would touch what is there is refused, and so is a damaged backup: neither changes anything."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from hubweir.cli.tests.test_chosen_namespace import create
from hubweir.errors import ARGUMENT_ERROR, ENTITY_EXISTS, INTERNAL_ERROR, SERVER_BUSY, STORE_OFFLINE, ServiceError
from hubweir.namespace.queue_description import QueueDescription
from hubweir.service.backup import Backup
from hubweir.service.completions import done
from hubweir.service.data_folder import CATALOG_FOLDER, StoredLog
from hubweir.service.running_restores import RunningRestores
from hubweir.service.served_namespaces import ServedNamespaces
from hubweir.service.tests.test_backup import damaged
from hubweir.service.tests.test_running_restores import (
    WAIT_S,
    administration,
    back_up,
    ended,
    files_of,
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


# What is asked for


@pytest.mark.parametrize("brokers", [1, 2])
def test_what_is_no_path_of_a_backup_is_refused_in_a_few_words_and_changes_nothing(
    tmp_path: Path, brokers: int
) -> None:
    data = tmp_path / "data"
    (tmp_path / "file").write_text("hubweir data 3")
    bodies: list[tuple[object, str]] = [
        ({"source": 5}, "'source' is a text"),
        ({"source": ["/backups/monday"]}, "'source' is a text"),
        ({"source": None}, "'source' is a text"),
        ({"sources": "/backups/monday"}, "has no 'sources': source exist"),
        (["/backups/monday"], "no JSON object"),
        ({}, "no whole path"),
        ({"source": "/x" * 20_000}, "no whole path"),
        ({"source": "/" + "x" * 300}, "File name too long"),
        ({"source": "/backups/\0"}, "is no backup"),
        ({"source": str(tmp_path / "file")}, "is no backup"),
        ({"source": str(data / "store-0")}, "this version reads"),
        ({"source": str(data / "catalog")}, "this version reads"),
    ]
    with running_namespace(data=str(data), brokers=brokers) as running:
        before = files_of(data)
        for body, said in bodies:
            found, text = refusal(partial(asked, running, body))
            assert (400 <= found.http < 500, said in text, len(text) < 1_000) == (True, True, True), (said, text)
        _, text = refusal(partial(asked, running, {"source": "/x" * 5_000_000}))
        assert "is larger than the limit of 65536 bytes" in text, text
        assert files_of(data) == before and names(running) == ["hubweir"]


def asked(running: RunningNamespace, body: object) -> bytes:
    return administration(running).request(
        "POST", "$namespaces/two/$restore", json.dumps(body).encode(), media_type="application/json"
    )


@pytest.mark.parametrize("brokers", [1, 2])
def test_of_restores_that_are_asked_for_at_once_one_begins(backup: Path, tmp_path: Path, brokers: int) -> None:
    """Each comes over a connection of its own, so that several processes ask."""
    with running_namespace(data=str(tmp_path / "data"), brokers=brokers) as running, ThreadPoolExecutor() as threads:
        tries = [threads.submit(administration(running).restore_namespace, "two", str(backup)) for _ in range(8)]
        refusals = [error.condition.http for each in tries if isinstance(error := each.exception(), ServiceError)]
        assert len(refusals) == len(tries) - 1 and set(refusals) <= {SERVER_BUSY.http, ENTITY_EXISTS.http}
        assert ended(running, "two") == ""
        holds_two(running)


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


def test_logs_of_a_store_that_is_away_are_refused_at_once(tmp_path: Path) -> None:
    """They would be copied to where its disk is mounted, or not be there when it is."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    with running_namespace(data=str(data), stores=2) as running:
        make_two(running)
        back_up(data, copy)
        administration(running).delete_namespace("two")
        running.run(done(running.service.stores[1].take_away))
        before = files_of(data)
        found, text = refusal(lambda: administration(running).restore_namespace("two", str(copy)))
        assert (found.http, "store-1, which is away" in text) == (STORE_OFFLINE.http, True), text
        assert files_of(data) == before
        running.service.stores[1].bring_back()
        until = time.monotonic() + WAIT_S
        while not running.service.stores[1].is_up and time.monotonic() < until:
            time.sleep(0.01)
        assert restored(running, copy) == ""
        holds_two(running)


def test_none_begins_behind_a_stop(backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are served still, and nobody would end it before the folder is another service's."""
    data, refusals = tmp_path / "data", list[str]()
    stop = RunningRestores.stop

    async def asked_behind(self: RunningRestores) -> None:
        await stop(self)
        with pytest.raises(ServiceError) as refused:
            await self.begin("two", str(backup))
        refusals.append(refused.value.text)
        await stop(self)

    monkeypatch.setattr(RunningRestores, "stop", asked_behind)
    with running_namespace(data=str(data)) as running:
        before = files_of(data)
        assert names(running) == ["hubweir"]
    assert refusals == ["The service stops: restore the namespace when it runs again."] and files_of(data) == before


# What is damaged


def test_a_damaged_catalog_is_refused_at_once_and_the_next_start_serves_what_was_there(
    backup: Path, tmp_path: Path
) -> None:
    """Taken in, it would keep the whole service from starting."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    shutil.copytree(backup, copy)
    place = damaged(copy, StoredLog(CATALOG_FOLDER, Backup(copy).find("two").catalog_id))
    with running_namespace(data=str(data)) as running:
        before = files_of(data)
        found, text = refusal(lambda: administration(running).restore_namespace("two", str(copy)))
        assert (found.http, f"a catalog that is damaged: {place}" in text) == (ARGUMENT_ERROR.http, True), text
        assert files_of(data) == before and names(running) == ["hubweir"]
        assert restored(running, backup) == ""
    with running_namespace(data=str(data)) as running:
        assert names(running) == ["hubweir", "two"]
        holds_two(running)


def test_a_damaged_log_ends_a_restore_before_anything_is_copied(backup: Path, tmp_path: Path) -> None:
    """It is damaged at its end, where a start would take it for torn by a crash, and drop what was accepted."""
    data, copy = tmp_path / "data", tmp_path / "copy"
    shutil.copytree(backup, copy)
    place = damaged(copy, Backup(copy).find("two").logs[0], share=0.9)
    with running_namespace(data=str(data)) as running:
        before = files_of(data)
        problem = restored(running, copy)
        assert f"{copy} is damaged: {place} from byte " in problem, problem
        assert problem.endswith("Nothing of the namespace is there.")
        assert administration(running).restore_state("two")["copied_bytes"] == 0
        assert files_of(data) == before and names(running) == ["hubweir"]
        assert restored(running, backup) == ""
        holds_two(running)
