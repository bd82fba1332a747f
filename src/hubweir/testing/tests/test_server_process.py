"""A server process from its start to its ends. Slow for a unit test: a process each."""

import sys
import time
from pathlib import Path

import pytest

from hubweir.testing.broker_processes import broker_pids, children_of
from hubweir.testing.server_process import READY_LINE, START_S, ServerFailed, ServerProcess


def test_it_starts_is_killed_starts_again_and_stops(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    with server:
        first = server.pid
        assert READY_LINE in server.output
        server.restart()
        assert server.pid is not None and server.pid != first
        assert server.stop() == 0
        assert server.pid is None
        server.kill9()
    assert (tmp_path / "data" / "FORMAT").exists()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "FORMAT").write_text("hubweir data 99\n")
    server = ServerProcess(tmp_path / "data")
    with pytest.raises(ServerFailed, match="nothing was changed"):
        server.start()
    assert server.pid is None


def test_a_server_that_has_closed_its_output_runs_until_it_is_gone(tmp_path: Path) -> None:
    closes_first = "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(1)"
    server = ServerProcess(tmp_path / "data", program=("-c", closes_first))
    server.begin()
    try:
        assert not server.becomes_ready()
        assert not server.is_running
    finally:
        server.kill9()


LINUX_ALONE = pytest.mark.skipif(sys.platform != "linux", reason="several broker processes are served on Linux alone")


@LINUX_ALONE
def test_a_kill_leaves_no_broker_process_and_that_of_the_supervisor_leaves_all(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ServerProcess(data, arguments=("--brokers", "2")) as server:
        before = broker_pids(data)
        assert len(before) == 2
        server.kill_supervisor()
        assert server.pid is None and broker_pids(data) == before
        server.kill9()  # also where no supervisor lives
        assert not broker_pids(data) and not any(map(lives, before.values()))
        server.start()
        before = broker_pids(data)
        assert len(before) == 2
    assert not any(map(lives, before.values()))


@LINUX_ALONE
def test_a_kill_leaves_no_broker_process_that_does_not_listen_yet(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", arguments=("--brokers", "2"))
    server.begin()
    assert server.pid is not None
    until = time.monotonic() + START_S
    while not (started := children_of(server.pid)):
        assert time.monotonic() < until
    server.kill9()
    assert not any(map(lives, started))


def lives(pid: int) -> bool:
    """Whether a process is there that has not ended; nobody may have waited for one that has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
