"""tied_server.py: a server and its folder go when the process that started them is killed, and not before."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hubweir.client.administration import Administration
from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import START_S, STOP_S

# It tells where its server is, and then does nothing.
STARTER = """
import sys, time
from hubweir.testing.hubweir_server import HubweirServer
server = HubweirServer(arguments=sys.argv[1:])
server.start()
print(server._folder, server.get_connection_string(), sep="\\n", flush=True)
time.sleep(1_000)
"""

# A server whose service is what a test says. It prints a line when the starter may go.
STOOD_IN = """
import runpy, signal, sys, threading, time
from hubweir.testing import tied_server
def service(*_, **__):
    {service}
runpy.run_module = service
tied_server.main()
"""
# It begins as ours does, and whatever is raised in it is caught.
CATCHES_ALL = """
    while True:
        try:
            print("begun", flush=True)
            time.sleep(60)
        except BaseException:
            pass
"""
# It has ended as ours does, with its loop and the handler of that, before the starter does.
HAS_ENDED = """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print("ended", flush=True)
    while threading.active_count() > 1:
        time.sleep(0.01)
"""


def becomes(holds: Callable[[], bool], seconds: float = STOP_S) -> bool:
    """Whether it holds before the time is over, which is long: the machine may be busy."""
    limit = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def answers(administration: Administration) -> bool:
    try:
        administration.namespace()
    except ServiceError:
        return False
    return True


@pytest.mark.crash
@pytest.mark.parametrize("arguments", [(), ("--brokers", "2")], ids=["one process", "broker processes"])
def test_a_server_goes_with_its_folder_when_its_starter_is_killed(arguments: tuple[str, ...]) -> None:
    starter = subprocess.Popen([sys.executable, "-c", STARTER, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert starter.stdout is not None
        with starter.stdout as output:
            folder, text = Path(output.readline().strip()), output.readline().strip()
            administration = Administration(ConnectionString.parse(text), timeout_s=START_S)
            assert answers(administration) and (folder / "data").is_dir(), "control: it serves while its starter lives"
            starter.send_signal(signal.SIGKILL)
            starter.wait(STOP_S)
    finally:
        starter.kill()
        starter.wait(STOP_S)
    assert becomes(lambda: not folder.exists()), "its folder is gone, which it removes behind its end"
    assert becomes(lambda: not answers(administration))


@pytest.mark.crash
def test_a_starter_that_is_gone_before_the_service_began_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "of the server"
    folder.mkdir()
    arguments = [str(folder), "serve", "--data", str(folder / "data"), "--port", "0"]
    program = [sys.executable, "-m", "hubweir.testing.tied_server", *arguments]
    subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, timeout=START_S + STOP_S)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("service", "code"), [(CATCHES_ALL, 128 + signal.SIGTERM), (HAS_ENDED, 0)], ids=["catches all", "has ended"]
)
def test_a_server_ends_with_its_folder_whatever_runs_in_it_when_its_starter_ends(
    tmp_path: Path, service: str, code: int
) -> None:
    folder = tmp_path / "of the server"
    (folder / "data").mkdir(parents=True)
    program = [sys.executable, "-c", STOOD_IN.format(service=service.strip()), str(folder)]
    server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdin is not None and server.stdout is not None
        with server.stdout as output:
            assert output.readline() and folder.exists() and server.poll() is None
            server.stdin.close()
            assert server.wait(STOP_S) == code and not folder.exists()
    finally:
        server.kill()
        server.wait(STOP_S)


def test_a_server_that_is_told_to_end_before_its_service_began_leaves_the_folder_to_its_starter(tmp_path: Path) -> None:
    program = [sys.executable, "-c", STOOD_IN.format(service=CATCHES_ALL.strip()), str(tmp_path)]
    server = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert server.stdin is not None and server.stdout is not None
        with server.stdin, server.stdout as output:
            assert output.readline()
            server.terminate()
            assert server.wait(STOP_S) == 128 + signal.SIGTERM and tmp_path.exists()
    finally:
        server.kill()
        server.wait(STOP_S)
