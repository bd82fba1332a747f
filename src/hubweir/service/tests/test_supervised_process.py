"""One broker process as its supervisor keeps it. The process is a real one that does nothing; its sockets are not.

Long because each thing that may become of a process is a small story of its own.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from hubweir.broker.commands.broker_process import (
    AskProcess,
    BrokerFault,
    LetClientsGo,
    MarkStore,
    ProcessState,
    ProcessTold,
    TakeClients,
)
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.commands.testcontrol import KeepOrders, OrdersKept, StandingOrders
from hubweir.drivers.system_env import SystemEnv
from hubweir.drivers.watched_process import WatchedProcess
from hubweir.errors import STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.service import heartbeat, process_end, supervised_process
from hubweir.service.bounded_stop import EXIT_LEFT
from hubweir.service.supervised_process import SupervisedProcess
from hubweir.service.tests.ending_programs import ENDS_WITH, STUBBORN, WAITS
from hubweir.testing.event_loops import run_on
from hubweir.testing.memory_files import MemoryFiles

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are watched on Linux alone")


class Way:
    """Stands for a RemoteBroker."""

    def __init__(self) -> None:
        self.is_up = False
        self.asked: list[Command] = []
        self.refuses = self.answers_not = False
        self.holds = False  # who asks for clients to be taken has no answer, until the way breaks
        self.held: list[Callable[[Answer], None]] = []
        self.state: ProcessState | None = None
        self.keeping: Callable[[Answer], None] = lambda said: None
        self._listeners: list[Callable[[Way], None]] = []

    def on_change(self, listener: Callable[[Way], None]) -> None:
        self._listeners.append(listener)

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append(command)
        if self.answers_not:
            return
        if isinstance(command, AskProcess) and self.state is not None:
            on_answer(self.state)
        elif isinstance(command, KeepOrders):
            self.keeping = on_answer
        elif isinstance(command, TakeClients) and self.holds:
            self.held.append(on_answer)
        else:
            on_answer(Refusal(STORE_OFFLINE, "not now") if self.refuses else Done())

    def set(self, is_up: bool) -> None:
        self.is_up = is_up
        while self.held and not is_up:
            self.held.pop()(Refusal(STORE_OFFLINE, "its stream ended", known=False))
        for listener in self._listeners:
            listener(self)


class World:
    def __init__(self, program: str = WAITS, *, clients_s: float = 0.0) -> None:
        self.env = SystemEnv(MemoryFiles())
        self.program = program
        self.door, self.brokers = Way(), [Way(), Way()]
        self.seen: list[object] = []
        self.lives: list[WatchedProcess] = []
        self.spawn_errors: list[OSError] = []  # of the system, for the next that are to begin
        self.opened: list[tuple[int, ...]] = []
        self.changes = 0
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.orders = StandingOrders()
        self.process = SupervisedProcess(
            3,
            self.env,
            self.door,  # type: ignore[arg-type]
            self.brokers,  # type: ignore[arg-type]
            stores=(3, 7),
            spawn=self._spawn,
            on_up=self._up,
            on_change=self._changed,
            on_ended=lambda process: self.seen.append(("ended", process.process_id)),
            orders=lambda: self.orders,
            clients_s=clients_s,
        )

    def _spawn(self) -> tuple[int, WatchedProcess]:
        if self.spawn_errors:
            raise self.spawn_errors.pop()
        self.lives.append(WatchedProcess.spawn([sys.executable, "-c", self.program], b""))
        return 100 + len(self.lives), self.lives[-1]

    def _changed(self) -> None:
        self.changes += 1
        if self.process.is_serving:
            self.seen.append("serving")

    async def _up(self, stores: Sequence[int]) -> None:
        self.opened.append(tuple(stores))
        self.seen.append("up")
        await self.may_open.wait()

    def set(self, is_up: bool) -> None:
        for way in (*self.brokers, self.door):
            way.set(is_up)

    async def serving(self) -> asyncio.Future[None]:
        """Keep it, and wait until it serves."""
        keeping = asyncio.ensure_future(self.process.keep())
        self.set(True)
        await self.until(lambda: self.process.is_serving)
        return keeping

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await asyncio.sleep(0.002)

    async def close(self, keeping: asyncio.Future[None]) -> None:
        await self.process.stop()
        await keeping
        self.env.close()


def on_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    def run() -> None:
        run_on("asyncio", test())

    run.__name__ = test.__name__
    return run


@on_a_loop
async def test_it_takes_clients_when_all_its_sockets_answer_and_its_logs_are_open() -> None:
    world = World()
    keeping = asyncio.ensure_future(world.process.keep())
    world.may_open.clear()
    world.brokers[0].set(True)
    world.door.set(True)
    await asyncio.sleep(0.02)
    assert (world.seen, world.process.is_up) == ([], False)
    world.brokers[1].set(True)
    await world.until(lambda: world.seen == ["up"])
    assert world.door.asked == []
    world.may_open.set()
    await world.until(lambda: world.process.is_serving)
    assert (world.door.asked, world.seen) == ([TakeClients()], ["up", "serving"])
    await world.close(keeping)


@on_a_loop
async def test_one_that_ends_is_started_again_under_another_id() -> None:
    world = World()
    keeping = await world.serving()
    os.kill(world.lives[0].pid, signal.SIGKILL)
    world.set(False)
    await world.until(lambda: len(world.lives) == 2)
    assert not world.process.is_serving
    world.set(True)
    await world.until(lambda: world.process.is_serving)
    assert world.seen == ["up", "serving", ("ended", 101), "up", "serving"]
    assert (world.process.process_id, world.process.starts) == (102, 2)
    await world.close(keeping)


@on_a_loop
async def test_one_that_ends_while_its_logs_wait_to_be_opened_is_started_again() -> None:
    """They wait for all processes to be there: for this one, too."""
    world = World()
    world.may_open.clear()
    keeping = asyncio.ensure_future(world.process.keep())
    await world.until(lambda: bool(world.lives))
    world.set(True)
    await world.until(lambda: "up" in world.seen)
    world.lives[0].send(signal.SIGKILL)
    world.set(False)
    await world.until(lambda: len(world.lives) == 2)
    assert ("ended", 101) in world.seen
    world.may_open.set()
    world.set(True)
    await world.until(lambda: world.process.is_serving)
    assert world.seen.count("serving") == 1
    await world.close(keeping)


@on_a_loop
async def test_one_that_ends_again_and_again_is_started_ever_later() -> None:
    world = World("")
    waited: list[float] = []
    sleep = asyncio.sleep

    async def kept(seconds: float) -> None:
        waited.append(seconds)
        await sleep(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervised_process.asyncio, "sleep", kept)
        keeping = asyncio.ensure_future(world.process.keep())
        while len(waited) < 9:
            await sleep(0.002)
    keeping.cancel()
    for life in world.lives:
        await life.ended()
    assert waited[:3] == [0.05, 0.1, 0.2]
    assert max(waited) == supervised_process.LAST_DELAY_S
    world.env.close()


@on_a_loop
async def test_the_first_life_may_be_one_that_was_found() -> None:
    world = World()
    _, life = world._spawn()
    keeping = asyncio.ensure_future(world.process.keep((7, life)))
    world.set(True)
    await world.until(lambda: world.process.is_serving)
    assert (world.process.process_id, len(world.lives)) == (7, 1)
    await life.kill()
    await world.until(lambda: len(world.lives) == 2)
    assert ("ended", 7) in world.seen
    await world.close(keeping)


@on_a_loop
async def test_one_that_was_found_and_never_follows_is_killed_and_started_anew() -> None:
    """It serves, and does not say that it takes clients before it follows; whoever waits for it has another one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heartbeat, "BEAT_MS", 5)
        world = World()
        _, life = world._spawn()
        world.door.state = ProcessState(7, 3, "", (), 0, is_serving=True, follows=False, away=())
        world.door.holds = True
        keeping = asyncio.ensure_future(world.process.keep((7, life)))
        world.set(True)
        await world.until(lambda: ("ended", 7) in world.seen)
        assert life.exit_code == -signal.SIGKILL and "serving" not in world.seen and world.process.was_up
        world.set(False)
        world.door.state, world.door.holds = None, False
        await world.until(lambda: len(world.lives) == 2)
        world.set(True)
        await world.until(lambda: world.process.is_serving)
        await world.close(keeping)


