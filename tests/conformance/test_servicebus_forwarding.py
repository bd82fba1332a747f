"""The official Python clients of queues and topics that forward: messages and dead letters move on by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.exceptions import ServiceBusError
from azure.servicebus.management import EntityStatus, ServiceBusAdministrationClient

from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.servicebus_python import is_empty, receive, texts
from tests.conformance.test_administration import Administered

pytestmark = [pytest.mark.conformance, pytest.mark.client("azure-servicebus, blocking, plain")]
DEAD, TRANSFER_DEAD = ServiceBusSubQueue.DEAD_LETTER, ServiceBusSubQueue.TRANSFER_DEAD_LETTER


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(host=(HOST,)) as namespace:
        yield namespace


@pytest.fixture
def administration(namespace: RunningNamespace) -> Iterator[ServiceBusAdministrationClient]:
    with Administered(namespace).client() as client:
        yield client


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(namespace.connection_string(), retry_total=0) as client:
        yield client


class Queues:
    """Queues of one test, and what clients do with them."""

    def __init__(self, administration: ServiceBusAdministrationClient, client: ServiceBusClient, prefix: str) -> None:
        self.administration, self.client, self._prefix = administration, client, prefix
        self._made: list[str] = []

    def create(self, name: str, **settings: object) -> str:
        """A queue; its whole name."""
        whole = f"{self._prefix}-{name}"
        self.administration.create_queue(whole, **settings)
        self._made.append(whole)
        return whole

    def send(self, queue: str, *messages: ServiceBusMessage) -> None:
        with self.client.get_queue_sender(queue) as sender:
            sender.send_messages(list(messages))

    def got(self, queue: str, count: int, **named: object) -> list[ServiceBusReceivedMessage]:
        """Exactly these messages, received and completed."""
        with self.client.get_queue_receiver(queue, **named) as receiver:
            found = receive(receiver, count)
            for message in found:
                receiver.complete_message(message)
            assert is_empty(receiver)
        return found

    def update(self, queue: str, **settings: object) -> None:
        properties = self.administration.get_queue(queue)
        for name, value in settings.items():
            setattr(properties, name, value)
        self.administration.update_queue(properties)

    def delete(self) -> None:
        for each in self._made:
            try:
                self.administration.delete_queue(each)
            except HttpResponseError:
                continue  # its test deleted it


@pytest.fixture
def queues(
    administration: ServiceBusAdministrationClient, client: ServiceBusClient, request: pytest.FixtureRequest
) -> Iterator[Queues]:
    made = Queues(administration, client, f"q{abs(hash(request.node.nodeid)) % 10**10}")
    yield made
    made.delete()


def chain(queues: Queues, hops: int) -> list[str]:
    """Queues of which each forwards to the next one."""
    names = [queues.create(f"{hops}")]
    for place in reversed(range(hops)):
        names.insert(0, queues.create(f"{place}", forward_to=names[0]))
    return names


@pytest.mark.sb(119)
@pytest.mark.feature("forwarding")
def test_a_message_is_forwarded_as_it_is_and_says_which_number_it_had(queues: Queues) -> None:
    first, last = chain(queues, 1)
    queues.send(last, ServiceBusMessage("here before"))
    sent = [
        ServiceBusMessage(
            str(place),
            message_id=f"id {place}",
            session_id="s",
            partition_key="s",
            application_properties={"place": place},
            subject="label",
        )
        for place in range(3)
    ]
    queues.send(first, *sent)
    queues.send(first, ServiceBusMessage("without an id"))
    before, *found = queues.got(last, 5)
    assert before.enqueued_sequence_number is None
    assert texts(found) == ["0", "1", "2", "without an id"]
    assert [each.enqueued_sequence_number for each in found] == [1, 2, 3, 4]
    assert [each.sequence_number for each in found] == [2, 3, 4, 5]
    for place, each in enumerate(found[:3]):
        assert (each.message_id, each.session_id, each.partition_key) == (f"id {place}", "s", "s")
        assert (each.application_properties, each.subject) == ({b"place": place}, "label")
    assert found[3].message_id
    assert queues.administration.get_queue_runtime_properties(first).total_message_count == 0


@pytest.mark.sb(119)
@pytest.mark.feature("forwarding")
def test_four_hops_pass(queues: Queues) -> None:
    names = chain(queues, 4)
    queues.send(names[0], ServiceBusMessage("a"))
    (found,) = queues.got(names[-1], 1)
    assert (texts([found]), found.enqueued_sequence_number) == (["a"], 1)


@pytest.mark.sb(119)
@pytest.mark.feature("forwarding")
def test_the_fifth_hop_is_a_dead_letter(queues: Queues) -> None:
    names = chain(queues, 5)
    queues.send(names[0], ServiceBusMessage("a"))
    (found,) = queues.got(names[4], 1, sub_queue=DEAD)
    assert found.dead_letter_reason == "MaxTransferHopCountExceeded"
    with queues.client.get_queue_receiver(names[5]) as receiver:
        assert is_empty(receiver)


@pytest.mark.sb(120)
@pytest.mark.feature("forwarding")
def test_dead_letters_are_forwarded_and_say_where_they_were_dead_letters(queues: Queues) -> None:
    graveyard = queues.create("graveyard")
    source = queues.create("source", forward_dead_lettered_messages_to=graveyard)
    queues.send(source, ServiceBusMessage("a", message_id="its id"), ServiceBusMessage("b"))
    with queues.client.get_queue_receiver(source) as receiver:
        first, second = receive(receiver, 2)
        receiver.dead_letter_message(first, reason="broken", error_description="in two")
        receiver.complete_message(second)
    (found,) = queues.got(graveyard, 1)
    assert (found.message_id, found.dead_letter_source, found.enqueued_sequence_number) == ("its id", source, 1)
    assert found.dead_letter_reason == "broken" and found.dead_letter_error_description == "in two"
    with queues.client.get_queue_receiver(source, sub_queue=DEAD) as receiver:
        assert is_empty(receiver)


@pytest.mark.sb(48, 120)
@pytest.mark.feature("forwarding")
def test_a_dead_letter_that_is_sent_again_says_nothing_of_where_it_was_one(queues: Queues) -> None:
    graveyard, last = queues.create("graveyard"), queues.create("last")
    source = queues.create("source", forward_dead_lettered_messages_to=graveyard)
    way = queues.create("way", forward_to=last)
    queues.send(source, ServiceBusMessage("a"))
    with queues.client.get_queue_receiver(source) as receiver:
        (found,) = receive(receiver, 1)
        receiver.dead_letter_message(found)
    (found,) = queues.got(graveyard, 1)
    assert found.dead_letter_source == source
    for sent_to, received_from in ((last, last), (way, last)):
        queues.send(sent_to, found)  # type: ignore[arg-type]  # the client takes what it received
        (again,) = queues.got(received_from, 1)
        assert (texts([again]), again.dead_letter_source) == (["a"], None)


@pytest.mark.feature("forwarding")
def test_nobody_receives_from_a_queue_that_forwards(queues: Queues) -> None:
    first, last = chain(queues, 1)
    with pytest.raises(ServiceBusError) as refused, queues.client.get_queue_receiver(first) as receiver:
        receiver.receive_messages(max_wait_time=1)
    assert last in str(refused.value)
    with queues.client.get_queue_receiver(first, sub_queue=DEAD) as receiver:
        assert is_empty(receiver)


@pytest.mark.feature("forwarding")
def test_a_destination_has_to_be_there_when_it_is_set(queues: Queues) -> None:
    with pytest.raises(HttpResponseError) as refused:
        queues.create("lost", forward_to="nowhere")
    assert refused.value.status_code in (400, 404)


@pytest.mark.feature("forwarding")
@pytest.mark.parametrize("how", ["deleted", "disabled"])
def test_what_the_destination_refuses_for_good_is_a_transfer_dead_letter(queues: Queues, how: str) -> None:
    first, last = chain(queues, 1)
    if how == "deleted":
        queues.administration.delete_queue(last)
    else:
        queues.update(last, status=EntityStatus.SEND_DISABLED)
    queues.send(first, ServiceBusMessage("a"))
    (found,) = queues.got(first, 1, sub_queue=TRANSFER_DEAD)
    assert texts([found]) == ["a"] and last in found.dead_letter_error_description


@pytest.mark.feature("forwarding")
def test_what_comes_when_the_operator_has_ended_the_forward_stays(queues: Queues) -> None:
    first, last = chain(queues, 1)
    queues.send(first, ServiceBusMessage("moves on"))
    assert texts(queues.got(last, 1)) == ["moves on"]
    queues.update(first, forward_to=None)
    queues.send(first, ServiceBusMessage("stays"))
    assert texts(queues.got(first, 1)) == ["stays"]
    queues.update(first, forward_to=last)
    queues.send(first, ServiceBusMessage("moves again"))
    assert texts(queues.got(last, 1)) == ["moves again"]


@pytest.mark.feature("forwarding")
def test_a_queue_that_forwards_to_itself_ends_in_its_dead_letters(queues: Queues) -> None:
    name = queues.create("round")
    queues.update(name, forward_to=name)
    queues.send(name, ServiceBusMessage("a"))
    (found,) = queues.got(name, 1, sub_queue=DEAD)
    assert found.dead_letter_reason == "MaxTransferHopCountExceeded"


@pytest.fixture
def topic(queues: Queues) -> Iterator[str]:
    name = f"{queues.create('beside')}-topic"
    queues.administration.create_topic(name)
    yield name
    queues.administration.delete_topic(name)


@pytest.mark.sb(119)
@pytest.mark.feature("forwarding")
def test_subscriptions_forward_and_topics_are_forwarded_to(queues: Queues, topic: str) -> None:
    last = queues.create("last")
    first = queues.create("first", forward_to=topic)
    queues.administration.create_subscription(topic, "on", forward_to=last)
    queues.administration.create_subscription(topic, "here")
    queues.send(first, ServiceBusMessage("gone", message_id="0"))
    queues.got(last, 1)
    queues.send(first, ServiceBusMessage("a"), ServiceBusMessage("b"))
    found = queues.got(last, 2)
    with queues.client.get_subscription_receiver(topic, "here") as receiver:
        copies = receive(receiver, 3)
        for each in copies:
            receiver.complete_message(each)
    assert texts(found) == ["a", "b"] == texts(copies[1:])
    assert [each.enqueued_sequence_number for each in found] == [2, 3]
    assert [each.enqueued_sequence_number for each in copies] == [1, 2, 3]
    assert [each.message_id for each in found] == [each.message_id for each in copies[1:]]


@pytest.mark.sb(119)
@pytest.mark.feature("forwarding")
def test_a_subscription_that_forwards_to_its_own_topic_ends_in_its_dead_letters(queues: Queues, topic: str) -> None:
    queues.administration.create_subscription(topic, "round", forward_to=topic)
    with queues.client.get_topic_sender(topic) as sender:
        sender.send_messages(ServiceBusMessage("a"))
    with queues.client.get_subscription_receiver(topic, "round", sub_queue=DEAD) as receiver:
        (found,) = receive(receiver, 1)
        receiver.complete_message(found)
    assert found.dead_letter_reason == "MaxTransferHopCountExceeded"
    assert found.enqueued_sequence_number == 1
