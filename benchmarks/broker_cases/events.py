"""Events of 200 B to partitions and from them, in batches that were encoded beforehand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import repeat

from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.client.connection import Connection
from hubweir.client.event_batch import EventBatch
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver
from hubweir.client.sender import Sender
from hubweir.namespace.connection_string import ConnectionString
from queue_cases.queues import send_all
from spine import DAY_MS

EVENT_BYTES = 200
RECEIVE_WAIT_S = 0.05


async def create_hub(target: ConnectionString, name: str, partitions: int) -> None:
    connection = await Connection.open(target)
    try:
        await Management(connection).create_hub(
            name, partition_count=partitions, retention_ms=DAY_MS, durability="durable"
        )
    finally:
        await connection.close()


def batch_of(events: int, event_bytes: int = EVENT_BYTES) -> bytes:
    """The payload of one send."""
    batch = EventBatch(1024 * 1024)
    for _ in range(events):
        assert batch.try_add(bytes(event_bytes))
    return batch.payload()


async def publish(sender: Sender, payload: bytes, sends: int, *, in_flight: int) -> None:
    """Send the same batch so often, until all are answered."""
    await send_all(sender, repeat(payload, sends), message_format=BATCH_FORMAT, in_flight=in_flight)


async def read(receivers: Sequence[Receiver], events: int) -> None:
    """Receive so many from all of them together."""
    left, done = events, asyncio.Event()

    async def one(receiver: Receiver) -> None:
        nonlocal left
        while not done.is_set():
            run = await receiver.receive(max_wait_s=RECEIVE_WAIT_S)
            if run is not None:
                left -= run.count
                if left <= 0:
                    done.set()

    await asyncio.gather(*(one(receiver) for receiver in receivers))
