"""The official Python client sends to a partitioned queue while the disk of one of three messaging stores answers
nothing: neither that it stored, nor that it failed.

The same with a process that is stopped is tests/crash/test_stalled_broker_clients.py.
"""

from __future__ import annotations

import time

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSender
from azure.servicebus.exceptions import OperationTimeoutError, ServiceBusServerBusyError

from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.queue_description import QueueDescription
from hubweir.testing.running_namespace import running_namespace
from tests.conformance.troubled_disk import WAIT_S, troubled

pytestmark = [pytest.mark.conformance, pytest.mark.client("azure-servicebus, blocking, plain")]
STORES, FRAGMENTS = 3, 16
STALLED = 1  # the store
SEND_S = 3.0  # the time-out of a send
RETRIABLE = (OperationTimeoutError, ServiceBusServerBusyError)


@pytest.mark.sb(135)
@pytest.mark.feature("errors")
def test_while_a_disk_stalls_sends_without_a_key_pass_it_and_its_keys_go_on_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of what waits at the disk when the stall begins nobody knows the outcome: it goes nowhere else, and the client
    gives it up after its time-out. All later sends are stored elsewhere at once."""
    sent: list[str] = []

    def send(sender: ServiceBusSender, body: str, key: str | None = None) -> None:
        sender.send_messages(ServiceBusMessage(body, partition_key=key), timeout=SEND_S)
        sent.append(body)

    with running_namespace(stores=STORES) as namespace:
        namespace.create_queue("orders", is_partitioned=True)
        entity = namespace.service.gateway.namespace.get("orders", QueueDescription)
        stalled = {number for number, each in enumerate(entity.placements) if each.store_index == STALLED}
        keys = (f"k{number}" for number in range(400))
        key = next(key for key in keys if partition_of_key(key.encode(), FRAGMENTS) in stalled)
        with (
            ServiceBusClient.from_connection_string(namespace.connection_string(), retry_total=0) as client,
            client.get_queue_sender("orders") as sender,
            client.get_queue_sender("orders") as keyed,
            troubled(monkeypatch, below=f"store-{STALLED}") as disk,
        ):
            send(sender, "first")
            send(keyed, "first with a key", key)
            disk.answers.clear()
            given_up = 0
            for number in range(4 * FRAGMENTS):
                try:
                    send(sender, f"any {number}")
                except OperationTimeoutError:
                    given_up += 1
            assert given_up == 1
            with pytest.raises(RETRIABLE):
                send(keyed, "given up", key)
            disk.heal()
            end = time.monotonic() + WAIT_S
            while "late" not in sent:
                try:
                    send(keyed, "late", key)
                except RETRIABLE:
                    assert time.monotonic() < end
            with client.get_queue_receiver("orders") as receiver:
                found: set[str] = set()
                while not found >= set(sent) and time.monotonic() < end + WAIT_S:
                    for message in receiver.receive_messages(100, max_wait_time=5):
                        found.add(str(message))
                        receiver.complete_message(message)
            assert found >= set(sent)
