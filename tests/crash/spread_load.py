"""Load for kills of one process of several: a connection a partition, which goes on through whoever is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from kill_load import HUB, IN_FLIGHT, Load

from hubweir.client.connection import Connection
from hubweir.client.sender import Sender
from hubweir.errors import ServiceError
from hubweir.testing.log_history import PartitionHistory

AGAIN_S = 0.02


class SpreadLoad(Load):
    """gaps_s: of each partition, the longest time without an accepted batch behind the newest `end`."""

    def __init__(self, target: str, partitions: int, seed: int) -> None:
        super().__init__(target, partitions, seed)
        for history in self.histories:
            history.may_be_late = True
        self.gaps_s: dict[int, float] = {}
        self._is_over = False
        self._accepted_at: dict[int, float] = {}

    async def write_on(self, seconds: float, end: Callable[[], None], after_s: float) -> None:
        """Write to all partitions for so long, call end, which takes a process away, and go on until after_s later."""
        self._is_over, self.gaps_s = False, {}
        writers = [asyncio.ensure_future(self._go_on(history)) for history in self.histories]
        await asyncio.sleep(seconds)
        self.gaps_s = dict.fromkeys(range(len(self.histories)), 0.0)
        await asyncio.to_thread(end)
        await asyncio.sleep(after_s)
        for partition in self.gaps_s:  # one that nobody could write to any more has its gap, too
            self._accepted(partition)
        self._is_over = True
        await asyncio.wait_for(asyncio.gather(*writers), 30.0)

    async def _go_on(self, history: PartitionHistory) -> None:
        while not self._is_over:
            try:
                connection = await Connection.open(self._target)
            except (ServiceError, OSError):
                await asyncio.sleep(AGAIN_S)
                continue
            try:
                await self._send_over(connection, history)
            except (ServiceError, OSError):
                await asyncio.sleep(AGAIN_S)
            finally:
                await connection.close()

    async def _send_over(self, connection: Connection, history: PartitionHistory) -> None:
        sender = await Sender.open(connection, f"{HUB}/Partitions/{history.partition}")
        in_flight: list[asyncio.Future[None]] = []
        try:
            while not self._is_over:
                number, batch = self._batch(history.partition, sender.batch())
                outcome, count = sender.submit(batch), batch.count
                outcome.add_done_callback(lambda done, n=number, c=count: self._note(history, n, c, done))
                in_flight = [each for each in in_flight if not each.done()] + [outcome]
                if len(in_flight) >= IN_FLIGHT:
                    await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED, timeout=20.0)
                await asyncio.sleep(0.005)
        finally:
            await asyncio.wait_for(asyncio.gather(*in_flight, return_exceptions=True), 20.0)

    def _note(self, history: PartitionHistory, number: int, count: int, done: asyncio.Future[None]) -> None:
        super()._note(history, number, count, done)
        if not done.cancelled() and done.exception() is None:
            self._accepted(history.partition)

    def _accepted(self, partition: int) -> None:
        now, before = time.monotonic(), self._accepted_at.get(partition)
        self._accepted_at[partition] = now
        if before is not None and partition in self.gaps_s:
            self.gaps_s[partition] = max(self.gaps_s[partition], now - before)
