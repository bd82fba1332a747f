"""Without --all, programs of hubweir that a test starts are forked: server.py says why, forked_popen.py what differs.

With --all, and on systems other than Linux, each is started anew.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fork_server.forked_popen import ROOT, ForkedPopen, ForkServer


@pytest.fixture(scope="session", autouse=True)
def fork_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """It imports while the first tests run."""
    if request.config.getoption("--all") or sys.platform != "linux":
        yield
        return
    with started_server() as (server, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForkedPopen, "server", server, raising=False)
        patch.setattr(subprocess, "Popen", ForkedPopen)
        yield


@contextmanager
def started_server() -> Iterator[tuple[ForkServer, int]]:
    """A server of this process, and its process id; it is gone at the end."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}  # as the services of tests have it
    door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.fork_server.server", str(theirs.fileno())]
    with subprocess.Popen(
        command, pass_fds=[theirs.fileno()], stdout=subprocess.DEVNULL, cwd=ROOT, env=environment
    ) as process:
        theirs.close()
        with door:
            yield ForkServer(door, environment), process.pid
