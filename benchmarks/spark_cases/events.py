"""The hub that every section reads: events of 200 B with two application properties and, once stored, four annotations.

The fourth is the partition key: each partition gets events of one key that belongs to it. 401 B of AMQP an event, about
what a fleet of devices sends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from itertools import count
from typing import Any

from hubweir.amqp.messaging.annotations import PARTITION_KEY
from hubweir.amqp.messaging.batch import pack_batch
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.sender import Sender
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.capture_description import SIZE_MIN_BYTES
from hubweir.namespace.connection_string import ConnectionString

PARTITIONS = 4
BODY_BYTES = 200
CAPTURE_WINDOW_BYTES = SIZE_MIN_BYTES
_BATCH_EVENTS = 1_000
_IN_FLIGHT = 16
_DAY_MS = 24 * 3600 * 1000
_CATCH_UP_S = 120.0


def key_of(partition: int, partitions: int) -> str:
    """The first key device-… whose events go to this partition."""
    return next(
        key for key in map("device-{:04d}".format, count()) if partition_of_key(key.encode(), partitions) == partition
    )


def batch_of(key: str) -> bytes:
    """The payload of one transfer of _BATCH_EVENTS events."""
    event = encode_message(
        Message(
            message_annotations={PARTITION_KEY: key},
            application_properties={"source": "benchmark", "reading": "temperature"},
            body=DataBody((bytes(range(BODY_BYTES)),)),
        )
    )
    return pack_batch([event] * _BATCH_EVENTS, annotations={PARTITION_KEY: key})


def create_hub(
    connection_string: str,
    hub: str,
    *,
    partitions: int = PARTITIONS,
    durability: str = "relaxed",
    is_captured: bool = False,
) -> None:
    """An empty hub. durability: relaxed does not wait for the disk, which is right where reading is measured."""
    capture = {"enabled": True, "interval_s": 900, "size_limit_bytes": CAPTURE_WINDOW_BYTES}
    asyncio.run(_create(connection_string, hub, partitions, durability, capture if is_captured else None))


def fill_hub(connection_string: str, hub: str, events: int, *, partitions: int = PARTITIONS) -> int:
    """Publish that many events, rounded up to whole batches of every partition; how many. ServiceError if refused."""
    return asyncio.run(_fill(connection_string, hub, events, partitions))


def wait_captured(connection_string: str, hub: str) -> None:
    """Wait until every full window is a file. TimeoutError when capture makes no end of it."""
    asyncio.run(_wait_captured(connection_string, hub))


async def _create(
    connection_string: str, hub: str, partitions: int, durability: str, capture: dict[str, Any] | None
) -> None:
    connection = await Connection.open(ConnectionString.parse(connection_string))
    try:
        await Management(connection).create_hub(
            hub, partition_count=partitions, retention_ms=_DAY_MS, durability=durability, capture=capture
        )
    finally:
        await connection.close()


async def _fill(connection_string: str, hub: str, events: int, partitions: int) -> int:
    connection = await Connection.open(ConnectionString.parse(connection_string))
    rounds = -(-events // (partitions * _BATCH_EVENTS))
    payloads = [batch_of(key_of(partition, partitions)) for partition in range(partitions)]
    under_way: deque[asyncio.Future[None]] = deque()
    try:
        sender = await Sender.open(connection, hub)
        for _ in range(rounds):
            for payload in payloads:
                if len(under_way) == _IN_FLIGHT:
                    await under_way.popleft()
                under_way.append(sender.submit_payload(payload))
        await asyncio.gather(*under_way)
    finally:
        await connection.close()
    return rounds * partitions * _BATCH_EVENTS


async def _wait_captured(connection_string: str, hub: str) -> None:
    connection = await Connection.open(ConnectionString.parse(connection_string))
    until_s = time.monotonic() + _CATCH_UP_S
    try:
        management = Management(connection)
        while True:
            states = [await management.capture_state(hub, str(one)) for one in range(PARTITIONS)]
            if all(_has_caught_up(state) for state in states):
                return
            if time.monotonic() > until_s:
                raise TimeoutError(f"capture did not catch up within {_CATCH_UP_S:.0f} s: {states}")
            await asyncio.sleep(0.1)
    finally:
        await connection.close()


def _has_caught_up(state: dict[str, Any]) -> bool:
    return bool(state["behind_bytes"] < CAPTURE_WINDOW_BYTES)
