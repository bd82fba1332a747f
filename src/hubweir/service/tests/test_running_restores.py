"""A namespace of a backup comes back while the service runs: whole and served by every process, or not at all.

Long because each promise of docs/namespace.md about it has its test here, on a whole service.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.tests.test_chosen_namespace import CAPTURED, KEYS, TIME, create, gateway_of, string_of
from hubweir.client.administration import Administration
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.errors import (
    ARGUMENT_ERROR,
    ENTITY_EXISTS,
    INTERNAL_ERROR,
    NOT_ALLOWED,
    NOT_FOUND,
    SERVER_BUSY,
    Condition,
    ServiceError,
)
from hubweir.messaging_store.disk.layout import UNFINISHED_SUFFIX
from hubweir.messaging_store.disk.moved_log import MovedLog
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.service import captured_files, running_restores
from hubweir.service.copied_logs import CopiedLogs
from hubweir.service.namespace_removal import NamespaceRemoval
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

WAIT_S = 60.0


def administration(running: RunningNamespace) -> Administration:
    return Administration(ConnectionString.parse(running.connection_string()))


def names(running: RunningNamespace) -> list[str]:
    return [each["name"] for each in administration(running).namespaces()]


def make_two(running: RunningNamespace, partitions: int = 2) -> None:
    """A namespace with a hub, a queue, and something in each."""
    administration(running).create_namespace("two", key=KEYS["two"], hostnames=["second.example"])
    create(running, "two", EventHubDescription("orders", partitions, capture=CAPTURED))
    create(running, "two", QueueDescription("kitchen"))
    with BlockingEventHubClient.from_connection_string(string_of(running, "two"), "orders") as client:
        for number in range(partitions):
            client.sender(partition_id=str(number)).send([b"event %d" % number])
    with BlockingQueueClient.from_connection_string(string_of(running, "two")) as queues:
        queues.sender("kitchen").send(b"tea")


def holds_two(running: RunningNamespace, partitions: int = 2, later: int = 0) -> None:
    """All of it is served, and takes what comes next. later: how many events of each partition came since."""
    with BlockingEventHubClient.from_connection_string(string_of(running, "two"), "orders") as client:
        for number in range(partitions):
            receiver, bodies = client.receiver(str(number)), list[bytes]()
            while len(bodies) < 1 + later:
                bodies += [bytes(each.body) for each in receiver.receive(max_wait_s=30)]
            assert bodies == [b"event %d" % number, *[b"later"] * later]
            assert client.sender(partition_id=str(number)).send([b"later"]) == 1
    with BlockingQueueClient.from_connection_string(string_of(running, "two")) as queues:
        tea = queues.receiver("kitchen")
        [message] = tea.receive(max_wait_s=30)
        assert bytes(message.body) == b"tea"
        tea.abandon(message)


def back_up(data: Path, copy: Path, *words: str) -> None:
    done = CliRunner().invoke(hubweir, ["store", "backup", str(copy), "--data", str(data), *words])
    assert done.exit_code == 0, done.output


def restored(running: RunningNamespace, copy: Path, name: str = "two") -> str:
    """Restore, and wait for the end; what went wrong."""
    administration(running).restore_namespace(name, str(copy))
    return ended(running, name)


def ended(running: RunningNamespace, name: str) -> str:
    """Wait for the end of a restore; what went wrong."""
    until = time.monotonic() + WAIT_S
    while not (state := administration(running).restore_state(name))["is_over"]:
        assert time.monotonic() < until
        time.sleep(0.02)
    return str(state["problem"])


def refusal(step: Callable[[], Any]) -> tuple[Condition, str]:
    with pytest.raises(ServiceError) as refused:
        step()
    return refused.value.condition, refused.value.text


def files_of(data: Path) -> set[str]:
    """The logs and what there is unseen of logs, in all stores."""
    return {str(path.relative_to(data)) for path in data.glob("*/logs/*")}


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a service that has `two` beside the default namespace, with a captured file of each."""
    folder = tmp_path_factory.mktemp("backup")
    with running_namespace(data=str(folder / "data")) as running:
        make_two(running)
        for name in ("two", "hubweir"):
            path = folder / "data" / "capture" / "files" / f"{name}.x" / "orders" / "0" / TIME
            path.parent.mkdir(parents=True)
            path.write_bytes(f"captured of {name}".encode())
        back_up(folder / "data", folder / "copy")
    return folder / "copy"


