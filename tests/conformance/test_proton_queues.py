"""python-qpid-proton on queues: an AMQP 1.0 library that knows nothing of Service Bus, by SASL PLAIN, plain and TLS.

Outcomes are told unsettled, and the service's answer is waited for; the library's own `accept` settles first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.connection_string import ConnectionString
from tests.conformance.conftest import Doors
from tests.conformance.test_proton import WAIT_S, SettlesSecond, connect
from tests.conformance.test_proton import tls as tls  # a fixture

proton = pytest.importorskip("proton", reason="python-qpid-proton is not installed: it needs a C compiler")
from proton import Condition, Delivery, Message, symbol  # noqa: E402  # only where the library is
from proton.reactor import AtMostOnce, Filter, LinkOption  # noqa: E402
from proton.utils import LinkDetached, SendException  # noqa: E402

Make = Callable[..., str]
pytestmark = pytest.mark.conformance
QUIET_S = 0.3


@pytest.fixture
def connection(doors: Doors, tls: bool) -> Any:
    connection = connect(doors, tls)
    yield connection
    connection.close()


class OfSession(LinkOption):  # type: ignore[misc]  # the library has no types
    """Asks for a session: a named one, or with None the next."""

    def __init__(self, session_id: str | None, *, described: bool = False) -> None:
        name = symbol("com.microsoft:session-filter")
        value = proton.Described(proton.ulong(0x0000_0013_7000_000C), session_id) if described else session_id
        self._filter = Filter({name: value})

    def apply(self, receiver: Any) -> None:
        self._filter.apply(receiver)
        receiver.properties = {symbol("com.microsoft:timeout"): proton.uint(1_000)}


def send(connection: Any, queue: str, *messages: Message) -> None:
    sender = connection.create_sender(queue)
    for message in messages:
        sender.send(message)
    sender.close()


def receiver(connection: Any, address: str, credit: int, *options: LinkOption) -> Any:
    """A receiver under peek-lock with so much credit: the library would renew what it is given with `credit`."""
    link = connection.create_receiver(address, name=str(uuid4()), options=[SettlesSecond(), *options])
    link.link.flow(credit)
    return link


def session_of(link: Any) -> Any:
    """The value that the service has put into the filter."""
    data = link.link.remote_source.filter
    data.rewind()
    assert data.next()
    (value,) = data.get_object().values()
    return value


def take(receiver: Any, count: int) -> list[tuple[Message, Delivery]]:
    """The next messages that its credit brings, with what settles them."""
    fetcher = receiver.fetcher
    receiver.connection.wait(lambda: fetcher.has_message >= count, timeout=WAIT_S, msg=f"{count} messages")
    return [fetcher.incoming.popleft() for _ in range(count)]


def is_quiet(receiver: Any) -> bool:
    """Nothing comes for a while."""
    with pytest.raises(proton.Timeout):
        receiver.connection.wait(lambda: receiver.fetcher.has_message, timeout=QUIET_S)
    return True


def answer(connection: Any, delivery: Delivery, state: int, **local: Any) -> int:
    """Tell an outcome, which has these fields, and wait for the service's; then forget the delivery."""
    for name, value in local.items():
        setattr(delivery.local, name, value)
    delivery.update(state)
    connection.wait(lambda: delivery.settled, timeout=WAIT_S, msg="the answer to an outcome")
    told = delivery.remote_state
    delivery.settle()
    return int(told)


@pytest.mark.sb(2, 27, 45)
@pytest.mark.feature("properties")
def test_a_message_comes_back_with_its_properties_and_types(connection: Any, queue: str) -> None:
    sent = Message(
        id="i", subject="s", address="t", reply_to="r", correlation_id="c", content_type="text/x", group_id="g",
        priority=7,
        properties={"int": proton.int32(-5), "ulong": proton.ulong(5), "real": 0.5, "text": "é", "yes": True},
        annotations={symbol("mine"): "kept"}, body={"a": ["map", 1]},
    )  # fmt: skip
    send(connection, queue, sent)
    [(got, delivery)] = take(receiver(connection, queue, 1), 1)
    names = ("id", "subject", "address", "reply_to", "correlation_id", "content_type", "group_id", "priority", "body")
    assert {name: getattr(got, name) for name in names} == {name: getattr(sent, name) for name in names}
    assert got.properties == sent.properties
    assert [type(got.properties[name]) for name in ("int", "ulong", "yes")] == [proton.int32, proton.ulong, bool]
    assert got.delivery_count == 0
    annotations = {str(name): value for name, value in got.annotations.items()}
    assert (annotations["mine"], annotations["x-opt-sequence-number"]) == ("kept", 1)
    assert isinstance(got.instructions[symbol("x-opt-lock-token")], UUID)
    assert answer(connection, delivery, Delivery.ACCEPTED) == Delivery.ACCEPTED


@pytest.mark.sb(37)
@pytest.mark.feature("send single")
def test_a_presettled_message_is_stored(connection: Any, queue: str) -> None:
    sender = connection.create_sender(queue, options=[AtMostOnce()])
    sender.send(Message(body="quiet"))
    [(got, _)] = take(receiver(connection, queue, 1), 1)
    assert got.body == "quiet"


