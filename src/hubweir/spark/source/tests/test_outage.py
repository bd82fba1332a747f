"""A service that is killed while a task reads is told of once, and read on from where it stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.client.retry import RetryPolicy
from hubweir.spark import hub_connection, patience
from hubweir.spark.hub_connection import client_of, close_clients
from hubweir.spark.source import range_reader
from hubweir.spark.source.offsets import EventRange
from hubweir.spark.source.range_reader import RangeReader
from hubweir.spark.source.read_options import parse_options
from hubweir.testing.server_process import ServerProcess

StartServer = Callable[..., ServerProcess]
COUNT = 30_000


@pytest.mark.parametrize("killed_behind", [0, 1], ids=["before the first event", "in mid-range"])
def test_a_task_reads_on_when_the_service_is_back(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch, killed_behind: int
) -> None:
    """Killed, and started again by who reads the warning: no event is missing, none comes twice."""
    monkeypatch.setattr(hub_connection, "_RETRY", RetryPolicy(attempts=1))
    monkeypatch.setattr(range_reader, "freeze_garbage", lambda: None)
    server = start_server()
    text = server.connection_string()
    with BlockingEventHubClient.from_connection_string(text, "orders") as client:
        client.sender().send([b"%d" % number for number in range(COUNT)])
    given = {"connectionString": text, "eventHub": "orders", "prefetchCount": "1000"}
    options = parse_options(given, is_stream=True)
    reader = RangeReader(options, client_of(options), EventRange("0", 0, COUNT), ("sequenceNumber",))
    batches = reader.read()
    found = [next(batches) for _ in range(killed_behind)]
    server.kill9()
    operator = Operator(server)
    logging.getLogger(patience.__name__).addHandler(operator)
    try:
        found += batches
    finally:
        logging.getLogger(patience.__name__).removeHandler(operator)
        close_clients()
    assert operator.starts == 1
    assert [number for batch in found for number in batch.column(0).to_pylist()] == list(range(COUNT))


class Operator(logging.Handler):
    """Starts the service when a warning comes."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__()
        self._server = server
        self.starts = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.starts += 1
        self._server.start()
