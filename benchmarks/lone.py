"""What one event costs alone: the service's processor time, and the time from when it was due to its receipt.

    ./run bench lone [--rate 5000] [--seconds 4] [--bytes 200] [--rounds 3]

Single events go out in an open loop: event k is due at k / rate, whatever became of those before it, and is sent as
soon as the generator comes to it. Its latency counts from when it was due, so that what waits behind a stall counts,
too. One partition, one publisher, one reader; the service has the first core where there are two.

A relay runs in turn with the service: a process that hands the same bytes from one connection to another and knows no
protocol. It is the least that Python on a loop can do for an event; the figures of a service are held against it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import cast

from rich.console import Console
from rich.table import Table

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.sender import Sender
from hubweir.event_hub.event_position import LATEST
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import LOOPS
from hubweir.testing.server_process import ServerProcess
from spine import pid_of, pin, processor_seconds, shown

DAY_MS = 24 * 3600 * 1000
# After this long without one the events that are left count as lost, and the round as failed.
PATIENCE_S = 10.0
MODES = ("relaxed", "durable")


@dataclass(slots=True)
class Figures:
    """A value a round: processor time in microseconds an event; latencies in milliseconds."""

    cpu_us: list[float] = field(default_factory=list)
    p50_ms: list[float] = field(default_factory=list)
    p99_ms: list[float] = field(default_factory=list)
    longest_ms: list[float] = field(default_factory=list)

    def add(self, cpu_s: float, latencies_s: list[float]) -> None:
        ordered = sorted(latencies_s)
        self.cpu_us.append(cpu_s / len(ordered) * 1e6)
        self.p50_ms.append(ordered[len(ordered) // 2] * 1e3)
        self.p99_ms.append(ordered[len(ordered) * 99 // 100] * 1e3)
        self.longest_ms.append(ordered[-1] * 1e3)


class Round:
    """Events that are due one after the other, and when they came. They come in the order in which they were sent."""

    def __init__(self, rate: int, count: int) -> None:
        self._rate, self._count = rate, count
        self._begun = 0.0
        self.latencies_s: list[float] = []
        self.done = asyncio.Event()

    async def send_all(self, send: Callable[[], object]) -> None:
        """Send each event when it is due. The generator has a core of its own, and never sleeps in between."""
        sent, self._begun = 0, time.perf_counter()
        while sent < self._count:
            due = min(self._count, int((time.perf_counter() - self._begun) * self._rate))
            while sent < due:
                send()
                sent += 1
            await asyncio.sleep(0)

    def came(self, count: int) -> None:
        """The next so many events were received."""
        now, first = time.perf_counter() - self._begun, len(self.latencies_s)
        self.latencies_s += [now - (number + 1) / self._rate for number in range(first, first + count)]
        if len(self.latencies_s) >= self._count:
            self.done.set()


async def measure(pid: int, figures: Figures, round_: Round, send: Callable[[], object], read: Awaitable[None]) -> None:
    """One round. send: one event; read: calls `came` for what is received, until it is cancelled."""
    reading = asyncio.ensure_future(read)
    before_s = processor_seconds(pid)
    try:
        await round_.send_all(send)
        await asyncio.wait_for(round_.done.wait(), PATIENCE_S)
    finally:
        reading.cancel()
    figures.add(processor_seconds(pid) - before_s, round_.latencies_s)


class Events:
    """A publisher and a reader of one partition of a hub."""

    def __init__(self, target: ConnectionString, pid: int, mode: str, size: int) -> None:
        self._target, self._pid, self._mode = target, pid, mode
        self._payload = encode_message(Message(body=DataBody((bytes(size),))))
        self.figures = Figures()

    async def measure(self, rate: int, count: int) -> None:
        publisher, reader = await Connection.open(self._target), await Connection.open(self._target)
        try:
            hub = f"lone-{self._mode}"
            if not self.figures.cpu_us:
                await Management(publisher).create_hub(
                    hub, partition_count=1, retention_ms=DAY_MS, durability=self._mode
                )
            sender = await Sender.open(publisher, f"{hub}/Partitions/0")
            receiver = await Receiver.open(reader, address_of(hub, "$Default", "0"), ReceiverOptions(position=LATEST))
            round_, outcomes = Round(rate, count), list[asyncio.Future[None]]()

            async def read() -> None:
                while True:
                    run = await receiver.receive(max_wait_s=PATIENCE_S)
                    round_.came(0 if run is None else run.count)

            await measure(
                self._pid, self.figures, round_,
                lambda: outcomes.append(sender.submit_payload(self._payload, message_format=0)), read(),
            )  # fmt: skip
            await asyncio.gather(*outcomes)
        finally:
            await publisher.close()
            await reader.close()


class Relay(asyncio.Protocol):
    """The relay's side of a connection: what comes in goes out on every other one."""

    peers: list[asyncio.WriteTransport] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._own = cast(asyncio.WriteTransport, transport)
        self.peers.append(self._own)

    def connection_lost(self, exc: Exception | None) -> None:
        self.peers.remove(self._own)

    def data_received(self, data: bytes) -> None:
        for peer in self.peers:
            if peer is not self._own:
                peer.write(data)


