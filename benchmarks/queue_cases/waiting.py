"""What messages cost while they wait, and a start after a kill with them there."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

from rich.console import Console

from goals.figure import Figure
from hubweir.client.connection import Connection
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from queue_cases.queues import BATCH_MESSAGES, BODY_BYTES, create_queue, resident_bytes, stored_bytes
from queue_cases.rates import Case, Load, Place
from queue_cases.settler import Settler
from spine import pid_of

QUEUE = Case(is_express=False, batch=BATCH_MESSAGES)
WARMING = 10_000  # messages that are sent first: what is allocated once is there then
SETTLING_S = 2.0  # the sweep saves a snapshot, and gives back what it needed
MESSAGE_GOAL_BYTES, GOAL_BYTES, START_GOAL_S = 64, 80e6, 3.0


async def _first_message_s(target: ConnectionString) -> float:
    """From nothing to a message that was received and settled."""
    begun = perf_counter()
    reader = await Connection.open(target)
    await reader.authorization.authorize(QUEUE.queue)
    await asyncio.wait_for(Settler(reader, QUEUE.queue).settle(1), 60)
    took = perf_counter() - begun
    await reader.close()
    return took


def _empty_start(folder: Path) -> tuple[float, int]:
    """The same without messages: seconds, and what the process has in memory."""
    with ServerProcess(data=folder) as server:
        create_queue(ConnectionString.parse(server.connection_string()), QUEUE.queue)
        server.kill9()
        took = server.start()
        return took, resident_bytes(pid_of(server))


def measure_waiting(folder: Path, count: int, runner: asyncio.Runner, console: Console) -> list[Figure]:
    """Fill a queue in a process of its own, kill it, and start it again."""
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as other:
        empty_s, fresh = _empty_start(Path(other))
    with ServerProcess(data=folder) as server:
        target = ConnectionString.parse(server.connection_string())
        create_queue(target, QUEUE.queue)
        place = Place(target, pid_of(server), QUEUE.queue)
        runner.run(Load(place, batch=QUEUE.batch, messages=WARMING).fill())
        empty, on_disk = resident_bytes(pid_of(server)), stored_bytes(folder)
        runner.run(Load(place, batch=QUEUE.batch, messages=count).fill())
        runner.run(asyncio.sleep(SETTLING_S))
        grown, on_disk = resident_bytes(pid_of(server)) - empty, stored_bytes(folder) - on_disk
        server.kill9()
        start_s = server.start(seconds=300)
        started = resident_bytes(pid_of(server)) - fresh
        first_s = runner.run(_first_message_s(ConnectionString.parse(server.connection_string())))
    console.print(
        f"{count:,} messages of {BODY_BYTES} B that wait: {on_disk / count:.0f} B of files each; behind a start "
        f"{started / count:.0f} B of memory each, the first message after {first_s:.2f} s more; a start without "
        f"messages {empty_s:.2f} s"
    )
    return [
        Figure("memory of a message that waits", (grown / count,), "B", MESSAGE_GOAL_BYTES, is_limit=True),
        Figure("memory of all that wait", (grown / 1e6,), "MB", GOAL_BYTES / 1e6 * count / 1e6, is_limit=True),
        Figure("start after a kill", (start_s,), "s", START_GOAL_S, is_limit=True),
    ]
