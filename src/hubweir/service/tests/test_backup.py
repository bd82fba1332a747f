"""A backup is read as a start would read it: its namespaces, what each has, and what it lacks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubweir.cli.data_folder import DataFolder
from hubweir.cli.tests.test_chosen_namespace import KEYS, SAID, create, gateway_of, string_of
from hubweir.client.administration import Administration
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.errors import NewerFormat, ServiceError
from hubweir.gateway.http.exchange import answer_of
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.service.backup import Backup, NoBackup
from hubweir.service.data_folder import CATALOG_FOLDER, StoredLog
from hubweir.service.namespace_removal import NamespaceRemoval
from hubweir.testing.running_namespace import running_namespace


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of two namespaces, which no service has."""
    data = tmp_path_factory.mktemp("kept") / "data"
    with running_namespace(data=str(data), said=SAID) as running:
        for name in KEYS:
            create(running, name, EventHubDescription("orders", 3))
            create(running, name, QueueDescription("kitchen"))
            create(running, name, QueueDescription("gone"))
        keeper = gateway_of(running, "two").keeper
        running.run(answer_of(lambda done: keeper.delete("gone", QueueDescription, done)))
    return data


@pytest.fixture
def path(kept: Path, tmp_path: Path) -> Path:
    shutil.copytree(kept, tmp_path / "monday")
    return tmp_path / "monday"


def log_ids(path: Path, namespace: str, *, catalogs: bool) -> set[str]:
    logs = [log for log in DataFolder(path).logs() if log.namespace == namespace]
    return {log.log_id for log in logs if (log.hub is None) is catalogs}


def test_a_namespace_has_its_catalog_and_the_logs_of_what_it_has_now(path: Path) -> None:
    found = Backup(path).find("TWO")
    assert found.description.name == "two"
    assert {found.catalog_id} == log_ids(path, "two", catalogs=True)
    assert {log.log_id for log in found.logs} == log_ids(path, "two", catalogs=False) and len(found.logs) == 4
    assert {log.store for log in found.logs} == {"store-0"}
    assert len(Backup(path).find("one").logs) == 5


def test_its_size_is_that_of_all_its_segments_the_catalog_among_them(path: Path) -> None:
    backup, folder = Backup(path), DataFolder(path)
    logs = [log for log in folder.logs() if log.namespace == "two"]
    ends = [segment.end_position for log in logs for segment in folder.recovered(log).segments]
    assert backup.size_bytes(backup.find("two")) == sum(ends) > 0


def test_a_namespace_that_lacks_a_log_is_refused_with_the_entity(path: Path) -> None:
    log = next(log for log in Backup(path).find("two").logs if log.store == "store-0")
    shutil.rmtree(path / log.store / "logs" / log.log_id)
    with pytest.raises(NoBackup, match=r"has not all of two: (event hub orders|queue kitchen) is missing"):
        Backup(path).find("two")
    assert Backup(path).find("one"), "the other one has all of it"


def test_a_name_that_is_not_there_is_refused_with_those_that_are(path: Path) -> None:
    with pytest.raises(NoBackup, match="has no namespace three; it has one, two"):
        Backup(path).find("three")


def test_a_catalog_that_is_lost_has_no_namespace(path: Path) -> None:
    catalog = StoredLog(CATALOG_FOLDER, Backup(path).find("two").catalog_id)
    shutil.rmtree(path / catalog.store / "logs" / catalog.log_id)
    with pytest.raises(NoBackup, match="it has one$"):
        Backup(path).find("two")


def damaged(path: Path, log: StoredLog, *, share: float = 0.5) -> str:
    """Change a bit of its newest segment, and say which file that is."""
    segment = max(segments(path, log))
    data = bytearray(segment.read_bytes())
    data[int(len(data) * share)] ^= 1
    segment.write_bytes(data)
    return segment.relative_to(path).as_posix()


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_a_damaged_catalog_is_refused_with_its_place_and_another_one_is_found(path: Path, share: float) -> None:
    place = damaged(path, StoredLog(CATALOG_FOLDER, Backup(path).find("two").catalog_id), share=share)
    with pytest.raises(NoBackup, match=r"has no namespace two; it has one, and a catalog that is damaged: ") as refused:
        Backup(path).find("two")
    assert f"{place} from byte " in str(refused.value) and "Take another backup" in str(refused.value)
    assert Backup(path).find("one")


def test_a_damaged_log_is_told_with_its_place_when_it_is_verified_and_only_then(path: Path) -> None:
    backup, told = Backup(path), list[int]()
    namespace = backup.find("two")
    backup.verify(namespace, told.append)
    assert 0 < sum(told) < backup.size_bytes(namespace), "all but the catalog, and headers of segments"
    place = damaged(path, namespace.logs[-1])
    with pytest.raises(NoBackup, match=rf"is damaged: {place} from byte [0-9]+, .* --namespace two`"):
        backup.verify(backup.find("two"), told.append)
    backup.verify(backup.find("one"), told.append)


def test_a_torn_end_is_damage_in_a_folder_that_no_service_ever_had_and_what_a_crash_leaves_in_another(
    path: Path,
) -> None:
    backup = Backup(path)
    log = backup.find("two").logs[-1]
    with open(max(segments(path, log)), "ab") as segment:
        segment.write(b"half of a batch")
    backup.verify(backup.find("two"), lambda count: None)
    (path / "LOCK").unlink()
    with pytest.raises(NoBackup, match="is damaged: .* bytes behind the last whole batch"):
        backup.verify(backup.find("two"), lambda count: None)


def test_a_log_that_lacks_its_newest_segment_is_told_when_it_is_verified(path: Path) -> None:
    with running_namespace(data=str(path), said=SAID) as running:
        for name in KEYS:
            with BlockingQueueClient.from_connection_string(string_of(running, name)) as client:
                client.sender("kitchen").send(b"tea")
    backup = Backup(path)
    log = next(log for log in backup.find("two").logs if len(list(segments(path, log))) > 1)
    segment = max(segments(path, log))
    segment.unlink()
    with pytest.raises(NoBackup, match=rf"is damaged: {segment.relative_to(path)} from byte 0, the segment is not "):
        backup.verify(backup.find("two"), lambda count: None)


def segments(path: Path, log: StoredLog) -> Iterator[Path]:
    return (path / log.store / "logs" / log.log_id).glob("*.log")


def test_a_namespace_whose_deletion_was_not_over_is_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(self: NamespaceRemoval) -> Exception:
        return OSError("the disk is away")

    monkeypatch.setattr(NamespaceRemoval, "attempt", fails)
    with running_namespace(data=str(path)) as running:
        administration = Administration(ConnectionString.parse(running.connection_string()))
        with pytest.raises(ServiceError):
            administration.delete_namespace("two")
    with pytest.raises(NoBackup, match="it has one$"):
        Backup(path).find("two")


def test_what_is_no_backup_is_told_from_one_that_did_not_end_and_one_of_another_version(path: Path) -> None:
    with pytest.raises(NoBackup, match="is no backup: it has no file FORMAT"):
        Backup(path.parent)
    with pytest.raises(NoBackup, match="did not end"):
        Backup(path.rename(path.with_name("monday.partial")))
    back = path.with_name("monday.partial").rename(path)
    (back / "FORMAT").write_text("hubweir data 9\n")
    with pytest.raises(NewerFormat):
        Backup(back).find("two")
