"""A standalone cluster of Spark out of the pip package: a master and workers, each in a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from hubweir.testing.held_ports import HeldPorts
from tests.spark.live_hub import until

ROOT = Path(__file__).parents[2]
HOST = "127.0.0.1"
START_S = 120.0


class Cluster:
    """master: its address for drivers. workers: each with the executors that it started in its process group."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self.workers: list[subprocess.Popen[bytes]] = []
        self._held = HeldPorts(1, HOST)
        [self.port] = self._held.numbers
        self.master = f"spark://{HOST}:{self.port}"

    def start(self, workers: int) -> None:
        self._start(
            "master", "org.apache.spark.deploy.master.Master",
            "--host", HOST, "--port", str(self.port), "--webui-port", "0",
        )  # fmt: skip
        until(lambda: "I have been elected leader" in self.log("master"), "the master", seconds=START_S)
        for number in range(workers):
            self.workers.append(
                self._start(
                    f"worker-{number}",
                    "org.apache.spark.deploy.worker.Worker",
                    "--host",
                    HOST,
                    "-c",
                    "1",
                    "-m",
                    "1g",
                    "-d",
                    str(self._folder / f"work-{number}"),
                    "--webui-port",
                    "0",
                    self.master,
                )  # fmt: skip
            )
        until(
            lambda: all("Successfully registered" in self.log(f"worker-{n}") for n in range(workers)),
            "the workers",
            seconds=START_S,
        )

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        """The worker and its executors, at once."""
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def stop(self) -> None:
        for process in reversed(self._started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        with (self._folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [home / "bin" / "spark-class", *arguments],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment() | {"SPARK_HOME": str(home)},
            )
        self._started.append(process)
        return process


def environment() -> dict[str, str]:
    """For drivers and workers: this Python, and this checkout's package, which executors inherit."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HOST,
    }


@contextmanager
def standalone_cluster(folder: Path, *, workers: int) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.start(workers)
        yield cluster
    finally:
        cluster.stop()
