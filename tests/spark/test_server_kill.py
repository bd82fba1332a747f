"""The service is killed while a task of the sink has rows on their way: the task goes on, each row is stored once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.receiver import ReceiverOptions
from hubweir.namespace.connection_string import ConnectionString
from hubweir.spark.hub_connection import close_clients
from hubweir.spark.sink.producer_ids import Work
from hubweir.spark.sink.sink_columns import sink_columns
from hubweir.spark.sink.task_writer import Written, write_rows
from hubweir.spark.sink.write_options import parse_write_options
from hubweir.testing.server_process import ServerProcess

COLUMNS = sink_columns([("body", "binary")])
ROWS, BATCHES = 200, 120


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path / "data") as running:
        asyncio.run(create_hub(running.connection_string()))
        yield running
        close_clients()


async def create_hub(text: str) -> None:
    connection = await Connection.open(ConnectionString.parse(text))
    keeper = Management(connection)
    await keeper.create_hub("orders", partition_count=2, retention_ms=3_600_000, durability="durable")
    await connection.close()


@pytest.mark.timeout(600)
def test_a_killed_service_stores_each_row_of_a_task_once(server: ServerProcess, measure: Callable[[int], int]) -> None:
    text, kills = server.connection_string(), measure(20)
    restarts: list[threading.Thread] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(BATCHES):
            if number and number % (BATCHES // (kills + 1)) == 0 and len(restarts) < kills:
                for restart in restarts:
                    restart.join()
                server.kill9()  # with batches on their way
                restarts.append(threading.Thread(target=server.start))
                restarts[-1].start()
            start = number * ROWS
            yield pa.record_batch([pa.array([b"%d" % row for row in range(start, start + ROWS)])], names=["body"])

    options = parse_write_options({"connectionString": text, "eventHub": "orders", "exactlyOnce": "require"})
    assert write_rows(options, COLUMNS, Work("query", 0, 0), batches()) == Written(ROWS * BATCHES, 0)
    assert len(restarts) == kills
    with BlockingEventHubClient.from_connection_string(text, "orders") as client:
        for partition, state in enumerate(client.partitions(("0", "1"))):
            count, found = state.last_sequence_number + 1, list[int]()
            receiver = client.receiver(state.partition_id, ReceiverOptions(limit=count))
            while len(found) < count:
                run = receiver.receive(max_wait_s=10)
                assert run is not None
                found += [int(body) for body in run.bodies()]
            receiver.close()
            assert found == list(range(partition, ROWS * BATCHES, 2))
