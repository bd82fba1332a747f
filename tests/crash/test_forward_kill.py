"""A server that is killed while messages go from queue to queue: what was accepted arrives, once. (Promise P13)"""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from azure.core.exceptions import AzureError
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.server_process import ServerProcess

# azure-servicebus 7 leaves its socket open when the peer is gone.
LEFT_OPEN = "ignore::pytest.PytestUnraisableExceptionWarning"
pytestmark = [pytest.mark.crash, pytest.mark.timeout(300), pytest.mark.filterwarnings(LEFT_OPEN)]
KILLS = 3
BATCH = 50


def send_until_killed(server: ServerProcess, begun: list[str], accepted: set[str]) -> None:
    """Batches to the first queue; ids of all that were begun, and of those that were accepted."""
    try:
        with (
            ServiceBusClient.from_connection_string(server.connection_string(), retry_total=0) as client,
            client.get_queue_sender("first") as sender,
        ):
            while server.is_running:
                ids = [str(len(begun) + place) for place in range(BATCH)]
                begun += ids
                sender.send_messages([ServiceBusMessage(each, message_id=each) for each in ids])
                accepted.update(ids)
    except (AzureError, OSError):
        return  # nobody knows whether the last batch was stored


def drained(server: ServerProcess, queue: str) -> list[str]:
    """The ids of all that a queue has, or gets within a while."""
    found: list[str] = []
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    with (
        ServiceBusClient.from_connection_string(server.connection_string()) as client,
        client.get_queue_receiver(queue, receive_mode=mode, prefetch_count=500) as receiver,
    ):
        while more := receiver.receive_messages(1_000, max_wait_time=6):
            found += [str(each.message_id) for each in more]
    return found


def test_messages_that_are_forwarded_arrive_once_whenever_the_server_is_killed(tmp_path: Path) -> None:
    rng = random.Random("forward")
    begun, accepted = list[str](), set[str]()
    with ServerProcess(tmp_path / "data") as server:
        administration = Administration(ConnectionString.parse(server.connection_string()))
        for queue, destination in (("last", ""), ("middle", "last"), ("first", "middle")):
            administration.create(EntityType.QUEUE, queue, {"ForwardTo": destination} if destination else {})
        for _ in range(KILLS):
            killer = threading.Timer(rng.uniform(0.3, 1.2), server.kill9)
            killer.start()
            send_until_killed(server, begun, accepted)
            killer.join()
            server.begin()
            assert server.becomes_ready()
        found = drained(server, "last")
    assert len(accepted) > BATCH
    assert len(found) == len(set(found))
    assert accepted <= set(found) <= set(begun)
    assert sorted(found, key=int) == found  # and in their order
