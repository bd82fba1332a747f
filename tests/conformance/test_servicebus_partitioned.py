"""The official Python client, blocking, sends to partitioned queues: by key, in turn, and while a store is away.

The namespace has three messaging stores, over which the fragments lie. A sequence number says its fragment.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageProperties
from azure.servicebus.exceptions import MessageSizeExceededError, ServiceBusError, ServiceBusServerBusyError

from hubweir.event_hub.partition_key import partition_of_key
from hubweir.namespace.queue_description import QueueDescription
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.conformance.conftest import Serve
from tests.conformance.lost_store import STORE, lost_store
from tests.conformance.servicebus_python import receive
from tests.conformance.troubled_disk import WAIT_S, troubled

pytestmark = [pytest.mark.conformance, pytest.mark.client("azure-servicebus, blocking, plain")]
Make = Callable[..., str]
SOCKET_S = 10  # a busy machine may let a process wait for seconds
STORES, FRAGMENTS, PREMIUM_FRAGMENTS = 3, 16, 2
_numbers = itertools.count()


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(stores=STORES) as namespace:
        yield namespace


@pytest.fixture
def make(namespace: RunningNamespace) -> Make:
    """Makes partitioned queues, with the settings of RunningNamespace.create_queue, and returns their names."""
    return lambda **settings: partitioned(namespace, **settings)


def partitioned(namespace: RunningNamespace, **settings: object) -> str:
    name = f"partitioned-{next(_numbers)}"
    namespace.create_queue(name, is_partitioned=True, **settings)  # type: ignore[arg-type]
    return name


@contextmanager
def client_of(namespace: RunningNamespace, **how: float) -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(namespace.connection_string(), retry_total=0, **how) as client:
        yield client


def fragment_of(message: ServiceBusReceivedMessage) -> int:
    assert message.sequence_number is not None
    return message.sequence_number >> 48


def fragments(client: ServiceBusClient, queue: str, count: int) -> dict[str, int]:
    """The fragment of each of so many messages, by their bodies; they are gone then."""
    with client.get_queue_receiver(queue) as receiver:
        got = receive(receiver, count)
        for message in got:
            receiver.complete_message(message)
    found = {str(message): fragment_of(message) for message in got}
    assert len(found) == count
    return found


def in_turn(bodies: Iterable[str], *, first: int, of: int = FRAGMENTS) -> dict[str, int]:
    """The fragment of each of these, one after the other from this fragment on: a lot says where a process begins."""
    return {body: (first + step) % of for step, body in enumerate(bodies)}


@pytest.mark.sb(126)
@pytest.mark.feature("sessions")
def test_messages_of_a_session_lie_in_one_fragment_and_sessions_spread(namespace: RunningNamespace, make: Make) -> None:
    queue = make(requires_session=True)
    names = [f"session-{number}" for number in range(6)]
    seen: dict[str, set[int]] = {}
    with client_of(namespace) as client:
        with client.get_queue_sender(queue) as sender:
            for turn in range(2):
                for name in names:
                    sender.send_messages(ServiceBusMessage(f"{turn}", session_id=name))
        for name in names:
            with client.get_queue_receiver(queue, session_id=name) as receiver:
                got = receive(receiver, 2)
                assert [str(message) for message in got] == ["0", "1"]
                seen[name] = {fragment_of(message) for message in got}
    assert seen == {name: {partition_of_key(name.encode(), FRAGMENTS)} for name in names}
    assert len({number for numbers in seen.values() for number in numbers}) > 3


@pytest.mark.sb(126)
@pytest.mark.feature("send batch")
def test_a_batch_of_one_key_lies_in_its_fragment_and_one_of_several_is_refused(
    namespace: RunningNamespace, make: Make
) -> None:
    queue = make()
    with client_of(namespace) as client:
        with client.get_queue_sender(queue) as sender:
            sender.send_messages([ServiceBusMessage(f"{number}", partition_key="key") for number in range(3)])
            with pytest.raises(ServiceBusError, match="keys of several"):
                sender.send_messages([ServiceBusMessage("x", partition_key=f"key-{number}") for number in range(9)])
        assert set(fragments(client, queue, 3).values()) == {partition_of_key(b"key", FRAGMENTS)}


@pytest.mark.sb(127)
@pytest.mark.feature("errors")
def test_a_partition_key_that_is_not_the_session_id_is_refused(namespace: RunningNamespace, make: Make) -> None:
    """The client itself refuses to make such a message, so this one is put together from its parts."""
    queue = make()
    with pytest.raises(ValueError):
        ServiceBusMessage("x", session_id="s", partition_key="k")
    message = AmqpAnnotatedMessage(
        data_body=b"x", properties=AmqpMessageProperties(group_id="s"), annotations={b"x-opt-partition-key": "k"}
    )
    with client_of(namespace) as client, client.get_queue_sender(queue) as sender:
        with pytest.raises(ServiceBusError, match="partition key that is not its session id"):
            sender.send_messages(message)
        sender.send_messages(ServiceBusMessage("x", session_id="s", partition_key="s"))


@pytest.mark.sb(128)
@pytest.mark.feature("duplicates")
def test_a_message_id_chooses_the_fragment_where_duplicates_are_detected_alone(
    namespace: RunningNamespace, make: Make
) -> None:
    ids = [f"m{number}" for number in range(8)]
    with client_of(namespace) as client:
        found = {}
        for queue in (make(duplicate_window_ms=60_000), make()):
            with client.get_queue_sender(queue) as sender:
                for each in ids:
                    sender.send_messages(ServiceBusMessage(each, message_id=each))
            found[queue] = fragments(client, queue, len(ids))
    by_id, by_turn = found.values()
    assert by_id == {each: partition_of_key(each.encode(), FRAGMENTS) for each in ids}
    assert by_turn == in_turn(ids, first=by_turn["m0"])


@pytest.mark.sb(118)
@pytest.mark.feature("duplicates")
def test_a_duplicate_has_the_same_id_and_key(namespace: RunningNamespace, make: Make) -> None:
    queue = make(duplicate_window_ms=60_000)
    with client_of(namespace) as client:
        with client.get_queue_sender(queue) as sender:
            for turn in range(2):
                for key in ("a", "b", None):
                    sender.send_messages(ServiceBusMessage(f"{key}-{turn}", message_id="m", partition_key=key))
        assert set(fragments(client, queue, 3)) == {"a-0", "b-0", "None-0"}


@pytest.mark.sb(119)
@pytest.mark.feature("forwarding")
def test_what_is_forwarded_from_to_and_between_keeps_its_key_and_comes_once(
    namespace: RunningNamespace, make: Make
) -> None:
    plain_end, end = f"plain-{next(_numbers)}", make()
    namespace.create_queue(plain_end)
    plain, between, outward = f"plain-{next(_numbers)}", make(forward_to=end), make(forward_to=plain_end)
    namespace.create_queue(plain, forward_to=end)
    keys = [f"k{number}" for number in range(24)]
    with client_of(namespace) as client:
        for name in (plain, between, outward):
            with client.get_queue_sender(name) as sender:
                for key in keys:
                    sender.send_messages(ServiceBusMessage(f"{name} {key}", partition_key=key))
        found = fragments(client, end, 2 * len(keys))
        wanted = {key: partition_of_key(key.encode(), FRAGMENTS) for key in keys}
        assert found == {f"{name} {key}": number for name in (plain, between) for key, number in wanted.items()}
        assert set(fragments(client, plain_end, len(keys))) == {f"{outward} {key}" for key in keys}


@pytest.mark.sb(129)
@pytest.mark.feature("send single")
def test_without_a_key_fragments_take_turns(namespace: RunningNamespace, make: Make) -> None:
    queue = make()
    with client_of(namespace) as client:
        with client.get_queue_sender(queue) as sender:
            for number in range(2 * FRAGMENTS):
                sender.send_messages(ServiceBusMessage(f"{number}"))
        found = fragments(client, queue, 2 * FRAGMENTS)
    assert found == in_turn(map(str, range(2 * FRAGMENTS)), first=found["0"])


@pytest.mark.sb(129)
@pytest.mark.feature("send single")
def test_a_premium_namespace_has_two_fragments(serve: Serve) -> None:
    with serve(profile="premium") as namespace, client_of(namespace) as client:
        queue = partitioned(namespace)
        with client.get_queue_sender(queue) as sender:
            for number in range(6):
                sender.send_messages(ServiceBusMessage(f"{number}"))
        found = fragments(client, queue, 6)
    assert found == in_turn(map(str, range(6)), first=found["0"], of=PREMIUM_FRAGMENTS)


@pytest.mark.feature("send single")
def test_a_premium_queue_takes_messages_of_up_to_100_megabytes(serve: Serve) -> None:
    # The client gives a frame up that the server does not read within 0.2 s, where nobody sets another time.
    with serve(profile="premium") as namespace, client_of(namespace, socket_timeout=SOCKET_S) as client:
        queue = partitioned(namespace, max_message_kilobytes=102_400)
        for megabytes in (17, 99):
            with client.get_queue_sender(queue) as sender:
                sender.send_messages(ServiceBusMessage(bytes(megabytes << 20)))
            with client.get_queue_receiver(queue) as receiver:
                [message] = receive(receiver, 1)
                assert sum(len(part) for part in message.body) == megabytes << 20
                receiver.complete_message(message)
        with client.get_queue_sender(queue) as sender, pytest.raises(MessageSizeExceededError):
            sender.send_messages(ServiceBusMessage(bytes(101 << 20)))


@pytest.mark.sb(135)
@pytest.mark.feature("errors")
def test_what_a_lost_store_holds_comes_back_with_it_and_all_else_goes_on(serve: Serve) -> None:
    with serve(stores=STORES) as namespace:
        queue = partitioned(namespace)
        entity = namespace.parts.gateway.namespace.get(queue, QueueDescription)
        away = {number for number, each in enumerate(entity.placements) if each.store_index == STORE}
        keys = {partition_of_key(f"k{number}".encode(), FRAGMENTS): f"k{number}" for number in range(400)}
        assert len(keys) == FRAGMENTS and 0 < len(away) < FRAGMENTS
        kept = {f"kept {number}" for number in keys}
        sent = {f"keyed {number}" for number in keys if number not in away}
        sent |= {f"any {number}" for number in range(2 * FRAGMENTS)}
        with client_of(namespace) as client, client.get_queue_sender(queue) as sender:
            for number, key in keys.items():
                sender.send_messages(ServiceBusMessage(f"kept {number}", partition_key=key))
        with lost_store(namespace), client_of(namespace) as client:
            with client.get_queue_sender(queue) as sender:
                for number, key in keys.items():
                    if number in away:
                        with pytest.raises(ServiceBusServerBusyError):
                            sender.send_messages(ServiceBusMessage("busy", partition_key=key))
                    else:
                        sender.send_messages(ServiceBusMessage(f"keyed {number}", partition_key=key))
                for number in range(2 * FRAGMENTS):
                    sender.send_messages(ServiceBusMessage(f"any {number}"))
            found = fragments(client, queue, len(sent) + FRAGMENTS - len(away))
            assert sent < found.keys() < sent | kept and away.isdisjoint(found.values())
        with client_of(namespace) as client:
            assert fragments(client, queue, len(away)) == {f"kept {number}": number for number in away}


@pytest.mark.sb(135)
@pytest.mark.feature("errors")
def test_while_a_store_is_away_keys_of_its_fragments_are_busy_and_all_else_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk of one store breaks; the first send that meets it has no known outcome, and later ones are refused."""
    with running_namespace(stores=STORES) as namespace, client_of(namespace) as client:
        queue = partitioned(namespace)
        entity = namespace.service.gateway.namespace.get(queue, QueueDescription)
        away = {number for number, each in enumerate(entity.placements) if each.store_index == 1}
        keys = {partition_of_key(f"k{number}".encode(), FRAGMENTS): f"k{number}" for number in range(400)}
        assert len(keys) == FRAGMENTS and 0 < len(away) < FRAGMENTS
        sent = []

        def send(sender: object, body: str, key: str | None = None) -> None:
            sender.send_messages(ServiceBusMessage(body, partition_key=key))  # type: ignore[attr-defined]
            sent.append(body)

        with troubled(monkeypatch, below="store-1") as disk, client.get_queue_sender(queue) as sender:
            disk.is_broken.set()
            for number in away:
                with pytest.raises(ServiceBusError):
                    send(sender, f"unknown {number}", keys[number])
            for number, key in keys.items():
                if number in away:
                    with pytest.raises(ServiceBusServerBusyError):
                        send(sender, f"busy {number}", key)
                else:
                    send(sender, f"keyed {number}", key)
            for number in range(2 * FRAGMENTS):
                send(sender, f"any {number}")
            disk.heal()
            end = time.monotonic() + WAIT_S
            for number in away:
                while f"late {number}" not in sent:
                    try:
                        send(sender, f"late {number}", keys[number])
                    except ServiceBusServerBusyError:
                        assert time.monotonic() < end
                        time.sleep(0.2)
        found = set(fragments(client, queue, len(sent)))
        assert found == set(sent)
