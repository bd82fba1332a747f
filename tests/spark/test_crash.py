"""A driver that is killed in its first batch, on a hub that events come to all the time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spark.live_hub import Hub, until

SCRIPT = Path(__file__).with_name("latest_driver.py")


@contextmanager
def driver(hub: Hub, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A driver with its JVM and workers in a process group, which is killed at the end: they outlive each other."""
    command = [sys.executable, str(SCRIPT), hub.namespace.connection_string(), hub.name, str(folder)]
    source = str(Path(__file__).parents[2] / "src")
    with (folder / "driver.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "PYTHONPATH": source}
        )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def live_load(hub: Hub) -> Iterator[None]:
    """Events on both partitions all the time."""
    ended = threading.Event()

    def send() -> None:
        sent = 0
        while not ended.wait(0.005):
            hub.send("0", 5, start=sent)
            hub.send("1", 5, start=sent)
            sent += 5

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_first_batch_of_latest_is_the_same_after_a_kill_in_it(hub: Hub, tmp_path: Path) -> None:
    """Nothing between the start of the query and its first whole batch is lost, and nothing comes twice.

    As a rule some events come between the two questions that make batch 0; when none does it is empty.
    """
    hub.send("0", 500)
    with live_load(hub):
        with driver(hub, tmp_path) as first:
            until(lambda: (tmp_path / "reading").exists() or first.poll() is not None, "the first batch", seconds=180)
            assert first.poll() is None, (tmp_path / "driver.log").read_text()
        logged = json.loads((tmp_path / "checkpoint" / "offsets" / "0").read_text().splitlines()[-1])
        begin = logged.get("from", logged)  # the true start stands in the log; an empty batch starts where it ends
        assert ("from" in logged) is not ("initial" in logged)
        at_kill = {partition_id: hub.high(partition_id) for partition_id in "01"}
        assert at_kill["0"] > logged["0"] and not list(tmp_path.glob("*.txt"))
        with driver(hub, tmp_path) as second:
            until(
                lambda: len(list(tmp_path.glob("*.txt"))) >= 3 or second.poll() is not None,
                "three batches",
                seconds=180,
            )
            assert second.poll() is None, (tmp_path / "driver.log").read_text()
    batches = {int(path.stem): path.read_text().split("\n")[:-1] for path in tmp_path.glob("*.txt")}
    assert sorted(batches) == list(range(len(batches)))
    for partition_id in "01":
        expected = f"{partition_id} "
        read = [
            int(row.removeprefix(expected))
            for batch in sorted(batches)
            for row in batches[batch]
            if row.startswith(expected)
        ]
        assert read == list(range(begin[partition_id], read[-1] + 1))
        of_first = [row for row in batches[0] if row.startswith(expected)]
        assert len(of_first) == logged[partition_id] - begin[partition_id]
