"""The server of a run: when there is one, and what it has of the process that starts it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fork_server.forked_popen import ROOT, ForkedPopen, ForkServer
from tests.fork_server.plugin import started_server
from tests.fork_server.programs import UNBUFFERED, descriptors_of, is_forked, telling
from tests.own_interpreter import outcomes_apart

FILES = {
    "conftest.py": """
pytest_plugins = ["tests.fork_server.plugin"]
def pytest_addoption(parser): parser.addoption("--all", action="store_true")
""",
    "test_run.py": """
import os
from hubweir.testing.broker_processes import children_of
from tests.fork_server.programs import is_forked, telling

def test_no_server_is_started_for_nothing(): assert not children_of(os.getpid())

def test_a_program_is_forked():
    with telling() as (pid, _):
        assert is_forked(pid)
""",
}


@pytest.mark.parametrize(("options", "outcome"), [("", "passed"), ("--all", "failure")])
def test_a_run_forks_programs_unless_it_is_a_whole_one(options: str, outcome: str, tmp_path: Path) -> None:
    for name, text in {**FILES, "pytest.ini": f"[pytest]\naddopts = {options}\n"}.items():
        (tmp_path / name).write_text(text)
    outcomes, output = outcomes_apart(ROOT, str(tmp_path))
    assert outcomes == {"test_no_server_is_started_for_nothing": "passed", "test_a_program_is_forked": outcome}, output


@pytest.fixture
def input_of_its_own() -> Iterator[None]:
    """The input of this process is a pipe."""
    before, (reads, writes) = os.dup(0), os.pipe()
    os.dup2(reads, 0)
    yield
    os.dup2(before, 0)
    for each in (before, reads, writes):
        os.close(each)


def test_a_server_keeps_no_pipe_of_its_process_open_but_that_for_errors(input_of_its_own: None) -> None:
    with started_server(UNBUFFERED) as (_, server):
        assert descriptors_of(server)[:2] == [os.devnull] * 2


def test_a_server_is_found_from_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {name: value for name, value in UNBUFFERED.items() if name != "PYTHONPATH"}
    with started_server(environment) as (door, _):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, environment))
        with telling(env=environment) as (pid, _):
            assert is_forked(pid)


def test_a_server_that_hangs_is_gone_at_the_end_too() -> None:
    with started_server(UNBUFFERED) as (_, server):
        os.kill(server, signal.SIGSTOP)
    assert not Path(f"/proc/{server}").exists()
