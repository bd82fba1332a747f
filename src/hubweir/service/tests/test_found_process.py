"""Processes that an earlier supervisor left: asked who they are, and ended for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from hubweir.broker.commands.broker_process import ProcessState
from hubweir.broker.commands.testcontrol import StandingOrders
from hubweir.broker.shared_broker import SharedBroker
from hubweir.drivers.system_env import SystemEnv
from hubweir.drivers.watched_process import WatchedProcess
from hubweir.gateway.process_orders import ProcessOrders
from hubweir.service import found_process, process_end, runtime_folder
from hubweir.service.found_process import (
    Left,
    ask_process,
    end_found,
    end_left,
    find_left,
    newest_orders,
    who_listens,
)
from hubweir.service.process_door import ProcessDoor
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.service.service import Service
from hubweir.service.supervisor import Supervisor
from hubweir.service.tests.started_service import settings
from hubweir.testing.event_loops import run_on
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.settable_clock import SettableClock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are watched on Linux alone")
STATE = ProcessState(7, 1, "digest", ("127.0.0.1:1",), 0, is_serving=True, follows=True, away=())


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets: a path of one has few characters, and tmp_path in a worker takes most of them."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


async def no_bytes() -> bytes:
    return b""


async def nothing() -> None:
    """Nobody asks for it here."""


def test_one_that_lives_says_who_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        env = SystemEnv(MemoryFiles())
        door = ProcessDoor(
            lambda: STATE,
            {},
            ProcessOrders(env, SettableClock()),
            hear=lambda standing: None,
            take_clients=nothing,
            let_clients_go=nothing,
            measure=no_bytes,
        )
        shared = SharedBroker(door)
        shared.serve(tmp_path / "process-1.sock")
        assert await ask_process(tmp_path / "process-1.sock", env) == STATE
        await shared.close()
        env.close()

    run_on("asyncio", scenario())


def test_one_that_does_not_answer_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_process, "ANSWER_S", 0.1)

    async def scenario() -> None:
        env = SystemEnv(MemoryFiles())
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(tmp_path / "process-1.sock"))
            silent.listen()
            assert await ask_process(tmp_path / "process-1.sock", env) is None
        env.close()

    run_on("asyncio", scenario())


def test_a_process_that_has_the_number_of_one_that_ended_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        path = tmp_path / "process-1.sock"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            life = who_listens(path)
            assert life is not None and life.pid == os.getpid()
            life.forget()
        assert who_listens(path) is None
        for second in (None, os.getpid() + 1):  # it ended, or the next one listens
            numbers = iter([os.getpid(), second])
            with monkeypatch.context() as patch:
                patch.setattr(found_process, "listener_pid", lambda path, numbers=numbers: next(numbers))
                assert who_listens(path) is None
            assert list(numbers) == []

    run_on("asyncio", scenario())


def test_a_start_without_a_supervisor_ends_whoever_is_left_and_removes_the_paths(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_folder, "_FIXED_PLACE", short_path)
    folder = RuntimeFolder.of("data")
    for path in (folder.process(0), folder.broker(0), folder.keeper):
        path.touch()
    program = (
        "import socket, sys, time; listener = socket.socket(socket.AF_UNIX); "
        f"listener.bind({str(folder.process(1))!r}); listener.listen(); time.sleep(60)"
    )
    monkeypatch.setattr(found_process, "ANSWER_S", 0.1)

    async def scenario() -> None:
        env = SystemEnv(MemoryFiles())
        life = WatchedProcess.spawn([sys.executable, "-c", program], b"")
        while who_listens(folder.process(1)) is None:
            await asyncio.sleep(0.005)
        await end_left("data", env, clients_s=0)
        await life.ended()
        assert life.exit_code == -signal.SIGKILL
        assert not folder.path.exists()
        await end_left("data", env, clients_s=0)
        env.close()

    run_on("asyncio", scenario())


PROGRAM = "import time; time.sleep(60)"


def test_all_that_are_left_are_asked_at_the_same_time(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_folder, "_FIXED_PLACE", short_path)
    folder = RuntimeFolder.of("data")

    async def scenario() -> None:
        all_asked = asyncio.Barrier(2)

        async def ask(path: Path, env: SystemEnv) -> None:
            await all_asked.wait()

        monkeypatch.setattr(found_process, "ask_process", ask)
        env = SystemEnv(MemoryFiles())
        with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
            for index, listener in enumerate((first, second)):
                listener.bind(str(folder.process(index)))
                listener.listen()
            async with asyncio.timeout(60):
                left = await find_left(folder, env)
        assert [(each.index, each.state) for each in left] == [(0, None), (1, None)]
        for each in left:
            each.life.forget()
        env.close()

    run_on("asyncio", scenario())


@pytest.mark.parametrize(("state", "number"), [(STATE, signal.SIGTERM), (None, signal.SIGKILL)])
def test_one_that_answers_is_asked_to_end_and_one_that_does_not_is_killed(
    state: ProcessState | None, number: signal.Signals
) -> None:
    async def scenario() -> None:
        life = WatchedProcess.spawn([sys.executable, "-c", PROGRAM], b"")
        env = SystemEnv(MemoryFiles())
        await end_found([Left(0, life, state, StandingOrders())], env, clients_s=0)
        assert life.exit_code == -number
        env.close()

    run_on("asyncio", scenario())


# Its main thread tells that the signal came, and goes on.
IGNORES = (
    "import pathlib, signal, sys, time; "
    "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path(sys.argv[1]).write_text('asked')); "
    "pathlib.Path(sys.argv[1]).touch(); end = time.monotonic() + 60\n"
    "while time.monotonic() < end: time.sleep(1)"
)


def test_those_that_do_not_end_when_asked_are_asked_together_and_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The second one is asked while the first has its time: the first is killed behind that."""
    paths = [tmp_path / "first", tmp_path / "second"]

    async def scenario() -> None:
        env = SystemEnv(MemoryFiles())
        lives = [WatchedProcess.spawn([sys.executable, "-c", IGNORES, str(path)], b"") for path in paths]
        while not all(path.exists() for path in paths):
            await asyncio.sleep(0.005)
        left = [Left(index, life, STATE, StandingOrders()) for index, life in enumerate(lives)]
        ending = asyncio.create_task(end_found(left, env, clients_s=60))
        while not all(path.read_text() == "asked" for path in paths):
            await asyncio.sleep(0.005)
        assert not any(life.has_ended for life in lives)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)
        monkeypatch.setattr(process_end, "STOP_S", 0.0)
        await end_found(left, env, clients_s=1)
        assert [life.exit_code for life in lives] == [-signal.SIGKILL] * 2
        assert caplog.text.count("did not end within 1 s: it is killed") == 2, "they had their clients' time"
        env.close()

    run_on("asyncio", scenario())


