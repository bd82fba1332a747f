"""What a hop costs: events to and from a partition of the process that has the connection, and of another one.

Both go over one connection to one process. Batches of a thousand events are what a busy publisher sends; those of a
hundred say what the command itself costs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from broker_cases.events import batch_of, create_hub, publish, read
from broker_cases.processes import Meter, Service, Used, sockets_of
from goals.figure import Figure
from hubweir.client.connection import Connection
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from queue_cases.queues import ROUND_LIMIT_S
from spine import shown

BATCHES = (1_000, 100)
IN_FLIGHT_EVENTS = 32_000
GOAL_US = 0.2
CONNECTIONS_MOST = 64  # until one is at the first process
OTHERS_MOST = 0.25  # of the service's time, where nothing hops: heartbeats, and the keeper


@dataclass(slots=True)
class Costs:
    """Processor time of the service, microseconds an event; a value a round."""

    to_own: list[float] = field(default_factory=list)
    to_other: list[float] = field(default_factory=list)
    from_own: list[float] = field(default_factory=list)
    from_other: list[float] = field(default_factory=list)

    @property
    def of_sending(self) -> tuple[float, ...]:
        return _more(self.to_other, self.to_own)

    @property
    def of_reading(self) -> tuple[float, ...]:
        return _more(self.from_other, self.from_own)


def _more(with_hop: list[float], without: list[float]) -> tuple[float, ...]:
    return tuple(one - other for one, other in zip(with_hop, without, strict=True))


async def _connection_to(service: Service, index: int) -> Connection:
    """One that the process of this index took."""
    pid = service.serving_pids()[index]
    for _ in range(CONNECTIONS_MOST):
        before = sockets_of(pid)
        connection = await Connection.open(service.target)
        if sockets_of(pid) > before:
            return connection
        await connection.close()
    raise SystemExit(f"of {CONNECTIONS_MOST} connections none came to process {index}")


async def _one(connection: Connection, service: Service, address: str, batch: int, events: int) -> tuple[Used, Used]:
    """Publish to a partition, then read all of it: what each used."""
    hub, _, partition = address.partition("/Partitions/")
    sender = await Sender.open(connection, address)
    sending = Meter(service)
    job = publish(sender, batch_of(batch), events // batch, in_flight=IN_FLIGHT_EVENTS // batch)
    await asyncio.wait_for(job, ROUND_LIMIT_S)
    sent = sending.read()
    receiver = await Receiver.open(connection, address_of(hub, "$Default", partition))
    reading = Meter(service)
    await asyncio.wait_for(read([receiver], events // batch * batch), ROUND_LIMIT_S)
    return sent, reading.read()


async def _round(service: Service, hub: str, batch: int, events: int, costs: Costs) -> None:
    await create_hub(service.target, hub, service.brokers)
    connection = await _connection_to(service, 0)
    try:
        done = [
            await _one(connection, service, f"{hub}/Partitions/{number}", batch, events)
            for number in range(service.brokers)
        ]
    finally:
        await connection.close()
    # The process that has the connection does nearly all of it where the log is its own.
    shares = [1 - sent.processes[0] / sent.service for sent, _ in done]
    own, other = shares.index(min(shares)), shares.index(max(shares))
    if shares[own] > OTHERS_MOST or shares[other] < OTHERS_MOST:
        raise SystemExit(f"no partition is the first process's own: it left {shares} of the work to others")
    for (sent, received), to, back in (
        (done[own], costs.to_own, costs.from_own), (done[other], costs.to_other, costs.from_other),
    ):  # fmt: skip
        to.append(sent.service / events * 1e6)
        back.append(received.service / events * 1e6)


def measure_hop(service: Service, events: int, rounds: int, runner: asyncio.Runner, console: Console) -> list[Figure]:
    """Print the table; the figures."""
    found = {batch: Costs() for batch in BATCHES}
    for number in range(rounds):
        console.print(f"hop, round {number + 1} …")
        for batch, costs in found.items():
            runner.run(_round(service, f"bench-hop-{batch}-{number}", batch, events, costs))
    table = Table("CPU of the service, us an event", "in, own log", "in, another's", "out, own log", "out, another's")
    figures = list[Figure]()
    for batch, costs in found.items():
        values = (costs.to_own, costs.to_other, costs.from_own, costs.from_other)
        table.add_row(f"batches of {batch:,}", *(shown(each, ".3f") for each in values))
        for way, hop in (("in", costs.of_sending), ("out", costs.of_reading)):
            figures.append(Figure(f"a hop {way}, of an event in {batch:,}", hop, "us", GOAL_US, is_limit=True))
    console.print(table)
    return figures
