"""Every client over many minutes, busy and idle, with tokens that it renews: nothing may wait without end.

All programs run side by side against one server with default settings, so the whole takes as long as one. What each
does is task.py; a test asserts the verdict of one check of one of them. A machine without a language skips its client.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.server_process import ServerProcess
from tests.conformance.foreign.program_run import ProgramRun, converse, create_hub, surroundings
from tests.conformance.foreign.test_go import PROGRAM as GO
from tests.conformance.foreign.test_java import PROGRAM as JAVA
from tests.conformance.foreign.test_javascript import PROGRAM as JAVASCRIPT
from tests.conformance.foreign.test_rhea import PROGRAM as RHEA
from tests.conformance.foreign.toolchain import NotRun, Program, prepare

ROOT = Path(__file__).resolve().parents[3]
# One address a test process: the clients know no other port than 5671 over TLS.
HOST = f"127.0.72.{os.getpid() % 250 + 2}"
# Idle links are detached between 10 and 12.5 minutes; every client renews a token of 7 minutes twice in this time.
SOAK_S, TOKEN_S = 990, 420
LIMIT_S = 200  # what a program may take beyond its time: it gives up a step that waits without end
# The same sweep, reached in seconds: a link is idle after one.
SHORT_S, SHORT_IDLE_MS = 6, 1_000
FOREIGN: dict[str, Program] = {"JavaScript": JAVASCRIPT, "Java": JAVA, "Go": GO, "rhea": RHEA}
PYTHON = {
    "Python, blocking": "tests.conformance.soak.azure_blocking",
    "Python, asyncio": "tests.conformance.soak.azure_asyncio",
    "Proton": "tests.conformance.soak.proton_client",
}
WAYS = ("key_busy", "key_idle", "token_busy", "token_idle")
SHORT = ("Python, blocking", "Python, asyncio")
# Proton and rhea put their tokens themselves, and count them in the other checks.
OFFICIAL = (*SHORT, "JavaScript", "Java", "Go")
CASES = [(client, check) for client in (*PYTHON, *FOREIGN) for check in WAYS]
CASES += [(client, "tokens_renewed") for client in OFFICIAL]


@pytest.fixture(scope="module")
def soaked() -> Mapping[str, ProgramRun]:
    """What every client's program said, once all have ended."""
    prepared = {client: _prepared(program) for client, program in FOREIGN.items()}
    clients = (*PYTHON, *FOREIGN)
    with _server() as (server, data), ThreadPoolExecutor(len(clients)) as threads:
        runs: dict[str, Future[ProgramRun]] = {}
        for number, client in enumerate(clients):
            if not prepared.get(client):
                environment = _environment(server, data, number, soak_s=SOAK_S, token_s=TOKEN_S)
                runs[client] = threads.submit(_run, client, server, environment, SOAK_S)
        ended = {client: run.result() for client, run in runs.items()}
    return {client: ended.get(client) or ProgramRun(not_run=prepared[client]) for client in clients}


@pytest.fixture(scope="module")
def soaked_shortly() -> Mapping[str, ProgramRun]:
    """What the programs of the official Python clients said of a service that detaches idle links after a second."""
    with _server("--idle-link-ms", str(SHORT_IDLE_MS)) as (server, data), ThreadPoolExecutor(2) as threads:
        runs = {}
        for number, client in enumerate(SHORT):
            environment = _environment(server, data, number, soak_s=SHORT_S, token_s=3_600)
            runs[client] = threads.submit(_run, client, server, environment, SHORT_S)
    return {client: run.result() for client, run in runs.items()}


@contextmanager
def _server(*arguments: str) -> Iterator[tuple[ServerProcess, Path]]:
    """A server, and its data folder."""
    held = HeldPorts(1, HOST)
    ports = [*held.numbers, 5671]
    with (
        tempfile.TemporaryDirectory() as data,
        ServerProcess(data, host=HOST, ports=ports, arguments=arguments) as server,
    ):
        yield server, Path(data)


def _environment(server: ServerProcess, data: Path, number: int, *, soak_s: int, token_s: int) -> dict[str, str]:
    """What a program finds in its environment: a hub of its own, and how long it lasts."""
    create_hub(server, f"hub-{number}", 4)
    own = {"HUBWEIR_HUB": f"hub-{number}", "HUBWEIR_SOAK_S": str(soak_s), "HUBWEIR_TOKEN_S": str(token_s)}
    return {**surroundings(server, data), **own}


def _prepared(program: Program) -> str:
    """Why a program cannot run here; empty when it can."""
    try:
        prepare(program, lambda line: None)
    except NotRun as error:
        return str(error)
    return ""


def _run(client: str, server: ServerProcess, environment: Mapping[str, str], soak_s: int) -> ProgramRun:
    program = FOREIGN.get(client)
    if program is not None:
        return converse(program.folder, program.soak, server, program.environ(environment), soak_s + LIMIT_S)
    command = (sys.executable, "-m", PYTHON[client])
    return converse(ROOT, command, server, {**os.environ, **environment, "PYTHONPATH": str(ROOT)}, soak_s + LIMIT_S)


@pytest.mark.slow
@pytest.mark.conformance
@pytest.mark.timeout(SOAK_S + LIMIT_S + 1_200)  # what the other languages need may have to be fetched
@pytest.mark.parametrize(("client", "check"), CASES)
def test_a_client_works_as_long_as_it_lives(soaked: Mapping[str, ProgramRun], client: str, check: str) -> None:
    soaked[client].judge(check)


@pytest.mark.conformance
@pytest.mark.timeout(SHORT_S + LIMIT_S + 60)
@pytest.mark.parametrize("check", WAYS)
@pytest.mark.parametrize("client", SHORT)
def test_a_python_client_outlives_the_detaching_of_idle_links(
    soaked_shortly: Mapping[str, ProgramRun], client: str, check: str
) -> None:
    """Their links of $cbs are idle from the first token on: a client that lost one waits without end here."""
    soaked_shortly[client].judge(check)
