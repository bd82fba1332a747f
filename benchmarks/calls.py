"""How many Python calls, and how many callbacks of the loop, one batch costs a service.

    ./run bench calls [--batches 300] [--events 100]

A service in a process of its own, with a profiler's hook on the thread of its loop. A client publishes one batch after
the other, each when the one before was accepted: first alone, then while a reader of the same partition waits for each.
Calls are those of Python functions; what runs in the threads that write and sync, and what C code does, is not in them.
A batch's share of what the service does by the clock is: some hundredths of a call.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import hubweir
from hubweir.client.connection import Connection
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.event_hub.event_position import LATEST
from hubweir.testing.watched_service import WatchedService

EVENT_BYTES = 100
WARM_UP = 50
PACKAGE = Path(hubweir.__file__).parent


async def publish(sender: Sender, batches: int, events: int, receiver: Receiver | None) -> None:
    """Batch by batch; with a receiver each one is received, too, before the next is sent."""
    for _ in range(batches):
        batch = sender.batch()
        for _ in range(events):
            assert batch.try_add(bytes(EVENT_BYTES))
        await sender.submit(batch)
        left = events if receiver is not None else 0
        while receiver is not None and left:
            run = await receiver.receive(max_wait_s=10)
            assert run is not None, "an event did not come"
            left -= len(run)


async def counted(service: WatchedService, sender: Sender, batches: int, events: int, receiver: Any) -> dict[str, Any]:
    """What `batches` batches cost: callbacks, and calls by file, a batch."""
    await publish(sender, WARM_UP, events, receiver)
    await service.ask("count_calls")
    await publish(sender, batches, events, receiver)
    seen: dict[str, Any] = (await service.ask("counted_calls"))["result"]
    calls = {file: count / batches for file, count in seen["calls"].items() if count}
    return {"callbacks": seen["callbacks"] / batches, "calls": calls}


def by_folder(calls: dict[str, float]) -> defaultdict[str, float]:
    """Calls by folder of the package; what is not ours in one line."""
    found: defaultdict[str, float] = defaultdict(float)
    for file, count in calls.items():
        path = Path(file)
        inside = path.relative_to(PACKAGE).parent.as_posix() if path.is_relative_to(PACKAGE) else "other packages"
        found["hubweir" if inside == "." else inside] += count
    return found


async def measure(batches: int, events: int) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        async with WatchedService(folder) as service:
            await service.ask("create", "hub", 2)
            assert service.target is not None
            connection, other = await Connection.open(service.target), await Connection.open(service.target)
            sender = await Sender.open(connection, "hub/Partitions/0")
            alone = await counted(service, sender, batches, events, None)
            receiver = await Receiver.open(other, address_of("hub", "$Default", "0"), ReceiverOptions(position=LATEST))
            read = await counted(service, sender, batches, events, receiver)
            await connection.close()
            await other.close()
    return alone, read


def main() -> None:
    options = argparse.ArgumentParser(prog="./run bench calls")
    options.add_argument("--batches", type=int, default=300)
    options.add_argument("--events", type=int, default=100)
    chosen = options.parse_args()
    alone, read = asyncio.run(measure(chosen.batches, chosen.events))
    table = Table("folder", "in", "in, with a live reader", title=f"Python calls for a batch of {chosen.events} events")
    folders = [by_folder(seen["calls"]) for seen in (alone, read)]
    for folder in sorted(folders[1], key=folders[1].__getitem__, reverse=True):
        table.add_row(
            folder, *(f"{each[folder]:.1f}" for each in folders), style="" if folders[1][folder] > 1 else "dim"
        )
    table.add_section()
    table.add_row("all", *(f"{sum(each.values()):.1f}" for each in folders))
    table.add_row("callbacks of the loop", *(f"{seen['callbacks']:.1f}" for seen in (alone, read)))
    for seen, name in ((alone, "in"), (read, "in, with a live reader")):
        ours = [file for file, count in seen["calls"].items() if count >= 0.5]
        table.add_row(f"files ({name})", str(len(ours)), "")
    Console().print(table)


if __name__ == "__main__":
    main()
