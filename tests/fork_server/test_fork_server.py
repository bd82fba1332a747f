"""The fork server: what it forks behaves as what is started anew, and what it must not fork is started anew."""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hubweir.testing.broker_processes import broker_pids, children_of
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import until
from tests.fork_server.forked_popen import READ_AT_THE_START, ROOT, SOURCE, ForkedPopen, ForkServer
from tests.fork_server.plugin import started_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

HUBWEIR = ("-m", "hubweir")
PLANTED = (str(Path(__file__).parents[1] / "crash" / "lying_server.py"),)
TELLS = (str(Path(__file__).with_name("told_state.py")),)
FORKS_NOTHING = """
import socket, sys
from tests.fork_server import server
server.CLONE_NUMBERS = dict.fromkeys(server.CLONE_NUMBERS, 1 << 20)  # a call that no system has
server.main(socket.socket(fileno=int(sys.argv[1])))
"""
LOOKS_ON_AT_IMPORTS = """
import importlib, os, sys, time
from tests.fork_server.server import IMPORTED

class Told(dict):
    def __getitem__(self, name):
        print(os.fsdecode(name))
        return super().__getitem__(name)
    def __contains__(self, name):
        print(os.fsdecode(name))
        return super().__contains__(name)

def told(call):
    def calls(*given):
        if (module := sys._getframe(1).f_globals["__name__"]).startswith("hubweir."):
            print(module)
        return call(*given)
    return calls

os.environ._data = Told(os.environ._data)
for module, name in ((time, "time"), (time, "monotonic"), (time, "perf_counter"), (os, "getpid"), (os, "urandom")):
    setattr(module, name, told(getattr(module, name)))
for name in IMPORTED:
    importlib.import_module(name)
"""
FORKS = """
import os, subprocess, sys
from tests.fork_server.forked_popen import ForkedPopen, ForkServer
ForkedPopen.server = ForkServer(lambda: sys.exit("a server is asked"), os.environ)
if os.fork() == 0:
    ForkedPopen([sys.executable, "-m", "hubweir", "--version"]).wait()
else:
    os.wait()
"""
CLONE_NEWNET = 0x40000000
UNBUFFERED = {**os.environ, "PYTHONUNBUFFERED": "1"}
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.fixture(autouse=True)
def server_of_the_file(own_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", ForkedPopen)


@pytest.fixture(scope="module")
def own_server() -> Iterator[None]:
    """Also with --all."""
    with started_server(UNBUFFERED) as (door, _), pytest.MonkeyPatch.context() as patch:
        patch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED), raising=False)
        yield


def is_forked(pid: int) -> bool:
    return b"tests.fork_server.server" in Path(f"/proc/{pid}/cmdline").read_bytes()


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and not status_of(pid)["State"].startswith("Z")


def status_of(pid: int) -> dict[str, str]:
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


@contextmanager
def started(*arguments: str, program: tuple[str, ...] = HUBWEIR, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A command of hubweir; it is gone at the end."""
    given = {"env": UNBUFFERED, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    with subprocess.Popen([sys.executable, *program, *arguments], **given) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def telling(**options: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The process id of a program that tells its state, and what it has told."""
    with started(program=TELLS, stdin=subprocess.PIPE, **options) as process:
        assert process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())


@pytest.mark.parametrize("program", [HUBWEIR, PLANTED])
@pytest.mark.parametrize("typed", ["--version", "eventhub lst", "sas decode nothing"])
def test_a_forked_program_says_and_answers_what_a_new_one_does(typed: str, program: tuple[str, ...]) -> None:
    said = {}
    for environment in (UNBUFFERED, BUFFERED):
        with started(*typed.split(), program=program, env=environment) as process:
            output = process.communicate()
            said[environment is UNBUFFERED] = (*output, process.returncode)
    assert said[True] == said[False] and any(said[True][:2])


