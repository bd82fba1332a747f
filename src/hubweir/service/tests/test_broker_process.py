"""A broker process serves on without its supervisor only where the next one can find it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hubweir.broker.commands.testcontrol import StandingOrders
from hubweir.config.settings import Settings
from hubweir.drivers.system_env import SystemEnv
from hubweir.service.bounded_stop import DISK_WAIT_S
from hubweir.service.broker_process import BrokerProcess
from hubweir.service.found_process import ask_process
from hubweir.service.process_start import ProcessStart
from hubweir.service.runtime_folder import RuntimeFolder
from hubweir.service.supervisor import PROGRAM
from hubweir.testing.event_loops import run_on
from hubweir.testing.memory_files import MemoryFiles

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="several processes are served on Linux alone")
START_S = 120.0  # for a process on a machine that does much else


@pytest.fixture
def start(tmp_path: Path) -> ProcessStart:
    """Of a process that this one starts."""
    return ProcessStart(
        settings=Settings(data=str(tmp_path / "data"), brokers=2, log_level="error"),
        namespaces=(),
        index=1,
        process_id=4711,
        supervisor=os.getpid(),
        stores=2,
        addresses=(),
        named=(),
        orders=StandingOrders(),
    )


def test_one_whose_supervisor_died_before_it_could_be_found_ends(start: ProcessStart) -> None:
    document = replace(start, supervisor=os.getppid()).encode()  # another process than the one that starts it
    ended = subprocess.run([*PROGRAM, "1"], input=document, capture_output=True, timeout=START_S)
    assert ended.returncode == 1
    assert b"its supervisor is gone" in ended.stderr
    folder = RuntimeFolder.of(start.settings.data)
    assert list(folder.path.iterdir()) == []
    folder.leave()


def test_one_that_can_be_found_serves_on(start: ProcessStart) -> None:
    """The same process, with the same document but for the supervisor."""

    async def scenario() -> None:
        env, folder = SystemEnv(MemoryFiles()), RuntimeFolder.of(start.settings.data)
        with subprocess.Popen([*PROGRAM, "1"], stdin=subprocess.PIPE) as process:
            try:
                assert process.stdin is not None
                process.stdin.write(start.encode())
                process.stdin.close()
                async with asyncio.timeout(START_S):
                    while (state := await ask_process(folder.process(1), env)) is None:
                        assert process.poll() is None
                        await asyncio.sleep(0.05)
                assert (state.process_id, state.index) == (4711, 1)
            finally:
                process.terminate()
        folder.leave()
        env.close()

    run_on("asyncio", scenario(), seconds=2 * START_S)


def test_clients_have_their_time_when_it_stops_until_they_were_let_go(
    start: ProcessStart, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops all processes at once may ask it to end while they are being let go."""

    async def scenario() -> None:
        gone, process = asyncio.Event(), BrokerProcess(start)

        async def wait(process: BrokerProcess) -> None:
            await gone.wait()

        monkeypatch.setattr(BrokerProcess, "_end_clients", wait)
        with_clients_s = start.settings.stop_grace_ms / 1_000 + DISK_WAIT_S
        assert process.stop_limit_s == with_clients_s > DISK_WAIT_S
        letting_go = asyncio.ensure_future(process._let_clients_go())
        await asyncio.sleep(0)
        assert process.stop_limit_s == with_clients_s
        gone.set()
        await letting_go
        assert process.stop_limit_s == DISK_WAIT_S
        await process.stop()

    run_on("asyncio", scenario())
