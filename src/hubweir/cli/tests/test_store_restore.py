"""hubweir store restore: a folder is made of a backup; kills of either command leave what they read as it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hubweir.cli.chosen_namespace import NoSuchNamespace
from hubweir.cli.main import hubweir
from hubweir.cli.tests.test_chosen_namespace import KEYS, SAID, TIME, fill, string_of
from hubweir.cli.tests.test_store_backup import backup, events_of, sending, typed
from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.blocking_queue import BlockingQueueClient
from hubweir.config.namespace_settings import Said, SaidNamespaces
from hubweir.messaging_store.disk.moved_log import MovedLog
from hubweir.testing.running_namespace import running_namespace

LARGE, COUNT = b"x" * 200_000, 300  # 60 MB take some tenths of a second to copy
WAIT_S = 30.0


def restore(source: Path, data: Path) -> Result:
    return CliRunner().invoke(hubweir, ["store", "restore", str(source), "--data", str(data)])


def tree(folder: Path) -> dict[str, bytes]:
    """What stands in each file."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stopped service's folder with large events."""
    data = tmp_path_factory.mktemp("filled") / "data"
    with running_namespace(data=str(data)) as namespace:
        namespace.create_event_hub("orders", partition_count=2)
        with BlockingEventHubClient.from_connection_string(namespace.connection_string(), "orders") as client:
            sender = client.sender(partition_id="1")
            for _ in range(COUNT):
                sender.send([LARGE])
    return data


def killed_while_it_copies(*arguments: str, partial: Path) -> bool:
    """Run hubweir, and end it by SIGKILL when its copy has begun; False: it was faster."""
    process = subprocess.Popen((sys.executable, "-m", "hubweir", *arguments), stdout=subprocess.DEVNULL)
    until_s = time.monotonic() + WAIT_S
    while not partial.exists() and process.poll() is None and time.monotonic() < until_s:
        time.sleep(0.001)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    return process.wait(WAIT_S) == -signal.SIGKILL


@pytest.mark.parametrize("is_there", [False, True])
def test_a_service_goes_on_from_a_backup_that_was_made_under_load(tmp_path: Path, is_there: bool) -> None:
    accepted: list[int] = []
    with running_namespace(data=str(tmp_path / "data")) as namespace:
        namespace.create_event_hub("orders", partition_count=1)
        namespace.create_queue("kitchen")
        assert typed("message", "send", "kitchen", "tea", namespace=namespace).exit_code == 0
        with sending(namespace, accepted):
            until_s = time.monotonic() + WAIT_S
            while len(accepted) < 50 and time.monotonic() < until_s:
                time.sleep(0.01)
            before = len(accepted)
            assert backup(tmp_path / "data", tmp_path / "monday").exit_code == 0
    if is_there:
        (tmp_path / "new").mkdir()
    kept = tree(tmp_path / "monday")
    done = restore(tmp_path / "monday", tmp_path / "new")
    assert done.exit_code == 0 and "hubweir serve --data" in done.stdout, done.output
    assert tree(tmp_path / "monday") == kept
    with running_namespace(data=str(tmp_path / "new")) as restored:
        numbers = events_of(restored, "orders", 0)
        assert numbers == [str(number) for number in range(len(numbers))] and len(numbers) >= before
        assert typed("message", "receive", "kitchen", "--count", "1", namespace=restored).stdout.startswith("tea")


