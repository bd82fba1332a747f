"""What a topic costs: copies/s through all of its subscriptions, beside messages/s through a queue, in turns.

    ./run bench topic [--messages N] [--subscriptions N] [--rounds N] [--rule TEXT]

The same messages of 200 B with one application property, in batches of 100, durable, received under peek-lock; each is
settled by a disposition of its own that the service answers. Every subscription has one SQL rule, which lets every
message through. A round sends and receives at once: N messages through the queue; N copies through the topic, of as
many messages as make N copies. The server runs alone on the first core where there are two.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from hubweir import kernels
from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import LOOPS
from hubweir.testing.server_process import ServerProcess
from queue_cases.queues import BATCH_MESSAGES, BATCHES_IN_FLIGHT, BODY_BYTES, ROUND_LIMIT_S
from queue_cases.settler import Settler
from spine import pid_of, pin, processor_seconds, shown

QUEUE, TOPIC = "bench-queue", "bench-topic"
MESSAGE = encode_message(
    Message(application_properties={"color": "red"}, body=DataBody((bytes(BODY_BYTES),)))
)  # fmt: skip
PAYLOAD = data_section(MESSAGE) * BATCH_MESSAGES


@dataclass(slots=True)
class Figures:
    """Messages or copies a second, and server processor time in microseconds for each; a value a round."""

    rate: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)


class Route:
    """From one entity that is sent to, to those that are received from, by connections of their own."""

    def __init__(self, target: ConnectionString, pid: int, entity: str, sources: list[str], batches: int) -> None:
        self._target, self._pid, self._entity, self._sources, self._batches = target, pid, entity, sources, batches
        self.figures = Figures()

    async def round(self) -> None:
        """Send all batches, and settle all that comes of them at every source."""
        publisher, reader = await Connection.open(self._target), await Connection.open(self._target)
        try:
            sender = await Sender.open(publisher, self._entity)
            settlers = []
            for source in self._sources:
                await reader.authorization.authorize(source)
                settlers.append(Settler(reader, source))
            cpu_before, begun = processor_seconds(self._pid), time.perf_counter()
            count = self._batches * BATCH_MESSAGES
            jobs = [self._send(sender), *(each.settle(count) for each in settlers)]
            await asyncio.wait_for(asyncio.gather(*jobs), ROUND_LIMIT_S)
            copies = count * len(settlers)
            self.figures.rate.append(copies / (time.perf_counter() - begun))
            self.figures.cpu_us.append((processor_seconds(self._pid) - cpu_before) * 1e6 / copies)
        finally:
            await publisher.close()
            await reader.close()

    async def _send(self, sender: Sender) -> None:
        under_way: deque[asyncio.Future[None]] = deque()
        for _ in range(self._batches):
            if len(under_way) == BATCHES_IN_FLIGHT:
                await under_way.popleft()
            under_way.append(sender.submit_payload(PAYLOAD, message_format=BATCH_FORMAT))
        for outcome in under_way:
            await outcome


def subscribe(administration: Administration, count: int, rule: str) -> list[str]:
    """Make a topic with so many subscriptions of this rule; their paths."""
    administration.create(EntityType.TOPIC, TOPIC, {"MaxSizeInMegabytes": "5120"})
    text = rule.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    inside = f'<Filter i:type="SqlFilter"><SqlExpression>{text}</SqlExpression></Filter>'
    paths = [f"{TOPIC}/Subscriptions/s{number}" for number in range(count)]
    for path in paths:
        administration.create(EntityType.SUBSCRIPTION, path, {})
        administration.create(EntityType.RULE, f"{path}/Rules/chosen", {}, inside)
        administration.delete(f"{path}/Rules/$Default")
    return paths


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench topic", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--messages", type=int, default=200_000, help="messages, and copies, a round (default 200000)")
    parser.add_argument("--subscriptions", type=int, default=10, help="of the topic (default 10)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each (default 3)")
    parser.add_argument("--rule", default="color = 'red'", help="of each subscription (default: color = 'red')")
    chosen = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 160)
    loop = LOOPS[max(LOOPS)]  # uvloop where it is installed, as the service chooses
    with (
        tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder,
        asyncio.Runner(loop_factory=loop) as runner,
        ServerProcess(data=Path(folder)) as server,
    ):
        placed, pid = pin(pid_of(server)), pid_of(server)
        target = ConnectionString.parse(server.connection_string())
        administration = Administration(target)
        administration.create(EntityType.QUEUE, QUEUE, {"MaxSizeInMegabytes": "5120"})
        paths = subscribe(administration, chosen.subscriptions, chosen.rule)
        batches = -(-chosen.messages // BATCH_MESSAGES)
        queue = Route(target, pid, QUEUE, [QUEUE], batches)
        topic = Route(target, pid, TOPIC, paths, -(-batches // len(paths)))
        for number in range(chosen.rounds):
            console.print(f"round {number + 1} …")
            for route in (queue, topic):
                runner.run(route.round())
    table = Table("through", "messages or copies/s", "CPU of the service, us", "of the queue's rate")
    for name, figures in (("a queue", queue.figures), (f"a topic of {len(paths)} subscriptions", topic.figures)):
        ratio = median(figures.rate) / median(queue.figures.rate)
        table.add_row(name, shown(figures.rate, ",.0f"), shown(figures.cpu_us, ".2f"), f"{ratio:.2f}")
    console.print(table)
    console.print(f"{chosen.rounds} rounds of {chosen.messages:,}, median (range); rule: {chosen.rule}")
    console.print(f"kernels: {kernels.which()}; {placed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
