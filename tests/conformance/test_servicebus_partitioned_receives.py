"""The official Python client, blocking, receives from partitioned queues and subscriptions, and settles there.

The namespace has three messaging stores, over which the 16 fragments of an entity lie.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiveMode,
    ServiceBusReceiver,
    ServiceBusSubQueue,
)
from azure.servicebus.exceptions import MessageNotFoundError, OperationTimeoutError, ServiceBusError

from hubweir.auth.shared_access_signature import make_token
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.servicebus_python import QUIET_S, WAIT_S, is_empty, receive, receive_one, texts
from tests.conformance.test_servicebus_partitioned import FRAGMENTS, STORES, Make, fragment_of, partitioned

pytestmark = [pytest.mark.conformance, pytest.mark.client("azure-servicebus, blocking, plain")]
KEYS = {partition_of_key(f"k{number}".encode(), FRAGMENTS): f"k{number}" for number in range(400)}


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(host=(HOST,), stores=STORES) as namespace:
        yield namespace


@pytest.fixture
def make(namespace: RunningNamespace) -> Make:
    return lambda **settings: partitioned(namespace, **settings)


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(namespace.connection_string(), retry_total=0) as client:
        yield client


def send(client: ServiceBusClient, queue: str, *fragments: int, count: int = 1) -> None:
    """So many messages to each of these fragments; their bodies are the number and a place."""
    with client.get_queue_sender(queue) as sender:
        for place in range(count):
            for fragment in fragments:
                sender.send_messages(ServiceBusMessage(f"{fragment}/{place}", partition_key=KEYS[fragment]))


def partition_ids(messages: list[ServiceBusReceivedMessage]) -> list[int]:
    found = []
    for message in messages:
        annotations = message.raw_amqp_message.annotations
        assert annotations is not None
        found.append(annotations[b"x-opt-partition-id"])
    return found


@contextmanager
def receiving(client: ServiceBusClient, queue: str, **named: object) -> Iterator[ServiceBusReceiver]:
    with client.get_queue_receiver(queue, **named) as receiver:
        yield receiver


def peek_all(receiver: ServiceBusReceiver, page: int) -> list[ServiceBusReceivedMessage]:
    """All messages by a loop of peeks, as users write it."""
    found: list[ServiceBusReceivedMessage] = []
    # Without a number the client begins at the last one that it received, wherever that lies.
    while more := receiver.peek_messages(
        max_message_count=page, sequence_number=(found[-1].sequence_number or 0) + 1 if found else 1
    ):
        assert len(more) <= page
        found += more
        assert len(found) < 1_000, "the loop ends"
    return found


@pytest.mark.sb(45)
@pytest.mark.feature("receive")
@pytest.mark.parametrize("mode", list(ServiceBusReceiveMode))
@pytest.mark.parametrize("page", [1, 100])
def test_messages_of_all_fragments_come_each_in_the_order_of_its_fragment(
    client: ServiceBusClient, make: Make, mode: ServiceBusReceiveMode, page: int
) -> None:
    queue = make()
    send(client, queue, *range(FRAGMENTS), count=3)
    with receiving(client, queue, receive_mode=mode) as receiver:
        got: list[ServiceBusReceivedMessage] = []
        while len(got) < 3 * FRAGMENTS:
            more = receiver.receive_messages(max_message_count=page, max_wait_time=WAIT_S)
            assert 0 < len(more) <= page
            got += more
            if mode is ServiceBusReceiveMode.PEEK_LOCK:
                for message in more:
                    receiver.complete_message(message)
        for fragment in range(FRAGMENTS):
            its = [str(message) for message in got if fragment_of(message) == fragment]
            assert its == [f"{fragment}/{place}" for place in range(3)]
        assert partition_ids(got) == [fragment_of(message) for message in got]
        assert is_empty(receiver)
        assert receiver.peek_messages(3 * FRAGMENTS, sequence_number=1) == []


@pytest.mark.sb(45)
@pytest.mark.feature("receive")
def test_a_receiver_that_waits_gets_what_is_sent_to_any_fragment(client: ServiceBusClient, make: Make) -> None:
    queue = make()
    with receiving(client, queue) as receiver:
        assert is_empty(receiver)
        for fragment in (3, 14, 3, 0):
            send(client, queue, fragment)
            begun = time.monotonic()
            message = receive_one(receiver)
            assert fragment_of(message) == fragment and time.monotonic() - begun < WAIT_S / 2
            receiver.complete_message(message)


@pytest.mark.sb(45)
@pytest.mark.feature("receive")
def test_two_receivers_get_every_message_once_and_keep_none_from_each_other(
    client: ServiceBusClient, make: Make
) -> None:
    queue = make()
    send(client, queue, *range(FRAGMENTS), count=2)
    with receiving(client, queue) as one, receiving(client, queue) as other:
        got = []
        for turn in range(2 * FRAGMENTS):
            receiver = (one, other)[turn % 2]
            message = receive_one(receiver, seconds=2)
            receiver.complete_message(message)
            got.append(str(message))
        assert len(set(got)) == 2 * FRAGMENTS
        assert is_empty(one) and is_empty(other)
        assert one.peek_messages(2 * FRAGMENTS, sequence_number=1) == []


@pytest.mark.sb(59)
@pytest.mark.feature("settle")
def test_messages_of_several_fragments_are_settled_in_every_way(client: ServiceBusClient, make: Make) -> None:
    queue = make(max_delivery_count=2)
    send(client, queue, *range(FRAGMENTS))
    with receiving(client, queue) as receiver:
        got = sorted(receive(receiver, FRAGMENTS), key=fragment_of)
        for message in got[:4]:
            receiver.complete_message(message)
        for message in got[4:8]:
            receiver.abandon_message(message)
        for message in got[8:12]:
            receiver.defer_message(message)
        for message in got[12:]:
            receiver.dead_letter_message(message, reason="bad")
        again = sorted(receive(receiver, 4), key=fragment_of)
        assert [(fragment_of(each), each.delivery_count) for each in again] == [(n, 1) for n in (4, 5, 6, 7)]
        for message in again:
            until = message.locked_until_utc
            assert until is not None and receiver.renew_message_lock(message) >= until
            receiver.abandon_message(message)
        assert is_empty(receiver)
        with receiving(client, queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
            found = sorted(receive(dead, 8), key=fragment_of)
            reasons = [each.dead_letter_reason for each in found]
            assert [fragment_of(each) for each in found] == [4, 5, 6, 7, 12, 13, 14, 15]
            assert reasons == ["MaxDeliveryCountExceeded"] * 4 + ["bad"] * 4
            assert partition_ids(found) == [fragment_of(each) for each in found]
            for message in found:
                dead.complete_message(message)
            assert is_empty(dead)
        for message in got[8:12]:
            assert message.sequence_number is not None
            [deferred] = receiver.receive_deferred_messages(message.sequence_number)
            receiver.complete_message(deferred)
        assert peek_all(receiver, 10) == []


@pytest.mark.sb(132)
@pytest.mark.feature("peek")
@pytest.mark.parametrize("page", [1, 5, 200])
def test_a_loop_of_peeks_ends_and_numbers_name_the_fragments(client: ServiceBusClient, make: Make, page: int) -> None:
    queue = make()
    send(client, queue, 2, 9, 15, count=4)
    with receiving(client, queue) as receiver:
        found = peek_all(receiver, page)
        assert texts(found) == [f"{fragment}/{place}" for fragment in (2, 9, 15) for place in range(4)]
        assert [each.sequence_number for each in found] == [
            (fragment << 48) + place + 1 for fragment in (2, 9, 15) for place in range(4)
        ]
        assert partition_ids(found) == [fragment_of(each) for each in found]
        receive(receiver, 5)
        assert len(peek_all(receiver, page)) == 12, "locked ones are peeked at, too"


@pytest.mark.sb(132)
@pytest.mark.feature("peek")
def test_a_peek_returns_no_more_than_256_kib_and_a_loop_sees_all(client: ServiceBusClient, make: Make) -> None:
    queue = make()
    with client.get_queue_sender(queue) as sender:
        for fragment in range(8):
            sender.send_messages(ServiceBusMessage("x" * 100_000, partition_key=KEYS[fragment]))
    with receiving(client, queue) as receiver:
        assert len(receiver.peek_messages(max_message_count=100, sequence_number=1)) == 2
        assert [fragment_of(each) for each in peek_all(receiver, 100)] == list(range(8))


@pytest.mark.sb(132)
@pytest.mark.feature("deferred")
def test_deferred_messages_of_one_fragment_are_received_together_and_those_of_two_are_not(
    client: ServiceBusClient, make: Make
) -> None:
    queue = make()
    send(client, queue, 4, count=2)
    send(client, queue, 11)
    with receiving(client, queue) as receiver:
        got = sorted(receive(receiver, 3), key=lambda each: each.sequence_number or 0)
        for message in got:
            receiver.defer_message(message)
        numbers = [each.sequence_number or 0 for each in got]
        with pytest.raises(ServiceBusError, match="2 of its partitions"):
            receiver.receive_deferred_messages(numbers)
        with pytest.raises(MessageNotFoundError):
            receiver.receive_deferred_messages((16 << 48) + 1)
        both = receiver.receive_deferred_messages(numbers[:2])
        [other] = receiver.receive_deferred_messages(numbers[2])
        for message in (*both, other):
            receiver.complete_message(message)
        assert peek_all(receiver, 10) == []


@pytest.mark.sb(99)
@pytest.mark.feature("schedule")
def test_scheduled_messages_are_where_their_keys_say_until_they_are_cancelled_or_come(
    client: ServiceBusClient, make: Make
) -> None:
    queue = make()
    soon, late = (datetime.now(UTC) + timedelta(seconds=each) for each in (1, 600))
    with client.get_queue_sender(queue) as sender, receiving(client, queue) as receiver:
        [first] = sender.schedule_messages(ServiceBusMessage("soon", partition_key=KEYS[6]), soon)
        cancelled = [
            *sender.schedule_messages(ServiceBusMessage("late", partition_key=KEYS[6]), late),
            *sender.schedule_messages(ServiceBusMessage("late", partition_key=KEYS[13]), late),
        ]
        unkeyed = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], late)
        assert [number >> 48 for number in (first, *cancelled)] == [6, 6, 13]
        assert unkeyed[0] >> 48 == unkeyed[1] >> 48
        sender.cancel_scheduled_messages([*cancelled, *unkeyed])
        message = receive_one(receiver)
        assert (str(message), fragment_of(message)) == ("soon", 6)
        receiver.complete_message(message)
        assert peek_all(receiver, 10) == []


@pytest.mark.sb(80)
@pytest.mark.feature("sessions")
def test_sessions_are_accepted_by_name_and_in_turn_over_all_fragments(client: ServiceBusClient, make: Make) -> None:
    queue = make(requires_session=True)
    names = [f"session-{number}" for number in range(10)]
    with client.get_queue_sender(queue) as sender:
        for name in names:
            sender.send_messages([ServiceBusMessage(f"{name}/{place}", session_id=name) for place in range(2)])
    with receiving(client, queue, session_id="session-7") as receiver:
        receiver.session.set_state("on")
        assert texts(receive(receiver, 2)) == ["session-7/0", "session-7/1"]
        assert receiver.session.get_state() == b"on"
        assert receiver.session.renew_lock() > datetime.now(UTC)
        assert (
            partition_ids(receiver.peek_messages(5, sequence_number=1))
            == [partition_of_key(b"session-7", FRAGMENTS)] * 2
        )
    seen = set()
    for _ in names:
        with receiving(client, queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=WAIT_S) as receiver:
            name = receiver.session.session_id
            got = receive(receiver, 2)
            assert texts(got) == [f"{name}/0", f"{name}/1"]
            for message in got:
                receiver.complete_message(message)
            seen.add(name)
    assert seen == set(names)
    with (
        pytest.raises(OperationTimeoutError),
        receiving(client, queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1),
    ):
        pass


@pytest.mark.sb(80)
@pytest.mark.feature("sessions")
def test_who_waits_for_a_session_gets_one_of_any_fragment(client: ServiceBusClient, make: Make) -> None:
    queue = make(requires_session=True)
    with client.get_queue_sender(queue) as sender:
        later = datetime.now(UTC) + timedelta(seconds=2)
        for name in ("x", "y", "z"):
            sender.schedule_messages(ServiceBusMessage(name, session_id=name), later)
    seen = set()
    for _ in range(3):
        with receiving(client, queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=WAIT_S) as receiver:
            message = receive_one(receiver)
            seen.add((receiver.session.session_id, str(message)))
            receiver.complete_message(message)
    assert seen == {(name, name) for name in ("x", "y", "z")}


@pytest.mark.sb(123)
@pytest.mark.feature("topics")
def test_a_subscription_of_a_partitioned_topic_has_its_own_locks_counts_and_dead_letters(
    namespace: RunningNamespace, client: ServiceBusClient
) -> None:
    topic = "partitioned-news"
    namespace.create(TopicDescription(topic, storage=StorageSettings(is_partitioned=True)))
    for name in ("a", "b"):
        namespace.create(SubscriptionDescription(f"{topic}/Subscriptions/{name}"))
    with client.get_topic_sender(topic) as sender:
        for fragment in range(FRAGMENTS):
            sender.send_messages(ServiceBusMessage(f"{fragment}", partition_key=KEYS[fragment]))
    with (
        client.get_subscription_receiver(topic, "a") as a,
        client.get_subscription_receiver(topic, "b") as b,
        client.get_subscription_receiver(topic, "a", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead,
    ):
        got = sorted(receive(a, FRAGMENTS), key=fragment_of)
        assert [fragment_of(each) for each in got] == list(range(FRAGMENTS)) == partition_ids(got)
        assert [each.sequence_number for each in got] == [(n << 48) + 1 for n in range(FRAGMENTS)]
        for message in got[:8]:
            a.complete_message(message)
        for message in got[8:]:
            a.dead_letter_message(message)
        assert sorted(fragment_of(each) for each in receive(dead, 8)) == list(range(8, 16))
        assert [fragment_of(each) for each in peek_all(b, 3)] == list(range(FRAGMENTS))
        assert len(receive(b, FRAGMENTS)) == FRAGMENTS


@pytest.mark.sb(136)
@pytest.mark.feature("receive")
def test_over_http_nothing_comes_only_when_no_fragment_has_a_message(
    namespace: RunningNamespace, client: ServiceBusClient, make: Make
) -> None:
    queue = make()
    token = make_token(f"sb://{HOST}/", "RootManageSharedAccessKey", "SAS_KEY_VALUE", int(time.time()) + 600)

    def ask(method: str, path: str) -> http.client.HTTPResponse:
        door = http.client.HTTPConnection(namespace.host, namespace.port, timeout=30)
        door.request(method, path, headers={"Authorization": token, "Connection": "close"})
        answer = door.getresponse()
        answer.read()
        return answer

    head = f"/{queue}/messages/head?timeout=0"
    assert ask("POST", head).status == 204
    send(client, queue, *range(FRAGMENTS), count=2)
    seen = []
    for turn in range(2 * FRAGMENTS):
        answer = ask(("POST", "DELETE")[turn % 2], head)
        assert answer.status == (201, 200)[turn % 2]
        number = json.loads(answer.headers["BrokerProperties"])["SequenceNumber"]
        seen.append(number)
        if turn % 2 == 0:
            path = answer.headers["Location"].partition(f"{namespace.port}")[2]
            assert ask("POST", path).status == 200, "renewed"
            assert ask("DELETE", path).status == 200
            assert ask("DELETE", path).status == 404
    assert sorted(seen) == [(fragment << 48) + place for fragment in range(FRAGMENTS) for place in (1, 2)]
    assert ask("DELETE", head).status == 204
    with receiving(client, queue) as receiver:
        assert not receiver.receive_messages(max_message_count=1, max_wait_time=QUIET_S)
