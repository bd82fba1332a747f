"""The official Python client over two broker processes: any of them takes it to everything, also while one is away."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from azure.eventhub import EventData, EventHubConsumerClient, EventHubProducerClient
from azure.eventhub.exceptions import EventHubError

from hubweir.client.administration import Administration
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.broker_processes import broker_pids
from hubweir.testing.server_process import ServerProcess
from tests.crash.several_processes import LINUX_ALONE, is_another, several_processes, until

HUB, PARTITIONS = "orders", 4
CONNECTIONS = 16  # that all of them lead to one of two processes happens once in thirty thousand runs
WAIT_S = 90.0

pytestmark = [
    pytest.mark.crash,
    # Azure's client leaves sockets open whose connections were lost.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.timeout(600),
    LINUX_ALONE,
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with several_processes(tmp_path / "data", brokers=2) as made:
        yield made


def ask(server: ServerProcess, what: Callable[[Management], Any]) -> Any:
    async def asked() -> Any:
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        try:
            return await what(Management(connection))
        finally:
            await connection.close()

    return asyncio.run(asked())


def create(server: ServerProcess) -> None:
    settings = {"partition_count": PARTITIONS, "retention_ms": 3_600_000, "durability": "durable"}
    ask(server, lambda asked: asked.create_hub(HUB, **settings))


def producer(server: ServerProcess, **how: Any) -> EventHubProducerClient:
    return EventHubProducerClient.from_connection_string(server.connection_string(), eventhub_name=HUB, **how)


class Reader:
    """A consumer of all partitions from their start, on a thread. seen: partition and body of each event."""

    def __init__(self, server: ServerProcess) -> None:
        self.seen: list[tuple[str, str]] = []
        self._client = EventHubConsumerClient.from_connection_string(
            server.connection_string(), consumer_group="$Default", eventhub_name=HUB
        )
        self._thread = threading.Thread(target=self._receive, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._thread.join(WAIT_S)

    def wait_for(self, bodies: set[str]) -> None:
        limit = time.monotonic() + WAIT_S
        while not bodies <= {body for _, body in self.seen}:
            missing = bodies - {body for _, body in self.seen}
            assert time.monotonic() < limit, f"{len(missing)} did not come: {sorted(missing)[:5]}"
            time.sleep(0.05)

    def _receive(self) -> None:
        # One by one it hands over few events a second while other partitions have none.
        self._client.receive_batch(on_event_batch=self._take, starting_position="-1")

    def _take(self, partition: Any, events: list[EventData]) -> None:
        self.seen += [(partition.partition_id, event.body_as_str()) for event in events]


def test_each_connection_leads_to_every_partition_and_to_what_was_just_made(server: ServerProcess) -> None:
    create(server)
    clients = [producer(server) for _ in range(CONNECTIONS)]

    def send(number: int) -> set[str]:
        client, partition = clients[number], number % PARTITIONS
        assert client.get_partition_ids() == [str(each) for each in range(PARTITIONS)]
        client.send_batch([EventData(f"{number}-{partition}")], partition_id=str(partition))
        client.send_batch([EventData(f"{number}-key")], partition_key="one key")
        return {f"{number}-{partition}", f"{number}-key"}

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        sent = set().union(*threads.map(send, range(CONNECTIONS)))
    found = ask(server, lambda asked: asked.brokers())
    assert all(each["connections"] for each in found), found
    status = Administration(ConnectionString.parse(server.connection_string())).status()
    counts = [each["connections"] for each in status["processes"]]
    assert all(counts) and status["namespace"]["connections"] == sum(counts) >= CONNECTIONS
    for client in clients:
        client.close()
    with Reader(server) as reader:
        reader.wait_for(sent)
    assert len(reader.seen) == len(sent)
    assert all(body.endswith(("key", f"-{partition}")) for partition, body in reader.seen)
    assert len({partition for partition, body in reader.seen if body.endswith("key")}) == 1
    assert server.stop() == 0


def test_clients_get_over_a_broker_that_is_killed(tmp_path: Path, server: ServerProcess) -> None:
    """Nothing that a client says is sent is missing, and a send without a partition goes on through the others.

    The client tries again by itself what was refused, but not what was on its way when its connection was lost.
    """
    create(server)
    sent: dict[int | None, list[float]] = {None: [], **{each: [] for each in range(PARTITIONS)}}
    bodies: set[str] = set()
    unknown: list[str] = []
    over = threading.Event()

    def send(partition: int | None) -> None:
        where = {} if partition is None else {"partition_id": str(partition)}
        # It has patience for as long as a busy machine starts a process.
        with producer(server, retry_total=40, retry_backoff_max=2) as client:
            while not over.is_set():
                body = f"{partition}-{time.monotonic()}"
                try:
                    client.send_batch([EventData(body)], **where)
                except EventHubError as error:
                    unknown.append(str(error))
                else:
                    sent[partition].append(time.monotonic())
                    bodies.add(body)
                time.sleep(0.01)

    senders = [threading.Thread(target=send, args=(partition,)) for partition in sent]
    with Reader(server) as reader:
        for thread in senders:
            thread.start()
        until(lambda: all(sent.values()), WAIT_S)
        pid = broker_pids(tmp_path / "data")[1]
        os.kill(pid, signal.SIGKILL)
        killed_at = time.monotonic()
        until(lambda: sent[None][-1] > killed_at, WAIT_S)
        until(lambda: is_another(tmp_path / "data", 1, pid), WAIT_S)
        back_at = time.monotonic()
        until(lambda: all(times[-1] > back_at for times in sent.values()), WAIT_S)
        over.set()
        for thread in senders:
            thread.join(WAIT_S)
        assert len(unknown) <= len(senders), unknown
        reader.wait_for(bodies)
