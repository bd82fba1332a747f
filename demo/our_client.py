"""The demo's use of hubweir's own client: create the hub, read a consumer group as runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, address_of
from hubweir.namespace.connection_string import ConnectionString
from tally import Tally

_DAY_MS = 24 * 3600 * 1000


def create_hub(connection_string: str, hub: str, *, partitions: int, groups: tuple[str, ...]) -> None:
    """Create the event hub, durable, kept for a day."""

    async def job() -> None:
        connection = await Connection.open(ConnectionString.parse(connection_string))
        try:
            await Management(connection).create_hub(
                hub, partition_count=partitions, retention_ms=_DAY_MS, durability="durable", consumer_groups=groups
            )
        finally:
            await connection.close()

    asyncio.run(job())


def read_everything(
    connection_string: str, hub: str, group: str, *, until: int, seconds: float, progress: Callable[[int], None]
) -> Tally:
    """A tally of what a consumer group reads from the start, until it has `until` events and the hub is quiet."""
    tally = Tally()

    async def partition(connection: Connection, partition_id: str) -> None:
        receiver = await Receiver.open(connection, address_of(hub, group, partition_id))
        while True:
            run = await receiver.receive(max_wait_s=1.0)
            if run is None and tally.count >= until:
                return
            if run is not None:
                for key, body in zip(run.partition_keys(), run.bodies(), strict=True):
                    tally.add(key, bytes(body))
                progress(tally.count)

    async def job() -> None:
        connection = await Connection.open(ConnectionString.parse(connection_string))
        try:
            ids = (await Management(connection).hub(hub)).partition_ids
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(partition(connection, one) for one in ids))
        except TimeoutError:
            pass  # the tally shows what is missing
        finally:
            await connection.close()

    asyncio.run(job())
    return tally
