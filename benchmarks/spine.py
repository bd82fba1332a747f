"""The first journey at speed: events/s in, out and end to end, and what the server's processor pays for each.

    ./run bench spine [--events N] [--rounds N]

For 200 B and 1 KB events, durable and relaxed, 1 and 32 partitions. The server runs alone on the first core where
there are two, hubweir's client generates the load on the others, with batches encoded beforehand. Rates are medians
over rounds with their range; beside them stand, from the same run, the loopback and memcpy ceilings, and the share of
the loopback stream that the events' bytes are. One round publishes N events, lets readers attach and read them, then
does both at once.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from ceilings import loopback_bytes_per_second, memcpy_bytes_per_second
from hubweir import kernels
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.types.values import Symbol, ULong
from hubweir.client.connection import Connection
from hubweir.client.event_batch import EventBatch
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess

BATCH_EVENTS = 1_000
BATCHES_IN_FLIGHT = 32
SINGLES_IN_FLIGHT = 900
KEYS = 5_000
ROUND_LIMIT_S = 120
DAY_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table. keyed: single events with many keys, to the hub; else batches to its partitions."""

    event_bytes: int
    durability: str
    partitions: int
    keyed: bool = False

    @property
    def hub(self) -> str:
        return f"bench-{self.event_bytes}-{self.durability}-{self.partitions}{'-keyed' if self.keyed else ''}"


@dataclass(slots=True)
class Figures:
    """Rates in events/s, server processor time in microseconds an event, a value a round."""

    rate_in: list[float] = field(default_factory=list)
    rate_out: list[float] = field(default_factory=list)
    rate_both: list[float] = field(default_factory=list)
    cpu_in: list[float] = field(default_factory=list)
    cpu_out: list[float] = field(default_factory=list)
    cpu_both: list[float] = field(default_factory=list)


CASES = [
    Case(size, durability, partitions)
    for size in (200, 1024)
    for durability in ("durable", "relaxed")
    for partitions in (1, 32)
] + [Case(200, "durable", 32, keyed=True)]


