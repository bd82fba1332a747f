"""Throughput units against a live service and a real clock: within 5 % over ten seconds."""

import asyncio

import pytest

from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.sender import Sender
from hubweir.errors import SERVER_BUSY, ServiceError
from hubweir.messaging_store.log import Durability
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import running_namespace

SECONDS = 10
EVENTS = 20  # a batch


@pytest.mark.slow
def test_one_unit_takes_a_thousand_events_a_second_over_ten_seconds() -> None:
    async def scenario(text: str) -> tuple[int, int, float]:
        loop = asyncio.get_running_loop()
        accepted = refused = 0
        connection = await Connection.open(ConnectionString.parse(text))
        senders = [await Sender.open(connection, f"paced/Partitions/{number}") for number in range(4)]
        begun = loop.time()

        async def keep_sending(sender: Sender) -> None:
            nonlocal accepted, refused
            while loop.time() < begun + SECONDS:
                try:
                    await sender.send([b"x" * 100] * EVENTS)
                    accepted += EVENTS
                except ServiceError as error:
                    assert error.condition is SERVER_BUSY, error
                    refused += EVENTS
                    await asyncio.sleep(0.005)

        async with asyncio.TaskGroup() as group:
            for sender in senders:
                group.create_task(keep_sending(sender))
        took_s = loop.time() - begun
        states = [await Management(connection).partition("paced", str(number)) for number in range(4)]
        assert sum(state.last_sequence_number + 1 for state in states) == accepted
        await connection.close()
        return accepted, refused, took_s

    with running_namespace(throughput_units=1) as namespace:
        namespace.create_event_hub("paced", partition_count=4, durability=Durability.RELAXED)
        accepted, refused, took_s = run_on("asyncio", scenario(namespace.connection_string()))
    assert refused > 0
    assert accepted == pytest.approx(1_000 * (took_s + 1), rel=0.05)  # the burst is one second's worth
