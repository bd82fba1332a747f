"""The official Python client of queues when the service ends a link or the connection: it goes on by itself.

A client retries as it does without a word from us: three times, after its own waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient as AsyncClient

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.performatives import Attach, Detach, Transfer
from hubweir.errors import ServiceError
from hubweir.testing.frames import frame
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.conftest import Serve
from tests.conformance.raw_client import RawClient
from tests.conformance.servicebus_python import WAIT_S, is_empty, now, receive, receive_one, sender_to

BLOCKING, ASYNC = "azure-servicebus, blocking, plain", "azure-servicebus, asyncio, plain"
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.feature("errors"),
    # This client leaves the sockets open that the service has closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
DETACHED = "amqp:link:detach-forced"
IDLE_MS = 1_000


@pytest.fixture
def impatient(serve: Serve, caplog: pytest.LogCaptureFixture) -> Iterator[RunningNamespace]:
    """A namespace that detaches a link after a second without anything on it; the log tells of each."""
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    with serve(idle_link_ms=IDLE_MS) as namespace:
        namespace.create_queue("orders")
        yield namespace


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def detached(caplog: pytest.LogCaptureFixture) -> int:
    """How many links were idle too long so far."""
    return sum(DETACHED in line for line in caplog.messages)


@pytest.mark.sb(158)
def test_idle_links_are_detached_with_their_reason_and_those_that_wait_are_not(impatient: RunningNamespace) -> None:
    def ended(client: RawClient) -> str:
        """The name of the link that is detached next, as it should be."""
        detach = client.expect(Detach)
        assert detach.closed and detach.error is not None
        assert detach.error.condition == DETACHED
        assert "The link was idle for 1 s; attach again" in detach.error.description
        attaches = [each.performative for each in client.frames if isinstance(each.performative, Attach)]
        name = next(attach.name for attach in reversed(attaches) if attach.handle == detach.handle)
        client.write(frame(Detach(handle=ours[name], closed=True)))
        return str(name)

    ours: dict[str, int] = {}
    with RawClient.connect((impatient.host, impatient.port)) as client:
        client.trusted()
        ours["sender"] = client.sender("orders", name="sender")
        ours["idle"] = client.receiver("orders", name="idle", rcv_settle_mode=1)
        ours["waiting"] = client.receiver("orders", name="waiting", credit=1, rcv_settle_mode=1)
        ours["node"] = client.sender("orders/$management", name="node")
        assert {ended(client), ended(client)} == {"sender", "idle"}
        ours["again"] = client.sender("orders", name="again")
        payload = encode_message(Message(body=DataBody((b"x",))))
        assert isinstance(client.publish(ours["again"], payload).state, Accepted)
        client.expect(Transfer)
        # The receiver that has a message locked is not idle, though it has no credit left; nor is the node ever.
        assert ended(client) == "again"
        assert client.none_of(Detach, seconds=2 * IDLE_MS / 1_000)


@pytest.mark.one_process("its log says when a client's links were detached")
@pytest.mark.sb(158)
@pytest.mark.client(BLOCKING)
def test_a_client_whose_links_were_idle_sends_and_receives_on(
    impatient: RunningNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        ServiceBusClient.from_connection_string(impatient.connection_string()) as client,
        sender_to(client, "orders") as sender,
        client.get_queue_receiver("orders") as receiver,
    ):
        for text in ("before", "after"):
            sender.send_messages(ServiceBusMessage(text))
            message = receive_one(receiver)
            assert (str(message), message.delivery_count) == (text, 0)
            receiver.complete_message(message)
            wait_until(lambda: detached(caplog) >= 2)
        assert is_empty(receiver)


@pytest.mark.one_process("its log says when a client's links were detached")
@pytest.mark.sb(158)
@pytest.mark.client(ASYNC)
def test_an_asyncio_client_whose_links_were_idle_sends_and_receives_on(
    impatient: RunningNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        async with (
            AsyncClient.from_connection_string(impatient.connection_string()) as client,
            client.get_queue_sender("orders") as sender,
            client.get_queue_receiver("orders") as receiver,
        ):
            for text in ("before", "after"):
                await sender.send_messages(ServiceBusMessage(text))
                [message] = await receiver.receive_messages(1, max_wait_time=WAIT_S)
                assert (str(message), message.delivery_count) == (text, 0)
                await receiver.complete_message(message)
                await asyncio.to_thread(wait_until, lambda: detached(caplog) >= 2)

    asyncio.run(work())


@pytest.mark.sb(168)
@pytest.mark.client(BLOCKING)
@pytest.mark.timeout(400)
def test_a_receiver_that_holds_a_message_may_be_idle_for_longer_than_a_lock_lasts(
    measure: Callable[[int], int], caplog: pytest.LogCaptureFixture
) -> None:
    """Its application does nothing but renew the lock once; the client's own thread writes empty frames.

    With --all in the times that clients test, else in the shortest there are: links may be idle for a second then.
    """
    is_whole = measure(2) == 2
    lock_s, renewed_at_s, idle_s = (300, 245, 305) if is_whole else (10, 5, 11)
    settings: dict[str, Any] = {} if is_whole else {"idle_link_ms": IDLE_MS}
    caplog.set_level(logging.INFO, "hubweir.gateway.refusals")
    with running_namespace(**settings) as namespace:
        namespace.create_queue("orders", lock_duration_ms=lock_s * 1_000)
        counters = namespace.service.counters
        with (
            ServiceBusClient.from_connection_string(namespace.connection_string()) as client,
            client.get_queue_receiver("orders") as receiver,
        ):
            with sender_to(client, "orders") as sender:
                sender.send_messages([ServiceBusMessage("held"), ServiceBusMessage("next")])
            message = receive_one(receiver)
            received_at_s, connected = time.monotonic(), counters["gateway.connections_accepted"]
            caplog.clear()  # until here the link was idle: it held nothing and had no credit
            time.sleep(renewed_at_s)
            until = receiver.renew_message_lock(message)
            assert until > now() + timedelta(seconds=lock_s / 2)
            time.sleep(received_at_s + idle_s - time.monotonic())
            receiver.complete_message(message)
            assert str(receive_one(receiver)) == "next"
            assert counters["gateway.connections_accepted"] == connected
    assert not [line for line in caplog.messages if "refused" in line and "entity 'orders'" in line]


@pytest.mark.sb(159)
@pytest.mark.client(BLOCKING)
def test_a_client_goes_on_with_a_service_that_stopped_and_started_again(serve: Serve, tmp_path: Path) -> None:
    """Also a receiver that waits for a message all the while, and requests to the management node."""
    held = HeldPorts()
    settings: dict[str, Any] = {"data": str(tmp_path), "port": tuple(held.numbers)}
    got: list[ServiceBusReceivedMessage] = []
    with ExitStack() as clients:
        with serve(**settings) as namespace:
            namespace.create_queue("orders")
            namespace.create_queue("awaited")
            client = clients.enter_context(ServiceBusClient.from_connection_string(namespace.connection_string()))
            sender, other = (clients.enter_context(sender_to(client, queue)) for queue in ("orders", "awaited"))
            receiver = clients.enter_context(client.get_queue_receiver("orders"))
            awaiting = clients.enter_context(client.get_queue_receiver("awaited"))
            sender.send_messages(ServiceBusMessage("before"))
            assert str(receive_one(receiver)) == "before"  # and its lock ends with the service
            waiting = threading.Thread(
                target=lambda: got.extend(awaiting.receive_messages(1, max_wait_time=3 * WAIT_S))
            )
            waiting.start()
        with serve(**settings):
            assert waiting.is_alive()
            sender.send_messages(ServiceBusMessage("after"))
            other.send_messages(ServiceBusMessage("awaited"))
            assert len(sender.schedule_messages(ServiceBusMessage("later"), now() + timedelta(hours=1))) == 1
            messages = receive(receiver, 2)
            assert [(str(each), each.delivery_count) for each in messages] == [("before", 1), ("after", 0)]
            for message in messages:
                receiver.complete_message(message)
            waiting.join(3 * WAIT_S)
            assert [str(message) for message in got] == ["awaited"]
            awaiting.complete_message(got[0])
            assert [str(message) for message in receiver.peek_messages(5, sequence_number=1)] == ["later"]


@pytest.mark.sb(159)
@pytest.mark.client(ASYNC)
def test_an_asyncio_client_goes_on_with_a_service_that_stopped_and_started_again(serve: Serve, tmp_path: Path) -> None:
    held = HeldPorts()
    settings: dict[str, Any] = {"data": str(tmp_path), "port": tuple(held.numbers)}

    async def started() -> tuple[str, Callable[[], Awaitable[object]]]:
        """Its connection string, and what stops it; both off the loop, on which the client answers."""
        service = serve(**settings)
        namespace = await asyncio.to_thread(service.__enter__)
        with contextlib.suppress(ServiceError):  # the second time it is there
            namespace.create_queue("orders")
        return namespace.connection_string(), lambda: asyncio.to_thread(service.__exit__, None, None, None)

    async def work() -> None:
        text, stop = await started()
        async with (
            AsyncClient.from_connection_string(text) as client,
            client.get_queue_sender("orders") as sender,
            client.get_queue_receiver("orders") as receiver,
        ):
            await sender.send_messages(ServiceBusMessage("before"))
            [message] = await receiver.receive_messages(1, max_wait_time=WAIT_S)
            await receiver.complete_message(message)
            waiting = asyncio.create_task(receiver.receive_messages(1, max_wait_time=3 * WAIT_S))
            await stop()
            assert not waiting.done()
            _, stop = await started()
            await sender.send_messages(ServiceBusMessage("after"))
            [message] = await waiting
            assert (str(message), message.delivery_count) == ("after", 0)
            await receiver.complete_message(message)
        await stop()

    asyncio.run(work())
