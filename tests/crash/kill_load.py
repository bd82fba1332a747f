"""Load for the kill tests: batches to every partition until the server is gone, then everything read back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from hubweir.client.connection import Connection
from hubweir.client.event_batch import EventBatch
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.log_history import PartitionHistory, Seen, make_body
from tests.crash.waits import first

HUB = "load"
GROUP = "$Default"
IN_FLIGHT = 8
WAIT_S = 60.0


class Load:
    """Writers and readers of one hub over all lives of a server. durability: as the management service names it."""

    def __init__(self, target: str, partitions: int, seed: int) -> None:
        self._target = ConnectionString.parse(target)
        self._random = random.Random(seed)
        self._next_batch = [0] * partitions
        self.histories = [PartitionHistory(partition) for partition in range(partitions)]
        self.unknown = 0

    async def create_hub(self, durability: str) -> None:
        connection = await Connection.open(self._target)
        try:
            await Management(connection).create_hub(
                HUB, partition_count=len(self.histories), retention_ms=86_400_000, durability=durability
            )
        finally:
            await connection.close()

    async def write(
        self, seconds: float, end: Callable[[], None], *, until: Callable[[], bool] = lambda: False
    ) -> None:
        """Write to all partitions until one has accepted something, and for so long behind that, or until the server
        ended by itself; then call end, which ends it.
        """
        loop, before = asyncio.get_running_loop(), self._accepted_count()
        connection = await Connection.open(self._target)
        writers = [asyncio.ensure_future(self._write_to(connection, history)) for history in self.histories]
        await first(lambda: self._accepted_count() > before or until(), WAIT_S)
        limit = loop.time() + seconds
        while loop.time() < limit and not until():
            await asyncio.sleep(min(0.01, seconds))
        await asyncio.to_thread(end)
        await asyncio.wait_for(asyncio.gather(*writers), WAIT_S)
        await connection.close()

    async def read_new(self) -> list[str]:
        """Write one more batch to each partition, read what no reader saw yet up to there, and check everything.

        The batch shows that writing goes on, and is a last event that is certainly there.
        """
        connection = await Connection.open(self._target)
        management = Management(connection)
        try:
            for history in self.histories:
                sender = await Sender.open(connection, f"{HUB}/Partitions/{history.partition}")
                number, batch = self._batch(history.partition, sender.batch())
                await asyncio.wait_for(_accepted(sender, batch), WAIT_S)
                history.accepted[number] = batch.count
                await sender.close()
                start = EARLIEST
                if history.seen:
                    start = EventPosition(PositionKind.SEQUENCE_NUMBER, history.seen[-1].sequence_number)
                history.seen += await self._read(connection, management, history.partition, start)
        finally:
            await connection.close()
        return [wrong for history in self.histories for wrong in history.check()]

    async def read_all_again(self) -> list[str]:
        """Read every partition from its start and compare with what was seen over all lives."""
        connection = await Connection.open(self._target)
        management = Management(connection)
        wrong = []
        try:
            for history in self.histories:
                wrong += history.again(await self._read(connection, management, history.partition, EARLIEST))
        finally:
            await connection.close()
        return wrong

    def _accepted_count(self) -> int:
        return sum(len(history.accepted) for history in self.histories)

    async def _write_to(self, connection: Connection, history: PartitionHistory) -> None:
        """Keep some batches in flight until the connection is gone."""
        in_flight: list[asyncio.Future[None]] = []
        try:
            sender = await Sender.open(connection, f"{HUB}/Partitions/{history.partition}")
            while True:
                number, batch = self._batch(history.partition, sender.batch())
                outcome = sender.submit(batch)
                count = batch.count
                outcome.add_done_callback(lambda done, n=number, c=count: self._note(history, n, c, done))
                in_flight = [each for each in in_flight if not each.done()] + [outcome]
                if len(in_flight) >= IN_FLIGHT:
                    await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_S)
                # Connections, not processors, are what is tested: leave the server some time.
                await asyncio.sleep(0.002)
        except ServiceError:
            await asyncio.gather(*in_flight, return_exceptions=True)

    def _batch(self, partition: int, batch: EventBatch) -> tuple[int, EventBatch]:
        number = self._next_batch[partition]
        self._next_batch[partition] += 1
        # Now and then a transfer that needs several stored batches: a chain, whole or absent.
        count, size = (12, 12_000) if self._random.random() < 0.05 else (self._random.randint(1, 20), 200)
        filler = self._random.randbytes(size)
        for place in range(count):
            if not batch.try_add(make_body(partition, number, place, count, filler)):
                raise AssertionError("the batch of this test is larger than a message may be")
        return number, batch

    def _note(self, history: PartitionHistory, number: int, count: int, done: asyncio.Future[None]) -> None:
        if done.cancelled() or done.exception() is not None:
            self.unknown += 1
        else:
            history.accepted[number] = count

    async def _read(
        self, connection: Connection, management: Management, partition: int, start: EventPosition
    ) -> list[Seen]:
        state = await management.partition(HUB, str(partition))
        last = state.last_sequence_number
        seen: list[Seen] = []
        reached = start.value if start.kind is PositionKind.SEQUENCE_NUMBER else -1
        if reached >= last:
            return seen
        receiver = await Receiver.open(
            connection, address_of(HUB, GROUP, str(partition)), ReceiverOptions(position=start)
        )
        while reached < last:
            run = await receiver.receive(max_wait_s=WAIT_S)
            if run is None:
                raise AssertionError(f"partition {partition} ends at {last}, and nothing came behind {reached}")
            seen += [
                Seen(event.sequence_number, int(event.offset), event.enqueued_time_ms, event.body or b"")
                for event in run
            ]
            reached = seen[-1].sequence_number
        await receiver.close()
        return seen


async def _accepted(sender: Sender, batch: EventBatch) -> None:
    """Send it as clients do: what is refused as busy is not stored, and is sent again, until it is accepted.

    A broker that has just come back serves each log as soon as that one is open.
    """
    while True:
        try:
            return await sender.submit(batch)
        except ServiceError as error:
            if error.condition is not SERVER_BUSY:
                raise
        await asyncio.sleep(0.05)
