"""`hubweir pipeline run` as a process: killed in mid-run and started again, two at once, Ctrl-C, what status says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from tests.spark.live_hub import Hub, until
from tests.spark.pipeline_runs import run_once
from tests.spark.test_stream import expire

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WAIT_S, SENT = 240.0, 20_000


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "hubweir", "pipeline", *arguments]


def environment(hub: Hub) -> dict[str, str]:
    source = str(Path(__file__).parents[2] / "src")
    return {**os.environ, "PYTHONPATH": source, "HUBWEIR_CONNECTION_STRING": hub.namespace.connection_string()}


@contextmanager
def running(hub: Hub, file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run in a process group of its own, its lines in run.log; all of it is killed at the end."""
    with (file.parent / "run.log").open("ab") as log:
        process = subprocess.Popen(
            command("run", str(file), "--master", "local[2]"),
            stdout=log, stderr=log, start_new_session=True, env=environment(hub),
        )  # fmt: skip
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def said(hub: Hub, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, env=environment(hub), timeout=WAIT_S, check=False
    )


def numbers(table: Path) -> list[tuple[str, int]]:
    """Every row that a reader sees; a file that was replaced meanwhile is looked for again."""
    while True:
        try:
            found = ds.dataset(table, format="parquet", partitioning="hive") if table.exists() else None
            rows = None if found is None or not found.files else found.to_table(columns=["partition", "sequenceNumber"])
        except FileNotFoundError:
            continue
        if rows is None:
            return []
        return sorted(zip(rows["partition"].to_pylist(), rows["sequenceNumber"].to_pylist(), strict=True))


@pytest.mark.parametrize("pipeline", ["to-lake", "replay"])
def test_a_run_that_is_killed_in_mid_run_goes_on_without_a_gap_and_without_a_repeat(
    spark: SparkSession, hub: Hub, tmp_path: Path, pipeline: str
) -> None:
    """Killed twice with files written and more to come: at once with its JVM, then the Python process alone."""
    table = tmp_path / "table"
    for partition_id in "01":
        hub.send(partition_id, SENT // 2)
    parameters = ""
    if pipeline == "replay":
        run_once(
            spark, "capture", hub, tmp_path, sink={"path": str(tmp_path / "captured")},
            source={"maxEventsPerTrigger": "5000"},
        )  # fmt: skip
        expire(hub, "0")
        parameters = f'[parameters]\ncaptured = "{tmp_path}/captured"\n'
    for partition_id in "01":
        hub.send(partition_id, SENT // 2, start=SENT // 2)
    file = tmp_path / "one.toml"
    file.write_text(
        f'pipeline = "{pipeline}"\nname = "one"\ncheckpoint = "{tmp_path}/checkpoint"\ntrigger = "100ms"\n{parameters}'
        f'[source]\neventHub = "{hub.name}"\nmaxEventsPerTrigger = 2500\n[sink]\npath = "{table}"\n'
    )

    def has_rows(process: subprocess.Popen[bytes], wanted: int) -> Callable[[], bool]:
        def reached() -> bool:
            assert process.poll() is None, (tmp_path / "run.log").read_text()[-4000:]
            return len(numbers(table)) >= wanted

        return reached

    with running(hub, file) as process:
        until(has_rows(process, 5_000), "the first batches", seconds=WAIT_S)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    at_kill = len(numbers(table))
    assert at_kill < 2 * SENT
    assert "one" in (text := said(hub, "status", str(file)).stdout) and ": killed, " in text
    with running(hub, file) as process:
        until(has_rows(process, at_kill + 2_500), "more batches", seconds=WAIT_S)
        process.kill()
        process.wait()
        with running(hub, file) as last:  # the JVM of the one before may have some way to go
            until(has_rows(last, 2 * SENT), "the rest", seconds=WAIT_S)
            second = said(hub, "run", str(file))
            assert second.returncode == 1 and f"is in use by another run, process {last.pid}" in second.stderr
            assert ": running, " in said(hub, "status", str(file)).stdout
            os.killpg(last.pid, signal.SIGINT)  # Ctrl-C reaches the whole group
            assert last.wait(WAIT_S) == 0, (tmp_path / "run.log").read_text()[-4000:]
    assert numbers(table) == [(partition_id, number) for partition_id in "01" for number in range(SENT)]
    text = said(hub, "status", str(file)).stdout
    assert ": stopped, " in text and "behind 0 now" in text
