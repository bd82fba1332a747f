"""How late scheduled messages and dead letters of expired ones come, with many pending.

All messages are sent first, in an order that has nothing to do with their times. Then they come due one after the
other; each has its time in its body, and is held against the clock when it is received.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from goals.figure import Figure
from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import DataBody, Header, Message, decode_message, encode_message
from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.amqp.types.values import Symbol, Timestamp
from hubweir.client.connection import Connection
from hubweir.client.sender import Sender
from hubweir.kernels.contract import D_LENGTH, D_START, DELIVERY_WIDTH
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess
from queue_cases.queues import BATCH_MESSAGES, BATCHES_IN_FLIGHT, ROUND_LIMIT_S, create_queue, send_all
from queue_cases.settler import Settler

# Messages a second that come due; how long they are all pending before the first does, besides what sending takes.
DUE_PER_S, QUIET_MS = 5_000, 3_000
SENT_PER_S = 5_000  # at least, also on a busy machine
STEP = 7_919  # a prime: number k is sent in place k * STEP
GOAL_MS = 50.0
SCHEDULED, ENQUEUED = Symbol("x-opt-scheduled-enqueue-time"), Symbol("x-opt-enqueued-time")


@dataclass(slots=True)
class Came:
    """What came, and when."""

    messages: list[tuple[float, bytes]] = field(default_factory=list)

    def take(self, event: DeliveriesReceived) -> None:
        now_ms, rows = time.time() * 1e3, event.rows
        for at in range(0, len(rows), DELIVERY_WIDTH):
            start = rows[at + D_START]
            self.messages.append((now_ms, bytes(event.data[start : start + rows[at + D_LENGTH]])))


@dataclass(frozen=True, slots=True)
class Lateness:
    """Milliseconds behind their times, from the least to the most; misplaced_ms: the most by which one came behind
    another that was due after it.
    """

    late_ms: list[float]
    misplaced_ms: float

    @classmethod
    def of(cls, came: Came, due_ms_of: Callable[[Message], int]) -> Lateness:
        late, last_ms, misplaced = [], 0, 0
        for now_ms, payload in came.messages:
            due_ms = due_ms_of(decode_message(payload))
            late.append(now_ms - due_ms)
            misplaced, last_ms = max(misplaced, last_ms - due_ms), max(last_ms, due_ms)
        return cls(sorted(late), misplaced)

    def part(self, share: float) -> float:
        """So large a share came no later."""
        return self.late_ms[min(len(self.late_ms) - 1, int(len(self.late_ms) * share))]


def _number(message: Message) -> int:
    assert isinstance(message.body, DataBody)
    return int.from_bytes(b"".join(message.body.parts), "big")


def _scheduled(due_ms: int, now_ms: int) -> bytes:
    body = DataBody((due_ms.to_bytes(8, "big"),))
    return encode_message(Message(message_annotations={SCHEDULED: Timestamp(due_ms)}, body=body))


def _expiring(due_ms: int, now_ms: int) -> bytes:
    """Its time to live counts from its enqueued time, so the body has the time to live."""
    ttl_ms = due_ms - now_ms
    return encode_message(Message(header=Header(ttl=ttl_ms), body=DataBody((ttl_ms.to_bytes(8, "big"),))))


def _expired_at(message: Message) -> int:
    enqueued_ms = (message.message_annotations or {})[ENQUEUED]
    assert isinstance(enqueued_ms, int)
    return enqueued_ms + _number(message)


async def _measure(
    target: ConnectionString, queue: str, source: str, count: int, make: Callable[[int, int], bytes]
) -> Came:
    found = Came()
    publisher, reader = await Connection.open(target), await Connection.open(target)
    try:
        sender = await Sender.open(publisher, queue)
        await reader.authorization.authorize(source)
        settler = Settler(reader, source, found.take)
        await settler.wait_attached(10)
        first_ms = int(time.time() * 1e3) + QUIET_MS + count * 1_000 // SENT_PER_S
        dues = [first_ms + number * STEP % count * 1_000 // DUE_PER_S for number in range(count)]

        async def send() -> None:
            for first in range(0, count, BATCH_MESSAGES * BATCHES_IN_FLIGHT):
                some = dues[first : first + BATCH_MESSAGES * BATCHES_IN_FLIGHT]
                now_ms = int(time.time() * 1e3)
                made = [make(due_ms, now_ms) for due_ms in some]
                payloads = [pack_batch(made[at : at + BATCH_MESSAGES]) for at in range(0, len(made), BATCH_MESSAGES)]
                await send_all(sender, payloads, message_format=BATCH_FORMAT, in_flight=BATCHES_IN_FLIGHT)

        await send()
        assert time.time() * 1e3 < first_ms, "the machine was too busy to send all in time: run it again"
        await asyncio.wait_for(settler.settle(count), ROUND_LIMIT_S)
    finally:
        await publisher.close()
        await reader.close()
    return found


def measure_deadlines(server: ServerProcess, count: int, runner: asyncio.Runner, console: Console) -> list[Figure]:
    """Print the table; the figures of both kinds."""
    target = ConnectionString.parse(server.connection_string())
    create_queue(target, "scheduled")
    create_queue(target, "expiring", DeadLetteringOnMessageExpiration="true")
    table = Table("pending", "earliest, ms", "p50, ms", "p99, ms", "longest, ms", "most out of order, ms")
    figures = []
    for queue, source, make, due_ms_of in (
        ("scheduled", "scheduled", _scheduled, _number),
        ("expiring", "expiring/$DeadLetterQueue", _expiring, _expired_at),
    ):
        console.print(f"{count:,} {queue} …")
        found = Lateness.of(runner.run(_measure(target, queue, source, count, make)), due_ms_of)
        p99_ms, last_ms, misplaced_ms = found.part(0.99), found.part(1), found.misplaced_ms
        cells = (f"{each:.1f}" for each in (found.part(0), found.part(0.5), p99_ms, last_ms, misplaced_ms))
        table.add_row(f"{count:,} {queue}", *cells)
        for what, value_ms in (("behind their times, p99", p99_ms), ("behind their times, the last", last_ms)):
            figures.append(Figure(f"{queue}, {what}", (value_ms,), "ms", GOAL_MS, is_limit=True))
        if make is _scheduled:  # dead letters that are there together have the order of their numbers
            figures.append(Figure("scheduled, out of order at most", (misplaced_ms,), "ms", GOAL_MS, is_limit=True))
    console.print(table)
    return figures
