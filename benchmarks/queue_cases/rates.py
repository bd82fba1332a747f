"""Messages/s in, out and through a queue, and the processor time of server and generator for each.

One round sends N messages, receives and settles N, then does both at once. In each round a quorum queue of RabbitMQ
does the same first, where it is installed (quorum_queue.py): the rates of the round are held against it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path

from rich.console import Console
from rich.table import Table

from goals.figure import Figure, ratios
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.outcome import Outcome
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from queue_cases import quorum_queue
from queue_cases.feeder import Feeder
from queue_cases.queues import (
    BATCH_MESSAGES,
    BATCHES_IN_FLIGHT,
    MESSAGE,
    ROUND_LIMIT_S,
    SINGLES_IN_FLIGHT,
    create_queue,
    send_all,
)
from queue_cases.quorum_queue import QuorumQueue
from queue_cases.settler import COMPLETE, CREDIT, Settler
from spine import pid_of, processor_seconds, shown

# Where no broker is installed. RabbitMQ 4.0.5, a quorum queue over AMQP 1.0, settled one by one, synced, 200 B, the
# broker on one core of a machine of two virtual cores at 2.5 GHz (AMD EPYC): the median of several runs.
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
    """Rates in messages/s, processor time in microseconds a message, a value a round. cpu_generator: of in + out."""

    rate_in: list[float] = field(default_factory=list)
    rate_out: list[float] = field(default_factory=list)
    rate_both: list[float] = field(default_factory=list)
    cpu_in: list[float] = field(default_factory=list)
    cpu_out: list[float] = field(default_factory=list)
    cpu_both: list[float] = field(default_factory=list)
    cpu_generator: list[float] = field(default_factory=list)

    def cells(self) -> tuple[str, ...]:
        """As the table shows them."""
        rates = (shown(each, ",.0f") for each in (self.rate_in, self.rate_out, self.rate_both))
        times = (shown(each, ".2f") for each in (self.cpu_in, self.cpu_out, self.cpu_both, self.cpu_generator))
        return (*rates, *times)


@dataclass(frozen=True, slots=True)
class Place:
    """A queue of a broker. settles_second: whether that knows this mode of a receiver. credit: of the receiver."""

    target: ConnectionString
    pid: int
    address: str
    open_connection: Callable[[ConnectionString], Awaitable[Connection]] = Connection.open
    settles_second: bool = True
    credit: int = CREDIT


class Load:
    """The generator: one connection that sends, one that receives."""

    def __init__(self, place: Place, *, batch: int, messages: int, outcome: Outcome = COMPLETE) -> None:
        self._place = place
        self._outcome = outcome
        self._is_batched = batch > 1
        self._sends = -(-messages // batch)
        self._sent = self._sends * batch
        self._payload = data_section(MESSAGE) * batch
        self.rates = Rates()

    async def round(self) -> None:
        """Measure once."""
        place = self._place
        publisher, reader = await place.open_connection(place.target), await place.open_connection(place.target)
        try:
            await publisher.authorization.authorize(place.address)
            await self._round(self.rates, await self._sender(publisher), reader)
        finally:
            await publisher.close()
            await reader.close()

    async def fill(self) -> None:
        """Send all messages of a round, and receive none."""
        place = self._place
        publisher = await place.open_connection(place.target)
        try:
            await publisher.authorization.authorize(place.address)
            await (await self._sender(publisher))()
        finally:
            await publisher.close()

    async def _sender(self, publisher: Connection) -> Callable[[], Awaitable[None]]:
        """What sends all messages of a round."""
        if not self._is_batched:
            feeder = Feeder(publisher, self._place.address, MESSAGE, in_flight=SINGLES_IN_FLIGHT)
            await feeder.wait_attached(publisher.timeout_s)
            return lambda: feeder.send(self._sent)
        sender = await Sender.open(publisher, self._place.address)

        def send() -> Awaitable[None]:
            payloads = repeat(self._payload, self._sends)
            return send_all(sender, payloads, message_format=BATCH_FORMAT, in_flight=BATCHES_IN_FLIGHT)

        return send

    async def _round(self, rates: Rates, send: Callable[[], Awaitable[None]], reader: Connection) -> None:
        await self._measure(rates.rate_in, rates.cpu_in, send)
        await reader.authorization.authorize(self._place.address)
        place = self._place
        settler = Settler(
            reader, place.address, outcome=self._outcome, settles_second=place.settles_second, credit=place.credit
        )
        await self._measure(rates.rate_out, rates.cpu_out, lambda: settler.settle(self._sent))
        before_s = time.process_time()
        await self._measure(rates.rate_both, rates.cpu_both, lambda: self._both(send, settler))
        rates.cpu_generator.append((time.process_time() - before_s) / self._sent * 1e6)
        settler.close()

    async def _both(self, send: Callable[[], Awaitable[None]], settler: Settler) -> None:
        await asyncio.gather(send(), settler.settle(self._sent))

    async def _measure(self, rates: list[float], cpu: list[float], job: Callable[[], Awaitable[None]]) -> None:
        pid = self._place.pid
        cpu_before, begun = processor_seconds(pid), time.perf_counter()
        await asyncio.wait_for(job(), ROUND_LIMIT_S)
        rates.append(self._sent / (time.perf_counter() - begun))
        cpu.append((processor_seconds(pid) - cpu_before) / self._sent * 1e6)


@dataclass(frozen=True, slots=True)
class Peer:
    """The load of a quorum queue. version: of the RabbitMQ that has it."""

    load: Load
    version: str


@contextmanager
def _peer(pid: int, messages: int) -> Iterator[Peer | None]:
    """The load of a quorum queue, which has the server's core; None: there is no broker here."""
    script = quorum_queue.installed()
    if script is None:
        yield None
        return
    with (
        tempfile.TemporaryDirectory(prefix="hubweir-bench-peer-") as folder,
        QuorumQueue(script, Path(folder), os.sched_getaffinity(pid)) as broker,
    ):
        place = Place(
            broker.target,
            broker.pid,
            quorum_queue.ADDRESS,
            quorum_queue.open_connection,
            settles_second=False,
            credit=quorum_queue.CREDIT,
        )
        yield Peer(Load(place, batch=1, messages=messages), broker.version)


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
    for heading in ("CPU in, us", "CPU out, us", "CPU in + out, us", "generator's, us"):
        table.add_column(heading)
    target, pid = ConnectionString.parse(server.connection_string()), pid_of(server)
    loads: dict[Case, Load] = {}
    for case in CASES:
        create_queue(target, case.queue, EnableExpress=str(case.is_express).lower())
        some = messages if case.batch > 1 else messages // 4
        loads[case] = Load(Place(target, pid, case.queue), batch=case.batch, messages=some, outcome=outcome)
    with _peer(pid, messages // 8) as peer:
        for number in range(rounds):
            console.print(f"rates, round {number + 1} …")
            for load in (*([] if peer is None else [peer.load]), *loads.values()):
                runner.run(load.round())
    for case, load in loads.items():
        table.add_row(case.sends, case.mode, *load.rates.cells())
    if peer is None:
        others, name = [float(QUORUM_QUEUE_PER_S)] * rounds, f"a quorum queue elsewhere, {QUORUM_QUEUE_PER_S:,}/s"
        text = f"no broker for the same run: Debian's rabbitmq-server is not installed. Held against {name}."
        console.print(text)
    else:
        rates = peer.load.rates
        others, name = rates.rate_both, f"a quorum queue of RabbitMQ {peer.version} in this run"
        table.add_row("1 message a send", "quorum queue", *rates.cells())
    console.print(table)
    return [
        Figure(
            f"{case.mode}, {case.sends}, of {name}", ratios(load.rates.rate_both, others), "x", case.goal, case.moonshot
        )
        for case, load in loads.items()
        if case.goal is not None
    ]
