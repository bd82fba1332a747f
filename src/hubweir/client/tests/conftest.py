"""One live namespace for the tests of this folder, and a fresh hub or queue for each test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from hubweir.client.connection import Connection
from hubweir.client.queue_client import QueueClient
from hubweir.client.receiver import Receiver, ReceiverOptions, address_of
from hubweir.client.tests.queue_scenarios import Play, Scenario
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace, running_namespace

_NUMBERS = count(1)


@pytest.fixture(scope="session")
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as running:
        yield running


@pytest.fixture
def new_hub(namespace: RunningNamespace) -> Callable[..., str]:
    """new_hub(partition_count=4) makes a hub that nobody else uses, and gives its name."""

    def make(**description: object) -> str:
        name = f"Hub-{next(_NUMBERS)}"
        namespace.create_event_hub(name, **description)  # type: ignore[arg-type]
        return name

    return make


@pytest.fixture
def new_queue(namespace: RunningNamespace) -> Callable[..., str]:
    """new_queue(max_delivery_count=2) makes a queue that nobody else uses, and gives its name."""

    def make(**settings: object) -> str:
        name = f"Queue-{next(_NUMBERS)}"
        namespace.create_queue(name, **settings)  # type: ignore[arg-type]
        return name

    return make


@pytest.fixture
def play(namespace: RunningNamespace) -> Play:
    """Run a scenario with a client of queues of its own."""

    def played(scenario: Scenario) -> None:
        async def step() -> None:
            async with QueueClient.from_connection_string(namespace.connection_string()) as client:
                await scenario(client)

        run_on("asyncio", step())

    return played


@pytest.fixture(scope="session")
def owner_levels(namespace: RunningNamespace) -> None:
    """For tests that need a service where a reader with an owner level displaces another one."""

    async def displaces() -> bool:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        address = address_of("owner-levels", "$Default", "0")
        old = await Receiver.open(connection, address, ReceiverOptions(epoch=0))
        await Receiver.open(connection, address, ReceiverOptions(epoch=0))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(30):
                while old.error is None:
                    await asyncio.sleep(0.01)
        await connection.close()
        return old.error is not None and old.error.condition.symbol == "amqp:link:stolen"

    namespace.create_event_hub("owner-levels")
    if not run_on("asyncio", displaces()):
        pytest.skip("NOT RUN: this service does not displace readers by owner level")
