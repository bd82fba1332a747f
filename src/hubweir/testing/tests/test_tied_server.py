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
