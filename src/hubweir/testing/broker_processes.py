"""The broker processes of a server with several: who they are, and their end where their supervisor is gone."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

from hubweir.drivers.unix_socket import listener_pid
from hubweir.service.runtime_folder import RuntimeFolder


def broker_pids(data: Path | str) -> dict[int, int]:
    """The process ids of those that listen, by their indexes."""
    folder = RuntimeFolder.left(str(data))
    if folder is None:
        return {}
    found = {index: listener_pid(folder.process(index)) for index in folder.processes()}
    return {index: pid for index, pid in found.items() if pid is not None}


def end_brokers(data: Path | str) -> None:
    """End all of them at once (SIGKILL), and wait until they are gone."""
    for pid in broker_pids(data).values():
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        select.select([descriptor], [], [], 10.0)
        os.close(descriptor)
