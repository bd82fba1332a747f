"""stop_signal.py: what a signal does to a start, and to what runs. The signals are real ones."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hubweir.errors import HubweirError
from hubweir.service import bounded_stop
from hubweir.service.bounded_stop import StopLimit, StoppingProcess
from hubweir.service.stop_signal import StopSignal
from hubweir.testing.event_loops import run_on

NUMBERS = (signal.SIGTERM, signal.SIGINT)


class Part(StoppingProcess):
    """What starts, and how it stops, note what happens."""

    def __init__(self) -> None:
        super().__init__(clients_s=60.0)
        self.seen: list[str] = []
        self.goes_on = asyncio.Event()
        self.has_stopped = asyncio.Event()

    @asynccontextmanager
    async def whole(self, limit: StopLimit) -> AsyncIterator[None]:
        """As whole_start.py; the test says when it has stopped."""
        try:
            yield
        except BaseException as error:
            limit.begin(self)
            self.seen.append(type(error).__name__)
            await self.has_stopped.wait()
            self.seen.append("stopped")
            raise

    async def start(self, limit: StopLimit, problem: Exception | None = None) -> str:
        async with self.whole(limit):
            await self.goes_on.wait()
            if problem is not None:
                raise problem
        return "started"


async def turns() -> None:
    for _ in range(50):
        await asyncio.sleep(0.002)


async def send(number: signal.Signals) -> None:
    """It goes over a thread while something starts."""
    os.kill(os.getpid(), number)
    await turns()


@pytest.mark.parametrize("number", NUMBERS)
def test_a_start_is_given_up_and_what_it_had_started_stops_though_another_signal_comes(number: signal.Signals) -> None:
    async def scenario() -> None:
        told: list[str] = []
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit, lambda: told.append("told")), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit)))
            await asyncio.sleep(0)
            assert not limit.has_begun
            await send(number)
            assert (limit.has_begun, part.seen, told) == (True, ["CancelledError"], ["told"])
            await send(number)
            part.has_stopped.set()
            assert await starting is None
            assert (part.seen, told) == (["CancelledError", "stopped"], ["told"])
            assert starting.cancelling() == 0
            await stop.wait()

    run_on("asyncio", scenario())


def test_what_has_started_is_told_to_stop_and_waits_for_nothing_else() -> None:
    async def scenario() -> None:
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            part.goes_on.set()
            assert await stop.started(part.start(limit)) == "started"
            waits = asyncio.ensure_future(stop.wait())
            await turns()
            assert not waits.done()
            await send(signal.SIGTERM)
            await waits
            assert part.seen == [] and not limit.has_begun

    run_on("asyncio", scenario())


def test_a_signal_while_a_start_that_failed_stops_hides_no_failure() -> None:
    async def scenario() -> None:
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit, HubweirError("no room"))))
            part.goes_on.set()
            await turns()
            assert part.seen == ["HubweirError"]
            await send(signal.SIGTERM)
            part.has_stopped.set()
            with pytest.raises(HubweirError, match="no room"):
                await starting
            assert part.seen == ["HubweirError", "stopped"]

    run_on("asyncio", scenario())


def test_who_cancels_a_start_without_a_signal_is_heard() -> None:
    async def scenario() -> None:
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit)))
            await asyncio.sleep(0)
            part.has_stopped.set()
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting

    run_on("asyncio", scenario())


@pytest.mark.parametrize("problem", [None, HubweirError("no room")], ids=["started", "failed"])
def test_behind_a_start_the_loop_hears_of_signals_itself(problem: Exception | None) -> None:
    def kept_back() -> set[signal.Signals]:
        return {*signal.pthread_sigmask(signal.SIG_BLOCK, ())}  # type: ignore[arg-type]  # all of ours have a name

    def hears() -> bool:
        return "hubweir-signals" in [each.name for each in threading.enumerate()]

    async def scenario() -> None:
        before = kept_back()
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit, problem)))
            await asyncio.sleep(0)
            assert kept_back() >= {*before, *NUMBERS} and hears()
            part.goes_on.set()
            part.has_stopped.set()
            await asyncio.wait({starting})
            assert str(starting.exception() or "") == str(problem or "")
        assert kept_back() == before and not hears()

    run_on("asyncio", scenario())


def test_a_signal_is_heard_of_in_a_start_though_the_loop_is_held_up_when_it_comes() -> None:
    async def scenario() -> None:
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit)))
            await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.3)  # as a disk does that answers in the end
            part.has_stopped.set()
            assert await starting is None

    run_on("asyncio", scenario())


def test_a_stop_that_the_loop_has_heard_of_has_all_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_stop, "DISK_WAIT_S", 0.2)

    async def scenario() -> None:
        codes: list[int] = []
        with StopLimit(codes.append) as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit)))
            await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.6)
            assert limit.has_begun and codes == []
            part.has_stopped.set()
            assert await starting is None

    run_on("asyncio", scenario())


def test_a_program_that_is_started_in_a_start_hears_signals_when_it_wants_to() -> None:
    """A broker process is started so; it has its own handler by the time that it hears them."""
    program = (
        "import signal, time; from hubweir.service.stop_signal import hear_signals\n"
        "print('begun', flush=True); hear_signals(); time.sleep(60)"
    )

    async def scenario() -> None:
        with StopLimit() as limit:
            stop, part = StopSignal(NUMBERS, limit), Part()
            starting = asyncio.ensure_future(stop.started(part.start(limit)))
            await asyncio.sleep(0)
            with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
                assert child.stdout is not None and child.stdout.readline() == b"begun\n"
                child.terminate()
                assert child.wait(30) == -signal.SIGTERM
            part.goes_on.set()
            await starting

    run_on("asyncio", scenario())


def test_a_signal_that_somebody_else_sends_to_end_the_thread_does_not_end_it() -> None:
    program = (
        "import asyncio, os, signal\n"
        "from hubweir.service.bounded_stop import StopLimit\n"
        "from hubweir.service.stop_signal import StopSignal\n"
        "async def start():\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    await asyncio.sleep(0.2)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    await asyncio.Event().wait()\n"
        "async def life():\n"
        "    with StopLimit() as limit:\n"
        "        assert await StopSignal((signal.SIGTERM,), limit).started(start()) is None\n"
        "asyncio.run(life())"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=30).returncode == 0
