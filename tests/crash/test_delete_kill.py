"""A hub is deleted and made again under its name while publishers write to it, and the service is killed (T6, P18).

Every event that was accepted between the answer to a creation and the next deletion is in the hub that is there after
the kill; none of an earlier hub of that name is; and a hub whose creation was answered is there.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.errors import HubweirError
from hubweir.event_hub.event_position import EARLIEST
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess

HUB = "again"
KILLS = 100
PUBLISHERS = 3
WAIT_S = 60.0

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1800)]


class Generations:
    """The hubs of one name, one after the other: which is there, and what each of them accepted."""

    def __init__(self, server: ServerProcess, seed: int) -> None:
        self._server = server
        self._random = random.Random(seed)
        self.generation = 0
        self.is_there = False  # as an answer said; False also while a change is not answered
        self.accepted: dict[int, list[bytes]] = {}

    async def life(self) -> None:
        """Delete and create a few times, with publishers all the while; then a kill, maybe in a deletion."""
        connection, administration = await self._connect(), await self._connect()
        stop = asyncio.Event()
        writers = [asyncio.ensure_future(self._publish(connection, number, stop)) for number in range(PUBLISHERS)]
        management, chance = Management(administration), self._random
        deleting: asyncio.Future[None] | None = None
        for _ in range(chance.randrange(1, 4)):
            if self.is_there:
                await asyncio.sleep(chance.uniform(0, 0.3))
                self.is_there = False
                await asyncio.wait_for(management.delete_hub(HUB), WAIT_S)
            self.generation += 1
            await asyncio.wait_for(
                management.create_hub(HUB, partition_count=1, retention_ms=86_400_000, durability="durable"), WAIT_S
            )
            self.is_there = True
            await asyncio.sleep(chance.uniform(0, 0.4))
        if chance.random() < 0.4:
            self.is_there = False
            deleting = asyncio.ensure_future(management.delete_hub(HUB))
            await asyncio.sleep(chance.uniform(0, 0.01))
        self._server.kill9()
        stop.set()
        await asyncio.wait_for(
            asyncio.gather(*writers, *([deleting] if deleting else []), return_exceptions=True), WAIT_S
        )
        for each in (connection, administration):
            with suppress(HubweirError, OSError, TimeoutError):
                await asyncio.wait_for(each.close(), 2)

    async def check(self) -> list[str]:
        """What is wrong with the hub that is there now."""
        connection = await self._connect()
        try:
            names = {hub.name for hub in await Management(connection).list_hubs()}
            found = await self._read(connection) if HUB in names else []
        finally:
            await connection.close()
        wrong = []
        if self.is_there and HUB not in names:
            wrong.append(f"hub {self.generation} was made and is gone")
        if self.is_there:
            lost = set(self.accepted.get(self.generation, [])) - set(found)
            wrong += [f"{len(lost)} accepted events of hub {self.generation} are lost"] if lost else []
        if others := {int(body.split(b" ")[0]) for body in found} - {self.generation}:
            wrong.append(f"hub {self.generation} holds events of {others}")
        if len(set(found)) < len(found):
            wrong.append("events are there twice")
        self.is_there = HUB in names
        return wrong

    async def _publish(self, connection: Connection, number: int, stop: asyncio.Event) -> None:
        sender: Sender | None = None
        count = 0
        while not stop.is_set():
            generation, was_there = self.generation, self.is_there
            count += 1
            body = b"%d %d %d %d" % (generation, number, count, self._random.randrange(10**9))
            try:
                if sender is None:
                    sender = await asyncio.wait_for(Sender.open(connection, f"{HUB}/Partitions/0"), WAIT_S)
                batch = sender.batch()
                batch.try_add(body)
                await asyncio.wait_for(sender.submit(batch), WAIT_S)
                if was_there and self.is_there and self.generation == generation:
                    self.accepted.setdefault(generation, []).append(body)
            except (HubweirError, OSError, TimeoutError):
                sender = None
                await asyncio.sleep(0.02)

    async def _read(self, connection: Connection) -> list[bytes]:
        state = await Management(connection).partition(HUB, "0")
        found: list[bytes] = []
        if state.last_sequence_number < 0:
            return found
        receiver = await Receiver.open(connection, address_of(HUB, "$Default", "0"), ReceiverOptions(position=EARLIEST))
        while len(found) <= state.last_sequence_number:
            run = await receiver.receive(max_wait_s=WAIT_S)
            assert run is not None, f"the hub ends at {state.last_sequence_number}, {len(found)} events came"
            found += [event.body or b"" for event in run]
        await receiver.close()
        return found

    async def _connect(self) -> Connection:
        return await Connection.open(ConnectionString.parse(self._server.connection_string()))


def test_a_hub_made_again_under_load_keeps_its_own_events_and_no_others(
    tmp_path: Path, measure: Callable[[int], int], first_seed: int
) -> None:
    seed, kills = first_seed, measure(KILLS)
    server = ServerProcess(tmp_path / "data")
    hubs = Generations(server, seed)
    try:
        for kill in range(kills):
            server.start()
            asyncio.run(hubs.life())
            server.start()
            wrong = asyncio.run(hubs.check())
            assert not wrong, f"seed {seed}, kill {kill}: {wrong[:5]}\n{server.output}"
            server.kill9()
    finally:
        server.kill9()
    assert hubs.generation >= kills and sum(map(len, hubs.accepted.values())) > kills, "nothing was tested"


# The control arm: what would be wrong is found.


@pytest.mark.parametrize(
    ("found", "text"),
    [([], "are lost"), ([b"2 0 1 5", b"1 0 1 7"], r"holds events of \{1\}"), ([b"2 0 1 5"] * 2, "twice")],
)
def test_control_lost_foreign_and_doubled_events_are_found(
    tmp_path: Path, found: list[bytes], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ServerProcess(tmp_path / "data") as server:
        hubs = Generations(server, 1)
        hubs.generation, hubs.is_there, hubs.accepted = 2, True, {2: [b"2 0 1 5"]}

        async def read(self: Generations, connection: Connection) -> list[bytes]:
            return found

        async def check() -> list[str]:
            connection = await hubs._connect()
            await Management(connection).create_hub(
                HUB, partition_count=1, retention_ms=86_400_000, durability="durable"
            )
            await connection.close()
            return await hubs.check()

        monkeypatch.setattr(Generations, "_read", read)
        [wrong] = asyncio.run(check())
        assert re.search(text, wrong)