async def relay() -> None:
    """The relay's process: prints its port, then runs until it is ended."""
    server = await asyncio.get_running_loop().create_server(Relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def measure_relay(port: int, pid: int, figures: Figures, rate: int, count: int, size: int) -> None:
    source, sink = await asyncio.open_connection("127.0.0.1", port), await asyncio.open_connection("127.0.0.1", port)
    await asyncio.sleep(0.1)  # both are connected at the relay, too
    round_, payload = Round(rate, count), bytes(size)

    async def read() -> None:
        left = 0
        while data := await sink[0].read(1 << 16):
            events, left = divmod(left + len(data), size)
            round_.came(events)

    await measure(pid, figures, round_, lambda: source[1].write(payload), read())
    for _, writer in (source, sink):
        writer.close()
        await writer.wait_closed()


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench lone", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rate", type=int, default=5_000, help="events a second (default 5000)")
    parser.add_argument("--seconds", type=float, default=4, help="of each round (default 4)")
    parser.add_argument("--bytes", type=int, default=200, help="of an event's body (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, relay and modes in turn (default 3)")
    parser.add_argument("--relay", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    loop = LOOPS[max(LOOPS)]  # uvloop where it is installed, as the service chooses
    with asyncio.Runner(loop_factory=loop) as runner:
        if chosen.relay:
            runner.run(relay())
        count = int(chosen.rate * chosen.seconds)
        command = [sys.executable, __file__, "--relay"]
        with (
            tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder,
            ServerProcess(data=Path(folder)) as server,
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as relaying,
        ):
            try:
                assert relaying.stdout is not None
                port, bare = int(relaying.stdout.readline()), Figures()
                placed = pin(pid_of(server))
                os.sched_setaffinity(relaying.pid, os.sched_getaffinity(pid_of(server)))
                target = ConnectionString.parse(server.connection_string())
                events = [Events(target, pid_of(server), mode, chosen.bytes) for mode in MODES]
                for _ in range(chosen.rounds):
                    runner.run(measure_relay(port, relaying.pid, bare, chosen.rate, count, chosen.bytes))
                    for each in events:
                        runner.run(each.measure(chosen.rate, count))
            finally:
                relaying.kill()
    table = Table("", "CPU of the service, us", "p50, ms", "p99, ms", "longest, ms", "p50 to the relay's")
    for name, figures in (("relay", bare), *zip(MODES, (each.figures for each in events), strict=True)):
        ratio = median(figures.p50_ms) / median(bare.p50_ms)
        table.add_row(
            name, shown(figures.cpu_us, ".0f"), shown(figures.p50_ms, ".3f"), shown(figures.p99_ms, ".2f"),
            shown(figures.longest_ms, ".1f"), f"{ratio:.2f}",
        )  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(table)
    console.print(f"{chosen.rate} single events of {chosen.bytes} B a second; {placed}; median (range) of rounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