@pytest.mark.sb(36)
@pytest.mark.feature("send single")
def test_a_message_of_many_frames_is_stored_once_and_comes_in_many(doors: Doors, tls: bool, queue: str) -> None:
    large = bytes(number * 31 % 251 for number in range(200_000))
    connection = connect(doors, tls, max_frame_size=1_024)
    send(connection, queue, Message(body=large), Message(body="behind"))
    link = receiver(connection, queue, 5)
    (got, delivery), (behind, _) = take(link, 2)
    assert (bytes(got.body) == large, behind.body) == (True, "behind")
    assert answer(connection, delivery, Delivery.ACCEPTED) == Delivery.ACCEPTED
    assert is_quiet(link)
    connection.close()


@pytest.mark.sb(34)
@pytest.mark.feature("send single")
def test_a_message_over_the_limit_is_refused(connection: Any, make_queue: Make) -> None:
    queue = make_queue(max_message_kilobytes=256)
    with pytest.raises((LinkDetached, SendException)):
        connection.create_sender(queue).send(Message(body=b"x" * 300_000))
    assert is_quiet(receiver(connection, queue, 1))


@pytest.mark.sb(44)
@pytest.mark.feature("receive and delete")
def test_received_and_deleted_messages_are_gone(connection: Any, queue: str) -> None:
    send(connection, queue, Message(body="a"), Message(body="b"))
    deleting = connection.create_receiver(queue, credit=5, options=[AtMostOnce()])
    got = take(deleting, 2)
    assert [message.body for message, _ in got] == ["a", "b"]
    assert all(delivery.settled for _, delivery in got)
    deleting.close()
    assert is_quiet(receiver(connection, queue, 5))


@pytest.mark.sb(61, 65)
@pytest.mark.feature("receive")
def test_drain_gives_what_there_is_and_ends_the_credit(connection: Any, queue: str) -> None:
    send(connection, queue, *(Message(body=f"{number}") for number in range(5)))
    link = receiver(connection, queue, 2)
    assert [message.body for message, _ in take(link, 2)] == ["0", "1"]
    assert is_quiet(link)
    link.link.drain(7)
    connection.wait(lambda: not link.link.draining(), timeout=WAIT_S, msg="the end of the drain")
    assert [message.body for message, _ in take(link, 3)] == ["2", "3", "4"]
    assert link.link.credit == 0
    send(connection, queue, Message(body="later"))
    assert is_quiet(link)


@pytest.mark.sb(50, 51, 52, 57)
@pytest.mark.feature("settle")
def test_each_outcome_is_answered_in_kind(connection: Any, queue: str) -> None:
    send(connection, queue, *(Message(body=name) for name in ("complete", "abandon", "defer", "release")))
    link = receiver(connection, queue, 4)
    completed, abandoned, deferred, released = (delivery for _, delivery in take(link, 4))
    assert answer(connection, completed, Delivery.ACCEPTED) == Delivery.ACCEPTED
    assert answer(connection, deferred, Delivery.MODIFIED, undeliverable=True) == Delivery.MODIFIED
    changes = {symbol("changed"): "after"}
    assert answer(connection, abandoned, Delivery.MODIFIED, failed=True, annotations=changes) == Delivery.MODIFIED
    assert answer(connection, released, Delivery.RELEASED) == Delivery.RELEASED
    link.link.flow(4)
    again = [message for message, _ in take(link, 2)]
    assert [(message.body, message.delivery_count) for message in again] == [("abandon", 1), ("release", 0)]
    assert again[0].properties == {"changed": "after"}
    assert is_quiet(link)


@pytest.mark.sb(50, 57)
@pytest.mark.feature("settle")
def test_the_library_s_own_calls_settle_first(connection: Any, queue: str) -> None:
    send(connection, queue, *(Message(body=f"{number}") for number in range(3)))
    link = connection.create_receiver(queue)  # it asks for one message in each receive, and for no other
    assert link.receive(timeout=WAIT_S).body == "0"
    link.release(delivered=False)
    assert link.receive(timeout=WAIT_S).body == "0"
    for number in range(1, 3):
        link.accept()
        assert link.receive(timeout=WAIT_S).body == f"{number}"
    link.accept()
    link.close()
    assert is_quiet(receiver(connection, queue, 3))


@pytest.mark.sb(20, 53, 55)
@pytest.mark.feature("dead letters")
def test_a_rejected_message_is_a_dead_letter_and_says_why(connection: Any, queue: str) -> None:
    send(connection, queue, Message(body="reason"), Message(body="none"))
    (_, reason), (_, none) = take(receiver(connection, queue, 2), 2)
    info = {symbol("DeadLetterReason"): "broken", symbol("DeadLetterErrorDescription"): "no wheels"}
    why = Condition("com.microsoft:dead-letter", "of a test", info)
    assert answer(connection, reason, Delivery.REJECTED, condition=why) == Delivery.REJECTED
    assert reason.remote.condition is None
    assert answer(connection, none, Delivery.REJECTED) == Delivery.REJECTED
    (first, _), (second, _) = take(receiver(connection, f"{queue}/$DeadLetterQueue", 2), 2)
    assert (first.body, first.properties) == (
        "reason", {"DeadLetterReason": "broken", "DeadLetterErrorDescription": "no wheels"},
    )  # fmt: skip
    assert (second.body, second.properties) == ("none", None)


