"""Tests of the fork server have one of their own, also with --all."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fork_server.forked_popen import ForkedPopen, ForkServer
from tests.fork_server.plugin import started_server
from tests.fork_server.programs import UNBUFFERED


@pytest.fixture(scope="package")
def own_server() -> Iterator[ForkServer]:
    if sys.platform != "linux":
        pytest.skip("processes are forked on Linux alone")
    with started_server(UNBUFFERED) as (door, _):
        yield ForkServer(lambda: door, UNBUFFERED)


@pytest.fixture(autouse=True)
def fork_here(own_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkedPopen, "server", own_server, raising=False)
    monkeypatch.setattr(subprocess, "Popen", ForkedPopen)
