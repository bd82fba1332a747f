"""How long the service's loop stands still, and how long its garbage collections take.

    ./run bench stalls [--seconds 20] [--partitions 1,32,1024] [--rate 200]

For each number of partitions a service in a process of its own. A client publishes small batches to all partitions in
turn and reads from up to 32 of them, while a timer of the service's loop says how late it comes. Phases: the hub is
made, steady traffic, the hub is deleted under its links and beside traffic to another one, traffic afterwards. What a
thread waited for a processor because the machine was busy is taken off where the system tells it (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.client.connection import Connection
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.watched_service import LONG_COLLECTION_MS, STALL_MS, WatchedService

READERS = 32
EVENT_BYTES = 200


class Traffic:
    """A client that publishes `rate` events a second, one a send, to all partitions of a hub in turn, and reads."""

    def __init__(self, target: ConnectionString, hub: str, partitions: int, rate: int) -> None:
        self._target, self._hub, self._partitions, self._rate = target, hub, partitions, rate
        self._tasks: list[asyncio.Task[None]] = []
        self._connections: list[Connection] = []
        self.sent = self.read = 0

    async def start(self) -> Traffic:
        publisher, reader = await Connection.open(self._target), await Connection.open(self._target)
        self._connections = [publisher, reader]
        senders = [
            await Sender.open(publisher, f"{self._hub}/Partitions/{number}") for number in range(self._partitions)
        ]
        self._tasks = [asyncio.create_task(self._publish(senders))]
        for number in range(min(READERS, self._partitions)):
            receiver = await Receiver.open(reader, address_of(self._hub, "$Default", str(number)))
            self._tasks.append(asyncio.create_task(self._receive(receiver)))
        return self

    async def _publish(self, senders: list[Sender]) -> None:
        payload = encode_message(Message(body=DataBody((bytes(EVENT_BYTES),))))
        due = time.perf_counter()
        while True:
            for sender in senders:
                sender.submit_payload(payload, message_format=0).add_done_callback(self._ended)
                due += 1 / self._rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))

    def _ended(self, sending: asyncio.Future[Any]) -> None:
        if not sending.cancelled() and sending.exception() is None:
            self.sent += 1

    async def _receive(self, receiver: Receiver) -> None:
        while True:
            run = await receiver.receive(max_wait_s=5)
            self.read += 0 if run is None else run.count

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._connections:
            await connection.close()


async def one(partitions: int, seconds: float, rate: int) -> list[dict[str, Any]]:
    """The phases of one service."""
    rows: list[dict[str, Any]] = []

    def note(phase: str, answer: dict[str, Any]) -> None:
        rows.append({"partitions": partitions, "phase": phase, **answer})

    with tempfile.TemporaryDirectory(prefix="hubweir-stalls-") as data:
        async with WatchedService(data) as service:
            assert service.target is not None
            await service.ask("create", "other", 1)
            other = await Traffic(service.target, "other", 1, rate).start()
            note("hub is made", await service.ask("create", "bench", partitions))
            bench = await Traffic(service.target, "bench", partitions, rate).start()
            note("links attach", await service.ask("take"))
            await asyncio.sleep(seconds)
            note("steady", await service.ask("take"))
            note("hub is deleted", await service.ask("delete", "bench"))
            await bench.stop()
            note("links end", await service.ask("take"))
            await asyncio.sleep(seconds / 2)
            note("afterwards", await service.ask("take"))
            found = await service.ask("find")
            left = sum(found["result"].values())
            print(f"{partitions} partitions: {bench.sent} sent, {bench.read} read; a collection of all finds {left}")
            await other.stop()
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="stalls of the service's loop")
    columns = {
        "partitions": ("partitions", "d"), "phase": ("phase", "s"), "seconds": ("seconds", ".1f"),
        "longest_stall_ms": ("longest stall, ms", ".1f"), "stalls": (f"over {STALL_MS} ms", "d"),
        "longest_collection_ms": ("longest collection, ms", ".1f"),
        "long_collections": (f"over {LONG_COLLECTION_MS} ms", "d"), "collecting_percent": ("% collecting", ".1f"),
        "older_collections": ("older ones", "d"), "memory_mb": ("memory, MB", ".0f"),
    }  # fmt: skip
    for name, (title, _) in columns.items():
        table.add_column(title, justify="left" if name == "phase" else "right")
    for row in rows:
        table.add_row(*(format(row[name], kind) for name, (_, kind) in columns.items()))
    Console(width=150).print(table)


def main() -> None:
    options = argparse.ArgumentParser(prog="./run bench stalls")
    options.add_argument("--seconds", type=float, default=20)
    options.add_argument("--partitions", default="1,32,1024")
    options.add_argument("--rate", type=int, default=200)
    given = options.parse_args()
    rows: list[dict[str, Any]] = []
    for partitions in map(int, given.partitions.split(",")):
        rows += asyncio.run(one(partitions, given.seconds, given.rate))
    show(rows)


if __name__ == "__main__":
    main()