@pytest.mark.sb(59, 66)
@pytest.mark.feature("locks")
def test_an_outcome_behind_the_lock_is_answered_as_lost(connection: Any, make_queue: Make) -> None:
    queue = make_queue(lock_duration_ms=5_000)
    send(connection, queue, Message(body="x"))
    link = receiver(connection, queue, 2)
    [(_, late)], [(again, delivery)] = take(link, 1), take(link, 1)  # it comes again when its lock has ended
    assert again.delivery_count == 1
    assert answer(connection, late, Delivery.ACCEPTED) == Delivery.REJECTED
    assert late.remote.condition.name == "com.microsoft:message-lock-lost"
    assert answer(connection, delivery, Delivery.ACCEPTED) == Delivery.ACCEPTED


@pytest.mark.sb(118)
@pytest.mark.feature("duplicates")
def test_a_duplicate_is_stored_once(connection: Any, make_queue: Make) -> None:
    queue = make_queue(duplicate_window_ms=60_000)
    send(connection, queue, *(Message(id=name, body=name) for name in ("a", "a", "b")))
    link = receiver(connection, queue, 3)
    assert [message.body for message, _ in take(link, 2)] == ["a", "b"]
    assert is_quiet(link)


@pytest.mark.sb(74, 76, 78, 80)
@pytest.mark.feature("sessions")
@pytest.mark.parametrize("described", [False, True], ids=["plain filter", "described filter"])
def test_a_named_session_comes_in_order_also_over_abandon(
    connection: Any, make_queue: Make, *, described: bool
) -> None:
    queue = make_queue(requires_session=True)
    send(connection, queue, *(Message(body=f"{name}{at}", group_id=name) for at in range(3) for name in ("a", "b")))
    link = receiver(connection, queue, 1, OfSession("a", described=described))
    value = session_of(link)
    assert (value.value if described else value) == "a"
    [(_, first)] = take(link, 1)
    assert answer(connection, first, Delivery.MODIFIED, failed=True) == Delivery.MODIFIED
    link.link.flow(3)
    assert [message.body for message, _ in take(link, 3)] == ["a0", "a1", "a2"]
    with pytest.raises(LinkDetached, match="com.microsoft:session-cannot-be-locked"):
        receiver(connection, queue, 0, OfSession("a"))


@pytest.mark.sb(75, 77)
@pytest.mark.feature("sessions")
def test_the_next_session_is_the_oldest_and_none_is_a_timeout(connection: Any, make_queue: Make) -> None:
    queue = make_queue(requires_session=True)
    send(connection, queue, Message(body="1", group_id="first"), Message(body="2", group_id="second"))
    held = [receiver(connection, queue, 1, OfSession(None)) for _ in range(2)]
    assert [session_of(link) for link in held] == ["first", "second"]
    with pytest.raises(LinkDetached, match="com.microsoft:timeout"):
        receiver(connection, queue, 0, OfSession(None))


@pytest.mark.sb(123)
@pytest.mark.feature("topics")
def test_subscriptions_get_a_copy_each(connection: Any, doors: Doors) -> None:
    administration = Administration(ConnectionString.parse(doors.connection_string()))
    administration.create(EntityType.TOPIC, "proton-news", {})
    for name in ("a", "b"):
        administration.create(EntityType.SUBSCRIPTION, f"proton-news/Subscriptions/{name}", {})
    send(connection, "proton-news", Message(body="news"))
    for name in ("a", "b"):
        [(got, delivery)] = take(receiver(connection, f"proton-news/Subscriptions/{name}", 1), 1)
        assert got.body == "news"
        assert answer(connection, delivery, Delivery.ACCEPTED) == Delivery.ACCEPTED
    administration.delete("proton-news")


@pytest.mark.sb(23, 73)
@pytest.mark.feature("errors")
def test_refusals_name_their_condition(connection: Any, make_queue: Make) -> None:
    with pytest.raises(LinkDetached, match="amqp:not-found"):
        connection.create_receiver("nowhere")
    with pytest.raises(LinkDetached, match="amqp:not-found"):
        connection.create_sender("nowhere")
    queue = make_queue(requires_session=True)
    with pytest.raises(LinkDetached, match="amqp:not-allowed"):
        connection.create_receiver(queue)
    with pytest.raises(SendException):
        connection.create_sender(queue).send(Message(body="without a session"))


@pytest.mark.sb(2)
@pytest.mark.feature("SASL")
def test_a_wrong_key_is_refused(doors: Doors, *, tls: bool) -> None:
    with pytest.raises(proton.ProtonException):
        connect(doors, tls, key="wrong")