def test_a_supervisor_gives_clients_of_what_it_ends_the_time_of_its_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    async def end(left: Any, env: Any, *, clients_s: float) -> None:
        given.append(clients_s)

    monkeypatch.setattr("hubweir.service.supervisor.end_found", end)

    async def scenario() -> None:
        supervisor = Supervisor(settings(tmp_path, brokers=2, stop_grace_ms=7_000))
        await supervisor._keep_or_end([])
        await supervisor.stop()

    run_on("asyncio", scenario())
    assert given == [7.0]


def test_a_service_without_a_supervisor_gives_them_that_time_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []

    async def end(data: str, env: Any, *, clients_s: float) -> None:
        given.append(clients_s)

    monkeypatch.setattr("hubweir.service.service.end_left", end)

    async def scenario() -> None:
        service = await Service.start(settings(tmp_path, stop_grace_ms=7_000))
        await service.stop()

    run_on("asyncio", scenario())
    assert given == [7.0]


def test_the_newest_orders_of_tests_stand_whoever_heard_of_them() -> None:
    life: Any = None  # nobody asks about it
    left = [
        Left(index, life, None, StandingOrders(version, 1_000 * version)) for index, version in enumerate((1, 3, 2))
    ]
    assert newest_orders(left) == StandingOrders(3, 3_000)
    assert newest_orders([]) == StandingOrders()
