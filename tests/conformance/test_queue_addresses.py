"""Queues, topics and subscriptions by every form of their address, by a scripted client and the official one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusError

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.transport.performatives import Attach, Flow
from hubweir.auth.shared_access_signature import make_token
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityInfo, EntityType
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace
from tests.conformance.conftest import HOST, Serve
from tests.conformance.raw_client import RawClient, status_of
from tests.conformance.test_administration import Administered

QUEUES = ("q", "a/b", "txt/.-_123")
EVENT = encode_message(Message(body=DataBody((b"x",))))


@pytest.fixture(scope="module")
def namespace(serve: Serve) -> Iterator[RunningNamespace]:
    with serve(host=(HOST,)) as namespace:
        administration = Administration(ConnectionString.parse(namespace.connection_string()))
        for name in (*QUEUES, "counted", "switched"):
            administration.create(EntityType.QUEUE, name, {})
        administration.create(EntityType.TOPIC, "topic", {})
        administration.create(EntityType.SUBSCRIPTION, "topic/Subscriptions/sub", {})
        yield namespace


@pytest.fixture
def administration(namespace: RunningNamespace) -> Administration:
    return Administration(ConnectionString.parse(namespace.connection_string()))


@pytest.fixture
def raw(namespace: RunningNamespace) -> Iterator[RawClient]:
    with RawClient.connect((namespace.host, namespace.port)) as client:
        yield client.trusted()


@pytest.fixture
def client(namespace: RunningNamespace) -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(namespace.connection_string(), retry_total=0) as client:
        yield client


def active(entity: EntityInfo) -> int:
    return entity.counts["ActiveMessageCount"]


@pytest.mark.sb(18, 21, 22)
@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("q", "amqps://host:5671/q"), ("q", "/q"), ("q", "q"), ("q", "Q"), ("q", "q/"), ("a/b", "a/b"),
        ("a/b", "a%2Fb"), ("a/b", "/A%2fB"), ("txt/.-_123", "amqps://host/txt%2F.-_123"),
    ],
)  # fmt: skip
def test_every_form_of_an_address_reaches_the_queue_and_is_repeated_as_it_came(
    raw: RawClient, administration: Administration, name: str, address: str
) -> None:
    before = active(administration.get(name))
    handle = raw.attach(address, sends=True)
    answer = raw.expect(Attach)
    assert answer.target is not None and answer.target.address == address
    assert answer.source is not None and answer.source.address == f"raw-{handle}"
    raw.expect(Flow)
    raw.publish(handle, EVENT)
    assert active(administration.get(name)) == before + 1
    handle = raw.attach(address, sends=False, rcv_settle_mode=1)
    answer = raw.expect(Attach)
    assert answer.source is not None and answer.source.address == address
    assert answer.target is not None and answer.target.address == f"raw-{handle}"


@pytest.mark.sb(20)
@pytest.mark.parametrize(
    "address", ["q/$DeadLetterQueue", "q/$deadletterqueue", "q/$Transfer/$DeadLetterQueue", "a%2Fb/%24DeadLetterQueue"]
)
def test_sub_queues_are_receivable_and_nothing_can_be_sent_to_them(raw: RawClient, address: str) -> None:
    raw.receiver(address)
    assert raw.refused(address, sends=True).condition == "amqp:not-allowed"


@pytest.mark.sb(23)
@pytest.mark.parametrize(
    "address", ["missing", "missing/$DeadLetterQueue", "topic/Subscriptions/missing", "missing/Subscriptions/sub"]
)
def test_what_is_not_there_is_told_at_the_token_and_at_the_attach(
    namespace: RunningNamespace, raw: RawClient, address: str
) -> None:
    shape = re.compile(r"The messaging entity 'sb://.*' could not be found\.", re.IGNORECASE)
    for sends in (True, False):
        error = raw.refused(address, sends=sends)
        assert error.condition == "amqp:not-found" and shape.search(error.description)
    with RawClient.connect((namespace.host, namespace.port)) as other:
        code, text = status_of(other.start().put_token(f"sb://localhost/{address}"))
        assert code == 404 and shape.search(text)


@pytest.mark.sb(23)
def test_the_official_client_tells_a_missing_queue_apart(client: ServiceBusClient) -> None:
    with pytest.raises(ServiceBusAuthenticationError), client.get_queue_sender("missing") as sender:
        sender.send_messages(ServiceBusMessage("x"))


@pytest.mark.sb(24)
@pytest.mark.parametrize(("address", "sends"), [("topic", False), ("TOPIC", False), ("topic/Subscriptions/sub", True)])
def test_the_wrong_direction_is_not_allowed(raw: RawClient, address: str, sends: bool) -> None:
    assert raw.refused(address, sends=sends).condition == "amqp:not-allowed"


@pytest.mark.sb(162, 163)
def test_a_rule_of_a_queue_s_description_opens_links_at_once(
    namespace: RunningNamespace, administration: Administration
) -> None:
    rule = (
        '<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><Rights><AccessRights>{}'
        "</AccessRights></Rights><KeyName>own</KeyName><PrimaryKey>its own key</PrimaryKey></AuthorizationRule>"
        "</AuthorizationRules>"
    )
    administration.create(EntityType.QUEUE, "ruled", {}, rule.format("Send"))
    for right, sends in (("Send", True), ("Listen", False)):
        administration.replace(EntityType.QUEUE, "ruled", {}, rule.format(right))
        token = make_token("sb://localhost/ruled", "own", "its own key", int(time.time()) + 60)
        with RawClient.connect((namespace.host, namespace.port)) as peer:
            assert status_of(peer.start().put_token("sb://localhost/ruled", token=token))[0] == 202
            raw_link = peer.sender if sends else peer.receiver
            raw_link("ruled")
            error = peer.refused("ruled", sends=not sends)
            missing = "Listen" if sends else "Send"
            assert error.condition == "amqp:unauthorized-access"
            assert error.description.startswith(
                f"Unauthorized access. '{missing}' claim(s) are required to perform this operation"
            )


@pytest.mark.sb(148)
def test_a_status_stops_its_halves_until_the_queue_is_active_again(
    client: ServiceBusClient, administration: Administration
) -> None:
    def sends() -> bool:
        try:
            with client.get_queue_sender("switched") as sender:
                sender.send_messages(ServiceBusMessage("x"))
        except ServiceBusError as error:
            assert "entity-disabled" in str(error) or "its status is" in str(error)
            return False
        return True

    def receives() -> bool:
        try:
            with client.get_queue_receiver("switched", receive_mode="receiveanddelete") as receiver:
                return bool(receiver.receive_messages(max_message_count=1, max_wait_time=2))
        except ServiceBusError as error:
            assert "entity-disabled" in str(error) or "its status is" in str(error)
            return False

    assert sends() and sends() and sends() and receives()
    for status, may_send, may_receive in (
        ("Disabled", False, False), ("SendDisabled", False, True), ("ReceiveDisabled", True, False),
        ("Active", True, True),
    ):  # fmt: skip
        administration.update(EntityType.QUEUE, "switched", {"Status": status})
        assert (sends(), receives()) == (may_send, may_receive), status


@pytest.mark.sb(142, 143, 173)
def test_counts_tell_where_messages_are(
    namespace: RunningNamespace, client: ServiceBusClient, administration: Administration
) -> None:
    administration.update(EntityType.QUEUE, "counted", {"UserMetadata": "an update is no use"})
    assert administration.get("counted").members["AccessedAt"] == "0001-01-01T00:00:00Z"
    before = datetime.now(UTC) - timedelta(seconds=5)
    with client.get_queue_sender("counted") as sender:
        sender.send_messages([ServiceBusMessage(f"m{number}") for number in range(3)])
        sender.schedule_messages(ServiceBusMessage("later"), datetime.now(UTC) + timedelta(minutes=10))
    with client.get_queue_receiver("counted") as receiver:
        received: list[object] = []
        while len(received) < 2:
            received += receiver.receive_messages(max_message_count=2 - len(received), max_wait_time=5)
        receiver.dead_letter_message(received[0], reason="told")  # type: ignore[arg-type]
        found = administration.get("counted")
        assert [found.counts[name] for name in (
            "ActiveMessageCount", "DeadLetterMessageCount", "ScheduledMessageCount",
        )] == [2, 1, 1]  # fmt: skip
        assert found.members["MessageCount"] == "4" and int(found.members["SizeInBytes"]) > 0
        assert found.members["EntityAvailabilityStatus"] == "Available"
        assert before < datetime.fromisoformat(found.members["AccessedAt"]) < before + timedelta(minutes=2)
        with Administered(namespace).client() as official:
            told = official.get_queue_runtime_properties("counted")
        counts = (told.active_message_count, told.dead_letter_message_count, told.scheduled_message_count)
        assert (counts, told.total_message_count) == ((2, 1, 1), 4)