@pytest.mark.parametrize("holds", [True, False], ids=["no answer", "refuses"])
def test_one_that_never_comes_to_take_clients_is_killed_and_started_anew(holds: bool) -> None:
    @on_a_loop
    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(heartbeat, "BEAT_MS", 5)
            world = World()
            world.door.state = ProcessState(101, 3, "", (), 0, is_serving=False, follows=not holds, away=())
            world.door.holds, world.door.refuses = holds, not holds
            world.may_open.clear()
            keeping = asyncio.ensure_future(world.process.keep())
            world.set(True)
            await asyncio.sleep(5 * 0.005 * heartbeat.UNSERVED_BEATS / 2)
            assert world.seen == ["up"], "it was not asked yet, since its logs are being opened"
            world.may_open.set()
            await world.until(lambda: ("ended", 101) in world.seen)
            assert world.lives[0].exit_code == -signal.SIGKILL and world.process.was_up
            assert world.process.unserved == ("does not follow the keeper" if holds else "does not take clients")
            world.set(False)
            world.door.holds = world.door.refuses = False
            await world.until(lambda: len(world.lives) == 2)
            world.set(True)
            await world.until(lambda: world.process.is_serving)
            world.process.kill()
            world.set(False)
            await world.until(lambda: ("ended", 102) in world.seen)
            assert world.process.unserved == "", "it served"
            await world.close(keeping)

    scenario()


