"""Messages to a queue over HTTP: what is stored, what is answered, and that nothing else happens."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.errors import INTERNAL_ERROR, NOT_FOUND, RESOURCE_LIMIT, SERVER_BUSY
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.gateway.amqp.tests.partitioned_world import in_turn
from hubweir.gateway.amqp.tests.queue_world import create_queue, stored
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.send_messages import MESSAGE_BYTES
from hubweir.gateway.http.tests.service import BATCH, Answer, Http, token
from hubweir.gateway.http.tests.world_requests import ask_all, queue_world
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.entity import Availability
from hubweir.namespace.rights import Rights
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.testing.running_namespace import running_namespace

NewQueue = Callable[..., str]


def received(http: Http, queue: str) -> Answer:
    """The next message of a queue, taken away; 204 when there is none."""
    return http.call("DELETE", f"/{queue}/messages/head?timeout=0")


def said(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.headers["brokerproperties"])
    return found


def test_a_message_has_its_body_its_properties_and_its_headers(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    answer = http.call(
        "POST", f"/{queue}/messages?timeout=60&api-version=2015-01", b"\x00\xff raw",
        BrokerProperties='{"Label": "l", "MessageId": "m1", "TimeToLive": 60}',
        Carrier='"UA"', Delay="7", Late="true", content_type="application/octet-stream", x_ms_retrypolicy="NoRetry",
    )  # fmt: skip
    assert (answer.status, answer.body) == (201, b"")
    message = received(http, queue)
    assert (message.status, message.body) == (200, b"\x00\xff raw")
    assert message.headers["content-type"] == "application/octet-stream"
    assert (message.headers["carrier"], message.headers["delay"], message.headers["late"]) == ('"UA"', "7", "true")
    assert said(message).items() >= {"Label": "l", "MessageId": "m1", "TimeToLive": 60, "SequenceNumber": 1}.items()
    assert received(http, queue).status == 204


def test_a_batch_is_its_messages_in_order(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    items = [
        {"Body": "one", "BrokerProperties": {"Label": "a"}, "UserProperties": {"n": 1, "s": "x", "none": None}},
        {"Body": "zwei \u00fc", "BrokerProperties": {"TimeToLiveTimeSpan": "0:01:00"}},
        {"Body": ""},
    ]
    answer = http.call("POST", f"/{queue}/messages", json.dumps(items), content_type=BATCH, Carrier="not for batches")
    assert (answer.status, answer.body) == (201, b"")
    first, second, third = (received(http, queue) for _ in range(3))
    assert [message.body for message in (first, second, third)] == [b"one", "zwei \u00fc".encode(), b""]
    assert said(first)["Label"] == "a" and (first.headers["n"], first.headers["s"]) == ("1", '"x"')
    assert said(second)["TimeToLive"] == 60
    assert "carrier" not in first.headers and "content-type" not in first.headers
    assert received(http, queue).status == 204


@pytest.mark.parametrize(
    ("body", "headers", "why"),
    [
        ("x", {"BrokerProperties": "{"}, "BrokerProperties is not"),
        ("x", {"BrokerProperties": '{"MessageId": 1}'}, "MessageId must be a string"),
        ("x", {"BrokerProperties": json.dumps({"MessageId": "i" * 129})}, "more than 128 characters"),
        ("x", {"BrokerProperties": '{"SessionId": "a", "PartitionKey": "b"}'}, "partition key that is not its session"),
        ("x", {"Number": "9" * 30}, "64 bits"),
        ("[]", {"content_type": BATCH}, "at least one message"),
        ('[{"Body": "x"}, {}]', {"content_type": BATCH}, "Message 1 of the batch"),
        ('[{"Body": "x"}, {"Body": "y", "BrokerProperties": []}]', {"content_type": BATCH},
         "BrokerProperties of message 1 of the batch"),
        (json.dumps([{"Body": "x"}, {"Body": "y", "BrokerProperties": {"SessionId": "s" * 129}}]),
         {"content_type": BATCH}, "more than 128 characters"),
        (json.dumps([{"Body": "x"}, {"Body": "y", "UserProperties": {"a": "y" * 32_760, "b": "z" * 32_760}}]),
         {"content_type": BATCH}, "properties"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_400_and_nothing_of_it_is_stored(
    http: Http, new_queue: NewQueue, body: str, headers: dict[str, str], why: str
) -> None:
    queue = new_queue()
    answer = http.call("POST", f"/{queue}/messages", body, **headers)
    assert answer.status == 400 and why in answer.text
    assert answer.text.startswith("<Error><Code>400</Code><Detail>") and "TrackingId:" in answer.text
    assert received(http, queue).status == 204


def test_a_message_without_a_session_is_refused_where_sessions_are_required(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(requires_session=True)
    answer = http.call("POST", f"/{queue}/messages", "x")
    assert answer.status == 400 and "no session id" in answer.text
    assert http.call("POST", f"/{queue}/messages", "x", BrokerProperties='{"SessionId": ""}').status == 201


@pytest.mark.parametrize("kilobytes", [1, 1_024, 2_048])
def test_the_largest_message_is_taken_and_one_byte_more_is_not(http: Http, new_queue: NewQueue, kilobytes: int) -> None:
    """Over HTTP none is larger than the service's limit, whatever the queue's own is."""
    queue = new_queue(max_message_kilobytes=kilobytes)
    limit = min(MESSAGE_BYTES, kilobytes * 1_024)
    largest = limit - len(bytes.fromhex("005375b000000000"))  # the data section's own bytes
    for size, status in ((largest, 201), (largest + 1, 403), (limit + 1, 403)):
        answer = http.call("POST", f"/{queue}/messages", b"x" * size)
        assert answer.status == status
        assert status == 201 or f"limit of {limit} bytes" in answer.text
    assert len(received(http, queue).body) == largest


def test_a_body_in_chunks_is_bounded_too(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(max_message_kilobytes=1)
    head = f"POST /{queue}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: {token()}\r\nconnection: close\r\n"
    for size, status in ((0x3F8, 201), (0x401, 403)):
        body = f"{size:x}\r\n{'x' * size}\r\n0\r\n\r\n"
        answers = http.raw(f"{head}transfer-encoding: chunked\r\n\r\n{body}".encode())
        assert answers.startswith(f"HTTP/1.1 {status} ".encode())


def test_a_batch_is_bounded_as_a_whole(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(max_message_kilobytes=1)
    items = [{"Body": "x" * 400}] * 3
    answer = http.call("POST", f"/{queue}/messages", json.dumps(items), content_type=BATCH)
    assert answer.status == 403 and "limit of 1024 bytes" in answer.text
    assert http.call("POST", f"/{queue}/messages", json.dumps(items[:2]), content_type=BATCH).status == 201
    assert received(http, queue).status == 200


def test_a_scheduled_message_comes_at_its_time(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    due_s = int(time.time()) + 2
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(due_s))
    scheduled = json.dumps({"ScheduledEnqueueTimeUtc": date})
    assert http.call("POST", f"/{queue}/messages", "later", BrokerProperties=scheduled).status == 201
    assert received(http, queue).status == 204
    message = http.call("DELETE", f"/{queue}/messages/head?timeout=9")
    assert message.body == b"later" and time.time() >= due_s
    assert (said(message)["ScheduledEnqueueTimeUtc"], said(message)["EnqueuedTimeUtc"]) == (date, date)


def test_the_status_of_the_queue_counts(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue(availability=Availability.SEND_DISABLED)
    answer = http.call("POST", f"/{queue}/messages", "x")
    assert answer.status == 403 and "SendDisabled" in answer.text
    assert http.call("POST", f"/{new_queue(availability=Availability.RECEIVE_DISABLED)}/messages", "x").status == 201


def test_the_right_to_send_is_needed(http: Http, new_queue: NewQueue) -> None:
    queue = new_queue()
    http.set_rule(None, "sends", Rights.SEND)
    http.set_rule(None, "listens", Rights.LISTEN)
    key = "its own key"
    assert http.call("POST", f"/{queue}/messages", "x", auth=None).status == 401
    assert http.call("POST", f"/{queue}/messages", "x", auth=token(rule="listens", key=key)).status == 401
    assert http.call("POST", f"/{queue}/messages", "x", auth=token("other", rule="sends", key=key)).status == 401
    assert http.call("POST", f"/{queue}/messages", "x", auth=token(queue, rule="sends", key=key)).status == 201


def test_a_topic_takes_messages_for_its_subscriptions() -> None:
    with running_namespace() as namespace:
        http, administration = Http(namespace), Administration(ConnectionString.parse(namespace.connection_string()))
        administration.create(EntityType.TOPIC, "news", {})
        administration.create(EntityType.SUBSCRIPTION, "news/Subscriptions/all", {})
        assert http.call("POST", "/news/messages", "x", BrokerProperties='{"MessageId": "m1"}').status == 201
        locked = http.call("POST", "/news/subscriptions/all/messages/head?timeout=5")
        assert (locked.status, locked.body) == (201, b"x") and said(locked)["MessageId"] == "m1"
        lock = locked.headers["location"].split("/", 3)[3]
        assert http.call("DELETE", f"/{lock}").status == 200
        assert received(http, "news/subscriptions/all").status == 204
        assert http.call("POST", "/news/messages/head?timeout=0").status == 400
        assert http.call("POST", "/news/subscriptions/all/messages", "x").status in (400, 404, 405)


def test_an_absent_queue_is_gone_where_there_are_queues_alone() -> None:
    """Event hubs answer 404. Where both are, nobody can tell what was meant."""
    with running_namespace() as namespace:
        http = Http(namespace)
        assert http.call("POST", "/absent/messages", "x").status == 404
        namespace.create_queue("orders")
        answer = http.call("POST", "/absent/messages", "x")
        assert answer.status == 410 and "could not be found" in answer.text
        namespace.create_event_hub("hub")
        assert http.call("POST", "/absent/messages", "x").status == 404


# With a broker that refuses


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        (Refusal(RESOURCE_LIMIT, "The queue is full."), 403),
        (Refusal(SERVER_BUSY, "Too much."), 503),
        (Refusal(NOT_FOUND, "The messaging entity 'orders' could not be found."), 410),
        (Refusal(INTERNAL_ERROR, "The broker went away.", known=False), 504),
    ],
)
def test_a_refusal_of_the_broker_is_told_and_the_bytes_are_given_back(refusal: Refusal, status: int) -> None:
    world = queue_world()
    world.gate.refuse[EnqueueMessages] = refusal
    (answer,) = ask_all(world, "POST", "/orders/messages", b"x")
    assert answer is not None and answer.status == status and refusal.text in answer.text
    assert (status == 504) == ("may be stored or not" in answer.text)
    assert world.gateway.process.budget.used == 0


def test_a_send_that_is_refused_here_gives_its_bytes_back_and_asks_no_broker() -> None:
    world = queue_world()
    (answer,) = ask_all(world, "POST", "/orders/messages", b"x", headers=((b"brokerproperties", b"{"),))
    assert answer is not None and answer.status == 400
    assert world.gateway.process.budget.used == 0
    assert not world.gate.sent(EnqueueMessages)


def test_requests_of_one_turn_share_one_append_and_are_answered_behind_it() -> None:
    world = queue_world()
    world.gate.hold[EnqueueMessages] = []
    assert ask_all(world, "POST", "/orders/messages", b"x", count=2) == [None, None]
    world.gate.release(EnqueueMessages)
    answers = ask_all(world, "POST", "/orders/messages", b"x", count=5)
    assert [answer and answer.status for answer in answers] == [201] * 5
    assert [command.messages for command in world.gate.sent(EnqueueMessages)] == [2, 5]


def test_a_partitioned_queue_gets_each_message_where_its_key_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(stores=2)
    create_queue(world, "orders", storage=StorageSettings(is_partitioned=True))

    def sent(headers: tuple[tuple[bytes, bytes], ...] = (), body: bytes = b"x") -> int:
        (answer,) = ask_all(world, "POST", "/orders/messages", body, headers=headers)
        assert answer is not None
        return answer.status

    for _ in range(2):
        assert sent(((b"brokerproperties", b'{"SessionId": "s"}'),), b"keyed") == 201
    for number in range(16):
        assert sent(body=b"%d" % number) == 201
    found = stored(world)
    assert found[partition_of_key(b"s", 16)][:2] == [b"keyed", b"keyed"]
    keyless = [[body for body in each if body != b"keyed"] for each in found]
    assert in_turn(keyless, b"0") == [[b"%d" % number] for number in range(16)]

    items = [{"Body": "x", "BrokerProperties": {"PartitionKey": key}} for key in ("key-1", "key-2")]
    (answer,) = ask_all(
        world, "POST", "/orders/messages", json.dumps(items).encode(), headers=((b"content-type", BATCH.encode()),)
    )
    assert answer is not None and answer.status == 400 and "keys of several" in answer.text
    assert world.gateway.process.budget.used == 0
    world.gates[1].is_up = False
    assert [sent() for _ in range(16)] == [201] * 16
    assert {sent(((b"brokerproperties", b'{"PartitionKey": "key-%d"}' % number),)) for number in range(30)} == {
        201,
        503,
    }
