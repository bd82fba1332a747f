"""A pipeline on a standalone cluster of one master and two workers, one of which is killed in mid-run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.run_status import STOPPED, RunStatus, read_status
from tests.spark.live_hub import Hub
from tests.spark.live_hub import until as wait_until
from tests.spark.standalone_cluster import environment, standalone_cluster

WAIT_S = 180.0


@contextmanager
def driver(hub: Hub, master: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`hubweir pipeline run` in a process group, which is killed at the end."""
    file = folder / "lake.toml"
    file.write_text(
        f'pipeline = "to-lake"\ncheckpoint = "{folder}/checkpoint"\ntrigger = "100ms"\n'
        f'[source]\neventHub = "{hub.name}"\nmaxEventsPerTrigger = 5000\nminPartitions = 4\n'
        f'[sink]\npath = "{folder}/lake"\n'
    )
    command = [sys.executable, "-m", "hubweir", "pipeline", "run", str(file), "--master", master]
    own = environment() | {"HUBWEIR_CONNECTION_STRING": hub.namespace.connection_string()}
    with (folder / "driver.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=own)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def status(folder: Path) -> RunStatus | None:
    try:
        return read_status(folder / "checkpoint")
    except IllegalDescription:
        return None


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_results_are_right_when_a_worker_is_killed_in_mid_run(hub: Hub, tmp_path: Path) -> None:
    """Killed while events wait and batches go through; the other worker does the rest; SIGTERM ends it cleanly."""
    sent = 60_000
    for partition_id in "01":
        hub.send(partition_id, sent)
    with standalone_cluster(tmp_path, workers=2) as cluster, driver(hub, cluster.master, tmp_path) as process:

        def has_read(events: int) -> bool:
            assert process.poll() is None, (tmp_path / "driver.log").read_text()[-4000:]
            now = status(tmp_path)
            return now is not None and now.events >= events

        wait_until(lambda: has_read(10_000), "the first batches", seconds=WAIT_S)
        cluster.kill(cluster.workers[0])
        at_kill = status(tmp_path)
        assert at_kill is not None and at_kill.events < 2 * sent and at_kill.behind > 0
        wait_until(lambda: has_read(2 * sent), "the rest, by the other worker", seconds=WAIT_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0, (tmp_path / "driver.log").read_text()[-4000:]
        executors = {path.parts[-2] for path in tmp_path.glob("work-*/app-*/*/stderr")}
    ended = status(tmp_path)
    assert ended is not None and (ended.state, ended.behind) == (STOPPED, 0)
    assert len(executors) >= 2 and (tmp_path / "work-0").exists() and (tmp_path / "work-1").exists()
    table = ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive").to_table(
        columns=["partition", "sequenceNumber"]
    )
    counts = Counter(zip(table["partition"].to_pylist(), table["sequenceNumber"].to_pylist(), strict=True))
    assert counts == Counter((partition_id, number) for partition_id in "01" for number in range(sent))
