"""How long the partitions of a broker process are away that was killed, with a large log that nobody closed.

The logs of one process get events of 1 KB, in as many files as it has partitions, so that all that is read at a start
is there: the newest segment of each. Then it is killed, and a publisher of each partition tries until it is accepted.
"""

from __future__ import annotations

import asyncio
import os
import signal
from time import perf_counter

from rich.console import Console

from broker_cases.events import batch_of, create_hub, publish
from broker_cases.processes import Service
from goals.figure import Figure
from hubweir.client.connection import Connection
from hubweir.client.sender import Sender
from hubweir.errors import ServiceError
from queue_cases.queues import ROUND_LIMIT_S

HUB, PARTITIONS = "bench-restart", 8
EVENT_BYTES, BATCH_EVENTS, IN_FLIGHT = 1_000, 250, 8
GOAL_S = 3.0
AGAIN_S = 0.02
TRY_LIMIT_S = 10.0


async def _fill(service: Service, partitions: list[int], size_bytes: int) -> None:
    """Write so much to these partitions together."""
    sends = -(-size_bytes // (len(partitions) * EVENT_BYTES * BATCH_EVENTS))
    payload, connection = batch_of(BATCH_EVENTS, EVENT_BYTES), await Connection.open(service.target)
    try:
        senders = [await Sender.open(connection, f"{HUB}/Partitions/{number}") for number in partitions]
        jobs = [publish(sender, payload, sends, in_flight=IN_FLIGHT) for sender in senders]
        await asyncio.wait_for(asyncio.gather(*jobs), ROUND_LIMIT_S)
    finally:
        await connection.close()


async def _until_accepted(service: Service, partition: int, payload: bytes) -> None:
    """Connect and send until one event is accepted."""
    while True:
        try:
            connection = await Connection.open(service.target, timeout_s=TRY_LIMIT_S)
        except ServiceError:
            await asyncio.sleep(AGAIN_S)
            continue
        try:
            sender = await Sender.open(connection, f"{HUB}/Partitions/{partition}")
            await publish(sender, payload, 1, in_flight=1)
            return
        except ServiceError:
            await asyncio.sleep(AGAIN_S)
        finally:
            await connection.close()


async def _kill(service: Service, partitions: list[int]) -> float:
    """Seconds from the kill of the first process until all of these partitions take events."""
    payload = batch_of(1, EVENT_BYTES)
    os.kill(service.serving_pids()[0], signal.SIGKILL)
    begun = perf_counter()
    jobs = [_until_accepted(service, number, payload) for number in partitions]
    await asyncio.wait_for(asyncio.gather(*jobs), ROUND_LIMIT_S)
    return perf_counter() - begun


def measure_restart(
    service: Service, size_bytes: int, rounds: int, runner: asyncio.Runner, console: Console
) -> list[Figure]:
    """Fill, then kill as often as there are rounds, with what is there then."""
    runner.run(create_hub(service.target, HUB, PARTITIONS))
    partitions = list(range(0, PARTITIONS, service.brokers))  # store 0's: partitions lie on stores in turn
    console.print(f"restart: {size_bytes / 1e9:.1f} GB …")
    runner.run(_fill(service, partitions, size_bytes))
    took = list[float]()
    for _ in range(rounds):
        took.append(runner.run(_kill(service, partitions)))
    name = f"away behind a kill, {size_bytes / 1e9:.1f} GB in {len(partitions)} logs"
    return [Figure(name, tuple(took), "s", GOAL_S, is_limit=True)]