@on_a_loop
async def test_one_that_refuses_to_take_clients_does_not_serve_and_is_asked_again() -> None:
    """The way to it may have broken off before it answered: the process lives on, and nobody else would ask it."""
    world = World()
    world.door.refuses = True
    keeping = asyncio.ensure_future(world.process.keep())
    world.set(True)
    await world.until(lambda: world.door.asked == [TakeClients()] * 2)
    assert not world.process.is_serving
    world.door.set(False)
    asked = len(world.door.asked)
    world.door.refuses = False
    await asyncio.sleep(0)
    assert not world.process.is_serving
    world.door.set(True)
    await world.until(lambda: world.process.is_serving)
    assert world.door.asked == [TakeClients()] * (asked + 1)
    assert world.opened == [(3, 7)]
    await world.close(keeping)


@on_a_loop
async def test_a_stalled_one_is_killed() -> None:
    world = World()
    keeping = asyncio.ensure_future(world.process.keep())
    await world.until(lambda: bool(world.lives))
    os.kill(world.lives[0].pid, signal.SIGSTOP)
    world.process._lost("answers no more")
    await world.until(lambda: len(world.lives) == 2)
    assert world.lives[0].exit_code == -signal.SIGKILL
    await world.close(keeping)


@on_a_loop
async def test_when_it_stops_clients_go_first_and_it_is_not_started_again() -> None:
    world = World()
    keeping = await world.serving()
    await world.process.let_clients_go()
    assert (world.door.asked, world.process.is_serving) == ([TakeClients(), LetClientsGo()], False)
    await world.process.stop()
    await keeping
    assert (len(world.lives), world.lives[0].exit_code) == (1, -signal.SIGTERM)
    world.env.close()


@on_a_loop
async def test_one_that_does_not_end_when_asked_is_killed() -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(process_end, "STOP_S", 0.3)
        ready = Path(folder, "ready")
        world = World(STUBBORN.format(ready=str(ready)))
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(ready.exists)
        await world.close(keeping)
    assert world.lives[0].exit_code == -signal.SIGKILL and world.process.has_left


@on_a_loop
async def test_one_that_left_a_disk_that_hangs_says_so_by_its_exit_code() -> None:
    for code, has_left in ((0, False), (1, False), (EXIT_LEFT, True)):
        with TemporaryDirectory() as folder:
            ready = Path(folder, "ready")
            world = World(ENDS_WITH.format(seconds=0, code=code, ready=str(ready)))
            keeping = asyncio.ensure_future(world.process.keep())
            await world.until(ready.exists)
            await world.close(keeping)
        assert world.lives[0].exit_code == code and world.process.has_left is has_left


