"""Whoever accepts connections gives them to all processes in turn: the real sockets of some processes on one loop."""

import asyncio
import os
import socket
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from hubweir.drivers.passed_connections import TAKEN_WITHIN_S, PassedConnections
from hubweir.service.connection_spread import ConnectionSpread


class Processes:
    """Some processes, each with the connections that it has."""

    def __init__(self, folder: Path, count: int) -> None:
        self.paths = [folder / str(index) for index in range(count)]
        self.has: Counter[int] = Counter()
        self.inboxes = {index: self._inbox(index) for index in range(count)}
        self.now_s = 0.0
        self.spreads = [
            ConnectionSpread(self.paths, index, partial(self._came, index), lambda: self.now_s)
            for index in range(count)
        ]

    def _inbox(self, index: int) -> PassedConnections:
        return PassedConnections(self.paths[index], partial(self._came, index), asyncio.get_running_loop())

    def _came(self, index: int, connection: socket.socket) -> None:
        self.has[index] += 1
        connection.close()

    async def accept(self, index: int, count: int) -> None:
        """A process accepts so many connections."""
        for _ in range(count):
            ours, theirs = socket.socketpair()
            theirs.close()
            wanted = self.has.total() + 1
            self.spreads[index].accepted(ours)
            while self.has.total() < wanted:
                await asyncio.sleep(0)
            assert ours.fileno() == -1

    def close(self) -> None:
        for spread in self.spreads:
            spread.close()
        for inbox in self.inboxes.values():
            inbox.close()


def test_one_process_that_accepts_all_gives_each_as_many_and_keeps_the_first(tmp_path: Path) -> None:
    async def scenario() -> None:
        processes = Processes(tmp_path, 3)
        await processes.accept(1, 1)
        assert processes.has == {1: 1}
        await processes.accept(1, 1)
        assert processes.has == {1: 1, 2: 1}
        await processes.accept(1, 10)
        assert processes.has == {0: 4, 1: 4, 2: 4}
        processes.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("lot", ["0000000000", "0101010101", "0010110100", "1111100000"])
def test_however_the_lot_falls_nobody_gets_more_than_one_above_its_part(tmp_path: Path, lot: str) -> None:
    async def scenario() -> None:
        processes = Processes(tmp_path, 2)
        for index in map(int, lot):
            await processes.accept(index, 1)
        assert abs(processes.has[0] - processes.has[1]) <= 2
        processes.close()

    asyncio.run(scenario())


def test_what_is_for_a_process_that_is_away_the_next_one_gets_and_at_last_whoever_accepted_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        processes = Processes(tmp_path, 3)
        processes.inboxes.pop(1).close()
        await processes.accept(0, 6)
        assert processes.has == {0: 2, 2: 4}
        processes.inboxes.pop(2).close()
        await processes.accept(0, 6)
        assert processes.has == {0: 8, 2: 4}
        processes.close()

    asyncio.run(scenario())


def test_a_process_that_stalls_gets_what_came_in_one_time_and_the_next_one_its_part_of_the_rest(tmp_path: Path) -> None:
    async def scenario() -> None:
        processes = Processes(tmp_path, 3)
        processes.inboxes.pop(1).close()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stalled, socket.socket() as waits:
            stalled.bind(str(processes.paths[1]))
            processes.spreads[0].accepted(waits)  # this process's own turn
            held, client = socket.socketpair()
            processes.spreads[0].accepted(held)
            client.setblocking(False)
            with client, pytest.raises(BlockingIOError):
                client.recv(1)  # it waits at the process that stalls
            await processes.accept(0, 1)
            processes.now_s += TAKEN_WITHIN_S
            processes.has.clear()
            await processes.accept(0, 6)
            assert processes.has == {0: 2, 2: 4}
        processes.close()

    asyncio.run(scenario())


def test_a_spread_that_is_closed_has_let_its_file_descriptors_go(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    spread = ConnectionSpread([tmp_path / str(index) for index in range(4)], 1, lambda _: None, lambda: 0.0)
    assert len(set(os.listdir("/proc/self/fd")) - before) == 3
    spread.close()
    assert set(os.listdir("/proc/self/fd")) == before
