"""A server process from its start to its ends. Slow for a unit test: a process each."""

from pathlib import Path

import pytest

from hubweir.testing.server_process import READY_LINE, ServerFailed, ServerProcess

SOURCE = {"PYTHONPATH": str(Path(__file__).resolve().parents[3])}


def test_it_starts_is_killed_starts_again_and_stops(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data", environment=SOURCE)
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
    server = ServerProcess(tmp_path / "data", environment=SOURCE)
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