@on_a_loop
async def test_one_that_takes_long_to_end_is_not_taken_for_one_that_stalls() -> None:
    """It answers no more, while its stores write what is pending."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(heartbeat, "BEAT_MS", 5)
        ready = Path(folder, "ready")
        world = World(ENDS_WITH.format(seconds=2, code=5, ready=str(ready)))
        world.door.refuses = True
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(ready.exists)
        await world.close(keeping)
    assert (world.lives[0].exit_code, world.process.has_left) == (5, False)


@contextmanager
def kept_without_room(world: World, *, again_s: float) -> Iterator[asyncio.Future[None]]:
    """The system has no room for the first life, and is asked again so much later."""
    world.spawn_errors.append(OSError("no memory"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervised_process, "LAST_DELAY_S", again_s)
        yield asyncio.ensure_future(world.process.keep())


@on_a_loop
async def test_a_system_without_room_for_a_process_is_asked_again() -> None:
    world = World()
    with kept_without_room(world, again_s=0.01) as keeping:
        await world.until(lambda: bool(world.lives))
    await world.close(keeping)


@on_a_loop
async def test_no_process_begins_in_the_stop_of_the_service_when_the_system_has_room_again() -> None:
    world = World()
    with kept_without_room(world, again_s=0.05) as keeping:
        await world.until(lambda: not world.spawn_errors)
        await world.close(keeping)
    assert world.lives == []


@on_a_loop
async def test_one_that_is_stopped_by_order_while_the_system_has_no_room_for_it_stays_away() -> None:
    world = World()
    with kept_without_room(world, again_s=0.05) as keeping:
        await world.until(lambda: not world.spawn_errors)
        world.process.order(BrokerFault.STOP)
        await asyncio.sleep(0.2)
        assert (world.lives, world.process.told().state) == ([], "stopped")
        world.process.order(BrokerFault.START)
        await world.until(lambda: bool(world.lives))
    await world.close(keeping)


@on_a_loop
async def test_a_process_that_was_stopped_by_order_stays_away_until_it_is_started_by_order() -> None:
    world = World()
    keeping = await world.serving()
    pid = world.lives[0].pid
    assert world.process.told() == ProcessTold(3, pid, (3, 7), "serves", 0, 1, ())
    world.process.order(BrokerFault.STOP)
    assert world.process.told() == ProcessTold(3, pid, (3, 7), "stops", 0, 1, ()), "from the order on"
    await world.until(lambda: not world.process.is_serving)
    await asyncio.sleep(0.15)
    assert world.process.told() == ProcessTold(3, 0, (3, 7), "stopped", 0, 1, ())
    assert (len(world.lives), world.lives[0].exit_code) == (1, -signal.SIGTERM)
    world.process.order(BrokerFault.START)
    await world.until(lambda: len(world.lives) == 2)
    await world.until(lambda: world.process.is_serving)
    assert world.process.told().state == "serves"
    await world.close(keeping)


@on_a_loop
async def test_one_that_stalls_and_is_stopped_by_order_is_told_to_be_stopping_until_it_is_gone() -> None:
    """Nothing else ends it before its time is over, so that people see for long what becomes of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heartbeat, "BEAT_MS", 5)
        patch.setattr(heartbeat, "STALLED_BEATS", 10_000)
        patch.setattr(heartbeat, "START_BEATS", 10_000)
        patch.setattr(process_end, "STOP_S", 1.5)
        world = World()
        world.door.state = ProcessState(101, 3, "", (), 0, is_serving=False, follows=True, away=())
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(lambda: world.door.asked != [])
        world.lives[0].send(signal.SIGSTOP)
        world.door.answers_not = True
        await world.until(lambda: world.process.told().state == "silent")
        world.process.order(BrokerFault.STOP)
        world.process.order(BrokerFault.START)
        seen = []
        while not world.lives[0].has_ended:
            seen.append((world.process.told().state, world.process.told().pid))
            await asyncio.sleep(0.05)
        assert set(seen) == {("stops", world.lives[0].pid)} and world.lives[0].exit_code == -signal.SIGKILL
        await world.until(lambda: len(world.lives) == 2)
        await asyncio.sleep(0.1)
        assert world.process.told().state == "starts", "it has not answered yet, as others in their first seconds"
        await world.close(keeping)


