"""hubweir store backup: a folder is copied while a service writes it, and a service on the copy has all of it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hubweir.capture.capture_mark import MARK_KEY
from hubweir.cli import store_backup
from hubweir.cli.data_folder import DataFolder
from hubweir.cli.main import hubweir
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.messaging_store.disk.log_copy import LogChanged
from hubweir.messaging_store.disk.notes import pack_notes
from hubweir.messaging_store.disk.whole_file import seal_twice
from hubweir.messaging_store.log import Note
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

CAPTURED = CaptureDescription(enabled=True)


def typed(*arguments: str, namespace: RunningNamespace | None = None) -> Result:
    environment = {} if namespace is None else {"HUBWEIR_CONNECTION_STRING": namespace.connection_string()}
    return CliRunner().invoke(hubweir, list(arguments), env=environment)


def backup(data: Path, destination: Path) -> Result:
    return typed("store", "backup", str(destination), "--data", str(data))


def events_of(namespace: RunningNamespace, hub: str, partition: int) -> list[str]:
    result = typed("receive", hub, "--partition", str(partition), "--wait", "1", namespace=namespace)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@contextmanager
def sending(namespace: RunningNamespace, accepted: list[int]) -> Iterator[None]:
    """Numbers go to partition 0 of `orders`, one after the other, from a thread; accepted: those that were."""
    over = threading.Event()
    client = BlockingEventHubClient.from_connection_string(namespace.connection_string(), "orders")
    sender = client.sender(partition_id="0")

    def send() -> None:
        for number in range(1_000_000):
            if over.is_set():
                return
            sender.send([b"%d" % number])
            accepted.append(number)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        sender.close()
        client.close()


def test_a_copy_of_one_log_tells_so(tmp_path: Path) -> None:
    with running_namespace(data=str(tmp_path / "data")):
        pass
    assert backup(tmp_path / "data", tmp_path / "copy").stdout.startswith("1 log, ")


def test_a_folder_is_copied_while_events_come_and_the_copy_has_all_that_was_accepted_before(tmp_path: Path) -> None:
    destination = tmp_path / "backups" / "monday"
    destination.parent.mkdir()
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders", partition_count=2)
        namespace.create_event_hub("quiet")
        assert typed("send", "quiet", "kept", namespace=namespace).exit_code == 0
        accepted: list[int] = []
        with sending(namespace, accepted):
            waited_until = time.monotonic() + 30
            while len(accepted) < 50 and time.monotonic() < waited_until:
                time.sleep(0.01)
            before = len(accepted)
            result = backup(tmp_path / "data", destination)
            assert result.exit_code == 0, result.output
            after = len(accepted)
        assert "4 logs" in result.stdout and "verified" in result.stdout
    with running_namespace(data=str(destination)) as restored:
        numbers = events_of(restored, "orders", 0)
        assert numbers == [str(number) for number in range(len(numbers))]
        assert before <= len(numbers) <= after + 1
        assert events_of(restored, "quiet", 0) == ["kept"]
        assert typed("send", "orders", "new", namespace=restored).exit_code == 0
    assert [path.name for path in destination.parent.iterdir()] == ["monday"]


def test_the_copy_of_a_stopped_service_is_the_same(tmp_path: Path) -> None:
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders")
        assert typed("send", "orders", "one", "two", namespace=namespace).exit_code == 0
    assert backup(tmp_path / "data", tmp_path / "copy").exit_code == 0
    for name in ("FORMAT", "store-0/FORMAT", "store-0/EPOCH", "store-0/CLOCK", "catalog/EPOCH"):
        assert (tmp_path / "copy" / name).read_bytes() == (tmp_path / "data" / name).read_bytes()
    with running_namespace(data=str(tmp_path / "copy")) as restored:
        assert events_of(restored, "orders", 0) == ["one", "two"]
        assert restored.connection_string().split(";")[1:] == namespace.connection_string().split(";")[1:]


def test_captured_files_are_in_the_copy_as_their_marks_say(tmp_path: Path) -> None:
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders", capture=CAPTURED)
        assert typed("send", "orders", "one", namespace=namespace).exit_code == 0
        unfinished = tmp_path / "data/capture/hubweir/orders/0/some.avro.tmp"
        finished = unfinished.with_name("earlier.avro")
        finished.parent.mkdir(parents=True)
        for path in (unfinished, finished):
            path.write_bytes(b"rows")
        assert backup(tmp_path / "data", tmp_path / "copy").exit_code == 0
        log = DataFolder(tmp_path / "copy").find("orders/0")
        assert list((tmp_path / "copy" / log.folder).glob("notes-*"))
    copied = tmp_path / "copy/capture/hubweir/orders/0"
    assert [path.name for path in copied.iterdir()] == ["earlier.avro"]


def test_a_mark_that_moves_while_files_are_listed_has_its_log_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders", capture=CAPTURED)
    folder = DataFolder(tmp_path / "data")
    [mark] = (tmp_path / "data" / folder.find("orders/0").folder).glob("notes-*")
    listed = store_backup.captured_files
    moves = [seal_twice(pack_notes([Note(MARK_KEY, b"a later mark", 0, 0, 0)]))]
    later = moves[0]

    def mark_moves(data: Path, paths: re.Pattern[str] | None) -> Iterator[Path]:
        if moves:
            mark.write_bytes(moves.pop())
        return listed(data, paths)

    monkeypatch.setattr(store_backup, "captured_files", mark_moves)
    moment = store_backup._moment(folder)
    assert moment.is_exact
    assert {mark.name: later} in [copy.notes() for copy in moment.copies]


def test_an_entity_that_is_made_meanwhile_makes_the_backup_begin_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders")
        looked = store_backup._captured
        made: list[str] = []

        def one_more(*arguments: object) -> object:
            if not made:
                made.append("late")
                namespace.create_event_hub("late")
            return looked(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(store_backup, "_captured", one_more)
        result = backup(tmp_path / "data", tmp_path / "copy")
        assert result.exit_code == 0 and "begins again" in result.stderr
    with running_namespace(data=str(tmp_path / "copy")) as restored:
        assert events_of(restored, "late", 0) == []


def test_a_folder_that_changes_all_the_time_is_given_up_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders")

    def changed(*_: object) -> None:
        raise LogChanged("the catalog was changed")

    monkeypatch.setattr(store_backup, "_wait_until_vouched", changed)
    result = backup(tmp_path / "data", tmp_path / "copy")
    assert result.exit_code == 1 and f"{store_backup.TRIES} times" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("there", ["copy", "copy.partial"])
def test_what_is_there_already_is_not_written_over(tmp_path: Path, there: str) -> None:
    (tmp_path / there).mkdir()
    result = backup(tmp_path, tmp_path / "copy")
    assert result.exit_code == 1 and str(tmp_path / there) in str(result.exception)
    assert list((tmp_path / there).iterdir()) == []


def test_damage_in_the_folder_is_in_the_copy_and_told(tmp_path: Path) -> None:
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders")
        assert typed("send", "orders", "one", "two", namespace=namespace).exit_code == 0
    log = DataFolder(tmp_path / "data").find("orders/0")
    (segment,) = (tmp_path / "data" / log.folder).glob("*.log")
    data = bytearray(segment.read_bytes())
    data[data.index(b"one")] ^= 1
    segment.write_bytes(data)
    result = backup(tmp_path / "data", tmp_path / "copy")
    assert result.exit_code == 1
    assert "damage" in result.stderr and segment.name in result.stderr
    assert (tmp_path / "copy" / log.folder / segment.name).exists()