@pytest.mark.parametrize("brokers", [1, 2])
def test_a_deleted_namespace_comes_back_and_stays(tmp_path: Path, brokers: int) -> None:
    data = tmp_path / "data"
    with running_namespace(data=str(data), brokers=brokers) as running:
        make_two(running)
        back_up(data, tmp_path / "copy", "--namespace", "two")
        administration(running).delete_namespace("two")
        words = ["namespace", "restore", "two", "--from", str(tmp_path / "copy")]
        done = CliRunner().invoke(hubweir, [*words, "--connection-string", running.connection_string()])
        assert done.exit_code == 0, (done.output, done.exception)
        assert done.output.endswith("restored namespace two: it is served\n")
        for _ in range(4):  # whichever process answers
            assert names(running) == ["hubweir", "two"]
        holds_two(running)
        assert administration(running).status()["alarms"] == []
    with running_namespace(data=str(data), brokers=brokers) as running:
        assert names(running) == ["hubweir", "two"]
        holds_two(running, later=1)
        assert administration(running).find_namespace("two")["host_names"] == ["second.example", "two", "two.localhost"]


def test_stores_write_above_the_epochs_of_the_backup(backup: Path, tmp_path: Path) -> None:
    """Else what is written behind the restore would be taken for what a former writer left."""
    older = tmp_path / "older"
    with running_namespace(data=str(older)) as running:
        assert restored(running, backup) == ""
    for later in range(3):  # epochs of the folder's stores, and of its logs
        with running_namespace(data=str(older)) as running:
            holds_two(running, later=later)
    back_up(older, tmp_path / "copy")
    data = tmp_path / "data"
    with running_namespace(data=str(data)) as running:
        assert restored(running, tmp_path / "copy") == ""
        holds_two(running, later=3)
        assert administration(running).status()["alarms"] == []
    with running_namespace(data=str(data)) as running:
        holds_two(running, later=4)
        assert administration(running).status()["alarms"] == []


def test_the_default_namespace_stays_that_and_captured_files_come_too(backup: Path, tmp_path: Path) -> None:
    """In the backup `hubweir` was the default one; it comes beside another that is."""
    data = tmp_path / "data"
    with running_namespace(data=str(data), namespace="home", key="a key of the home") as running:
        assert restored(running, backup, "hubweir") == ""
        assert [path.read_bytes() for path in (data / "capture").rglob("*.avro")] == []
        assert restored(running, backup) == ""
        assert [path.read_bytes() for path in (data / "capture").rglob("*.avro")] == [b"captured of two"]
    with running_namespace(data=str(data), key="a key of the home") as running:
        assert names(running)[0] == "home" and set(names(running)) == {"home", "hubweir", "two"}


