"""What the official Python client makes of answers that the service takes care not to give.

The service is real; a port in front of it alters the answers of interest. So it is known what the client relies on, and
when a new version of it does no more.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusSender, ServiceBusSubQueue
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Rejected
from hubweir.amqp.transport.performatives import Attach, Disposition, Performative, Transfer
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.values import Described, Symbol, UInt, ULong
from hubweir.testing.frames import frame, listed, raw
from tests.conformance.altered_answers import Alter, AlteredAnswers
from tests.conformance.conftest import Doors, Serve
from tests.conformance.servicebus_python import WAIT_S, connected, is_empty, receive, receive_one, sender_to
from tests.conformance.spoken_conditions import CONDITIONS, Rejecting, dead_letter_with_an_error
from tests.conformance.test_raw_message_management import ask, tokens_of
from tests.conformance.ways import CALLS

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.feature("errors"),
    # This client leaves the sockets open that the way in front of the service has closed.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
PYTHON = pytest.mark.client("azure-servicebus, blocking, plain")
Make = Callable[..., str]
DEAD_LETTERS = ServiceBusSubQueue.DEAD_LETTER
TIMEOUT_S = 1


@contextmanager
def altered(doors: Doors, alter: Alter) -> Iterator[ServiceBusClient]:
    """A client to which the service's answers come altered."""
    with AlteredAnswers((doors.host, doors.port), alter) as way:
        string = doors.connection_string(host=f"127.0.0.1:{way.port}")
        with connected(doors, conn_str=string) as client:
            yield client
            way.cut()


class Quiet:
    """Lets answers to settlements be lost where told to, and knows whether the client spoke to a management node."""

    def __init__(self, *, loses: bool) -> None:
        self._loses = loses
        self.was_asked = False

    def __call__(self, performative: Performative, came: bytes) -> bytes:
        source = performative.source if isinstance(performative, Attach) else None
        if source is not None and (source.address or "").endswith("/$management"):
            self.was_asked = True
        if self._loses and isinstance(performative, Disposition) and not performative.role:
            return b""
        return came


def as_it_is(performative: Performative, came: bytes) -> bytes:
    return came


def error_of_two_fields(performative: Performative, came: bytes) -> bytes:
    """A rejection loses the last of its error's three fields, which is null."""
    if not isinstance(performative, Disposition) or not isinstance(performative.state, Rejected):
        return came
    error = performative.state.error
    assert error is not None
    short = Described(ULong(AmqpError.CODE), [Symbol(str(error.condition)), error.description])
    state = Described(ULong(Rejected.CODE), [short])
    last = None if performative.last is None else UInt(performative.last)
    settled = listed(Disposition, performative.role, UInt(performative.first), last, True, state, False)
    return raw(settled, channel=int.from_bytes(came[6:8], "big"))


@pytest.mark.sb(16, 54)
def test_the_service_says_three_fields_in_each_error_and_none_about_a_dead_letter(
    doors: Doors, make_queue: Make
) -> None:
    """Of a rejected send, a lost lock, and a dead letter: the states of dispositions, as they came."""
    queue, with_sessions = make_queue(), make_queue(requires_session=True)
    payload = encode_message(Message(body=DataBody((b"x",))))
    with doors.raw() as client:
        client.trusted().publish(client.sender(with_sessions), payload)
        client.publish(client.sender(queue), payload)
        client.receiver(queue, credit=1, rcv_settle_mode=1)
        first = client.expect(Transfer).delivery_id
        for error in (AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="mine"), None):
            state = Rejected(error=error)
            client.write(frame(Disposition(role=True, first=first, last=first, settled=False, state=state)))
            client.expect(Disposition, where=lambda said: not said.role)
        came = [each.body for each in client.frames if isinstance(each.performative, Disposition)]
    states = [body.value[4] for body in (decode(each)[0] for each in came)]  # type: ignore[attr-defined, index]
    rejected = [state.value for state in states if state.descriptor == Rejected.CODE]
    assert [error and len(error.value) for [error] in rejected] == [3, None, 3]


