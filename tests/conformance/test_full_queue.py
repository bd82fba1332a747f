"""A queue that holds as much as it may: every door says so at once, and what is taken away makes room.

The smallest queue holds 1,024 megabytes. So that a test fills it, a megabyte of this service is 64 bytes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSubQueue
from azure.servicebus.exceptions import ServiceBusQuotaExceededError

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.types.values import Timestamp
from hubweir.gateway import entity_logs
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import RawClient
from tests.conformance.servicebus_python import connected, is_empty, now, receive_one, sender_to
from tests.conformance.test_raw_message_management import ask
from tests.conformance.ways import CALLS

pytestmark = [pytest.mark.conformance, pytest.mark.sb(41)]
MEGABYTE = 64
SIZE = 1_024 * MEGABYTE
BODY = bytes(10_000)
FIT = SIZE // (len(BODY) + 500)  # what is stored of a message beside its body is less than that


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningNamespace]:
    monkeypatch.setattr(entity_logs, "MIB", MEGABYTE)
    with running_namespace() as namespace:
        namespace.create_queue("orders")
        yield namespace


def enlarge(namespace: RunningNamespace) -> None:
    namespace.change_queue("orders", storage=replace(StorageSettings(), max_size_megabytes=2_048))


def test_a_full_queue_rejects_by_name_and_takes_again_when_there_is_room(small: RunningNamespace) -> None:
    payload = encode_message(Message(body=DataBody((BODY,))))
    with RawClient.connect((small.host, small.port)) as client:
        sender = client.trusted().sender("orders")
        for _ in range(FIT):
            assert isinstance(client.publish(sender, payload).state, Accepted)
        for _ in range(2):  # the link stands
            state = client.publish(sender, payload).state
            assert isinstance(state, Rejected) and state.error is not None
            assert state.error.condition == "amqp:resource-limit-exceeded"
            assert f"'orders' may hold {SIZE} bytes" in state.error.description
        due = {"x-opt-scheduled-enqueue-time": Timestamp(int(time.time() * 1_000) + 3_600_000)}
        later = encode_message(Message(body=DataBody((BODY,)), message_annotations=due))  # type: ignore[arg-type]
        entries = {"messages": [{"message-id": "m", "message": later}]}
        assert ask(client, "orders", "schedule-message", entries)[:2] == (403, "amqp:resource-limit-exceeded")
        client.receiver("orders", credit=1, snd_settle_mode=1)
        assert client.messages(1)[0].body == DataBody((BODY,))
        assert isinstance(client.publish(sender, payload).state, Accepted)
        assert isinstance(client.publish(sender, payload).state, Rejected)
        enlarge(small)
        assert isinstance(client.publish(sender, payload).state, Accepted)


@pytest.mark.client("azure-servicebus, blocking, plain")
@pytest.mark.feature("errors")
def test_the_official_client_raises_its_error_of_quotas_and_tries_no_second_time(small: RunningNamespace) -> None:
    """Dead letters fill a queue like other messages; a batch is stored whole or not at all."""
    with connected(Doors(small, CALLS), retry_total=3) as client, sender_to(client, "orders") as sender:
        for _ in range(FIT):
            sender.send_messages(ServiceBusMessage(BODY))
        began = time.monotonic()
        with pytest.raises(ServiceBusQuotaExceededError, match="receive messages, dead letters as well"):
            sender.send_messages(ServiceBusMessage(BODY))
        with pytest.raises(ServiceBusQuotaExceededError):
            sender.send_messages([ServiceBusMessage("small"), ServiceBusMessage(BODY)])
        with pytest.raises(ServiceBusQuotaExceededError):
            sender.schedule_messages(ServiceBusMessage(BODY), now() + timedelta(hours=1))
        assert time.monotonic() < began + 2
        with client.get_queue_receiver("orders") as receiver:
            receiver.dead_letter_message(receive_one(receiver))
            with pytest.raises(ServiceBusQuotaExceededError):
                sender.send_messages(ServiceBusMessage(BODY))
            mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
            dead = ServiceBusSubQueue.DEAD_LETTER
            with client.get_queue_receiver("orders", sub_queue=dead, receive_mode=mode) as emptying:
                assert b"".join(receive_one(emptying).body) == BODY
            sender.send_messages(ServiceBusMessage(BODY))
            for _ in range(FIT):
                message = receive_one(receiver)
                assert b"".join(message.body) == BODY
                receiver.complete_message(message)
            assert is_empty(receiver)
