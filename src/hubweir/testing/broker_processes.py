"""The broker processes of a server with several: who they are, and their end, with their supervisor or after it."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hubweir.drivers.unix_socket import listener_pid
from hubweir.service.runtime_folder import RuntimeFolder


def broker_pids(data: Path | str) -> dict[int, int]:
    """The process ids of those that listen, by their indexes. None where a service is one process: all but Linux."""
    if sys.platform != "linux":
        return {}
    folder = RuntimeFolder.left(str(data))
    if folder is None:
        return {}
    found = {index: listener_pid(folder.process(index)) for index in folder.processes()}
    return {index: pid for index, pid in found.items() if pid is not None}


def children_of(pid: int) -> set[int]:
    """The processes that a process started and that live. A broker process is one before it listens."""
    found: set[int] = set()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended meanwhile
            found |= {int(each) for each in path.read_text().split()}
    return found


def end_brokers(data: Path | str, started: Iterable[int] = ()) -> None:
    """End all of them at once (SIGKILL), and wait until they are gone. started: those that may not listen yet."""
    for pid in {*broker_pids(data).values(), *started}:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [], 10.0)
        os.close(descriptor)
