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

from hubweir.cli.main import hubweir
from hubweir.cli.tests.test_store_backup import backup, events_of, sending, typed
from hubweir.client.blocking import BlockingEventHubClient
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
