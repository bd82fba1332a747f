"""Sixteen fragments in one process against one, a message: sent in batches without a key, received, settled one by one.

A receiver's credit decides how many messages one question brings, so each credit is a row. All messages are there
before the first is received.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import repeat

from rich.console import Console
from rich.table import Table

from broker_cases.processes import Meter, Service
from goals.figure import Figure, ratios
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.sender import Sender
from queue_cases.queues import BATCH_MESSAGES, BATCHES_IN_FLIGHT, MESSAGE, ROUND_LIMIT_S, create_queue, send_all
from queue_cases.settler import Settler
from spine import shown

CREDITS = (1, 10, 100, 1_000)
PARTS = {1: 60, 10: 15, 100: 3, 1_000: 1}  # of the messages of a round, for each credit: few of the dear ones
GOAL = 1.3


@dataclass(slots=True)
class Route:
    """A queue, and a credit; processor time of the service, microseconds a message, a value a round."""

    queue: str
    credit: int
    sending: list[float] = field(default_factory=list)
    receiving: list[float] = field(default_factory=list)

    @property
    def both(self) -> list[float]:
        return [one + other for one, other in zip(self.sending, self.receiving, strict=True)]

    async def round(self, service: Service, messages: int) -> None:
        sends = -(-messages // (BATCH_MESSAGES * PARTS[self.credit]))
        count, payload = sends * BATCH_MESSAGES, data_section(MESSAGE) * BATCH_MESSAGES
        publisher, reader = await Connection.open(service.target), await Connection.open(service.target)
        try:
            sender = await Sender.open(publisher, self.queue)
            meter = Meter(service)
            await send_all(
                sender, repeat(payload, sends), message_format=BATCH_FORMAT, in_flight=BATCHES_IN_FLIGHT
            )  # fmt: skip
            self.sending.append(meter.read().service / count * 1e6)
            await reader.authorization.authorize(self.queue)
            meter = Meter(service)
            settler = Settler(reader, self.queue, credit=self.credit)
            await asyncio.wait_for(settler.settle(count), ROUND_LIMIT_S)
            self.receiving.append(meter.read().service / count * 1e6)
        finally:
            await publisher.close()
            await reader.close()


def measure_fragments(
    service: Service, messages: int, rounds: int, runner: asyncio.Runner, console: Console
) -> list[Figure]:
    """Print the table; the figures."""
    pairs = list[tuple[Route, Route]]()
    for credit in CREDITS:
        one, many = Route(f"bench-whole-{credit}", credit), Route(f"bench-parts-{credit}", credit)
        create_queue(service.target, one.queue, EnablePartitioning="false")
        create_queue(service.target, many.queue, EnablePartitioning="true")
        pairs.append((one, many))
    for number in range(rounds):
        console.print(f"fragments, round {number + 1} …")
        for pair in pairs:
            for route in pair:
                runner.run(route.round(service, messages))
    table = Table("credit", "in, 1 fragment", "in, 16", "out, 1 fragment", "out, 16", title="CPU, us a message")
    for one, many in pairs:
        values = (one.sending, many.sending, one.receiving, many.receiving)
        table.add_row(f"{one.credit:,}", *(shown(each, ".2f") for each in values))
    console.print(table)
    figures = list[Figure]()
    for one, many in pairs:
        name, all_of_it = f"credit {one.credit:,}", ratios(many.both, one.both)
        figures.append(Figure(f"16 fragments against 1, {name}", all_of_it, "x", GOAL, is_limit=True))
        figures.append(Figure(f"… without the sends, {name}", ratios(many.receiving, one.receiving), "x"))
    return figures