@PYTHON
@pytest.mark.sb(35)
def test_a_rejection_whose_error_has_two_fields_leaves_a_send_without_an_end(
    doors: Doors, make_queue: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Even its own time-out does not end it: the delivery counts as answered. The end of the connection does."""
    queue = make_queue(requires_session=True)
    raised: list[ServiceBusError] = []

    def send(sender: ServiceBusSender) -> None:
        with pytest.raises(ServiceBusError) as told:
            sender.send_messages(ServiceBusMessage("none"), timeout=TIMEOUT_S)
        raised.append(told.value)

    with altered(doors, as_it_is) as client, sender_to(client, queue) as sender:
        send(sender)
        assert "session" in str(raised.pop())
    with altered(doors, error_of_two_fields) as client:
        sender = sender_to(client, queue)
        sending = threading.Thread(target=send, args=(sender,))
        sending.start()
        limit = time.monotonic() + WAIT_S
        while "callback failed: IndexError" not in caplog.text:
            assert time.monotonic() < limit
            time.sleep(0.05)
        sending.join(3 * TIMEOUT_S)
        assert sending.is_alive()
    sending.join(WAIT_S)
    assert len(raised) == 1


@PYTHON
@pytest.mark.sb(54)
def test_an_error_in_the_answer_to_a_dead_letter_makes_the_client_raise(doors: Doors, queue: str) -> None:
    for alter, context in (
        (as_it_is, contextlib.nullcontext()),
        (dead_letter_with_an_error, pytest.raises(ServiceBusError, match="said by the client")),
    ):
        with altered(doors, alter) as client, sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("broken"))
            with client.get_queue_receiver(queue) as receiver:
                message = receive_one(receiver)
                with context:
                    receiver.dead_letter_message(message, reason="why")
    # It was done both times all the same.
    with connected(doors) as client, client.get_queue_receiver(queue, sub_queue=DEAD_LETTERS) as dead:
        assert [message.dead_letter_reason for message in receive(dead, 2)] == ["why", "why"]


@PYTHON
@pytest.mark.sb(156)
def test_each_condition_of_a_rejected_send_becomes_its_class(doors: Doors, queue: str) -> None:
    raised: dict[str, str] = {}
    rejecting = Rejecting(queue, [each.condition for each in CONDITIONS])
    with altered(doors, rejecting) as client:
        for each in CONDITIONS:
            with sender_to(client, queue) as sender, pytest.raises(ServiceBusError) as told:
                sender.send_messages(ServiceBusMessage("x"))
            raised[each.condition] = type(told.value).__name__
    assert raised == {each.condition: each.python for each in CONDITIONS}


@PYTHON
@pytest.mark.sb(160)
def test_a_lock_that_was_lost_is_told_over_the_link_and_nothing_is_asked_behind_it(doors: Doors, queue: str) -> None:
    quiet = Quiet(loses=False)
    with altered(doors, quiet) as client, sender_to(client, queue) as sender:
        sender.send_messages(ServiceBusMessage("x"))
        with client.get_queue_receiver(queue) as receiver:
            message = receive_one(receiver)
            assert isinstance(message.lock_token, UUID)
            with doors.raw() as other:
                completed = {**tokens_of(message.lock_token), "disposition-status": "completed"}
                assert ask(other.trusted(), queue, "update-disposition", completed)[0] == 200
            begun = time.monotonic()
            with pytest.raises(MessageLockLostError):
                receiver.complete_message(message)
            assert time.monotonic() - begun < 20  # of the minute that it waits for an answer
            assert not quiet.was_asked


@PYTHON
@pytest.mark.sb(160)
@pytest.mark.timeout(150)
def test_a_settlement_that_nobody_answers_is_asked_for_once_more(measure: Callable[[int], int], serve: Serve) -> None:
    """With --all behind the minute that the client waits by default, else behind two seconds.

    The service had done it, so the second one hears that its lock is over: nothing is done twice.
    """
    wait_s = 60 if measure(2) == 2 else 2
    quiet = Quiet(loses=True)
    with serve() as namespace:
        namespace.create_queue("orders")
        doors = Doors(namespace, CALLS)
        with altered(doors, quiet) as client, sender_to(client, "orders") as sender:
            sender.send_messages(ServiceBusMessage("x"))
            with client.get_queue_receiver("orders", timeout=wait_s) as receiver:
                message = receive_one(receiver)
                begun = time.monotonic()
                with pytest.raises(MessageLockLostError):
                    receiver.complete_message(message)
                assert wait_s <= time.monotonic() - begun < wait_s + 30
                assert quiet.was_asked
        with connected(doors) as client, client.get_queue_receiver("orders") as receiver:
            assert is_empty(receiver)
