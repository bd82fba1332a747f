"""Two broker processes against one: events, and messages of a partitioned queue, over many connections at once.

Where the load generator and two brokers share two cores, a rate says little: the generator takes what the second
broker would have had. So each load runs a second time with half a core for each process (processor_share.py). The
processor time of each process stands beside the rate, and the rate that follows if every process of the service has a
core of its own and the generator takes none of them: 1 / (processor time of the busiest process for an event). That
one is *derived*. Processor time is user and system time of all threads of a process, from
before the first send until the last answer. The generator is one process that costs little (prepared.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from broker_cases.events import batch_of, create_hub
from broker_cases.prepared import EventCounter, PreparedSender
from broker_cases.processes import Meter, Service, Used
from broker_cases.processor_share import ProcessorShare
from goals.figure import Figure, ratios
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.receiver import address_of
from queue_cases.queues import BATCH_MESSAGES, MESSAGE, ROUND_LIMIT_S, create_queue
from queue_cases.settler import Answers, Settler
from spine import shown

HUB, QUEUE = "bench-spread", "bench-spread-queue"
PARTITIONS = 16  # each with a connection that publishes and one that reads
QUEUE_CONNECTIONS = 16  # that send, and as many that receive
BATCH_EVENTS = 1_000
IN_FLIGHT = 4  # of each sender
QUEUE_CREDIT = 1_000
EVENTS_GOAL, MESSAGES_GOAL = 1.7, 1.6
HALF = 0.5  # of a core, for each process
SHARED = "all on these cores"

Round = Callable[[Service, int], Coroutine[None, None, Used]]


@dataclass(slots=True)
class Row:
    """What one service did of one load; a value a round. Times are microseconds for each event or message."""

    rate: list[float] = field(default_factory=list)
    service_us: list[float] = field(default_factory=list)
    busiest_us: list[float] = field(default_factory=list)
    generator_us: list[float] = field(default_factory=list)

    def add(self, count: int, used: Used) -> None:
        self.rate.append(count / used.wall)
        self.service_us.append(used.service / count * 1e6)
        self.busiest_us.append(used.busiest / count * 1e6)
        self.generator_us.append(used.generator / count * 1e6)

    @property
    def derived_rate(self) -> list[float]:
        return [1e6 / each for each in self.busiest_us]

    def cells(self) -> tuple[str, ...]:
        times = (self.service_us, self.busiest_us, self.generator_us)
        return (
            shown(self.rate, ",.0f"), *(shown(each, ".2f") for each in times), shown(self.derived_rate, ",.0f")
        )  # fmt: skip


async def _events(service: Service, count: int) -> Used:
    """Publish to every partition, and read from each at the same time."""
    sends = -(-count // (BATCH_EVENTS * PARTITIONS))
    payload = batch_of(BATCH_EVENTS)
    async with AsyncExitStack() as stack:
        senders, came = list[PreparedSender](), Answers()
        for partition in range(PARTITIONS):
            publisher, reader = await _opened(stack, service), await _opened(stack, service)
            senders.append(await PreparedSender.open(publisher, f"{HUB}/Partitions/{partition}", payload))
            await EventCounter.open(reader, address_of(HUB, "$Default", str(partition)), came)
        meter = Meter(service)
        jobs = [sender.send(sends, in_flight=IN_FLIGHT) for sender in senders]
        await asyncio.wait_for(
            asyncio.gather(*jobs, came.wait(sends * BATCH_EVENTS * PARTITIONS)), ROUND_LIMIT_S
        )  # fmt: skip
        return meter.read()


async def _messages(service: Service, count: int) -> Used:
    """Send from every connection without a key; then settle all at as many others.

    One behind the other, so that a receiver's question brings as many messages to every service: how many a receiver
    finds that is as fast as the senders depends on who else wants the processor.
    """
    sends = -(-count // (BATCH_MESSAGES * QUEUE_CONNECTIONS))
    payload, answers = data_section(MESSAGE) * BATCH_MESSAGES, Answers()
    async with AsyncExitStack() as stack:
        publishers = [await _opened(stack, service) for _ in range(QUEUE_CONNECTIONS)]
        senders = [await PreparedSender.open(publisher, QUEUE, payload) for publisher in publishers]
        readers = [await _opened(stack, service) for _ in range(QUEUE_CONNECTIONS)]
        for reader in readers:
            await reader.authorization.authorize(QUEUE)
        meter = Meter(service)
        jobs = [sender.send(sends, in_flight=IN_FLIGHT) for sender in senders]
        await asyncio.wait_for(asyncio.gather(*jobs), ROUND_LIMIT_S)
        for reader in readers:
            Settler(reader, QUEUE, credit=QUEUE_CREDIT, answers=answers)
        await asyncio.wait_for(answers.wait(sends * BATCH_MESSAGES * QUEUE_CONNECTIONS), ROUND_LIMIT_S)
        return meter.read()


async def _opened(stack: AsyncExitStack, service: Service) -> Connection:
    connection = await Connection.open(service.target)
    stack.push_async_callback(connection.close)
    return connection


def measure_spread(
    services: list[Service], events: int, messages: int, rounds: int, runner: asyncio.Runner, console: Console
) -> list[Figure]:
    """services: the one that is held against comes first. Print the table; the figures."""
    for service in services:
        runner.run(create_hub(service.target, HUB, PARTITIONS))
        create_queue(service.target, QUEUE, EnablePartitioning="true")
    loads: list[tuple[str, int, float, Round]] = [
        ("events", events, EVENTS_GOAL, _events),
        ("messages", messages, MESSAGES_GOAL, _messages),
    ]
    table = Table("in + out", "of", "a second", "CPU of the service, us", "of its busiest process, us")
    for heading in ("of the generator, us", "derived: a second, a core each"):
        table.add_column(heading)
    between, figures = f"{services[1].name} against {services[0].name}", list[Figure]()
    arms: dict[str, Callable[[Service], AbstractContextManager[object]]] = {SHARED: lambda _: nullcontext()}
    if ProcessorShare.is_possible():
        arms["half a core each"] = lambda service: ProcessorShare(service.serving_pids(), HALF)
    else:
        console.print("half a core each: not measured, which needs root and a cpu controller of control groups")
    for name, count, goal, work in loads:
        rows = {arm: [Row() for _ in services] for arm in arms}
        for number in range(rounds):
            console.print(f"{name}, round {number + 1} …")
            for arm, share in arms.items():
                for service, row in zip(services, rows[arm], strict=True):
                    with share(service):
                        row.add(count, runner.run(work(service, count)))
        for arm, (one, two) in rows.items():
            for service, row in zip(services, (one, two), strict=True):
                table.add_row(f"{name}, {arm}", service.name, *row.cells())
            figures.append(Figure(f"{name}, {between}, {arm}", ratios(two.rate, one.rate), "x", goal))
        one, two = rows[SHARED]
        derived = ratios(two.derived_rate, one.derived_rate)
        figures.append(Figure(f"{name}, {between}, derived: a core each", derived, "x", goal))
    console.print(table)
    console.print("derived: 1 s / (processor time of the busiest process for an event or message)")
    return figures
