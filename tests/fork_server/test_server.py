"""A program that the server forks is as one that is started anew; a server ends when nobody can ask it."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hubweir.testing.broker_processes import broker_pids, children_of
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import until
from tests.fork_server import forked_popen
from tests.fork_server.forked_popen import ROOT, ForkedPopen, ForkServer
from tests.fork_server.plugin import SERVER, started_server
from tests.fork_server.programs import (
    BUFFERED,
    HUBWEIR,
    PLANTED,
    TELLS,
    UNBUFFERED,
    descriptors_of,
    is_forked,
    lives,
    started,
    status_of,
    telling,
)

FIRST_AND_LAST = (0, 15)  # of the limits of a process: its processor time, in seconds and, for a realtime one, in us
OBJECTS = "objects that a collection looks at"


@pytest.fixture
def unusual_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process is in a state in which tests and supervisors bring themselves before they start programs."""
    monkeypatch.chdir(tmp_path)
    limits = {number: resource.getrlimit(number) for number in FIRST_AND_LAST}
    for number, (_, most) in limits.items():
        resource.setrlimit(number, (1_000_000 if most == resource.RLIM_INFINITY else most, most))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    action = signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGQUIT, action)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    for number, limit in limits.items():
        resource.setrlimit(number, limit)


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
def told_module(monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """The program that tells its state, as a module, which is forked as those of hubweir are."""
    monkeypatch.setattr(forked_popen, "PROGRAMS", ["tests.fork_server.told_state"])
    return ("-m", "tests.fork_server.told_state")


def differences(monkeypatch: pytest.MonkeyPatch, program: tuple[str, ...], **options: Any) -> list[str]:
    """Names of the state that a program finds otherwise when it is forked than when it is started anew.

    A local Spark session names the folder of hubweir in PYTHONPATH, which a server disregards (forked_popen.py). One of
    another test of this worker may have left it there.
    """
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with telling(program, **options) as (pid, forked):
        assert is_forked(pid)
    monkeypatch.setattr(subprocess, "Popen", ForkedPopen.__base__)
    with telling(program, **options) as (pid, new):
        assert not is_forked(pid)
    assert forked[OBJECTS] < new[OBJECTS]  # those of the server are passed over
    return [name for name in new if new[name] != forked[name]]


def test_a_forked_program_finds_itself_in_the_state_of_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(monkeypatch, TELLS) == ["process", OBJECTS]


def test_a_forked_module_finds_itself_in_the_state_of_a_new_one(
    told_module: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differences(monkeypatch, told_module, cwd=ROOT) == ["process", OBJECTS]


def test_a_forked_text_finds_itself_in_the_state_of_a_new_one(
    own_server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_server, "texts", True)
    assert differences(monkeypatch, ("-c", Path(TELLS[0]).read_text())) == ["process", OBJECTS]


def test_a_forked_text_is_compiled_as_it_stands_and_finds_the_modules_that_its_server_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "import sys\nannotated: print('fractions' in sys.modules) = 1\nsys.exit(7)"
    with started_server(UNBUFFERED, (*SERVER, "fractions")) as (door, _):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED, texts=True))
        with started(program=("-c", text)) as process:
            assert process.communicate() == ("True\n", "") and process.returncode == 7