class Load:
    """The generator: one connection that publishes, one that reads."""

    def __init__(self, server: ServerProcess, case: Case, events: int) -> None:
        self._target = ConnectionString.parse(server.connection_string())
        self._pid = pid_of(server)
        self._case = case
        self._events = events
        self._partition_ids = [str(one) for one in range(case.partitions)]
        if case.keyed:
            self._events, self._batch_events, self._in_flight = events // 10, 1, SINGLES_IN_FLIGHT
            self._payloads = [keyed_event(f"device-{key:06d}", case.event_bytes) for key in range(KEYS)]
            return
        batch = EventBatch(1024 * 1024)
        for _ in range(BATCH_EVENTS if case.event_bytes < 1000 else BATCH_EVENTS // 2):
            assert batch.try_add(bytes(case.event_bytes))
        self._payloads, self._batch_events, self._in_flight = [batch.payload()], batch.count, BATCHES_IN_FLIGHT

    async def rounds(self, count: int) -> Figures:
        """Measure, each round in a hub of its own: readers that were there before would read beside the publisher."""
        figures = Figures()
        publisher = await Connection.open(self._target)
        reader = await Connection.open(self._target)
        try:
            for _ in range(count):
                await self._round(publisher, reader, figures)
        finally:
            await publisher.close()
            await reader.close()
        return figures

    async def _round(self, publisher: Connection, reader: Connection, figures: Figures) -> None:
        hub = self._case.hub
        await Management(publisher).create_hub(
            hub, partition_count=self._case.partitions, retention_ms=DAY_MS, durability=self._case.durability
        )
        addresses = [hub] if self._case.keyed else [f"{hub}/Partitions/{one}" for one in self._partition_ids]
        senders = [await Sender.open(publisher, address) for address in addresses]
        receivers: list[Receiver] = []

        async def read_backlog() -> None:
            # Their attaching counts as reading: from then on events come.
            sources = [address_of(hub, "$Default", one) for one in self._partition_ids]
            receivers.extend(await asyncio.gather(*(Receiver.open(reader, source) for source in sources)))
            await self._read(receivers)

        await self._measure(figures.rate_in, figures.cpu_in, lambda: self._publish(senders))
        await self._measure(figures.rate_out, figures.cpu_out, read_backlog)
        await self._measure(figures.rate_both, figures.cpu_both, lambda: self._both(senders, receivers))
        for sender in senders:
            await sender.close()
        for receiver in receivers:
            await receiver.close()
        await Management(publisher).delete_hub(hub)

    async def _measure(self, rates: list[float], cpu: list[float], job: Callable[[], Awaitable[None]]) -> None:
        cpu_before, begun = processor_seconds(self._pid), time.perf_counter()
        await asyncio.wait_for(job(), ROUND_LIMIT_S)
        rates.append(self._sent / (time.perf_counter() - begun))
        cpu.append((processor_seconds(self._pid) - cpu_before) / self._sent * 1e6)

    @property
    def _sent(self) -> int:
        """How many events a round moves: whole batches."""
        return -(-self._events // self._batch_events) * self._batch_events

    async def _publish(self, senders: list[Sender]) -> None:
        under_way: deque[asyncio.Future[None]] = deque()
        message_format = 0 if self._case.keyed else BATCH_FORMAT
        work = zip(cycle(senders), cycle(self._payloads), strict=False)
        for sender, payload in islice(work, self._sent // self._batch_events):
            if len(under_way) == self._in_flight:
                await under_way.popleft()
            under_way.append(sender.submit_payload(payload, message_format=message_format))
        for outcome in under_way:
            await outcome

    async def _read(self, receivers: list[Receiver]) -> None:
        """Read until the last event has come: what a reader that has all of its own waits then is no part of it."""
        left = self._sent
        done = asyncio.Event()

        async def one(receiver: Receiver) -> None:
            nonlocal left
            while left > 0:
                run = await receiver.receive(max_wait_s=ROUND_LIMIT_S)
                left -= 0 if run is None else run.count
            done.set()

        async with asyncio.TaskGroup() as group:
            reading = [group.create_task(one(receiver)) for receiver in receivers]
            await done.wait()
            for task in reading:
                task.cancel()

    async def _both(self, senders: list[Sender], receivers: list[Receiver]) -> None:
        await asyncio.gather(self._publish(senders), self._read(receivers))


def keyed_event(key: str, size: int) -> bytes:
    """One encoded message with a partition key."""
    annotations: dict[Symbol | ULong, object] = {Symbol("x-opt-partition-key"): key}
    return encode_message(Message(message_annotations=annotations, body=DataBody((bytes(size),))))


def processor_seconds(pid: int) -> float:
    """User and system time that a process has used so far, to the nanosecond, where /proc has ticks of 10 ms.

    The clock is the one that clock_getcpuclockid(3) names.
    """
    return time.clock_gettime(~pid << 3 | 2)


def pid_of(server: ServerProcess) -> int:
    assert server.pid is not None, "the server does not run"
    return server.pid


def pin(pid: int) -> str:
    """The server to the first core, us to the others; says what was done."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return "one core for server and generator together"
    os.sched_setaffinity(pid, cores[:1])
    os.sched_setaffinity(0, cores[1:])
    return f"server on core {cores[0]}, generator on {', '.join(map(str, cores[1:]))}"


def shown(values: list[float], form: str) -> str:
    """Median and range."""
    return f"{median(values):{form}} ({min(values):{form}}-{max(values):{form}})"


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench spine", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--events", type=int, default=400_000, help="events a round (default 400000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds a row (default 3)")
    arguments = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 220)
    memcpy, loopback = memcpy_bytes_per_second(), loopback_bytes_per_second()
    table = Table("event", "mode", "partitions", "in, events/s", "out, events/s", "in + out, events/s")
    for heading in ("CPU in, us", "CPU out, us", "CPU in + out, us", "in, of loopback"):
        table.add_column(heading)
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder, ServerProcess(data=Path(folder)) as server:
        placed = pin(pid_of(server))
        for case in CASES:
            console.print(f"{case.hub} …")
            figures = asyncio.run(Load(server, case, arguments.events).rounds(arguments.rounds))
            table.add_row(
                f"{case.event_bytes} B{', single, keyed' if case.keyed else ''}",
                case.durability,
                str(case.partitions),
                shown(figures.rate_in, ",.0f"),
                shown(figures.rate_out, ",.0f"),
                shown(figures.rate_both, ",.0f"),
                shown(figures.cpu_in, ".2f"),
                shown(figures.cpu_out, ".2f"),
                shown(figures.cpu_both, ".2f"),
                f"{median(figures.rate_in) * case.event_bytes / loopback:.3f}",
            )
    console.print(table)
    console.print(
        f"kernels: {kernels.which()}; {placed}; ceilings of this run: loopback {loopback / 1e9:.2f} GB/s, "
        f"memcpy {memcpy / 1e9:.2f} GB/s; {arguments.rounds} rounds of {arguments.events:,} events"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
