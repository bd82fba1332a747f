"""Load for kills of one process of several: a connection a partition, which goes on through whoever is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection

from hubweir.client.connection import Connection
from hubweir.client.sender import Sender
from hubweir.errors import ServiceError
from hubweir.testing.log_history import PartitionHistory
from tests.crash.kill_load import HUB, IN_FLIGHT, Load

AGAIN_S = 0.02
ENOUGH, GO_ON_S = 20, 60.0  # so many batches show that a partition is served, however busy the machine is


class SpreadLoad(Load):
    """Of each partition, behind the newest `end` of `write_on`:

    gaps_s: the longest time without an accepted batch. behind: how many were accepted that were begun then.
    """

    def __init__(self, target: str, partitions: int, seed: int) -> None:
        super().__init__(target, partitions, seed)
        for history in self.histories:
            history.may_be_late = True
        self.gaps_s: dict[int, float] = {}
        self.behind: dict[int, int] = {}
        self._first_behind: list[int] = []  # of each partition, the number of its first batch behind `end`
        self._is_over = False
        self._accepted_at: dict[int, float] = {}

    async def write_on(
        self, seconds: float, end: Callable[[], None], after_s: float, *, served: Collection[int] = ()
    ) -> None:
        """Write to all partitions for so long, call end, which takes a process away, and go on until after_s later.

        And until each partition of served has accepted ENOUGH batches that were begun behind end. AssertionError: one
        has not, within GO_ON_S.
        """
        self._is_over, self.gaps_s, self.behind = False, {}, {}
        writers = [asyncio.ensure_future(self._go_on(history)) for history in self.histories]
        await asyncio.sleep(seconds)
        self.gaps_s = dict.fromkeys(range(len(self.histories)), 0.0)
        await asyncio.to_thread(end)
        self._first_behind = list(self._next_batch)
        self.behind = dict.fromkeys(range(len(self.histories)), 0)
        await asyncio.sleep(after_s)
        limit = time.monotonic() + GO_ON_S
        while missing := [partition for partition in served if self.behind[partition] < ENOUGH]:
            assert time.monotonic() < limit, f"partitions {missing} are not served: {self.behind}"
            await asyncio.sleep(0.01)
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
            if self.behind and number >= self._first_behind[history.partition]:
                self.behind[history.partition] += 1

    def _accepted(self, partition: int) -> None:
        now, before = time.monotonic(), self._accepted_at.get(partition)
        self._accepted_at[partition] = now
        if before is not None and partition in self.gaps_s:
            self.gaps_s[partition] = max(self.gaps_s[partition], now - before)