@pytest.mark.crash
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_kill_in_the_middle_leaves_the_source_as_it_was_and_nothing_under_the_name(
    tmp_path: Path, filled: Path, command: str
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    shutil.copytree(filled, data)
    before = tree(data)
    given = ("backup", str(copy), "--data", str(data)) if command == "backup" else (
        "restore", str(data), "--data", str(copy)
    )  # fmt: skip
    partial = tmp_path / "copy.partial"
    assert killed_while_it_copies("store", *given, partial=partial), "control: it was under way"
    assert tree(data) == before and not copy.exists() and partial.exists()
    refused = CliRunner().invoke(hubweir, ["store", *given])
    assert refused.exit_code == 1 and "did not end" in str(refused.exception)
    subprocess.run(("rm", "-r", str(partial)), check=True)
    assert CliRunner().invoke(hubweir, ["store", *given]).exit_code == 0
    with running_namespace(data=str(copy)) as restored:
        assert len(events_of(restored, "orders", 1)) == COUNT


def test_what_is_there_is_not_written_over_and_what_is_no_backup_is_refused(tmp_path: Path) -> None:
    for name in ("data", "empty", "monday.partial"):
        (tmp_path / name).mkdir()
    (tmp_path / "data" / "FORMAT").write_text("x")
    (tmp_path / "monday.partial" / "FORMAT").write_text("x")
    (tmp_path / "file").write_text("no folder")
    for source, data, why in (
        ("data", "data", "is there already"),
        ("data", "file", "is there already"),
        ("empty", "new", "is no backup"),
        ("monday.partial", "new", "did not end"),
    ):
        refused = restore(tmp_path / source, tmp_path / data)
        assert refused.exit_code == 1 and why in str(refused.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "empty", "file", "monday.partial"]
    assert (tmp_path / "file").read_text() == "no folder"


def test_a_backup_gets_nothing_inside_it_and_a_mount_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup_folder = tmp_path / "monday"
    backup_folder.mkdir()
    (backup_folder / "FORMAT").write_text("x")
    refused = restore(backup_folder, backup_folder / "new")
    assert refused.exit_code == 1 and "lies in the backup" in str(refused.exception)
    refused = restore(backup_folder, Path("/proc"))
    assert refused.exit_code == 1 and "is a mounted file system" in str(refused.exception)
    backup_folder.rename(tmp_path / "monday.partial")
    monkeypatch.chdir(tmp_path / "monday.partial")
    refused = restore(Path("."), tmp_path / "new")
    assert refused.exit_code == 1 and "did not end" in str(refused.exception)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["FORMAT", "monday.partial"]


# -- one namespace into a folder that has others


@pytest.fixture(scope="module")
def backed_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of two namespaces, whose stores saw several starts: their epochs are above those of a new folder."""
    folder = tmp_path_factory.mktemp("backed-up")
    data, copy = folder / "data", folder / "copy"
    for _ in range(4):
        with running_namespace(data=str(data), said=SAID):
            pass
    with running_namespace(data=str(data), said=SAID) as running:
        fill(running)
    captured = data / "capture" / "files" / "two.x" / "orders" / "0" / TIME
    captured.parent.mkdir(parents=True)
    captured.write_bytes(b"captured of two")
    assert backup(data, copy).exit_code == 0
    return copy


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder that has a namespace of its own, with a queue; no service runs on it."""
    with running_namespace(data=str(tmp_path / "home"), said=HOME) as running:
        running.create_queue("kitchen")
        with BlockingQueueClient.from_connection_string(running.connection_string()) as client:
            client.sender("kitchen").send(b"message of home")
    return tmp_path / "home"


HOME = SaidNamespaces(Said(name="home", key=KEYS["one"]))


def add(source: Path, data: Path, name: str = "two") -> Result:
    return CliRunner().invoke(hubweir, ["store", "restore", str(source), "--data", str(data), "--namespace", name])


def logs_of(data: Path) -> list[str]:
    """What stands where logs are."""
    return sorted(str(path.relative_to(data)) for path in data.glob("*/logs/*"))


def test_a_namespace_comes_into_a_folder_that_has_others_and_goes_on_there(backed_up: Path, home: Path) -> None:
    result = add(backed_up, home)
    assert result.exit_code == 0, result.output
    assert next(home.rglob("*.avro")).read_bytes() == b"captured of two"
    assert CliRunner().invoke(hubweir, ["store", "verify", "--data", str(home)]).exit_code == 0
    for round_number in range(2):  # what is written behind it is there after another start, too
        with running_namespace(data=str(home), said=SaidNamespaces(Said())) as running:
            assert [each.name for each in running.parts.process.gateways] == ["home", "two"], "the default one stays"
            assert running.parts.alarms.current() == ()
            with BlockingEventHubClient.from_connection_string(string_of(running, "two"), "orders") as client:
                receiver, bodies = client.receiver("0"), list[bytes]()
                while len(bodies) <= round_number and (came := receiver.receive(max_wait_s=WAIT_S)):
                    bodies += [bytes(each.body) for each in came]
                assert bodies == [b"event of two", b"later"][: 1 + round_number]
                if not round_number:
                    client.sender(partition_id="0").send([b"later"])
            for key, text in (("two", b"message of two"), ("one", b"message of home")):
                with BlockingQueueClient.from_connection_string(string_of(running, key)) as queues:
                    assert queues.receiver("kitchen").peek(1).bodies() == [text]


def test_a_namespace_is_refused_where_something_has_its_name_its_hosts_or_its_logs(
    backed_up: Path, home: Path, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    with running_namespace(
        data=str(hosts), said=SaidNamespaces(Said(name="other", hostnames=("second.example",)))
    ) as running:
        assert "a service runs on" in str(add(backed_up, hosts).exception)
        assert running.parts.ready
    before = logs_of(hosts)
    assert "second.example" in str(add(backed_up, hosts).exception)
    assert add(backed_up, home).exit_code == 0
    assert "has a namespace two already" in str(add(backed_up, home).exception)
    with running_namespace(data=str(hosts), said=SaidNamespaces(Said())):
        pass
    assert logs_of(hosts) == before
    with pytest.raises(NoSuchNamespace):
        raise add(backed_up, home, "three").exception or AssertionError


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_folder_that_is_served_takes_nothing_and_its_service_goes_on(
    backed_up: Path, home: Path, brokers: int
) -> None:
    with running_namespace(data=str(home), said=SaidNamespaces(Said()), brokers=brokers) as running:
        before = logs_of(home)
        alone, whole = add(backed_up, home), restore(backed_up, home)
        assert (alone.exit_code, whole.exit_code, logs_of(home)) == (1, 1, before)
        for way_out in (f"a service runs on {home} (", "stop it, restore, and start it again", "nothing was changed"):
            assert way_out in str(alone.exception)
        assert f"{home} is there already: stop its service and move the folder away" in str(whole.exception)
        with BlockingQueueClient.from_connection_string(string_of(running, "one")) as queues:
            assert queues.receiver("kitchen").peek(1).bodies() == [b"message of home"]
    assert add(backed_up, home).exit_code == 0, "control: nothing else was in the way"


def test_what_goes_wrong_takes_back_what_was_done_and_the_command_may_be_given_again(
    backed_up: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, show = logs_of(home), MovedLog.show
    for fails_at in range(3):  # two logs of entities, and the catalog
        shown: list[MovedLog] = []

        def fail(self: MovedLog, shown: list[MovedLog] = shown, fails_at: int = fails_at) -> None:
            shown.append(self)
            if len(shown) > fails_at:
                raise OSError("no more")
            show(self)

        with monkeypatch.context() as patch:
            patch.setattr(MovedLog, "show", fail)
            assert "no more" in str(add(backed_up, home).exception)
        assert logs_of(home) == before and len(shown) == fails_at + 1
    assert add(backed_up, home).exit_code == 0


def test_the_default_namespace_of_a_folder_stays_that(backed_up: Path, home: Path) -> None:
    """In the backup `one` is the default namespace."""
    assert add(backed_up, home, "one").exit_code == 0
    with running_namespace(data=str(home), said=SaidNamespaces(Said())) as running:
        assert [each.name for each in running.parts.process.gateways] == ["home", "one"]


@pytest.mark.parametrize("at", range(3))
def test_a_restore_that_was_killed_is_finished_by_the_same_command(
    backed_up: Path, home: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    class Killed(BaseException):
        """Nothing runs behind it."""

    before, show, shown = logs_of(home), MovedLog.show, list[MovedLog]()

    def killed(self: MovedLog) -> None:
        if len(shown) == at:
            raise Killed
        shown.append(self)
        show(self)

    with monkeypatch.context() as patch:
        patch.setattr(MovedLog, "show", killed)
        with pytest.raises(Killed):
            add(backed_up, home)
    assert logs_of(home) != before, "control: it left something"
    with running_namespace(data=str(home), said=SaidNamespaces(Said())) as running:
        assert [each.name for each in running.parts.process.gateways] == ["home"]
    assert add(backed_up, home).exit_code == 0
    with running_namespace(data=str(home), said=SaidNamespaces(Said())) as running:
        assert running.parts.alarms.current() == ()
        with BlockingQueueClient.from_connection_string(string_of(running, "two")) as queues:
            assert queues.receiver("kitchen").receive(max_wait_s=WAIT_S).bodies() == [b"message of two"]
