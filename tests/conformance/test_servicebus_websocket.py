"""The official Python client of queues, blocking, over a WebSocket inside TLS."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.servicebus import ServiceBusMessage, TransportType

from tests.conformance.conftest import Doors
from tests.conformance.servicebus_python import connected, receive_one, sender_to

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.client("azure-servicebus, blocking, WebSocket"),
    pytest.mark.feature("WebSocket"),
]


@pytest.mark.sb(6, 88)
def test_messages_and_management_over_a_websocket(doors: Doors, queue: str) -> None:
    where = {
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"sb://{doors.host}:{doors.port}",
    }
    with connected(doors, tls=True, **where) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage(b"x" * 100_000))
        message = receive_one(receiver)
        assert b"".join(message.body) == b"x" * 100_000
        assert len(receiver.peek_messages(sequence_number=1)) == 1
        receiver.complete_message(message)
        assert receiver.peek_messages(sequence_number=1) == []


@pytest.mark.sb(6, 74)
def test_a_session_over_a_websocket(doors: Doors, make_queue: Callable[..., str]) -> None:
    queue = make_queue(requires_session=True)
    where = {
        "transport_type": TransportType.AmqpOverWebsocket,
        "custom_endpoint_address": f"sb://{doors.host}:{doors.port}",
    }
    with connected(doors, tls=True, **where) as client, sender_to(client, queue) as sender:
        sender.send_messages(ServiceBusMessage("x", session_id="s"))
        with client.get_queue_receiver(queue, session_id="s") as receiver:
            assert str(receive_one(receiver)) == "x"