def test_a_program_forked_from_an_unusual_state_finds_itself_in_that_of_a_new_one(
    unusual_state: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differences(monkeypatch, TELLS) == ["process", OBJECTS]


def test_a_forked_module_looks_for_others_in_its_folder_first(told_module: tuple[str, ...], tmp_path: Path) -> None:
    with telling(told_module, cwd=tmp_path) as (pid, told):
        assert is_forked(pid) and told["modules are looked for in"][0] == str(tmp_path)


def test_a_forked_program_finds_modules_as_a_new_one_imports_them() -> None:
    with telling():  # the server has imported everything
        before = time.time()
    program = (str(Path(__file__).with_name("told_modules.py")),)
    with started(program=program) as process:
        told = json.loads(process.communicate(timeout=90)[0])
    assert told["programs are imported once"]
    assert told["seconds since the process began"] <= time.time() - before


def test_a_program_that_the_server_has_imported_begins_without_a_warning() -> None:
    with started(program=("-m", "hubweir.service.broker_process"), stdin=subprocess.PIPE) as process:
        assert is_forked(process.pid)
        errors = process.communicate(timeout=90)[1]
    assert "is started by" in errors and "Warning" not in errors


def test_it_has_its_own_folder_environment_streams_and_session(tmp_path: Path) -> None:
    environment = {**UNBUFFERED, "HUBWEIR_LOG_FORMAT": "json", "HUBWEIR_DATA": "data", "HUBWEIR_PORT": "0"}
    with started("serve", cwd=tmp_path, env=environment, start_new_session=True) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert is_forked(process.pid) and status_of(process.pid)["PPid"] == str(os.getpid())
        assert os.getsid(process.pid) == process.pid != os.getsid(0)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate()[1]
    assert process.returncode == 0 and errors.startswith("{") and (tmp_path / "data").is_dir()


def test_its_session_is_its_own_when_popen_returns() -> None:
    for _ in range(10):
        with started(program=TELLS, stdin=subprocess.PIPE, start_new_session=True) as process:
            assert os.getsid(process.pid) == process.pid and is_forked(process.pid)


def test_its_folder_is_seen_from_that_of_the_process_that_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    for folder in ("inner", b"inner", Path("inner")):
        with telling(cwd=folder) as (pid, told):
            assert is_forked(pid) and told["folder"] == str(tmp_path / "inner")


def test_it_has_the_given_variables_alone_which_may_be_bytes() -> None:
    given = {os.fsencode(name): os.fsencode(value) for name, value in UNBUFFERED.items() if name != "PATH"}
    with telling(env={**given, b"ODD": b"\xff"}) as (pid, told):
        assert is_forked(pid) and told["environment"]["ODD"] == os.fsdecode(b"\xff")
        assert "PATH" not in told["environment"]


def test_it_knows_no_descriptor_of_the_process_that_asked(tmp_path: Path) -> None:
    os.set_inheritable(kept := os.open(tmp_path, os.O_RDONLY), True)
    with telling() as (pid, _):
        assert is_forked(pid) and str(tmp_path) not in descriptors_of(pid)
    os.close(kept)


def test_programs_that_are_asked_for_at_once_have_one_server_and_a_process_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doors = []

    def connect() -> socket.socket:
        doors.append(door)
        time.sleep(0.2)  # in which all others ask
        return door

    def start(_: int) -> int:
        with telling() as (pid, told):
            assert is_forked(pid) and pid == told["process"]
            together.wait(90)
        return pid

    together = threading.Barrier(8)
    with started_server(UNBUFFERED) as (door, _), ThreadPoolExecutor(8) as threads:
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(connect, UNBUFFERED))
        assert len({*threads.map(start, range(8))}) == 8 and len(doors) == 1


def test_one_that_is_forgotten_while_it_runs_is_told() -> None:
    process = subprocess.Popen(
        [sys.executable, *TELLS], env=UNBUFFERED, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    with pytest.warns(ResourceWarning, match=f"subprocess {process.pid} is still running"):
        del process


def test_a_signal_ends_it_and_its_exit_code_says_so(tmp_path: Path) -> None:
    with started("serve", "--data", str(tmp_path), "--port", "0") as process:
        process.kill()
        assert process.wait(10) == -signal.SIGKILL


def test_broker_processes_are_forked_for_their_supervisor(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, arguments=["--brokers", "2"], is_tied=True) as server:
        supervisor, brokers = server.pid, broker_pids(tmp_path)
        assert supervisor is not None and is_forked(supervisor) and len(brokers) == 2
        for pid in brokers.values():
            assert is_forked(pid) and status_of(pid)["PPid"] == str(supervisor) and os.getsid(pid) == pid
        # One that is killed is seen to end, and comes back.
        os.kill(brokers[1], signal.SIGKILL)
        until(lambda: broker_pids(tmp_path).get(1) not in (None, brokers[1]), 90)
        [its_server] = children_of(supervisor) - set(broker_pids(tmp_path).values())
        # It keeps no pipe open that somebody reads to its end, and no disk in use, and is told when its door is closed.
        *streams, door = descriptors_of(its_server)
        assert streams == [os.devnull] * 3
        assert door not in descriptors_of(supervisor) and os.readlink(f"/proc/{its_server}/cwd") == os.sep
        server.kill_supervisor()
        until(lambda: not Path(f"/proc/{its_server}").exists(), 90)


def test_a_server_ends_when_nobody_can_ask_it_any_more() -> None:
    with started_server(UNBUFFERED) as (door, server):
        assert lives(server)
        door.close()
        until(lambda: not lives(server), 90)


def test_a_server_goes_on_where_an_interrupt_from_the_keyboard_is_for_the_process_that_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with started_server(UNBUFFERED) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        with telling():
            os.kill(server, signal.SIGINT)
        with telling() as (pid, _):
            assert is_forked(pid)


def test_a_start_that_is_interrupted_leaves_no_process_and_no_answer_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def connect() -> socket.socket:
        threading.Timer(0.2, signal.pthread_kill, [threading.get_ident(), signal.SIGUSR1]).start()
        return door

    before = signal.signal(signal.SIGUSR1, interrupt)
    with started_server(UNBUFFERED) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        with telling():
            others = children_of(os.getpid())
        os.kill(server, signal.SIGSTOP)
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(connect, UNBUFFERED))
        try:
            with pytest.raises(KeyboardInterrupt), started("serve", "--data", str(tmp_path), "--port", "0"):
                pytest.fail("a process was started")
        finally:
            os.kill(server, signal.SIGCONT)
            signal.signal(signal.SIGUSR1, before)
        with telling() as (pid, told):
            assert is_forked(pid) and pid == told["process"]
        until(lambda: {pid for pid in children_of(os.getpid()) if lives(pid)} < others, 90)
