"""Who is connected, over several processes: each connection once, in one order, on whichever page."""

import asyncio
from collections.abc import Sequence

from hubweir.broker.commands.broker_process import AskConnections, ConnectionsTold, ConnectionTold, ProcessCommand
from hubweir.broker.commands.command import Answer
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.connections import count_connections, list_connections, own_connections

OWN = 1


def connection(number: int) -> ConnectionTold:
    return ConnectionTold(number, f"10.0.0.{number}:1", False, 1, "a client", "", ("rule",), ("orders",), 2)


class Processes:
    """Three processes: the world's is the second; the others have so many connections, or say nothing (None)."""

    def __init__(self, first: int | None, own: int, last: int | None) -> None:
        self.world = World(hubs={"orders": 1})
        self.asked: list[AskConnections] = []
        for _ in range(own):
            self.world.trusted_peer()
        self._others = {0: first, 2: last}
        self.process = self.world.process
        self.process.processes, self.process.index, self.process.ask_other = 3, OWN, self._ask
        self.name = self.world.gateway.settings.namespace

    async def _ask(self, index: int, command: ProcessCommand) -> Answer | None:
        assert isinstance(command, AskConnections) and command.namespace == self.name
        self.asked.append(command)
        count = self._others[index]
        if count is None:
            return None
        every = [connection(number) for number in range(count)]
        return ConnectionsTold(tuple(every[command.skipped : command.skipped + command.count]), count)

    def page(self, skipped: int, count: int) -> Sequence[tuple[int, int]]:
        """Process and number of each."""

        async def scenario() -> Sequence[tuple[int, int]]:
            counts = await count_connections(self.process, self.name)
            listed = await list_connections(self.process, self.name, counts, skipped, count)
            return [(each.process, each.connection.number) for each in listed]

        return asyncio.run(scenario())


def test_pages_of_any_size_tell_each_connection_once_and_in_one_order() -> None:
    processes = Processes(4, 3, 5)
    every = processes.page(0, 100)
    assert [process for process, _ in every] == [0] * 4 + [1] * 3 + [2] * 5
    assert len(set(every)) == 12
    for size in (1, 2, 3, 4, 5, 7, 11, 12):
        pages = [processes.page(skipped, size) for skipped in range(0, 12, size)]
        assert [each for page in pages for each in page] == every, size
        assert all(len(page) == size for page in pages[:-1])
    assert processes.page(12, 5) == processes.page(40, 5) == []


def test_no_process_is_asked_for_more_than_a_page_shows() -> None:
    processes = Processes(1_000, 0, 1_000)
    assert len(processes.page(990, 50)) == 50
    assert sum(each.count for each in processes.asked) == 50


def test_a_silent_process_hides_nobody_else() -> None:
    processes = Processes(None, 2, 2)
    assert [process for process, _ in processes.page(0, 10)] == [1, 1, 2, 2]
    counts = asyncio.run(count_connections(processes.process, processes.name))
    assert counts == {0: None, 1: 2, 2: 2}


def test_of_another_namespace_nobody_is_told() -> None:
    processes = Processes(0, 2, 0)
    assert own_connections(processes.process, AskConnections(processes.name, 0, 10)).total == 2
    assert own_connections(processes.process, AskConnections("another", 0, 10)) == ConnectionsTold((), 0)