@on_a_loop
async def test_while_the_service_stops_a_process_stops_and_is_not_to_start_again() -> None:
    world = World()
    keeping = await world.serving()
    await world.process.let_clients_go()
    assert world.process.told().state == "stops"
    await world.close(keeping)
    assert world.process.told() == ProcessTold(3, 0, (3, 7), "stopped", 0, 1, ())


@on_a_loop
async def test_one_that_is_stopped_by_order_may_be_silent_while_it_writes_what_is_pending() -> None:
    """Its clients' time comes before that of a stop."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(process_end, "STOP_S", 0.5)
        ready = Path(folder, "ready")
        world = World(ENDS_WITH.format(seconds=2, code=5, ready=str(ready)), clients_s=30.0)
        world.door.refuses = True
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(ready.exists)
        patch.setattr(heartbeat, "BEAT_MS", 5)
        world.process.order(BrokerFault.STOP)
        await world.until(lambda: world.lives[0].has_ended)
        assert (world.lives[0].exit_code, world.process.told().state) == (5, "stopped")
        await world.close(keeping)


@on_a_loop
async def test_one_that_is_stopped_by_order_and_does_not_end_is_killed() -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(process_end, "STOP_S", 0.3)
        ready = Path(folder, "ready")
        world = World(STUBBORN.format(ready=str(ready)))
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(ready.exists)
        world.program = WAITS
        world.process.order(BrokerFault.STOP)
        world.process.order(BrokerFault.START)  # the life that is stopped is killed, the next one is not
        await world.until(lambda: len(world.lives) == 2)
        assert world.lives[0].exit_code == -signal.SIGKILL
        await asyncio.sleep(0.6)
        assert not world.lives[1].has_ended
        await world.close(keeping)


def test_the_log_tells_how_one_ended_that_nobody_had_ordered_to_stop(caplog: pytest.LogCaptureFixture) -> None:
    """Whether it is to start again is another thing; nor did one end by itself that was killed."""

    @on_a_loop
    async def scenario() -> None:
        world = World()
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(lambda: len(world.lives) == 1)
        world.process.order(BrokerFault.STOP)
        world.process.order(BrokerFault.START)
        await world.until(lambda: len(world.lives) == 2)
        world.process.order(BrokerFault.KILL)
        await world.until(lambda: len(world.lives) == 3)
        await world.close(keeping)

    scenario()
    told = [record.getMessage() for record in caplog.records if "ended" in record.getMessage()]
    assert told == ["broker process 3 ended: by signal 9"]


@on_a_loop
async def test_an_order_to_stop_one_that_ended_before_leaves_the_next_one_watched() -> None:
    """Neither ever answers; the next one is killed for that, though the order is followed in its life."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervised_process, "ORDER_MS", 300)
        patch.setattr(heartbeat, "BEAT_MS", 5)
        world = World()
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(lambda: bool(world.lives))
        world.process.order(BrokerFault.STOP)
        world.process.order(BrokerFault.START)
        world.process.kill()
        await world.until(lambda: len(world.lives) == 2)
        async with asyncio.timeout(20):
            await world.until(lambda: world.lives[1].has_ended)
        assert world.lives[1].exit_code == -signal.SIGKILL
        await world.close(keeping)


