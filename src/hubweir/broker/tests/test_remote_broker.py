"""The way to a broker of another process: it comes and goes, and every command is answered once all the same.

Two of these ends are in one process here; what is between them is a real Unix socket.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hubweir.broker import remote_broker
from hubweir.broker.commands.command import Answer, Command, Owner, Push
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import AskCounters, CapPartitions, CloseOwner, CountersTaken, Done, Refusal
from hubweir.broker.commands.reader import CloseReader, OpenReader, ReaderClosed, ReaderOpened
from hubweir.broker.remote_broker import FIRST_RETRY_MS, LAST_RETRY_MS, RemoteBroker
from hubweir.broker.shared_broker import SharedBroker
from hubweir.drivers.system_env import SystemEnv
from hubweir.errors import LINK_STOLEN, STORE_OFFLINE, TIMED_OUT
from hubweir.event_hub.event_position import EARLIEST
from hubweir.limits import MIB
from hubweir.testing.memory_files import MemoryFiles

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Target:
    """Keeps what it was asked; answers when told to, or at once."""

    def __init__(self) -> None:
        self.on_push: Callable[[Push], None] | None = None
        self.asked: list[tuple[Command, Callable[[Answer], None]]] = []
        self.is_silent = False

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        self.asked.append((command, on_answer))
        if not self.is_silent:
            on_answer(ReaderOpened(1, 0) if isinstance(command, OpenReader) else Done())

    @property
    def commands(self) -> list[Command]:
        return [command for command, _ in self.asked]


class World:
    """A target behind a path, and a way to it whose changes are kept."""

    def __init__(self, folder: Path) -> None:
        self.env = SystemEnv(MemoryFiles())
        self.path = folder / "b.sock"
        self.target = Target()
        self.shared = SharedBroker(self.target)
        self.way = RemoteBroker(self.path, self.env)
        self.seen: list[object] = []
        self.way.on_change(lambda way: self.seen.append(way.is_up))

    async def up(self) -> "World":
        self.shared.serve(self.path)
        self.way.start()
        await until(lambda: self.way.is_up)
        return self

    async def down(self) -> None:
        await self.shared.close()
        await until(lambda: not self.way.is_up)

    async def close(self) -> None:
        await self.way.stop()
        await self.shared.close()
        await asyncio.sleep(0)
        self.env.close()

    def submit(self, command: Command | None = None) -> list[Answer]:
        answers: list[Answer] = []
        self.way.submit(
            command or CapPartitions(False), lambda answer: (answers.append(answer), self.seen.append(answer))[0]
        )
        return answers


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def test_while_it_is_away_commands_are_refused_as_known(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.way.start()
        [refusal] = world.submit()
        assert isinstance(refusal, Refusal)
        assert (refusal.condition, refusal.known, world.way.is_up) == (STORE_OFFLINE, True, False)
        await world.close()

    run(scenario())


def test_it_finds_a_broker_that_comes_later_and_says_so_once(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path)
        world.way.start()
        await asyncio.sleep(2.5 * FIRST_RETRY_MS / 1000)
        assert world.seen == []
        await world.up()
        assert world.seen == [True]
        answers = world.submit()
        await until(lambda: answers == [Done()])
        await world.close()

    run(scenario())


def test_what_waited_when_it_went_is_unknown_and_is_told_before_that_it_went(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        world.target.is_silent = True
        answers = world.submit()
        await until(lambda: bool(world.target.asked))
        await world.down()
        [refusal] = answers
        assert isinstance(refusal, Refusal)
        assert (refusal.condition, refusal.known) == (TIMED_OUT, False)
        assert world.seen == [True, refusal, False]
        await world.close()

    run(scenario())


def test_it_comes_back_by_itself_and_nothing_is_sent_a_second_time(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        world.target.is_silent = True
        world.submit()
        await until(lambda: bool(world.target.asked))
        for _ in range(3):
            await world.down()
            world.shared = SharedBroker(world.target)
            world.shared.serve(world.path)
            await until(lambda: world.way.is_up)
        world.target.is_silent = False
        answers = world.submit(AskCounters())
        await until(lambda: bool(answers))
        asked = [command for command in world.target.commands if not isinstance(command, CloseOwner)]
        assert asked == [CapPartitions(False), AskCounters()]
        await world.close()

    run(scenario())


def test_tries_are_bounded_in_both_directions(run: Run, tmp_path: Path) -> None:
    """The delays that it asks for: the first short, none over the last, and short again behind a stream."""

    async def scenario() -> None:
        world = World(tmp_path)
        delays: list[int] = []
        later = world.env.machine.call_later

        def kept(delay_ms: int, callback: Callable[[], None]) -> Any:
            delays.append(delay_ms)
            return later(min(delay_ms, 5), callback)

        world.env.machine.call_later = kept  # type: ignore[method-assign]
        world.way.start()
        await until(lambda: len(delays) > 6)
        assert delays[:3] == [FIRST_RETRY_MS, 2 * FIRST_RETRY_MS, 4 * FIRST_RETRY_MS]
        assert max(delays) == LAST_RETRY_MS
        await world.up()
        delays.clear()
        await world.down()
        await until(lambda: bool(delays))
        assert delays[0] == FIRST_RETRY_MS
        await world.close()

    run(scenario())


def test_the_end_of_a_stream_ends_what_its_process_had_open(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        world.submit(OpenReader("a", Owner(7, 1), "g", EARLIEST, None, "me"))
        await until(lambda: bool(world.target.asked))
        await asyncio.wait_for(world.way.stop(), 20)
        await asyncio.wait_for(until(lambda: CloseOwner(Owner(7, -1)) in world.target.commands), 20)
        await world.close()

    run(scenario())


def test_pushes_reach_the_own_process_and_the_stream_that_they_concern(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        other = RemoteBroker(world.path, world.env)
        other.start()
        await until(lambda: other.is_up)
        got: dict[str, list[Push]] = {"own": [], "way": [], "other": []}
        world.shared.listen(got["own"].append)
        world.way.listen(got["way"].append)
        other.listen(got["other"].append)
        world.submit(OpenReader("a", Owner(7, 1), "g", EARLIEST, None, "me"))
        await until(lambda: bool(world.target.asked))
        push = ReaderClosed(Owner(7, 1), "a", 1, LINK_STOLEN, "another reader")
        assert world.target.on_push is not None
        world.target.on_push(push)
        await until(lambda: bool(got["way"]))
        await asyncio.sleep(0.01)
        assert got == {"own": [push], "way": [push], "other": []}
        await other.stop()
        await world.close()

    run(scenario())


def test_who_listens_hears_what_is_pushed_over_a_later_stream_too(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        got: list[Push] = []
        world.way.listen(got.append)
        await world.down()
        world.shared = SharedBroker(world.target)
        world.shared.serve(world.path)
        await until(lambda: world.way.is_up)
        answers = world.submit(OpenReader("a", Owner(7, 1), "g", EARLIEST, None, "me"))
        await until(lambda: bool(answers))
        push = ReaderClosed(Owner(7, 1), "a", 1, LINK_STOLEN, "another reader")
        assert world.target.on_push is not None
        world.target.on_push(push)
        await until(lambda: got == [push])
        await world.close()

    run(scenario())


def test_streams_of_one_process_can_be_ended_and_it_comes_again(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        answers = world.submit(OpenReader("a", Owner(7, 1), "g", EARLIEST, None, "me"))
        await until(lambda: bool(answers))
        world.shared.end_streams_of(8)
        await asyncio.sleep(0.02)
        assert world.seen[-1] == ReaderOpened(1, 0)
        world.shared.end_streams_of(7)
        await until(lambda: world.seen[-2:] == [False, True])
        await world.close()

    run(scenario())


def test_when_it_is_stopped_nothing_is_tried_again(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        await world.way.stop()
        await until(lambda: not world.way.is_up)
        await asyncio.sleep(3 * FIRST_RETRY_MS / 1000)
        assert world.seen == [True, False]
        await world.close()

    run(scenario())


def test_what_a_stalled_process_never_took_is_refused_when_it_is_stopped(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream ends once all that waits is sent, and such a process takes nothing."""
    monkeypatch.setattr(remote_broker, "END_S", 0.1)

    async def scenario() -> None:
        world = World(tmp_path)
        with socket.socket(socket.AF_UNIX) as stalled:
            stalled.bind(str(world.path))
            stalled.listen()
            world.way.start()
            await until(lambda: world.way.is_up)
            answers = world.submit(AppendEvents("a", bytearray(8 * MIB)))  # more than the system takes
            async with asyncio.timeout(10):
                await world.way.stop()
        [refusal] = answers
        assert isinstance(refusal, Refusal)
        assert (refusal.condition, refusal.known) == (TIMED_OUT, False)
        assert world.seen == [True, refusal, False]
        await world.close()

    run(scenario())


def test_commands_cost_and_answer_over_it_as_over_any_stream(run: Run, tmp_path: Path) -> None:
    async def scenario() -> None:
        world = await World(tmp_path).up()
        world.target.is_silent = True
        answers = world.submit(AskCounters()), world.submit(CloseReader("a", 1))
        await until(lambda: len(world.target.asked) == 2)
        world.target.asked[1][1](Done())
        world.target.asked[0][1](CountersTaken({"a": 1}))
        await until(lambda: answers == ([CountersTaken({"a": 1})], [Done()]))
        await world.close()

    run(scenario())
