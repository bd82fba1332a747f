"""The official Python client of queues, blocking: messages sent, received and settled, over plain TCP and TLS.

Long because what one client can do with messages is tried in one place, in the order in which a message lives.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import (
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageHeader, AmqpMessageProperties
from azure.servicebus.exceptions import (
    MessageAlreadySettled,
    MessageNotFoundError,
    MessageSizeExceededError,
)

from tests.conformance.conftest import HOST, Doors, Serve
from tests.conformance.servicebus_python import (
    connected,
    is_empty,
    now,
    receive,
    receive_one,
    sender_to,
    texts,
)
from tests.conformance.ways import CALLS

PLAIN, TLS = "azure-servicebus, blocking, plain", "azure-servicebus, blocking, TLS"
pytestmark = [pytest.mark.conformance, pytest.mark.client(PLAIN)]
BOTH = pytest.mark.parametrize(
    "tls",
    [
        pytest.param(False, id="plain"),
        pytest.param(True, id="tls", marks=pytest.mark.client(TLS)),
    ],
)
Make = Callable[..., str]


@pytest.mark.both_ways
@BOTH
@pytest.mark.sb(3, 4, 7, 8, 26, 43, 45, 50)
@pytest.mark.feature("send single")
def test_a_message_is_sent_received_and_completed(doors: Doors, queue: str, tls: bool) -> None:
    with connected(doors, tls=tls) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("hello"))
        message = receive_one(receiver)
        assert str(message) == "hello"
        assert isinstance(message.lock_token, uuid.UUID)
        assert message.delivery_count == 0
        receiver.complete_message(message)
        assert is_empty(receiver)


@pytest.mark.sb(4)
@pytest.mark.feature("send single")
def test_without_a_port_in_its_string_the_client_uses_5672(serve: Serve) -> None:
    with serve(host=(HOST,), port=(5672,)) as namespace:
        namespace.create_queue("orders")
        text = namespace.connection_string().replace(":5672", "")
        assert f"Endpoint=sb://{HOST};" in text
        with connected(Doors(namespace, CALLS), conn_str=text) as client:
            with sender_to(client, "orders") as sender:
                sender.send_messages(ServiceBusMessage("x"))
            with client.get_queue_receiver("orders") as receiver:
                assert str(receive_one(receiver)) == "x"


@pytest.mark.both_ways
@BOTH
@pytest.mark.sb(31, 25, 166)
@pytest.mark.feature("send batch")
def test_batches_are_their_messages_in_order(doors: Doors, make_queue: Make, tls: bool) -> None:
    queue = make_queue(max_message_kilobytes=256)
    with connected(doors, tls=tls) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            batch = sender.create_message_batch()
            assert batch.max_size_in_bytes == 262_144
            batch.add_message(ServiceBusMessage("a", message_id="1", subject="first"))
            batch.add_message(ServiceBusMessage("b", message_id="2", application_properties={"n": 2}))
            sender.send_messages(batch)
            sender.send_messages([ServiceBusMessage("c"), ServiceBusMessage("d")])
        got = receive(receiver, 4)
        assert texts(got) == ["a", "b", "c", "d"]
        assert [message.sequence_number for message in got] == [1, 2, 3, 4]
        assert [(message.message_id, message.subject) for message in got[:2]] == [("1", "first"), ("2", None)]
        assert [message.application_properties for message in got[:2]] == [None, {b"n": 2}]


@pytest.mark.sb(27, 48)
@pytest.mark.feature("properties")
def test_every_property_comes_back(doors: Doors, queue: str) -> None:
    own = {
        "int": 1,
        "large": 2**31 - 1,
        "float": 0.5,
        "bool": True,
        "str": "é",
        "bytes": b"\0\1",
        "uuid": uuid.uuid4(),
        "datetime": datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    sent = ServiceBusMessage(
        b"body",
        application_properties=own,
        session_id="key",
        message_id="id",
        content_type="text/plain",
        correlation_id="correlation",
        subject="subject",
        partition_key="key",
        to="to",
        reply_to="reply to",
        reply_to_session_id="reply session",
        time_to_live=timedelta(seconds=600),
        scheduled_enqueue_time_utc=datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages(sent)
            sender.send_messages(ServiceBusMessage("plain"))
        got, plain = receive(receiver, 2)
    for name in (
        "session_id", "message_id", "content_type", "correlation_id", "subject", "partition_key", "to", "reply_to",
        "reply_to_session_id", "time_to_live", "scheduled_enqueue_time_utc",
    ):  # fmt: skip
        assert getattr(got, name) == getattr(sent, name), name
    came = {name.decode(): value for name, value in got.application_properties.items()}
    assert came.pop("datetime") == 1_577_934_245_000
    # This client sends bytes as text, and shows text as bytes.
    assert (came.pop("str"), came.pop("bytes")) == ("é".encode(), b"\0\1")
    assert came == {name: value for name, value in own.items() if name not in ("datetime", "str", "bytes")}
    assert got.expires_at_utc == got.enqueued_time_utc + timedelta(seconds=600)
    assert (plain.time_to_live, plain.expires_at_utc, plain.partition_key) == (None, None, None)


@pytest.mark.sb(27)
@pytest.mark.feature("properties")
def test_a_message_id_stays_a_uuid_and_an_absent_one_is_filled_in(doors: Doors, queue: str) -> None:
    """The client fills one in by itself, unless it is asked to send a message as it is."""
    known = uuid.uuid4()
    without = AmqpAnnotatedMessage(data_body=b"none", properties=AmqpMessageProperties(subject="s"))
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver, sender_to(client, queue) as sender:
        sender.send_messages(AmqpAnnotatedMessage(data_body=b"x", properties=AmqpMessageProperties(message_id=known)))
        sender.send_messages(without)
        [number] = sender.schedule_messages(
            AmqpAnnotatedMessage(data_body=b"y", properties=AmqpMessageProperties(message_id=known)),
            now() + timedelta(hours=1),
        )
        peeked = receiver.peek_messages(3)
        assert [each.raw_amqp_message.properties.message_id for each in (peeked[0], peeked[2])] == [known, known]
        assert peeked[2].sequence_number == number
        [first, second] = receive(receiver, 2)
        assert first.raw_amqp_message.properties.message_id == known
        assert second.subject == "s" and second.message_id and second.message_id == peeked[1].message_id


@pytest.mark.sb(28, 29)
@pytest.mark.feature("properties")
def test_every_kind_of_body_comes_back(doors: Doors, queue: str) -> None:
    sent: list[ServiceBusMessage | AmqpAnnotatedMessage] = [
        ServiceBusMessage(None),
        AmqpAnnotatedMessage(data_body=[b"a", b"", b"c"]),
        AmqpAnnotatedMessage(sequence_body=[1, "two", [3.5]]),
        AmqpAnnotatedMessage(value_body={"k": [1.5, None]}),
        AmqpAnnotatedMessage(value_body=None, header=AmqpMessageHeader(priority=7, durable=True)),
    ]
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            for message in sent:
                sender.send_messages(message)
        got = receive(receiver, len(sent))
    nothing, data, sequence, value, null = (message.raw_amqp_message for message in got)
    assert nothing.body is None or list(nothing.body) == []
    assert list(data.body) == [b"a", b"", b"c"]
    assert list(sequence.body) == [[1, b"two", [3.5]]]
    assert value.body == {b"k": [1.5, None]}
    assert null.body is None
    assert (null.header.priority, null.header.durable) == (7, True)


@pytest.mark.sb(34)
@pytest.mark.feature("send single")
@pytest.mark.parametrize("size", [262_144, 1_000_000])
def test_a_message_over_the_limit_is_refused_at_once(doors: Doors, make_queue: Make, size: int) -> None:
    """And is not sent again, though the client may try three times more, with waits that this test would notice."""
    queue = make_queue(max_message_kilobytes=256)
    with connected(doors, retry_total=3, retry_backoff_factor=10) as client, sender_to(client, queue) as sender:
        begin = now()
        with pytest.raises(MessageSizeExceededError):
            sender.send_messages(ServiceBusMessage(b"x" * size))
        assert now() - begin < timedelta(seconds=8)
        sender.send_messages(ServiceBusMessage(b"x" * 200_000))
        with client.get_queue_receiver(queue) as receiver:
            assert len(b"".join(receive_one(receiver).body)) == 200_000


@pytest.mark.both_ways
@pytest.mark.sb(44)
@pytest.mark.feature("receive and delete")
def test_receive_and_delete_gives_each_message_once(doors: Doors, queue: str) -> None:
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    with connected(doors) as client, client.get_queue_receiver(queue, receive_mode=mode) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage("a"), ServiceBusMessage("b")])
        got = receive(receiver, 2)
        assert texts(got) == ["a", "b"]
        assert [message.lock_token for message in got] == [None, None]
        assert [message.locked_until_utc for message in got] == [None, None]
        assert client.get_queue_receiver(queue).peek_messages() == []


@pytest.mark.sb(64, 65)
@pytest.mark.feature("receive")
def test_receive_returns_what_there_is_behind_the_first_message(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage("a"), ServiceBusMessage("b"), ServiceBusMessage("c")])
        begin = now()
        got = receiver.receive_messages(max_message_count=2, max_wait_time=10)
        got += receiver.receive_messages(max_message_count=5, max_wait_time=10)
        assert now() - begin < timedelta(seconds=5)
        assert texts(got) == ["a", "b", "c"]
        begin = now()
        assert receiver.receive_messages(max_message_count=5, max_wait_time=1) == []
        assert timedelta(seconds=0.9) < now() - begin < timedelta(seconds=4)


@pytest.mark.both_ways
@pytest.mark.sb(51, 68)
@pytest.mark.feature("settle")
def test_abandoned_messages_come_back_until_their_last_delivery(doors: Doors, make_queue: Make) -> None:
    queue = make_queue(max_delivery_count=3)
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage("poor"), ServiceBusMessage("good")])
        counts = []
        for _ in range(3):
            message = receive_one(receiver)
            assert str(message) == "poor"
            counts.append(message.delivery_count)
            receiver.abandon_message(message)
        assert counts == [0, 1, 2]
        assert str(receive_one(receiver)) == "good"
        with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
            message = receive_one(dead)
            assert str(message) == "poor"
            # The client does not wait for the end of an abandon: only the dead letter shows that it is durable.
            assert texts(receiver.peek_messages(5, sequence_number=1)) == ["good"]
            assert message.dead_letter_reason == "MaxDeliveryCountExceeded"
            assert "3" in message.dead_letter_error_description
            assert message.delivery_count == 3


@pytest.mark.both_ways
@pytest.mark.sb(52, 95)
@pytest.mark.feature("deferred")
def test_deferred_messages_are_received_by_number(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage(text) for text in "abc"])
        first, second, third = receive(receiver, 3)
        for message in (first, second):
            receiver.defer_message(message)
        receiver.complete_message(third)
        assert is_empty(receiver)
        numbers = [second.sequence_number, first.sequence_number]
        assert [message.state for message in receiver.peek_messages(2, sequence_number=1)] == [
            ServiceBusMessageState.DEFERRED
        ] * 2
        with pytest.raises(MessageNotFoundError):
            receiver.receive_deferred_messages([*numbers, third.sequence_number])
        got = receiver.receive_deferred_messages(numbers)
        assert texts(got) == ["b", "a"]
        assert {message.state for message in got} == {ServiceBusMessageState.DEFERRED}
        for message in got:
            assert isinstance(message.lock_token, uuid.UUID)
            assert message.locked_until_utc > now() + timedelta(seconds=30)
            assert receiver.renew_message_lock(message) >= message.locked_until_utc
            receiver.complete_message(message)
        with pytest.raises(MessageNotFoundError):
            receiver.receive_deferred_messages(numbers[0])
        assert receiver.peek_messages(sequence_number=1) == []


@pytest.mark.sb(52, 95, 96)
@pytest.mark.feature("deferred")
def test_a_deferred_message_is_abandoned_deferred_deleted_or_dead_lettered(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage(text) for text in "ab"])
        for message in receive(receiver, 2):
            receiver.defer_message(message)
        [message] = receiver.receive_deferred_messages(1)
        receiver.abandon_message(message)
        [message] = receiver.receive_deferred_messages(1)
        assert message.delivery_count == 1
        receiver.defer_message(message)
        assert is_empty(receiver)
        [message] = receiver.receive_deferred_messages(1)
        receiver.dead_letter_message(message, reason="late", error_description="no longer wanted")
        assert texts(receiver.peek_messages(5, sequence_number=1)) == ["b"]
        with client.get_queue_receiver(queue, sub_queue="deadletter") as dead:
            assert receive_one(dead).dead_letter_reason == "late"
        with client.get_queue_receiver(queue, receive_mode="receiveanddelete") as deleting:
            [message] = deleting.receive_deferred_messages(2)
            assert (str(message), message.lock_token, message.locked_until_utc) == ("b", None, None)
            assert deleting.peek_messages(sequence_number=1) == []


@pytest.mark.both_ways
@BOTH
@pytest.mark.sb(53, 20, 103)
@pytest.mark.feature("dead letters")
def test_dead_lettered_messages_keep_reason_and_properties(doors: Doors, queue: str, tls: bool) -> None:
    with connected(doors, tls=tls) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("bad", message_id="id", application_properties={"own": 1}))
        receiver.dead_letter_message(receive_one(receiver), reason="broken", error_description="it has no wheels")
        assert receiver.peek_messages(sequence_number=1) == []
        with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
            assert texts(dead.peek_messages()) == ["bad"]
            message = receive_one(dead)
            assert (message.dead_letter_reason, message.dead_letter_error_description) == ("broken", "it has no wheels")
            assert message.message_id == "id"
            assert message.application_properties[b"own"] == 1
            dead.complete_message(message)
            assert dead.peek_messages(sequence_number=1) == []


@pytest.mark.sb(55, 70)
@pytest.mark.feature("dead letters")
def test_dead_letters_need_no_reason_and_do_not_count(doors: Doors, make_queue: Make) -> None:
    queue = make_queue(max_delivery_count=2)
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("bad"))
        receiver.abandon_message(receive_one(receiver))
        receiver.dead_letter_message(receive_one(receiver))
        with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
            for _ in range(3):
                message = receive_one(dead)
                assert message.delivery_count == 1
                assert not message.application_properties
                dead.abandon_message(message)
            message = receive_one(dead)
            dead.dead_letter_message(message, reason="again")
            assert receive_one(dead).sequence_number == message.sequence_number


@pytest.mark.sb(66)
@pytest.mark.feature("settle")
def test_the_client_does_not_settle_twice(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            sender.send_messages(ServiceBusMessage("once"))
        message = receive_one(receiver)
        receiver.complete_message(message)
        with pytest.raises(MessageAlreadySettled):
            receiver.abandon_message(message)


@pytest.mark.sb(58)
@pytest.mark.feature("receive")
def test_a_closing_receiver_gives_back_what_it_prefetched(doors: Doors, queue: str) -> None:
    with connected(doors) as client:
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage(f"{number}") for number in range(10)])
        with client.get_queue_receiver(queue, prefetch_count=9) as first:
            kept = receive_one(first)
        with client.get_queue_receiver(queue) as second:
            got = receive(second, 9)
            assert str(kept) == "0"
            assert texts(got) == [f"{number}" for number in range(1, 10)]
            assert {message.delivery_count for message in got} == {0}


@pytest.mark.sb(165)
@pytest.mark.feature("properties")
def test_a_received_message_sent_again_is_a_new_one(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver, sender_to(client, queue) as sender:
        sent = ServiceBusMessage(
            "body", subject="s", correlation_id="c", application_properties={"own": 1}, session_id="key",
            partition_key="key", content_type="text/x", to="to", reply_to="reply", reply_to_session_id="session",
            time_to_live=timedelta(minutes=5),
        )  # fmt: skip
        sender.send_messages(sent)
        receiver.abandon_message(receive_one(receiver))
        first = receive_one(receiver)
        [peeked] = receiver.peek_messages(sequence_number=1)
        sender.send_messages([first, peeked])
        for again in receive(receiver, 2):
            assert str(again) == "body"
            for name in (
                "subject", "correlation_id", "session_id", "partition_key", "content_type", "to", "reply_to",
                "reply_to_session_id", "time_to_live",
            ):  # fmt: skip
                assert getattr(again, name) == getattr(sent, name), name
            assert again.application_properties == {b"own": 1}
            assert again.message_id == first.message_id
            assert again.sequence_number > first.sequence_number
            assert again.lock_token != first.lock_token
            assert again.delivery_count == 0


@pytest.mark.both_ways
@pytest.mark.sb(88, 89)
@pytest.mark.feature("peek")
def test_peek_shows_every_state_in_order_and_locks_nothing(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        begin = now()
        assert receiver.peek_messages(5) == []
        assert now() - begin < timedelta(seconds=5)
        with sender_to(client, queue) as sender:
            sender.send_messages([ServiceBusMessage(text) for text in ("locked", "deferred", "active")])
            sender.schedule_messages(ServiceBusMessage("scheduled"), now() + timedelta(hours=1))
        locked, deferred = receive(receiver, 2)
        receiver.defer_message(deferred)
        with client.get_queue_receiver(queue) as other:
            got = other.peek_messages(10, sequence_number=1)
            assert texts(got) == ["locked", "deferred", "active", "scheduled"]
            states = ServiceBusMessageState
            assert [message.state for message in got] == [
                states.ACTIVE, states.DEFERRED, states.ACTIVE, states.SCHEDULED,
            ]  # fmt: skip
            assert [message.sequence_number for message in got] == [1, 2, 3, 4]
            assert {message.locked_until_utc for message in got} == {None}
            assert texts(other.peek_messages(2, sequence_number=2)) == ["deferred", "active"]
            assert str(receive_one(other)) == "active"
        receiver.complete_message(locked)


@pytest.mark.sb(91)
@pytest.mark.feature("peek")
def test_peek_gives_a_quarter_of_a_mebibyte_at_most_and_one_message_at_least(doors: Doors, queue: str) -> None:
    with connected(doors) as client, client.get_queue_receiver(queue) as receiver:
        with sender_to(client, queue) as sender:
            for size in (100_000, 100_000, 100_000, 500_000):
                sender.send_messages(ServiceBusMessage(b"x" * size))
        assert len(receiver.peek_messages(10, sequence_number=1)) == 2
        assert [len(b"".join(each.body)) for each in receiver.peek_messages(10, sequence_number=4)] == [500_000]
