"""Over the throughput units a send is rejected as busy, nothing of it is stored, and the link goes on."""

from __future__ import annotations

import asyncio

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.sender import Sender
from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from tests.conformance.conftest import Serve

pytestmark = [pytest.mark.conformance, pytest.mark.eh(53)]
BATCH, BATCHES = 100, 60


def test_throttled_sends_are_rejected_and_only_the_accepted_ones_are_stored(serve: Serve) -> None:
    async def publish(connection_string: str) -> tuple[int, int, int]:
        connection = await Connection.open(ConnectionString.parse(connection_string))
        try:
            sender = await Sender.open(connection, "busy/Partitions/0")
            outcomes = []
            for _ in range(BATCHES):
                batch = sender.batch()
                for _ in range(BATCH):
                    assert batch.try_add(b"event")
                outcomes.append(sender.submit(batch))
            ended = await asyncio.gather(*outcomes, return_exceptions=True)
            refused = [one for one in ended if isinstance(one, ServiceError) and one.condition is SERVER_BUSY]
            accepted = [one for one in ended if one is None]
            assert sender.error is None, "a throttled send ends no link"
            state = await Management(connection).partition("busy", "0")
            return len(accepted), len(refused), state.last_sequence_number + 1
        finally:
            await connection.close()

    with serve(throughput_units=1) as namespace:
        namespace.create_event_hub("busy")
        accepted, refused, stored = asyncio.run(publish(namespace.connection_string()))
    # One unit is 1,000 events a second and a burst of one second: 6,000 at once are far over it.
    assert accepted >= 1_000 // BATCH
    assert refused > 0
    assert accepted + refused == BATCHES
    assert stored == accepted * BATCH