def test_the_end_of_a_restore_is_told_behind_that_of_another_and_forgotten_behind_many(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever waits for the first one hears of none when the second begins with its end."""
    with running_namespace(data=str(tmp_path / "data"), namespace="home", key="a key of the home") as running:
        assert restored(running, backup, "hubweir") == restored(running, backup) == ""
        for name in ("HUBWEIR", "two"):
            state = administration(running).restore_state(name)
            assert state["is_over"] and state["copied_bytes"] == state["size_bytes"] > 0
        monkeypatch.setattr(running_restores, "ENDED_LIMIT", 1)
        administration(running).delete_namespace("two")
        assert restored(running, backup) == ""
        assert refusal(lambda: administration(running).restore_state("hubweir"))[0].http == NOT_FOUND.http


@pytest.mark.parametrize(
    ("name", "source", "condition", "said"),
    [
        ("two", "relative/folder", ARGUMENT_ERROR, "no whole path"),
        ("two", "/nothing/is/here", ARGUMENT_ERROR, "is no backup: it has no file FORMAT"),
        ("third", "", ARGUMENT_ERROR, "has no namespace third; it has hubweir, two"),
        ("hubweir", "", ENTITY_EXISTS, "There is a namespace 'hubweir' already"),
    ],
)
def test_what_cannot_be_restored_is_refused_at_once(
    backup: Path, tmp_path: Path, name: str, source: str, condition: Condition, said: str
) -> None:
    data = tmp_path / "data"
    with running_namespace(data=str(data)) as running:
        before = files_of(data)
        found, text = refusal(lambda: administration(running).restore_namespace(name, source or str(backup)))
        assert (found.http, said in text) == (condition.http, True), text
        assert files_of(data) == before and names(running) == ["hubweir"]
        assert refusal(lambda: administration(running).restore_state(name))[0].http == NOT_FOUND.http


@pytest.mark.parametrize(("line", "said"), [("hubweir data 9", "this version reads"), ("junk", "this version reads")])
def test_a_backup_of_another_format_is_refused_as_what_was_asked_and_the_next_one_is_taken(
    backup: Path, tmp_path: Path, line: str, said: str
) -> None:
    other = tmp_path / "other"
    shutil.copytree(backup, other)
    (other / "FORMAT").write_text(f"{line}\n")
    with running_namespace(data=str(tmp_path / "data")) as running:
        found, text = refusal(lambda: administration(running).restore_namespace("two", str(other)))
        assert (found.http, said in text, str(other) in text) == (ARGUMENT_ERROR.http, True, True), text
        assert restored(running, backup) == ""


def test_logs_that_are_served_under_another_name_and_stores_that_are_not_there_are_refused(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    with running_namespace(data=str(data), stores=2) as running:
        make_two(running)
        back_up(data, copy)
    with running_namespace(data=str(data), stores=2, namespace="two", key=KEYS["two"]) as running:
        found, text = refusal(lambda: administration(running).restore_namespace("two", str(copy)))
        assert found.http == ENTITY_EXISTS.http, text
    with running_namespace(data=str(tmp_path / "small")) as running:
        found, text = refusal(lambda: administration(running).restore_namespace("two", str(copy)))
        assert (found.http, "start it with more" in text) == (NOT_ALLOWED.http, True), text


def test_where_strangers_could_use_it_no_namespace_comes_with_the_development_key(backup: Path, tmp_path: Path) -> None:
    host = {"host": ("0.0.0.0",), "key": "a key of the home", "namespace": "home"}
    with running_namespace(data=str(tmp_path / "data"), **host) as running:
        found, _ = refusal(lambda: administration(running).restore_namespace("hubweir", str(backup)))
        assert found.http == NOT_ALLOWED.http
        assert restored(running, backup) == ""


@pytest.mark.parametrize("step", ["copy", "show"])
def test_what_goes_wrong_before_it_is_there_is_taken_back_and_the_next_try_is_whole(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    data, calls = tmp_path / "data", list[str]()
    original: Callable[..., None] = getattr(MovedLog, step)

    def fails_at_the_last(moved: MovedLog, *arguments: Any) -> None:
        calls.append(step)
        original(moved, *arguments)
        if len(calls) == 4:  # two partitions, a queue, the catalog
            raise OSError("the disk is away")

    with running_namespace(data=str(data)) as running:
        before = files_of(data)
        with monkeypatch.context() as planted:
            planted.setattr(MovedLog, step, fails_at_the_last)
            problem = restored(running, backup)
        assert problem == "the disk is away. Nothing of the namespace is there."
        assert files_of(data) == before and names(running) == ["hubweir"]
        assert restored(running, backup) == ""
        holds_two(running)


def test_a_copy_ends_when_the_service_stops_and_leaves_nothing(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    original = MovedLog.copy

    def copies_slowly(moved: MovedLog, on_bytes: Callable[[int], None]) -> None:
        def slow(count: int) -> None:
            for _ in range(200):
                time.sleep(0.01)
                on_bytes(0)
            on_bytes(count)

        original(moved, slow)

    with running_namespace(data=str(data)) as running:
        before = files_of(data)
        monkeypatch.setattr(MovedLog, "copy", copies_slowly)
        administration(running).restore_namespace("two", str(backup))
        assert refusal(lambda: administration(running).restore_namespace("two", str(backup)))[0].http == (
            SERVER_BUSY.http
        )
        until = time.monotonic() + WAIT_S
        while not any(name.endswith(UNFINISHED_SUFFIX) for name in files_of(data)) and time.monotonic() < until:
            time.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < running_restores.STOP_S, "a copy that goes on would hold up the stop"
    assert files_of(data) == before


def test_a_stop_ends_a_restore_that_a_hung_disk_keeps_from_ending(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread is left; nothing of the service waits for it any more when the stores close."""
    goes_on, began, restores = threading.Event(), threading.Event(), list[running_restores.RunningRestores]()

    def hangs(moved: MovedLog, on_bytes: Callable[[int], None]) -> None:
        began.set()
        assert goes_on.wait(WAIT_S)

    original = running_restores.RunningRestores.stop

    async def stop(self: running_restores.RunningRestores) -> None:
        restores.append(self)
        await original(self)
        with pytest.raises(ServiceError, match="No restore"):
            self.state("third")
        assert self.state("two").is_over and "The service stopped" in self.state("two").problem
        goes_on.set()

    monkeypatch.setattr(MovedLog, "copy", hangs)
    monkeypatch.setattr(running_restores, "STOP_S", 0.05)
    monkeypatch.setattr(running_restores.RunningRestores, "stop", stop)
    try:
        with running_namespace(data=str(tmp_path / "data")) as running:
            administration(running).restore_namespace("two", str(backup))
            assert began.wait(WAIT_S)
    finally:
        goes_on.set()
    assert len(restores) == 1


def test_captured_files_end_with_a_stop_too_and_keep_no_namespace_from_being_made(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, began, copied = tmp_path / "data", threading.Event(), list[Path]()

    def copies_later(source: Path, target: Path) -> None:
        began.set()
        time.sleep(0.5)
        copied.append(target)

    more = tmp_path / "more"
    shutil.copytree(backup, more)
    for number in range(20):
        path = more / "capture" / "files" / "two.x" / "orders" / "1" / "2026/11" / f"{number:02}" / "08/00/00.avro"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"captured")
    with running_namespace(data=str(data)) as running:
        monkeypatch.setattr(captured_files, "copy_file", copies_later)
        monkeypatch.setattr(captured_files, "sync_path", lambda path: None)
        administration(running).restore_namespace("two", str(more))
        assert began.wait(WAIT_S)
        administration(running).create_namespace("meanwhile")
        assert not administration(running).restore_state("two")["is_over"]
        before = time.monotonic()
    assert time.monotonic() - before < running_restores.STOP_S and 0 < len(copied) < 21
    assert not any(name.endswith(UNFINISHED_SUFFIX) for name in files_of(data))


def test_a_name_that_was_taken_during_the_copy_is_refused_behind_it(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_taken = threading.Event()
    original = MovedLog.copy

    def copies_later(moved: MovedLog, on_bytes: Callable[[int], None]) -> None:
        assert is_taken.wait(WAIT_S)
        original(moved, on_bytes)

    with running_namespace(data=str(tmp_path / "data")) as running:
        monkeypatch.setattr(MovedLog, "copy", copies_later)
        administration(running).restore_namespace("two", str(backup))
        administration(running).create_namespace("two", key="a key of its own")
        before = files_of(tmp_path / "data")
        is_taken.set()
        assert "There is a namespace 'two' already. Nothing of the namespace is there." in ended(running, "two")
        assert files_of(tmp_path / "data") <= before
        assert administration(running).find_namespace("two")["event_hubs"] == 0


def test_logs_whose_deletion_is_not_over_do_not_come_back_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(self: NamespaceRemoval) -> Exception:
        return OSError("the disk is away")

    with running_namespace(data=str(tmp_path / "data")) as running:
        make_two(running)
        back_up(tmp_path / "data", tmp_path / "copy")
        with monkeypatch.context() as planted:
            planted.setattr(NamespaceRemoval, "attempt", fails)
            refusal(lambda: administration(running).delete_namespace("two"))
            assert names(running) == ["hubweir"]
            found, text = refusal(lambda: administration(running).restore_namespace("two", str(tmp_path / "copy")))
            assert (found.http, "is being deleted" in text) == (ENTITY_EXISTS.http, True), text
        until = time.monotonic() + WAIT_S
        while len(files_of(tmp_path / "data")) > 1 and time.monotonic() < until:  # the catalog of the default one
            time.sleep(0.05)
        assert restored(running, tmp_path / "copy") == ""
        holds_two(running)


def test_what_a_crash_between_logs_and_catalog_left_is_removed_by_the_same_restore(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs that no catalog names keep a service from making namespaces, as a lost catalog would."""
    data = tmp_path / "data"
    with running_namespace(data=str(data)) as running, monkeypatch.context() as planted:
        planted.setattr(CopiedLogs, "remove", lambda _: None)
        planted.setattr(CopiedLogs, "copy_catalog", partial(_raises, "the power was cut"))
        assert "the power was cut" in restored(running, backup)
    with running_namespace(data=str(data)) as running:
        [alarm] = administration(running).status()["alarms"]
        assert alarm["kind"] == "logs-unnamed"
        assert refusal(lambda: administration(running).create_namespace("new"))[0].http != 201
        assert restored(running, backup) == ""
        assert administration(running).status()["alarms"] == []
        administration(running).create_namespace("new")
        holds_two(running)


def _raises(text: str, *_: Any) -> None:
    raise OSError(text)


def test_a_namespace_whose_start_fails_is_served_by_the_next_start(
    backup: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"

    async def fails(*_: Any) -> None:
        raise ServiceError(INTERNAL_ERROR, "It cannot be served now.")

    with running_namespace(data=str(data)) as running:
        with monkeypatch.context() as planted:
            planted.setattr("hubweir.service.served_namespaces.start_gateway", fails)
            assert "the next start of the service serves it" in restored(running, backup)
        assert names(running) == ["hubweir"]
    with running_namespace(data=str(data)) as running:
        assert gateway_of(running, "two")
        holds_two(running)
