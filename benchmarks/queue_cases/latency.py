"""Single messages in an open loop (see lone.py): from when each was due to be sent until it was received."""

from __future__ import annotations

import asyncio

from rich.console import Console
from rich.table import Table

from goals.figure import Figure
from hubweir.client.connection import Connection
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from lone import PATIENCE_S, Figures, Round, measure
from queue_cases.queues import MESSAGE, create_queue
from queue_cases.settler import Settler
from spine import pid_of, shown

RATE, SECONDS = 2_000, 4
P50_GOAL_MS = 1.0


async def _round(target: ConnectionString, pid: int, figures: Figures, *, is_express: bool) -> None:
    """Single messages at RATE, each settled when it comes."""
    queue, count = f"latency-{'express' if is_express else 'durable'}", RATE * SECONDS
    if not figures.cpu_us:
        create_queue(target, queue, EnableExpress=str(is_express).lower())
    publisher, reader = await Connection.open(target), await Connection.open(target)
    try:
        sender = await Sender.open(publisher, queue)
        await reader.authorization.authorize(queue)
        round_, outcomes = Round(RATE, count), list[asyncio.Future[None]]()
        settler = Settler(reader, queue, lambda event: round_.came(event.count))
        await settler.wait_attached(PATIENCE_S)
        await measure(
            pid, figures, round_, lambda: outcomes.append(sender.submit_payload(MESSAGE, message_format=0)),
            settler.settle(count),
        )  # fmt: skip
        await asyncio.gather(*outcomes)
        await asyncio.wait_for(settler.settle(0), PATIENCE_S)
    finally:
        await publisher.close()
        await reader.close()


def measure_latency(server: ServerProcess, rounds: int, runner: asyncio.Runner, console: Console) -> list[Figure]:
    """Print the table; the figure of the durable mode."""
    table = Table("mode", "CPU of the service, us", "p50, ms", "p99, ms", "longest, ms")
    target, found = ConnectionString.parse(server.connection_string()), (Figures(), Figures())
    for _ in range(rounds):
        for is_express, figures in enumerate(found):
            runner.run(_round(target, pid_of(server), figures, is_express=bool(is_express)))
    for mode, figures in zip(("durable", "express"), found, strict=True):
        table.add_row(
            mode, shown(figures.cpu_us, ".0f"), shown(figures.p50_ms, ".3f"), shown(figures.p99_ms, ".2f"),
            shown(figures.longest_ms, ".1f"),
        )  # fmt: skip
    console.print(table)
    name = f"send to receive at {RATE:,}/s, durable, p50"
    return [Figure(name, tuple(found[0].p50_ms), "ms", P50_GOAL_MS, is_limit=True)]
