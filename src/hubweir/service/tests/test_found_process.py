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
from hubweir.service import found_process, runtime_folder
from hubweir.service.found_process import Left, ask_process, end_found, end_left, newest_orders, who_listens
from hubweir.service.process_door import ProcessDoor
from hubweir.service.runtime_folder import RuntimeFolder
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
        await end_left("data", env)
        await life.ended()
        assert life.exit_code == -signal.SIGKILL
        assert not folder.path.exists()
        await end_left("data", env)
        env.close()

    run_on("asyncio", scenario())


@pytest.mark.parametrize(("answers", "number"), [(True, signal.SIGTERM), (False, signal.SIGKILL)])
def test_one_that_answers_is_asked_to_end_and_one_that_does_not_is_killed(
    answers: bool, number: signal.Signals
) -> None:
    async def scenario() -> None:
        life = WatchedProcess.spawn([sys.executable, "-c", "import time; time.sleep(60)"], b"")
        await end_found(0, life, answers=answers)
        assert life.exit_code == -number

    run_on("asyncio", scenario())


def test_one_that_does_not_end_when_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_process, "END_S", 0.1)
    ready = tmp_path / "ready"
    program = (
        "import pathlib, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"pathlib.Path({str(ready)!r}).touch(); time.sleep(60)"
    )

    async def scenario() -> None:
        life = WatchedProcess.spawn([sys.executable, "-c", program], b"")
        while not ready.exists():
            await asyncio.sleep(0.005)
        await end_found(0, life, answers=True)
        assert life.exit_code == -signal.SIGKILL

    run_on("asyncio", scenario())


def test_the_newest_orders_of_tests_stand_whoever_heard_of_them() -> None:
    life: Any = None  # nobody asks about it
    left = [
        Left(index, life, None, StandingOrders(version, 1_000 * version)) for index, version in enumerate((1, 3, 2))
    ]
    assert newest_orders(left) == StandingOrders(3, 3_000)
    assert newest_orders([]) == StandingOrders()
