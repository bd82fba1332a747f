"""The fork server: what it forks behaves as what is started anew, and what it must not fork is started anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.testing.broker_processes import broker_pids, children_of
from hubweir.testing.server_process import ServerProcess
from tests.fork_server.forked_popen import ForkedPopen
from tests.fork_server.plugin import started_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

HUBWEIR = [sys.executable, "-m", "hubweir"]
UNBUFFERED = {**os.environ, "PYTHONUNBUFFERED": "1"}
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.fixture(autouse=True)
def server_of_the_file(own_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", ForkedPopen)


@pytest.fixture(scope="module")
def own_server() -> Iterator[None]:
    """Also with --all."""
    with started_server() as (server, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForkedPopen, "server", server, raising=False)
        yield


def is_forked(pid: int) -> bool:
    return b"tests.fork_server.server" in Path(f"/proc/{pid}/cmdline").read_bytes()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def until(holds: Callable[[], bool], seconds: float = 90) -> None:
    limit = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < limit
        time.sleep(0.01)


@contextmanager
def started(*arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A command of hubweir; it is gone at the end."""
    given = {"env": UNBUFFERED, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen([*HUBWEIR, *arguments], **given) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("typed", ["--version", "eventhub lst", "sas decode nothing"])
def test_a_forked_program_says_and_answers_what_a_new_one_does(typed: str) -> None:
    said = {}
    for environment in (UNBUFFERED, BUFFERED):
        with started(*typed.split(), env=environment) as process:
            output = process.communicate()
            said[environment is UNBUFFERED] = (*output, process.returncode)
    assert said[True] == said[False] and any(said[True][:2])


def test_it_has_its_own_folder_environment_streams_and_session(tmp_path: Path) -> None:
    environment = {**UNBUFFERED, "HUBWEIR_LOG_FORMAT": "json", "HUBWEIR_DATA": "data", "HUBWEIR_PORT": "0"}
    with started("serve", cwd=tmp_path, env=environment, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert is_forked(process.pid) and parent_of(process.pid) == os.getpid()
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate()[1]
    assert process.returncode == 0 and errors.startswith("{") and (tmp_path / "data").is_dir()


def test_a_signal_ends_it_and_its_exit_code_says_so(tmp_path: Path) -> None:
    with started("serve", "--data", str(tmp_path), "--port", "0") as process:
        process.kill()
        assert process.wait(10) == -signal.SIGKILL


def test_it_knows_no_descriptor_of_who_asked(tmp_path: Path) -> None:
    os.set_inheritable(kept := os.open(tmp_path, os.O_RDONLY), True)
    with started("serve", "--data", str(tmp_path / "data"), "--port", "0") as process:
        assert process.stdout is not None and process.stdout.readline()
        known = {os.readlink(each) for each in Path(f"/proc/{process.pid}/fd").iterdir()}
    os.close(kept)
    assert str(tmp_path) not in known


@pytest.mark.parametrize(
    "options",
    [
        {"env": {**UNBUFFERED, "PYTHONHASHSEED": "1"}},
        {"env": {**UNBUFFERED, "LD_BIND_NOW": "1"}},
        {"env": {**UNBUFFERED, "HUBWEIR_KERNELS": "pure"}},
        {"env": BUFFERED},
        {"preexec_fn": lambda: None},
        {"pass_fds": [0]},
        {"umask": 0o77},
        {"close_fds": False},
        {"executable": sys.executable},
    ],
)
def test_what_an_interpreter_sees_when_it_starts_alone_asks_for_a_new_one(
    options: dict[str, Any], tmp_path: Path
) -> None:
    with started("serve", "--data", str(tmp_path), "--port", "0", **options) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert not is_forked(process.pid)


def test_another_program_is_started_as_ever() -> None:
    said = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv)"], capture_output=True, env=UNBUFFERED)
    assert said.stdout == b"['-c']\n"
    assert subprocess.run("echo $0", shell=True, capture_output=True, env=UNBUFFERED).stdout.strip() == b"/bin/sh"


def test_broker_processes_are_forked_for_their_supervisor(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, arguments=["--brokers", "2"]) as server:
        supervisor, brokers = server.pid, broker_pids(tmp_path)
        assert supervisor is not None and is_forked(supervisor) and len(brokers) == 2
        for pid in brokers.values():
            assert is_forked(pid) and parent_of(pid) == supervisor and os.getsid(pid) == pid
        # One that is killed is seen to end, and comes back.
        os.kill(brokers[1], signal.SIGKILL)
        until(lambda: broker_pids(tmp_path).get(1) not in (None, brokers[1]))
        [its_server] = children_of(supervisor) - set(broker_pids(tmp_path).values())
        server.kill_supervisor()
        until(lambda: not Path(f"/proc/{its_server}").exists())


def test_a_server_ends_with_who_asks() -> None:
    with started_server() as (_, pid):
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_a_server_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with started_server() as (server, pid):
        monkeypatch.setattr(ForkedPopen, "server", server)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with pytest.raises(OSError), started("--version"):
            pytest.fail("a process was started")
