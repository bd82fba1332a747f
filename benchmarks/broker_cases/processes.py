"""The processes of one service under measurement, and what each of them used of the processor."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.server_process import ServerProcess
from spine import pid_of, processor_seconds

START_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds: of the wall clock, of the load generator's processor time, of each process of the service."""

    wall: float
    generator: float
    processes: tuple[float, ...]

    @property
    def service(self) -> float:
        """Of all processes together."""
        return sum(self.processes)

    @property
    def busiest(self) -> float:
        """Of the one that used most: what limits a service whose processes have a core each."""
        return max(self.processes)


class Service:
    """`hubweir serve` with a number of brokers, or one process without any. A context manager that kills it."""

    def __init__(self, data: Path, brokers: int) -> None:
        self._data = data
        self._server = ServerProcess(data, arguments=["--brokers", str(brokers)] if brokers > 1 else [])
        self.brokers = brokers

    def __enter__(self) -> Service:
        self._server.start(seconds=START_LIMIT_S)
        return self

    def __exit__(self, *error: object) -> None:
        self._server.kill9()

    @property
    def name(self) -> str:
        return "1 process" if self.brokers == 1 else f"{self.brokers} brokers"

    @property
    def target(self) -> ConnectionString:
        return ConnectionString.parse(self._server.connection_string())

    def serving_pids(self) -> list[int]:
        """Of the processes that take connections and have logs, by their indexes."""
        if self.brokers == 1:
            return [pid_of(self._server)]
        found = broker_pids(self._data)
        return [found[index] for index in sorted(found)]

    def pids(self) -> list[int]:
        """Of all, the supervisor's last."""
        serving = self.serving_pids()
        return serving if self.brokers == 1 else [*serving, pid_of(self._server)]


class Meter:
    """Measures from where it is made."""

    def __init__(self, service: Service) -> None:
        self._pids = service.pids()
        self._processes = [processor_seconds(pid) for pid in self._pids]
        self._generator, self._wall = time.process_time(), time.perf_counter()

    def read(self) -> Used:
        wall, generator = time.perf_counter() - self._wall, time.process_time() - self._generator
        processes = (processor_seconds(pid) for pid in self._pids)
        return Used(
            wall, generator, tuple(now - before for now, before in zip(processes, self._processes, strict=True))
        )  # fmt: skip


def sockets_of(pid: int) -> int:
    """How many sockets a process has open."""
    count = 0
    for entry in os.scandir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed meanwhile
            count += os.readlink(entry.path).startswith("socket:")
    return count
