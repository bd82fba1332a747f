"""What capture costs: events a second that a broker stores, without capture and with it, and that capture writes.

    ./run bench capture [--seconds 8] [--rounds 3] [--partitions 4] [--size 200] [--rate 0] [--durable]

A broker on this disk, appends as a gateway makes them, captured to a local folder in windows of 32 MiB. Rounds
without and with capture take turns, because a shared machine changes from minute to minute; the best of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.broker.broker import Broker
from hubweir.broker.capture.places import CapturePlaces
from hubweir.broker.commands.capture import AskCaptureState
from hubweir.broker.commands.command import Command
from hubweir.broker.commands.partition import AppendEvents, CreatePartition
from hubweir.counters import Counters
from hubweir.drivers.system_env import SystemEnv
from hubweir.event_hub.open_run import OpenRun
from hubweir.kernels import which
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.service.parts import SWITCH_INTERVAL_S

WINDOW_BYTES = 32 * 1024 * 1024
BATCH_EVENTS, IN_FLIGHT = 1_000, 4


@dataclass(frozen=True)
class Round:
    """Events a second: stored, captured while storing, captured afterwards until it had caught up."""

    stored: float
    captured: float
    catching_up: float


def one_batch(size: int) -> bytes:
    """The run of a batch of events."""
    message = encode_message(Message(body=DataBody((b"x" * size,))))
    data = (b"\x00\x53\x75\xb0" + len(message).to_bytes(4, "big") + message) * BATCH_EVENTS
    run = OpenRun()
    run.add_deliveries(data, array("q", [0, 0, len(data), 0, BATCH_FORMAT]), 0, 1)
    return bytes(run.take_run())


class Bench:
    """A broker with captured, or not captured, partitions in a folder of its own."""

    def __init__(self, folder: str) -> None:
        files = SystemFiles(folder)
        self.env = SystemEnv(files)
        self.counters = Counters()
        store = MessagingStore.open(self.env, "store-0", counters=self.counters)
        places = CapturePlaces(files, "capture")
        self.broker = Broker(self.env, store, self.counters, capture_places=places)
        self.broker.start()

    async def ask(self, command: Command) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.broker.submit(command, answered.set_result)
        return await answered

    async def close(self) -> None:
        closed = asyncio.Event()
        self.broker.stop(closed.set)
        await closed.wait()
        self.env.close()


async def play(options: argparse.Namespace, *, is_captured: bool) -> Round:
    """One round."""
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-") as folder:
        bench = Bench(folder)
        capture = CaptureDescription(enabled=is_captured, interval_s=900, size_limit_bytes=WINDOW_BYTES)
        durability = Durability.DURABLE if options.durable else Durability.RELAXED
        ids = [bench.env.new_id() for _ in range(options.partitions)]
        for number, log_id in enumerate(ids):
            wanted = CreatePartition(log_id, "hub", str(number), durability, 86_400_000, "bench", capture)
            await bench.ask(wanted)
        batch, begun = one_batch(options.size), time.perf_counter()
        rate = options.rate / len(ids)
        stored = sum(await asyncio.gather(*(store(bench, log_id, batch, options.seconds, rate) for log_id in ids)))
        seconds = time.perf_counter() - begun
        captured = bench.counters["capture.events"]
        catching_up = await catch_up(bench, ids) if is_captured else 0.0
        await bench.close()
    return Round(stored / seconds, captured / seconds, catching_up)


async def store(bench: Bench, log_id: str, batch: bytes, seconds: float, rate: float) -> int:
    """Append to a partition for so long, a few at a time, no faster than rate (0: as it goes); how many events."""
    begun, stored = time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < seconds:
        if rate and stored > rate * passed:
            await asyncio.sleep(stored / rate - passed)
            continue
        await asyncio.gather(*(bench.ask(AppendEvents(log_id, bytearray(batch))) for _ in range(IN_FLIGHT)))
        stored += IN_FLIGHT * BATCH_EVENTS
    return stored


async def catch_up(bench: Bench, ids: list[str]) -> float:
    """Wait until no window is full any more; events a second meanwhile."""
    before, begun = bench.counters["capture.events"], time.perf_counter()
    while True:
        states = [await bench.ask(AskCaptureState(log_id)) for log_id in ids]
        if all(state.behind_bytes < WINDOW_BYTES for state in states):
            return (bench.counters["capture.events"] - before) / (time.perf_counter() - begun)
        await asyncio.sleep(0.02)


def best(rounds: list[Round], value: Callable[[Round], float]) -> float:
    return max(value(one) for one in rounds) / 1e6


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--size", type=int, default=200, help="bytes of a body")
    parser.add_argument("--rate", type=float, default=0, help="events a second offered; 0: as many as it stores")
    parser.add_argument("--durable", action="store_true", help="appends are answered when they are synced")
    return parser


def main() -> None:
    options = parser().parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    plain, captured = [], []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", flush=True)
        plain.append(asyncio.run(play(options, is_captured=False)))
        captured.append(asyncio.run(play(options, is_captured=True)))
    without, with_it = best(plain, lambda one: one.stored), best(captured, lambda one: one.stored)
    print(f"kernels: {which()}; events of {options.size} B, {options.partitions} partitions; million events a second")
    print(f"stored without capture      {without:6.2f}")
    print(f"stored with capture         {with_it:6.2f}  ({with_it / without:.2f} of it)")
    print(f"captured meanwhile          {best(captured, lambda one: one.captured):6.2f}")
    print(f"captured while catching up  {best(captured, lambda one: one.catching_up):6.2f}")


if __name__ == "__main__":
    main()