@on_a_loop
async def test_one_that_is_stopped_by_order_has_its_clients_time_though_the_service_is_stopped_meanwhile() -> None:
    """It takes no more commands by then, so that nobody can have it let its clients go."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(process_end, "STOP_S", 0.3)
        patch.setattr(supervised_process, "ORDER_MS", 0)
        ready = Path(folder, "ready")
        world = World(ENDS_WITH.format(seconds=2, code=5, ready=str(ready)), clients_s=30.0)
        keeping = asyncio.ensure_future(world.process.keep())
        world.set(True)
        await world.until(lambda: world.process.is_serving and ready.exists())
        world.process.order(BrokerFault.STOP)
        world.door.refuses = True
        await asyncio.sleep(0.1)
        await world.process.let_clients_go()
        await world.close(keeping)
        assert (world.lives[0].exit_code, world.process.has_left) == (5, False)


@pytest.mark.parametrize(
    ("program", "code"),
    [(ENDS_WITH, 0), (ENDS_WITH, EXIT_LEFT), (STUBBORN, -signal.SIGKILL)],
    ids=["ended", "left a disk", "killed"],
)
def test_what_an_order_left_counts_not_when_the_service_stops_later(program: str, code: int) -> None:
    """The log told of it then; people see a process that is stopped, however it ended."""

    @on_a_loop
    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
            patch.setattr(process_end, "STOP_S", 20.0 if program == ENDS_WITH else 0.3)
            ready = Path(folder, "ready")
            world = World(program.format(seconds=0, code=code, ready=str(ready)))
            keeping = asyncio.ensure_future(world.process.keep())
            await world.until(ready.exists)
            world.process.order(BrokerFault.STOP)
            await world.until(lambda: world.process.told().state == "stopped")
            assert world.lives[0].exit_code == code
            await world.until(lambda: ("ended", 101) in world.seen)
            assert world.process.told() == ProcessTold(3, 0, (3, 7), "stopped", 0, 1, ())
            assert not world.process.has_left
            await world.close(keeping)
            assert not world.process.has_left

    scenario()


@pytest.mark.parametrize("program", [ENDS_WITH, STUBBORN], ids=["by itself", "killed"])
def test_what_an_order_leaves_counts_while_the_service_stops(program: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
            patch.setattr(process_end, "STOP_S", 20.0 if program == ENDS_WITH else 1.0)
            patch.setattr(supervised_process, "ORDER_MS", 0)
            ready = Path(folder, "ready")
            world = World(program.format(seconds=1, code=EXIT_LEFT, ready=str(ready)))
            keeping = asyncio.ensure_future(world.process.keep())
            await world.until(ready.exists)
            world.process.order(BrokerFault.STOP)
            await asyncio.sleep(0.1)
            await world.process.let_clients_go()
            await world.until(lambda: world.lives[0].has_ended)
            await world.until(lambda: world.process.has_left)  # as the order told
            await world.close(keeping)
            assert world.process.has_left

    scenario()


@on_a_loop
async def test_one_that_somebody_else_asks_to_end_while_the_service_stops_counts_as_well() -> None:
    """A system that stops a service may ask all of its processes at once."""
    with TemporaryDirectory() as folder:
        ready = Path(folder, "ready")
        world = World(ENDS_WITH.format(seconds=0, code=EXIT_LEFT, ready=str(ready)))
        keeping = asyncio.ensure_future(world.process.keep())
        await world.until(ready.exists)
        await world.process.let_clients_go()
        os.kill(world.lives[0].pid, signal.SIGTERM)
        await world.until(lambda: ("ended", 101) in world.seen)
        await world.close(keeping)
        assert world.process.has_left


@on_a_loop
async def test_one_that_is_killed_since_it_stalls_while_the_service_stops_counts_as_well() -> None:
    """It does not answer when it is to let its clients go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heartbeat, "BEAT_MS", 5)
        world = World()
        world.door.state = ProcessState(101, 3, "", (), 0, is_serving=True, follows=True, away=())
        keeping = await world.serving()
        world.door.answers_not = True
        letting_go = asyncio.ensure_future(world.process.let_clients_go())
        await world.until(lambda: ("ended", 101) in world.seen)
        letting_go.cancel()
        await world.close(keeping)
        assert world.lives[0].exit_code == -signal.SIGKILL and world.process.has_left


@on_a_loop
async def test_one_that_let_its_clients_go_has_the_time_to_write_what_is_pending_alone() -> None:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(process_end, "STOP_S", 0.3)
        ready = Path(folder, "ready")
        world = World(STUBBORN.format(ready=str(ready)), clients_s=50.0)
        keeping = asyncio.ensure_future(world.process.keep())
        world.set(True)
        await world.until(lambda: world.process.is_serving and ready.exists())
        await world.process.let_clients_go()
        async with asyncio.timeout(40):
            await world.close(keeping)
        assert world.lives[0].exit_code == -signal.SIGKILL


@on_a_loop
async def test_one_that_is_to_be_started_again_and_is_stopped_by_order_before_that_stays_away() -> None:
    world = World("")
    keeping = asyncio.ensure_future(world.process.keep())
    await world.until(lambda: ("ended", 105) in world.seen)  # the next life is to begin in 0.8 s
    world.process.order(BrokerFault.STOP)
    await asyncio.sleep(1.2)
    assert (len(world.lives), world.process.told().state) == (5, "stopped")
    world.process.order(BrokerFault.START)
    await world.until(lambda: len(world.lives) == 6)
    await world.close(keeping)


