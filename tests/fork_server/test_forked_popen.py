"""Programs that the server must not fork, or does not, are started anew."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.crash.several_processes import until
from tests.fork_server import forked_popen
from tests.fork_server.forked_popen import READ_AT_THE_START, ROOT, SOURCE, ForkedPopen, ForkServer, fixed_at_the_start
from tests.fork_server.plugin import started_server
from tests.fork_server.programs import BUFFERED, TELLS, UNBUFFERED, is_forked, lives, started, telling

CLONE_FS, CLONE_NEWNET = 0x200, 0x40000000
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 24, 38
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
FORKS_NOTHING = """
import socket, sys
from tests.fork_server import server
server.CLONE_NUMBERS = dict.fromkeys(server.CLONE_NUMBERS, 1 << 20)  # a call that no system has
server.main(socket.socket(fileno=int(sys.argv[1])))
"""


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


def of_the_system(call: str, *given: int) -> None:
    """A call of the C library that changes this thread alone."""
    if getattr(ctypes.CDLL(None), call)(*given) < 0:
        pytest.skip(f"{call} needs root")


def leave_the_network() -> None:
    of_the_system("unshare", CLONE_NEWNET)


def have_its_own_umask() -> None:
    of_the_system("unshare", CLONE_FS)
    os.umask(0o77)


def lose_a_capability() -> None:
    of_the_system("prctl", PR_CAPBSET_DROP, 0)


def gain_no_privileges() -> None:
    of_the_system("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def become_nicer() -> None:
    os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 1)


def run_on_one_processor() -> None:
    if len(processors := os.sched_getaffinity(0)) == 1:
        pytest.skip("there is one processor alone")
    os.sched_setaffinity(0, {max(processors)})


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (leave_the_network, {"net"}),
        (have_its_own_umask, {"Umask:"}),
        (lose_a_capability, {"CapBnd:"}),
        (gain_no_privileges, {"NoNewPrivs:"}),
        (become_nicer, {"niceness"}),
        (run_on_one_processor, {"Cpus_allowed:"}),
    ],
)
def test_a_thread_that_differs_asks_for_a_new_interpreter(change: Callable[[], None], names: set[str]) -> None:
    def start() -> None:
        before = fixed_at_the_start(UNBUFFERED)
        change()
        after = fixed_at_the_start(UNBUFFERED)
        assert {name for name in before if after[name] != before[name]} == names

    with ThreadPoolExecutor(1) as thread:  # which alone is changed
        thread.submit(start).result()


def test_a_process_that_is_forked_from_a_test_asks_for_a_new_interpreter() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], env=UNBUFFERED, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.startswith("hubweir") and not done.stderr


def test_another_program_is_started_as_ever_and_needs_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: pytest.fail("a server is started"), UNBUFFERED))
    said = subprocess.run([sys.executable, "-c", "import sys; print(sys.argv)"], capture_output=True, env=UNBUFFERED)
    assert said.stdout == b"['-c']\n"
    for command in (sys.executable, os.fsencode(sys.executable), Path(sys.executable)):
        subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    assert subprocess.run("echo $0", shell=True, capture_output=True, env=UNBUFFERED).stdout.strip() == b"/bin/sh"


@pytest.mark.parametrize(
    ("options", "error"),
    [({"cwd": "/nowhere"}, FileNotFoundError), ({"env": {**UNBUFFERED, "A=B": ""}}, ValueError)],
)
def test_what_no_process_can_be_is_an_error_of_popen_and_of_nothing_else(
    options: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    with (tmp_path / "said").open("w") as said, pytest.raises(error), started(program=TELLS, stderr=said, **options):
        pytest.fail("a process was started")
    assert (tmp_path / "said").read_text() == ""


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


def test_what_a_server_does_not_answer_in_time_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_popen, "ANSWER_S", 0.1)
    with started_server(UNBUFFERED) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        os.kill(server, signal.SIGSTOP)
        with telling() as (pid, _):
            assert not is_forked(pid)


def test_behind_the_end_of_a_server_programs_are_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with started_server(UNBUFFERED) as (door, server):
        monkeypatch.setattr(ForkedPopen, "server", ForkServer(lambda: door, UNBUFFERED))
        os.kill(server, signal.SIGKILL)
        until(lambda: not lives(server), 90)
        with telling() as (pid, _):
            assert not is_forked(pid)
