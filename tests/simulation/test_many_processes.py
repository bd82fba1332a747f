"""Processes on one loop: a stopped one waits, one that ended never runs; and the streams between them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hubweir.testing.memory_faults import Killed
from hubweir.testing.memory_files import MemoryFiles
from tests.simulation.many_processes import Processes, SimulatedProcess
from tests.simulation.simulated_streams import Network, StreamLoop

PATH = Path("door.sock")


class Machine:
    """Two processes and the network between them; `run` plays a while."""

    def __init__(self) -> None:
        self.processes = Processes()
        self.loop = StreamLoop(self.processes)
        self.network = self.loop.network = Network(self.processes, Random(1))
        self.processes.on_end = self.network.died
        self.one, self.other = self.begin("one"), self.begin("other")

    def begin(self, name: str) -> SimulatedProcess:
        return self.processes.begin(name, MemoryFiles(name), name)

    def run(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def connect(self) -> tuple[Speaker, Speaker]:
        """A stream from one to the other."""
        near, far = Speaker(), Speaker()
        self.other.context.run(self.network.listen, PATH, lambda end: end.put_on(far), self.loop)
        self.one.context.run(self.network.connect, PATH).put_on(near)
        self.run(0.1)
        return near, far


class Speaker(asyncio.BufferedProtocol):
    """One end: what it heard; None at its end."""

    def __init__(self) -> None:
        self.heard: list[bytes | None] = []
        self._buffer = bytearray(100)

    def connection_made(self, transport: Any) -> None:
        self.end = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.heard.append(bytes(self._buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append(None)


@pytest.fixture
def machine() -> Iterator[Machine]:
    made = Machine()
    yield made
    made.processes.close()
    made.loop.close()


def test_all_processes_show_the_time_of_the_loop_also_those_that_have_nothing_to_do(machine: Machine) -> None:
    seen: list[int] = []
    machine.one.env.call_later(40, lambda: seen.append(machine.other.env.monotonic_ms()))
    machine.run(0.1)
    assert seen == [40]
    assert machine.one.env.monotonic_ms() == machine.other.env.monotonic_ms() == machine.processes.monotonic_ms() > 40


def test_no_time_passes_while_what_a_process_did_is_to_be_answered(machine: Machine) -> None:
    seen: list[int] = []
    env, loop = machine.one.env, machine.loop

    def answer() -> None:
        loop.call_soon(lambda: seen.append(machine.processes.monotonic_ms()))

    loop.call_soon(env.call_soon, answer)
    machine.run(0.1)
    assert seen == [0]


def test_a_stopped_process_does_late_what_was_due(machine: Machine) -> None:
    done: list[tuple[str, int]] = []

    async def work() -> None:
        await asyncio.sleep(1)
        done.append(("task", machine.processes.now_ms))

    machine.one.start(work())
    machine.one.env.call_later(1_500, lambda: done.append(("timer", machine.one.env.monotonic_ms())))
    machine.run(0.5)
    machine.one.stop(5_000)
    machine.run(4.5)
    assert done == []
    machine.one.go_on(machine.processes.now_ms)
    machine.run(0.5)
    assert sorted(done) == [("task", 5_000), ("timer", 5_000)]


@pytest.mark.parametrize("how", ["killed", "in its own step"])
def test_a_process_that_ended_does_nothing_more(machine: Machine, how: str) -> None:
    done: list[str] = []

    async def work() -> None:
        await asyncio.sleep(1)
        done.append("task")

    def fails() -> None:
        raise Killed

    machine.one.start(work())
    machine.one.env.call_later(2_000, lambda: done.append("timer"))
    machine.run(0.5)
    if how == "killed":
        machine.processes.end(machine.one)
    else:
        machine.one.env.call_later(1, fails)
    machine.run(5)
    assert done == [] and not machine.one.is_alive and machine.other.is_alive


def test_bytes_come_in_order_to_one_who_is_stopped_too(machine: Machine) -> None:
    near, far = machine.connect()
    machine.other.stop(1_000)
    near.end.write(b"a")
    near.end.write(b"b")
    machine.run(1)
    assert far.heard == []
    machine.other.go_on(machine.processes.now_ms)
    machine.run(0.1)
    assert b"".join(each or b"" for each in far.heard) == b"ab"


def test_a_direction_that_is_blocked_keeps_what_is_written_and_the_other_does_not(machine: Machine) -> None:
    near, far = machine.connect()
    machine.network.block("one", "other", both_ways=False)
    near.end.write(b"there")
    far.end.write(b"back")
    machine.run(1)
    assert (near.heard, far.heard) == ([b"back"], [])
    machine.network.heal()
    machine.run(0.1)
    assert far.heard == [b"there"]


def test_the_end_of_a_process_comes_behind_what_it_wrote(machine: Machine) -> None:
    near, far = machine.connect()
    near.end.write(b"last")
    machine.processes.end(machine.one)
    machine.run(0.1)
    assert (near.heard, far.heard) == ([], [b"last", None])
    with pytest.raises(ConnectionRefusedError):
        machine.begin("one").context.run(machine.network.connect, Path("nobody.sock"))


def test_a_cut_stream_loses_what_is_on_its_way_and_both_ends_hear_of_it(machine: Machine) -> None:
    near, far = machine.connect()
    near.end.write(b"lost")
    assert machine.network.cut("one")
    machine.run(0.1)
    assert near.heard == far.heard == [None]
    assert not machine.network.cut("one")
