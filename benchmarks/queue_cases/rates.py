"""Messages/s in, out and through a queue, and the server's processor time for each.

One round sends N messages, receives and settles N, then does both at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import repeat

from rich.console import Console
from rich.table import Table

from goals.figure import Figure
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.outcome import Outcome
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from queue_cases.queues import (
    BATCH_MESSAGES,
    BATCHES_IN_FLIGHT,
    MESSAGE,
    ROUND_LIMIT_S,
    SINGLES_IN_FLIGHT,
    create_queue,
    send_all,
)
from queue_cases.settler import COMPLETE, Settler
from spine import pid_of, processor_seconds, shown

# RabbitMQ 4.0.5, a quorum queue over AMQP 1.0, settled one by one, synced, 200 B, the broker on one core of a machine
# of two virtual cores at 2.5 GHz (AMD EPYC): the median of several runs. Debian 12 has 3.10, which does not speak AMQP
# 1.0 itself but by a plugin, so no broker that the goal means can be had for the same run.
QUORUM_QUEUE_PER_S = 16_400


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table. goal, moonshot: of a quorum queue's rate, where it is held against them."""

    is_express: bool
    batch: int
    goal: float | None = None
    moonshot: float | None = None

    @property
    def queue(self) -> str:
        return f"bench-{self.mode}-{self.batch}"

    @property
    def mode(self) -> str:
        return "express" if self.is_express else "durable"

    @property
    def sends(self) -> str:
        return "1 message a send" if self.batch == 1 else f"{self.batch} messages a send"


# A quorum queue syncs before it answers, and so does a durable queue of ours.
CASES = (
    Case(is_express=False, batch=BATCH_MESSAGES, goal=30, moonshot=120),
    Case(is_express=True, batch=BATCH_MESSAGES),
    Case(is_express=False, batch=1, goal=8, moonshot=20),
    Case(is_express=True, batch=1),
)


@dataclass(slots=True)
class Rates:
    """Rates in messages/s, server processor time in microseconds a message, a value a round."""

    rate_in: list[float] = field(default_factory=list)
    rate_out: list[float] = field(default_factory=list)
    rate_both: list[float] = field(default_factory=list)
    cpu_in: list[float] = field(default_factory=list)
    cpu_out: list[float] = field(default_factory=list)
    cpu_both: list[float] = field(default_factory=list)


class Load:
    """The generator: one connection that sends, one that receives."""

    def __init__(self, server: ServerProcess, case: Case, messages: int, *, outcome: Outcome = COMPLETE) -> None:
        self._target = ConnectionString.parse(server.connection_string())
        self._pid = pid_of(server)
        self._case = case
        self._outcome = outcome
        self._in_flight = BATCHES_IN_FLIGHT if case.batch > 1 else SINGLES_IN_FLIGHT
        self._sends = -(-messages // case.batch)
        self._sent = self._sends * case.batch
        self._payload = data_section(MESSAGE) * case.batch if case.batch > 1 else MESSAGE
        self._format = BATCH_FORMAT if case.batch > 1 else 0
        self.rates = Rates()

    async def round(self) -> None:
        """Create the queue at first, then measure once."""
        if not self.rates.rate_in:
            create_queue(self._target, self._case.queue, EnableExpress=str(self._case.is_express).lower())
        publisher, reader = await Connection.open(self._target), await Connection.open(self._target)
        try:
            sender = await Sender.open(publisher, self._case.queue)
            await self._round(self.rates, sender, reader)
        finally:
            await publisher.close()
            await reader.close()

    async def _round(self, rates: Rates, sender: Sender, reader: Connection) -> None:
        await self._measure(rates.rate_in, rates.cpu_in, lambda: self.send(sender))
        await reader.authorization.authorize(self._case.queue)
        settler = Settler(reader, self._case.queue, outcome=self._outcome)
        await self._measure(rates.rate_out, rates.cpu_out, lambda: settler.settle(self._sent))
        await self._measure(rates.rate_both, rates.cpu_both, lambda: self._both(sender, settler))
        settler.close()

    async def send(self, sender: Sender) -> None:
        payloads = repeat(self._payload, self._sends)
        await send_all(sender, payloads, message_format=self._format, in_flight=self._in_flight)

    async def _both(self, sender: Sender, settler: Settler) -> None:
        await asyncio.gather(self.send(sender), settler.settle(self._sent))

    async def _measure(self, rates: list[float], cpu: list[float], job: Callable[[], Awaitable[None]]) -> None:
        cpu_before, begun = processor_seconds(self._pid), time.perf_counter()
        await asyncio.wait_for(job(), ROUND_LIMIT_S)
        rates.append(self._sent / (time.perf_counter() - begun))
        cpu.append((processor_seconds(self._pid) - cpu_before) / self._sent * 1e6)


def measure_rates(
    server: ServerProcess,
    messages: int,
    rounds: int,
    outcome: Outcome,
    runner: asyncio.Runner,
    console: Console,
) -> list[Figure]:
    """Print the table; the figures against a quorum queue."""
    table = Table("a send", "mode", "in, messages/s", "out, messages/s", "in + out, messages/s")
    for heading in ("CPU in, us", "CPU out, us", "CPU in + out, us"):
        table.add_column(heading)
    figures = []
    for case in CASES:
        console.print(f"{case.queue} …")
        load = Load(server, case, messages if case.batch > 1 else messages // 4, outcome=outcome)
        for _ in range(rounds):
            runner.run(load.round())
        rates = load.rates
        cells = (shown(each, ",.0f") for each in (rates.rate_in, rates.rate_out, rates.rate_both))
        times = (shown(each, ".2f") for each in (rates.cpu_in, rates.cpu_out, rates.cpu_both))
        table.add_row(case.sends, case.mode, *cells, *times)
        if case.goal is not None:
            name = f"{case.mode}, {case.sends}, of a quorum queue of {QUORUM_QUEUE_PER_S:,}/s"
            values = tuple(rate / QUORUM_QUEUE_PER_S for rate in rates.rate_both)
            figures.append(Figure(name, values, "x", case.goal, case.moonshot))
    console.print(table)
    return figures
