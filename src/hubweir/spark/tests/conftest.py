"""One live namespace, hubs with known events, and a loud word where the extra [spark] is not installed."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workers.notices import notice

if TYPE_CHECKING:
    from hubweir.client.blocking import BlockingEventHubClient
    from hubweir.testing.running_namespace import RunningNamespace
    from hubweir.testing.server_process import ServerProcess

MISSING = [name for name in ("pyarrow", "pyspark") if importlib.util.find_spec(name) is None]
collect_ignore_glob: list[str] = ["test_*.py"] if MISSING else []
_NUMBERS = count(1)


def pytest_configure(config: pytest.Config) -> None:
    if MISSING:
        notice(config, "hubweir.spark was NOT tested", f"not installed: {', '.join(MISSING)} (requirements/spark.txt)")


@pytest.fixture(scope="session")
def namespace() -> Iterator[RunningNamespace]:
    from hubweir.testing.running_namespace import running_namespace

    with running_namespace() as running:
        yield running


@pytest.fixture
def new_hub(namespace: RunningNamespace) -> Callable[..., str]:
    """new_hub(partition_count=4) makes a hub that nobody else uses, and gives its name."""

    def make(**description: object) -> str:
        name = f"hub-{next(_NUMBERS)}"
        namespace.create_event_hub(name, **description)  # type: ignore[arg-type]
        return name

    return make


@pytest.fixture
def options_of(namespace: RunningNamespace) -> Callable[..., dict[str, str]]:
    """options_of(hub, name="value") is what a user gives to the source."""
    return lambda hub, **more: {"connectionString": namespace.connection_string(), "eventHub": hub, **more}


@pytest.fixture
def client_of(namespace: RunningNamespace) -> Iterator[Callable[[str], BlockingEventHubClient]]:
    """client_of(hub) publishes; closed at the end."""
    from hubweir.client.blocking import BlockingEventHubClient

    made: list[BlockingEventHubClient] = []

    def make(hub: str) -> BlockingEventHubClient:
        made.append(BlockingEventHubClient.from_connection_string(namespace.connection_string(), hub))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """What the source keeps open between tasks ends with the test."""
    yield
    if not MISSING:
        from hubweir.spark.hub_connection import close_clients

        close_clients()


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """start_server("relaxed") is a service to be killed, in a process of its own, with an event hub `orders`."""
    from hubweir.client.connection import Connection
    from hubweir.client.management import Management
    from hubweir.namespace.connection_string import ConnectionString
    from hubweir.testing.server_process import ServerProcess

    async def create(text: str, durability: str) -> None:
        connection = await Connection.open(ConnectionString.parse(text))
        await Management(connection).create_hub(
            "orders", partition_count=1, retention_ms=3_600_000, durability=durability
        )
        await connection.close()

    with ExitStack() as stack:

        def start(durability: str = "durable") -> ServerProcess:
            source = str(Path(__file__).parents[3])
            server = stack.enter_context(ServerProcess(tmp_path / "data", environment={"PYTHONPATH": source}))
            asyncio.run(create(server.connection_string(), durability))
            return server

        yield start
