"""A disk that does not answer for a while, or fails: who asks is told in time, and nothing is lost or done twice.

The service runs in this process, and its writes wait at the file, or fail there, until the test lets them go on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus._pyamqp.constants import LinkState
from azure.servicebus.aio import ServiceBusClient as AsyncClient
from azure.servicebus.exceptions import OperationTimeoutError

from hubweir.amqp.messaging.message import DataBody, Message, decode_message, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.transport.performatives import Transfer
from hubweir.amqp.types.values import Int, Long, Timestamp, UInt, ULong
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.lost_store import until
from tests.conformance.raw_client import RawClient
from tests.conformance.servicebus_python import is_empty, receive_one
from tests.conformance.test_raw_message_management import ask
from tests.conformance.troubled_disk import BUSY, PAYLOAD, WAIT_S, Disk, break_at_a_send, busy_until_told, troubled

pytestmark = pytest.mark.conformance
HOUR_MS = 3_600_000
BOTH_CLIENTS = [
    pytest.param(False, id="blocking", marks=pytest.mark.client("azure-servicebus, blocking, plain")),
    pytest.param(True, id="asyncio", marks=pytest.mark.client("azure-servicebus, asyncio, plain")),
]


@pytest.fixture
def namespace() -> Iterator[RunningNamespace]:
    with running_namespace() as namespace:
        namespace.create_queue("orders")
        yield namespace


@pytest.fixture
def disk(namespace: RunningNamespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    with troubled(monkeypatch) as disk:
        yield disk


@pytest.mark.sb(101)
@pytest.mark.parametrize(
    "limit",
    [{"com.microsoft:server-timeout": UInt(500)}, {"server-timeout": ULong(500)}],
    ids=["uint", "the ulong of Go"],
)
def test_an_operation_that_waits_for_the_disk_is_answered_in_the_time_that_it_names(
    namespace: RunningNamespace, disk: Disk, limit: dict[str, object]
) -> None:
    due = {"x-opt-scheduled-enqueue-time": Timestamp(int(time.time() * 1_000) + HOUR_MS)}
    message = encode_message(Message(body=DataBody((b"later",)), message_annotations=due))  # type: ignore[arg-type]
    schedule = {"messages": [{"message-id": "m", "message": message}]}
    peek = {"from-sequence-number": Long(1), "message-count": Int(5)}
    with RawClient.connect((namespace.host, namespace.port)) as client:
        client.trusted()
        assert ask(client, "orders", "peek-message", peek)[0] == 204
        disk.answers.clear()
        began = time.monotonic()
        assert ask(client, "orders", "schedule-message", schedule, **limit)[:2] == (408, "com.microsoft:timeout")
        assert 0.5 <= time.monotonic() - began < WAIT_S
        disk.heal()
        # Its outcome was not known, and now it is: there, once. The late answer goes to nobody.
        end = time.monotonic() + WAIT_S
        while not (found := ask(client, "orders", "peek-message", peek, **limit)[2]):
            assert time.monotonic() < end
        [entry] = found["messages"]
        assert decode_message(entry["message"]).body == DataBody((b"later",))


@pytest.mark.sb(157)
def test_a_send_that_cannot_be_stored_now_is_told_to_wait_and_its_link_takes_the_next(
    namespace: RunningNamespace, disk: Disk
) -> None:
    with RawClient.connect((namespace.host, namespace.port)) as client:
        break_at_a_send(client.trusted(), disk)
        sender = client.sender("orders")
        for _ in range(2):
            state = client.publish(sender, PAYLOAD).state
            assert isinstance(state, Rejected) and state.error is not None
            assert state.error.condition == BUSY
        disk.heal()
        end = time.monotonic() + WAIT_S
        while not isinstance(client.publish(sender, PAYLOAD).state, Accepted):
            assert time.monotonic() < end
            time.sleep(0.1)
        client.receiver("orders", credit=5, snd_settle_mode=1)
        assert client.messages(1)[0].body == DataBody((b"x",))
        assert client.none_of(Transfer)  # what was rejected was not stored


@pytest.mark.sb(157)
@pytest.mark.feature("errors")
@pytest.mark.parametrize("is_async", BOTH_CLIENTS)
def test_a_client_that_is_told_to_wait_sends_again_and_its_application_notices_nothing(
    namespace: RunningNamespace, disk: Disk, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    text = namespace.connection_string()
    with busy_until_told(namespace, disk, caplog):
        asyncio.run(send_one(text)) if is_async else send_one_blocking(text)
    with ServiceBusClient.from_connection_string(text) as reader, reader.get_queue_receiver("orders") as receiver:
        assert str(receive_one(receiver)) == "patient"
        assert is_empty(receiver)


@pytest.mark.sb(157)
@pytest.mark.feature("errors")
@pytest.mark.client("azure-servicebus, blocking, plain")
def test_a_sender_that_is_idle_when_its_link_ends_for_an_unknown_outcome_sends_again(
    namespace: RunningNamespace, disk: Disk
) -> None:
    """It gave a send up, so nothing waits when its link ends, and its keep-alive finds that out."""
    text = namespace.connection_string()
    with (
        ServiceBusClient.from_connection_string(text, keep_alive=1) as client,
        client.get_queue_sender("orders") as sender,
    ):
        sender.send_messages(ServiceBusMessage("first"))
        disk.answers.clear()
        with pytest.raises(OperationTimeoutError):
            sender.send_messages(ServiceBusMessage("given up"), timeout=1)
        disk.is_broken.set()
        disk.answers.set()
        until(lambda: sender._handler._link.state is LinkState.ERROR)
        disk.heal()
        sender.send_messages(ServiceBusMessage("second"))
        with client.get_queue_receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
            found: set[str] = set()
            while "second" not in found:
                found |= {str(each) for each in receiver.receive_messages(3, max_wait_time=WAIT_S)}
        assert found - {"given up"} == {"first", "second"}


async def send_one(text: str) -> None:
    async with AsyncClient.from_connection_string(text) as client, client.get_queue_sender("orders") as sender:
        await sender.send_messages(ServiceBusMessage("patient"))


def send_one_blocking(text: str) -> None:
    with ServiceBusClient.from_connection_string(text) as client, client.get_queue_sender("orders") as sender:
        sender.send_messages(ServiceBusMessage("patient"))
