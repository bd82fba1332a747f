"""process_end.py: how long a process may take to end. It is a real one; its clients' time is on a clock of the test."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from hubweir.drivers.watched_process import WatchedProcess
from hubweir.service import process_end
from hubweir.service.bounded_stop import EXIT_LEFT
from hubweir.service.process_end import ProcessEnd
from hubweir.service.tests.ending_programs import ENDS_WITH, STUBBORN
from hubweir.testing.event_loops import run_on
from hubweir.testing.simulated_env import SimulatedEnv

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are watched on Linux alone")
CLIENTS_S = 50.0  # nobody waits for so long here
KILLED_S = 40.0


class Bench:
    """A program, and the end of it. It hears of SIGTERM as soon as `end` is called."""

    def __init__(self, folder: Path, program: str, *, seconds: float = 0.0, code: int = 0) -> None:
        self.env = SimulatedEnv(1)
        self.end = ProcessEnd(3, self.env, CLIENTS_S)
        self._ready = folder / "ready"
        self._program = program.format(ready=str(self._ready), seconds=seconds, code=code)

    def ended(self) -> tuple[bool, int | None]:
        """What `of` says, and the exit code; TimeoutError where its clients' time was waited for."""

        async def run() -> tuple[bool, int | None]:
            life = WatchedProcess.spawn([sys.executable, "-c", self._program], b"")
            try:
                while not self._ready.exists():
                    await asyncio.sleep(0.002)
                async with asyncio.timeout(KILLED_S):
                    return await self.end.of(life), life.exit_code
            finally:
                await life.kill()

        return run_on("asyncio", run())


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_end, "STOP_S", 0.3)


def killed() -> tuple[bool, int]:
    return True, -signal.SIGKILL


@pytest.mark.parametrize("is_last", [False, True])
def test_clients_have_their_time_before_what_is_pending_has_its_own(tmp_path: Path, is_last: bool) -> None:
    bench = Bench(tmp_path, ENDS_WITH, seconds=1.5, code=5)
    if is_last:
        bench.end.begin_last()
    assert bench.ended() == (False, 5)


def test_clients_time_counts_from_the_moment_when_the_service_began_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, STUBBORN)
    bench.end.begin_last()
    bench.env.run_for(round(CLIENTS_S * 1_000))
    bench.end.begin_last()
    assert bench.ended() == killed()


def test_what_is_pending_has_its_time_though_that_of_clients_is_long_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_end, "STOP_S", 20.0)
    bench = Bench(tmp_path, ENDS_WITH, seconds=0.1, code=5)
    bench.end.begin_last()
    bench.env.run_for(2 * round(CLIENTS_S * 1_000))
    assert bench.ended() == (False, 5)


def test_clients_that_are_gone_need_no_more_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path, STUBBORN)
    bench.env.run_for(1_000)
    bench.end.begin_last()
    bench.end.clients_are_gone()
    bench.end.begin_last()
    assert bench.ended() == killed()


def test_a_process_that_ends_by_itself_says_by_its_exit_code_whether_it_left_a_disk(tmp_path: Path) -> None:
    assert Bench(tmp_path, ENDS_WITH, code=EXIT_LEFT).ended() == (True, EXIT_LEFT)
