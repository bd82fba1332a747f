"""Without --all, programs of hubweir that a test starts are forked: server.py says why, forked_popen.py what differs.

With --all, and on systems other than Linux, each is started anew.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

import pytest

from tests.fork_server.forked_popen import ROOT, ForkedPopen, ForkServer

SERVER = ("-m", "tests.fork_server.server")


@pytest.fixture(scope="session", autouse=True)
def fork_server(request: pytest.FixtureRequest) -> Iterator[None]:
    """It is started when the first test wants it: many runs of a few tests start no service."""
    if request.config.getoption("--all") or sys.platform != "linux":
        yield
        return
    # The services of tests print unbuffered.
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with ExitStack() as ends, pytest.MonkeyPatch.context() as patch:
        server = ForkServer(lambda: ends.enter_context(started_server(environment))[0], environment)
        patch.setattr(ForkedPopen, "server", server, raising=False)
        patch.setattr(subprocess, "Popen", ForkedPopen)
        yield


@contextmanager
def started_server(
    environment: Mapping[str, str], program: Sequence[str] = SERVER
) -> Iterator[tuple[socket.socket, int]]:
    """The door to a server, and its process id; it is gone at the end."""
    door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with door:
        with theirs:
            process = subprocess.Popen(
                [sys.executable, *program, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd=ROOT,
                env=environment,
            )
        with process:
            try:
                yield door, process.pid
            finally:
                process.kill()