@pytest.fixture
def unusual_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is in a state in which tests and supervisors bring themselves before they start programs."""
    monkeypatch.chdir(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    action = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGQUIT, action)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    resource.setrlimit(resource.RLIMIT_CORE, limits)


@pytest.mark.parametrize("state", ["usual", "unusual"])
def test_a_forked_program_finds_itself_in_the_state_of_a_new_one(
    state: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if state == "unusual":
        request.getfixturevalue("unusual_state")
    with telling() as (pid, forked):
        assert is_forked(pid)
    monkeypatch.setattr(subprocess, "Popen", ForkedPopen.__base__)
    with telling() as (pid, new):
        assert not is_forked(pid)
    assert [name for name in new if new[name] != forked[name]] == ["process"]


def test_it_has_its_own_folder_environment_streams_and_session(tmp_path: Path) -> None:
    environment = {**UNBUFFERED, "HUBWEIR_LOG_FORMAT": "json", "HUBWEIR_DATA": "data", "HUBWEIR_PORT": "0"}
    with started("serve", cwd=tmp_path, env=environment, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert is_forked(process.pid) and status_of(process.pid)["PPid"] == str(os.getpid())
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate()[1]
    assert process.returncode == 0 and errors.startswith("{") and (tmp_path / "data").is_dir()


def test_a_forked_program_finds_modules_as_a_new_one_imports_them() -> None:
    with telling():  # the server has imported everything
        before = time.time()
    program = (str(Path(__file__).with_name("told_modules.py")),)
    with started(program=program) as process:
        told = json.loads(process.communicate(timeout=90)[0])
    assert told["programs are imported once"]
    assert told["seconds since the process began"] <= time.time() - before


def test_its_folder_is_seen_from_that_of_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    for folder in ("inner", b"inner", Path("inner")):
        with telling(cwd=folder) as (pid, told):
            assert is_forked(pid) and told["folder"] == str(tmp_path / "inner")


def test_variables_may_be_bytes_and_need_not_be_text() -> None:
    given = {os.fsencode(name): os.fsencode(value) for name, value in UNBUFFERED.items()}
    with telling(env={**given, b"ODD": b"\xff"}) as (pid, told):
        assert is_forked(pid) and told["environment"]["ODD"] == os.fsdecode(b"\xff")


def test_the_folder_of_hubweir_among_those_where_modules_are_looked_for_changes_nothing() -> None:
    folders = [SOURCE, *filter(None, [UNBUFFERED.get("PYTHONPATH")])]
    with telling(env={**UNBUFFERED, "PYTHONPATH": os.pathsep.join(folders)}) as (pid, _):
        assert is_forked(pid)


def test_a_folder_where_only_the_process_that_asks_looks_for_modules_asks_for_a_new_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    with telling(env={**UNBUFFERED, "PYTHONPATH": str(tmp_path)}) as (pid, told):
        assert not is_forked(pid) and str(tmp_path) in told["modules are looked for in"]


def test_a_signal_ends_it_and_its_exit_code_says_so(tmp_path: Path) -> None:
    with started("serve", "--data", str(tmp_path), "--port", "0") as process:
        process.kill()
        assert process.wait(10) == -signal.SIGKILL


def test_it_knows_no_descriptor_of_the_process_that_asked(tmp_path: Path) -> None:
    os.set_inheritable(kept := os.open(tmp_path, os.O_RDONLY), True)
    with telling() as (pid, _):
        known = {os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()}
        assert is_forked(pid) and str(tmp_path) not in known
    os.close(kept)


@pytest.mark.parametrize(
    "options",
    [
        {"env": {**UNBUFFERED, "PYTHONHASHSEED": "1"}},
        {"env": {**UNBUFFERED, "PYTHONPATH": os.pathsep.join([SOURCE, "/else"])}},
        {"env": {**UNBUFFERED, "LD_BIND_NOW": "1"}},
        {"env": {**UNBUFFERED, "GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}},
        {"env": {**UNBUFFERED, "MALLOC_ARENA_MAX": "1"}},
        {"env": {**UNBUFFERED, "CRYPTOGRAPHY_OPENSSL_NO_LEGACY": "1"}},
        {"env": {**UNBUFFERED, "TZ": "Asia/Tokyo"}},
        {"env": {**UNBUFFERED, "HUBWEIR_KERNELS": "pure"}},
        {"env": BUFFERED},
        {"preexec_fn": lambda: None},
        {"pass_fds": [0]},
        {"umask": 0o77},
        {"close_fds": False},
        {"executable": sys.executable},
    ],
)
def test_what_an_interpreter_sees_when_it_starts_alone_asks_for_a_new_one(options: dict[str, Any]) -> None:
    with telling(**options) as (pid, _):
        assert not is_forked(pid)


def test_all_that_an_import_of_hubweir_takes_from_its_process_is_known() -> None:
    command = [sys.executable, "-c", LOOKS_ON_AT_IMPORTS]
    done = subprocess.run(command, env=UNBUFFERED, cwd=ROOT, capture_output=True, text=True, check=True)
    modules = {line for line in done.stdout.splitlines() if line.startswith("hubweir.")}
    variables = {*done.stdout.splitlines()} - modules
    assert modules == {"hubweir.service.scrape"}  # a forked process has its time anew
    assert "HUBWEIR_KERNELS" in variables and not [name for name in variables if not name.startswith(READ_AT_THE_START)]


def test_nothing_stands_on_the_seed_of_hashes_which_forked_processes_share() -> None:
    modules = [path for path in Path(SOURCE).rglob("*.py") if "tests" not in path.parts]
    assert modules and not [path for path in modules if re.search(r"(?<![\w.])hash\(", path.read_text())]


def leave_the_network() -> None:
    if ctypes.CDLL(None).unshare(CLONE_NEWNET) != 0:
        pytest.skip("networks of their own need root")


def become_nicer() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 1)


def run_on_one_processor() -> None:
    if len(processors := os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one processor alone")
    os.sched_setaffinity(0, {max(processors)})


@pytest.mark.parametrize("change", [leave_the_network, become_nicer, run_on_one_processor])
def test_a_thread_that_differs_asks_for_a_new_interpreter(change: Callable[[], None]) -> None:
    def start() -> None:
        change()
        with telling() as (pid, _):
            assert not is_forked(pid)

    with ThreadPoolExecutor(1) as thread:  # which alone is changed
        thread.submit(start).result()


def test_a_process_that_is_forked_from_a_test_asks_for_a_new_interpreter() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], env=UNBUFFERED, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("hubweir") and not done.stderr


def test_another_program_is_started_as_ever_and_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: pytest.fail("a server is started"), UNBUFFERED))
    said = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv)"], capture_output=True, env=UNBUFFERED)
    assert said.stdout == b"['-c']\n"
    assert subprocess.run("echo $0", shell=True, capture_output=True, env=UNBUFFERED).stdout.strip() == b"/bin/sh"


def test_broker_processes_are_forked_for_their_supervisor(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, arguments=["--brokers", "2"]) as server:
        supervisor, brokers = server.pid, broker_pids(tmp_path)
        assert supervisor is not None and is_forked(supervisor) and len(brokers) == 2
        for pid in brokers.values():
            assert is_forked(pid) and status_of(pid)["PPid"] == str(supervisor) and os.getsid(pid) == pid
        # One that is killed is seen to end, and comes back.
        os.kill(brokers[1], signal.SIGKILL)
        until(lambda: broker_pids(tmp_path).get(1) not in (None, brokers[1]), 90)
        [its_server] = children_of(supervisor) - set(broker_pids(tmp_path).values())
        # It keeps no pipe open that somebody reads to its end, and no disk in use.
        assert {os.readlink(f"/proc/{its_server}/fd/{number}") for number in range(3)} == {os.devnull}
        assert os.readlink(f"/proc/{its_server}/cwd") == os.sep
        server.kill_supervisor()
        until(lambda: not Path(f"/proc/{its_server}").exists(), 90)


def test_a_server_ends_when_nobody_can_ask_it_any_more() -> None:
    with started_server(UNBUFFERED) as (door, server):
        assert lives(server)
        door.close()
        until(lambda: not lives(server), 90)


def test_a_server_that_hangs_is_gone_at_the_end_too() -> None:
    with started_server(UNBUFFERED) as (_, server):
        os.kill(server, signal.SIGSTOP)
    assert not Path(f"/proc/{server}").exists()


def test_its_session_is_its_own_when_popen_returns() -> None:
    for _ in range(10):
        with started(program=TELLS, stdin=subprocess.PIPE, start_new_session=True) as process:
            assert os.getsid(process.pid) == process.pid and is_forked(process.pid)


def test_a_folder_that_is_not_there_is_an_error_of_popen(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"), started(program=TELLS, cwd=tmp_path / "nowhere"):
        pytest.fail("a process was started")
    assert capfd.readouterr() == ("", "")


def test_a_start_that_is_interrupted_leaves_no_process_and_no_answer_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    with started_server(UNBUFFERED) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        with telling():
            others = children_of(os.getpid())
        os.kill(server, signal.SIGSTOP)
        threading.Timer(0.2, signal.pthread_kill, [threading.get_ident(), signal.SIGUSR1]).start()
        try:
            with pytest.raises(KeyboardInterrupt), started(program=TELLS):
                pytest.fail("a process was started")
        finally:
            os.kill(server, signal.SIGCONT)
            signal.signal(signal.SIGUSR1, before)
        with telling() as (pid, told):
            assert is_forked(pid) and pid == told["process"]
        until(lambda: {pid for pid in children_of(os.getpid()) if lives(pid)} < others, 90)


def test_what_a_server_cannot_fork_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with started_server(UNBUFFERED, program=("-c", FORKS_NOTHING)) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        for _ in range(2):
            with telling() as (pid, _):
                assert not is_forked(pid)
        assert lives(server)


def test_an_order_that_is_too_long_is_started_anew() -> None:
    with telling(env={**UNBUFFERED, **{f"LONG_{number}": "x" * 100_000 for number in range(4)}}) as (pid, _):
        assert not is_forked(pid)


def test_behind_the_end_of_a_server_programs_are_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with started_server(UNBUFFERED) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        os.kill(server, signal.SIGKILL)
        until(lambda: not lives(server), 90)
        with telling() as (pid, _):
            assert not is_forked(pid)
