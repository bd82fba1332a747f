"""The official Python client of queues, blocking: what is refused, and what an application sees of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import (
    MessagingEntityDisabledError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusError,
)

from hubweir.auth.shared_access_signature import make_token
from hubweir.namespace.entity import Availability
from tests.conformance.conftest import Doors
from tests.conformance.servicebus_python import connected, receive, receive_one, sender_to, texts

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.client("azure-servicebus, blocking, plain"),
    pytest.mark.feature("errors"),
]
Make = Callable[..., str]


@pytest.mark.sb(23)
def test_an_unknown_queue_is_told_as_such(doors: Doors) -> None:
    with connected(doors) as client:
        with pytest.raises(ServiceBusAuthenticationError), sender_to(client, "nowhere") as sender:
            sender.send_messages(ServiceBusMessage("x"))
        with pytest.raises(ServiceBusAuthenticationError), client.get_queue_receiver("nowhere") as receiver:
            receiver.receive_messages(max_wait_time=2)


@pytest.mark.sb(11)
@pytest.mark.feature("SAS")
def test_a_wrong_key_and_an_expired_token_are_authentication_errors(doors: Doors, queue: str) -> None:
    def send(conn_str: str) -> None:
        with connected(doors, conn_str=conn_str) as client, sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("x"))

    with pytest.raises(ServiceBusAuthenticationError):
        send(doors.connection_string(key="wrong"))

    def with_token(lifetime_s: int) -> str:
        token = make_token(
            f"sb://{doors.host}/{queue}", "RootManageSharedAccessKey", "SAS_KEY_VALUE", int(time.time()) + lifetime_s
        )
        where = f"Endpoint=sb://{doors.host}:{doors.port};SharedAccessSignature={token}"
        return f"{where};UseDevelopmentEmulator=true;"

    with pytest.raises(ServiceBusAuthenticationError):
        send(with_token(-5))
    send(with_token(600))


@pytest.mark.sb(38, 72)
def test_a_queue_that_is_switched_off_refuses_its_half(doors: Doors, make_queue: Make) -> None:
    queue = make_queue()
    with connected(doors) as client:
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("before"))
        doors.namespace.change_queue(queue, availability=Availability.SEND_DISABLED)
        with pytest.raises(MessagingEntityDisabledError), sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("x"))
        with client.get_queue_receiver(queue) as receiver:
            assert str(receive_one(receiver)) == "before"
        doors.namespace.change_queue(queue, availability=Availability.RECEIVE_DISABLED)
        with pytest.raises(MessagingEntityDisabledError), client.get_queue_receiver(queue) as receiver:
            receiver.receive_messages(max_wait_time=2)
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("after"))
        doors.namespace.change_queue(queue, availability=Availability.ACTIVE)
        with client.get_queue_receiver(queue) as receiver:
            assert str(receive_one(receiver)) == "after"


@pytest.mark.sb(39, 40)
def test_session_ids_and_partition_keys_must_agree(doors: Doors, make_queue: Make) -> None:
    plain, with_sessions = make_queue(), make_queue(requires_session=True)
    with connected(doors) as client:
        with sender_to(client, with_sessions) as sender:
            with pytest.raises(ServiceBusError, match="session"):
                sender.send_messages(ServiceBusMessage("none"))
            sender.send_messages(ServiceBusMessage("empty", session_id=""))
            with pytest.raises(ServiceBusError, match="session"):
                sender.send_messages([ServiceBusMessage("one", session_id="s"), ServiceBusMessage("none")])
        with client.get_queue_receiver(with_sessions, session_id="") as receiver:
            assert texts(receive(receiver, 1)) == ["empty"]
            assert receiver.receive_messages(max_wait_time=0.5) == []
        with sender_to(client, plain) as sender:
            message = ServiceBusMessage("differ", session_id="s")
            message.raw_amqp_message.annotations = {b"x-opt-partition-key": "p"}
            with pytest.raises(ServiceBusError, match="partition key"):
                sender.send_messages(message)
            sender.send_messages(ServiceBusMessage("equal", session_id="s", partition_key="s"))
        with client.get_queue_receiver(plain) as receiver:
            assert texts(receive(receiver, 1)) == ["equal"]


@pytest.mark.sb(73)
def test_receivers_of_the_wrong_kind_are_refused_by_their_phrases(doors: Doors, make_queue: Make) -> None:
    plain, with_sessions = make_queue(), make_queue(requires_session=True)
    with connected(doors) as client:
        phrase = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver"
        with pytest.raises(ServiceBusError, match=phrase), client.get_queue_receiver(with_sessions) as receiver:
            receiver.receive_messages(max_wait_time=2)
        phrase = "A sessionful message receiver cannot be created on an entity that does not require sessions"
        with pytest.raises(ServiceBusError, match=phrase), client.get_queue_receiver(plain, session_id="s") as receiver:
            receiver.receive_messages(max_wait_time=2)


@pytest.mark.sb(156)
def test_a_queue_that_is_deleted_under_its_links_is_not_found(doors: Doors) -> None:
    name = "queue-to-delete"
    doors.namespace.create_queue(name)
    with connected(doors) as client, client.get_queue_receiver(name) as receiver:
        # A link that was detached meanwhile tells this client why only when it attaches again.
        with connected(doors, retry_total=1) as other, sender_to(other, name) as sender:
            sender.send_messages(ServiceBusMessage("x"))
            assert len(receive(receiver, 1)) == 1
            doors.namespace.delete_queue(name)
            with pytest.raises((MessagingEntityNotFoundError, ServiceBusAuthenticationError)):
                sender.send_messages(ServiceBusMessage("y"))
        with pytest.raises(MessagingEntityNotFoundError):
            receiver.receive_messages(max_wait_time=2)