@on_a_loop
async def test_a_process_that_was_killed_by_order_is_started_again_by_itself() -> None:
    world = World()
    keeping = asyncio.ensure_future(world.process.keep())
    await world.until(lambda: bool(world.lives))
    assert world.process.told().state == "starts"
    world.process.order(BrokerFault.KILL)
    await world.until(lambda: len(world.lives) == 2)
    assert world.lives[0].exit_code == -signal.SIGKILL
    await world.close(keeping)


@on_a_loop
async def test_a_process_that_was_stopped_by_order_does_not_keep_the_service_from_stopping() -> None:
    world = World()
    keeping = asyncio.ensure_future(world.process.keep())
    await world.until(lambda: bool(world.lives))
    world.process.order(BrokerFault.STOP)
    await world.until(lambda: world.lives[0].has_ended)
    await asyncio.wait_for(world.close(keeping), 15)
    assert len(world.lives) == 1


@on_a_loop
async def test_a_store_that_is_away_keeps_it_from_nothing_and_its_logs_are_opened_when_it_comes() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heartbeat, "BEAT_MS", 10)
        world = World()
        keeping = asyncio.ensure_future(world.process.keep())
        world.door.state = ProcessState(101, 3, "", (), 0, is_serving=False, follows=True, away=(7,))
        world.door.set(True)
        world.brokers[0].set(True)
        await world.until(lambda: world.process.is_serving)
        assert world.opened == [(3,)] and world.changes >= 2, "whoever waits for it looks again when it said so"
        assert world.process.told().away == (7,)
        world.brokers[1].set(True)
        await world.until(lambda: world.opened == [(3,), (7,)])
        world.brokers[1].set(False)
        world.brokers[1].set(True)
        await world.until(lambda: world.opened == [(3,), (7,), (7,)])
        await world.close(keeping)


@on_a_loop
async def test_stores_of_a_life_that_has_not_begun_are_opened_once() -> None:
    world = World()
    keeping = await world.serving()
    assert world.opened == [(3, 7)]
    await world.close(keeping)


@on_a_loop
async def test_a_mark_of_a_store_is_handed_on() -> None:
    world = World()
    answers: list[Answer] = []
    world.process.mark(MarkStore(7, is_away=True), answers.append)
    assert (world.door.asked, answers) == ([MarkStore(7, is_away=True)], [Done()])
    world.env.close()


@on_a_loop
async def test_what_tests_ordered_reaches_it_before_it_takes_clients() -> None:
    world = World()
    keeping = asyncio.ensure_future(world.process.keep())
    world.orders = StandingOrders(1, 60_000)
    assert await world.process.keep_orders(world.orders) is None, "it is not there: nobody waits for it"
    world.orders = StandingOrders(2, 90_000)  # while it was on its way
    world.set(True)
    await world.until(lambda: world.process.is_serving)
    assert world.door.asked == [KeepOrders(world.orders), TakeClients()]
    await world.close(keeping)


@on_a_loop
async def test_who_orders_waits_for_it_while_it_lives() -> None:
    world = World()
    world.set(True)
    order = asyncio.ensure_future(world.process.keep_orders(StandingOrders(1, 60_000)))
    await asyncio.sleep(0.02)
    assert world.door.asked == [KeepOrders(StandingOrders(1, 60_000))] and not order.done()
    world.door.keeping(OrdersKept({"ns": {"drop": 2}}))
    assert await order == OrdersKept({"ns": {"drop": 2}})
    ended = asyncio.ensure_future(world.process.keep_orders(StandingOrders(1, 60_000)))
    await asyncio.sleep(0.02)
    world.door.keeping(Refusal(STORE_OFFLINE, "its stream ended", known=False))
    assert await ended is None
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(supervised_process, "ORDERS_S", 0.05)
        with pytest.raises(ServiceError, match="process 3 does not answer") as caught:
            await world.process.keep_orders(StandingOrders(1, 60_000))
    assert caught.value.condition is TIMED_OUT
    world.env.close()
