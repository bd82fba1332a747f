"""Messages over HTTPS with curl, and the same messages by the official Python client over AMQP."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from azure.servicebus import (
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
)

from tests.conformance.conftest import Doors
from tests.conformance.test_https import BATCH, Curl

pytestmark = [
    pytest.mark.client("curl, HTTPS"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="NOT RUN: curl is not installed"),
]
WAIT_S = 30
DATE = "%a, %d %b %Y %H:%M:%S GMT"
Make = Callable[..., str]
_numbers = itertools.count()


@pytest.fixture
def curl(doors: Doors, tmp_path: Path) -> Curl:
    return Curl(doors, tmp_path)


@pytest.fixture
def new_queue(doors: Doors) -> Iterator[Make]:
    """Makes queues for one test."""
    made: list[str] = []

    def make(**settings: Any) -> str:
        made.append(f"over-http-{next(_numbers)}")
        doors.namespace.create_queue(made[-1], **settings)
        return made[-1]

    yield make
    for name in made:
        doors.namespace.delete_queue(name)


@pytest.fixture
def amqp(doors: Doors) -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(doors.namespace.connection_string(), retry_total=0) as client:
        yield client


def taken(amqp: ServiceBusClient, queue: str, count: int = 1, **more: Any) -> list[ServiceBusReceivedMessage]:
    """The next messages, received and deleted over AMQP."""
    got: list[ServiceBusReceivedMessage] = []
    with amqp.get_queue_receiver(queue, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE, **more) as receiver:
        while len(got) < count:
            came = receiver.receive_messages(max_message_count=count - len(got), max_wait_time=WAIT_S)
            assert came, f"{len(got)} of {count} came"
            got += came
    return got


def said(headers: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(headers["brokerproperties"])
    return found


def path_of(headers: dict[str, str]) -> str:
    return urlsplit(headers["location"]).path


@pytest.mark.sb(150)
@pytest.mark.feature("properties")
def test_a_message_that_is_posted_is_read_over_amqp_with_its_properties_and_types(
    curl: Curl, new_queue: Make, amqp: ServiceBusClient
) -> None:
    queue, sent = new_queue(), datetime.now(UTC)
    properties = {
        "MessageId": "m-1", "CorrelationId": "c", "Label": "l", "To": "t", "ReplyTo": "r", "ReplyToSessionId": "rs",
        "SessionId": "s", "PartitionKey": "s", "TimeToLive": 90.5,
    }  # fmt: skip
    status, _, body = curl.call(
        "POST", f"/{queue}/messages?timeout=60&api-version=2015-01", '{"not": read}',
        "Content-Type: application/json", f"BrokerProperties: {json.dumps(properties)}", 'Text: "7"', "Long: -7",
        "Double: 7.5", "Yes: true", "No: false", "When: Mon, 23 Nov 2026 02:00:00 GMT", "Bare: Strong Winds",
        "x-ms-retrypolicy: NoRetry",
    )  # fmt: skip
    assert (status, body) == (201, b"")
    [message] = taken(amqp, queue)
    assert b"".join(message.body) == b'{"not": read}'
    assert (message.message_id, message.correlation_id, message.subject) == ("m-1", "c", "l")
    assert (message.to, message.reply_to, message.reply_to_session_id) == ("t", "r", "rs")
    assert (message.session_id, message.partition_key, message.content_type) == ("s", "s", "application/json")
    assert message.time_to_live == timedelta(seconds=90.5)
    assert message.delivery_count == 0 and message.sequence_number == 1
    assert abs(message.enqueued_time_utc - sent) < timedelta(seconds=30)
    assert message.application_properties is not None
    values = {
        key.decode() if isinstance(key, bytes) else key: value for key, value in message.application_properties.items()
    }
    assert values.keys() == {"Text", "Long", "Double", "Yes", "No", "When", "Bare"}
    assert (values["Text"], values["Bare"]) == (b"7", b"Strong Winds")
    assert [values[name] for name in ("Long", "Double", "Yes", "No")] == [-7, 7.5, True, False]
    assert [type(values[name]) for name in ("Long", "Double", "Yes", "No")] == [int, float, bool, bool]
    assert values["When"] in (1_795_399_200_000, datetime(2026, 11, 23, 2, tzinfo=UTC))


@pytest.mark.sb(150)
@pytest.mark.feature("schedule")
def test_a_scheduled_message_becomes_active_at_its_time(curl: Curl, new_queue: Make, amqp: ServiceBusClient) -> None:
    queue = new_queue()
    due = (datetime.now(UTC) + timedelta(seconds=3)).replace(microsecond=0)
    scheduled = json.dumps({"ScheduledEnqueueTimeUtc": due.strftime(DATE)})
    assert curl.call("POST", f"/{queue}/messages", "later", f"BrokerProperties: {scheduled}")[0] == 201
    assert curl.call("POST", f"/{queue}/messages/head?timeout=0")[0] == 204
    [message] = taken(amqp, queue)
    assert str(message) == "later" and message.enqueued_time_utc == due
    assert message.scheduled_enqueue_time_utc == due


@pytest.mark.sb(151)
@pytest.mark.feature("send batch")
def test_a_batch_is_its_messages_each_with_its_own_properties(
    curl: Curl, new_queue: Make, amqp: ServiceBusClient
) -> None:
    queue = new_queue()
    items = [
        {"Body": "one", "BrokerProperties": {"Label": "a", "SessionId": "x"}, "UserProperties": {"n": 1, "t": "one"}},
        {"Body": "two", "BrokerProperties": {"Label": "b", "SessionId": "y", "TimeToLiveTimeSpan": "0:00:40"}},
        {"Body": "three"},
    ]
    assert curl.call("POST", f"/{queue}/messages", json.dumps(items), f"Content-Type: {BATCH}")[0] == 201
    first, second, third = taken(amqp, queue, 3)
    assert [str(message) for message in (first, second, third)] == ["one", "two", "three"]
    assert [message.subject for message in (first, second, third)] == ["a", "b", None]
    assert [message.session_id for message in (first, second, third)] == ["x", "y", None]
    assert first.application_properties == {b"n": 1, b"t": b"one"}
    assert second.time_to_live == timedelta(seconds=40)
    wrong = [{"Body": "good"}, {"Body": "bad", "BrokerProperties": {"MessageId": "i" * 129}}]
    assert curl.call("POST", f"/{queue}/messages", json.dumps(wrong), f"Content-Type: {BATCH}")[0] == 400
    assert curl.call("DELETE", f"/{queue}/messages/head?timeout=0")[0] == 204


@pytest.mark.sb(152)
@pytest.mark.feature("receive")
def test_peek_lock_answers_the_message_its_lock_and_the_address_of_that(
    curl: Curl, new_queue: Make, amqp: ServiceBusClient
) -> None:
    queue = new_queue(lock_duration_ms=30_000)
    with amqp.get_queue_sender(queue) as sender:
        about = {"text": "t", "number": 7, "real": 7.5, "yes": True}
        sender.send_messages(
            ServiceBusMessage(
                b"body",
                message_id="m",
                subject="l",
                content_type="text/x",
                time_to_live=timedelta(minutes=5),
                application_properties=about,  # type: ignore[arg-type]  # the client takes these types
            )  # fmt: skip
        )
    status, headers, body = curl.call("POST", f"/{queue}/messages/head?timeout=5")
    assert (status, body, headers["content-type"]) == (201, b"body", "text/x")
    properties = said(headers)
    assert properties.items() >= {
        "MessageId": "m", "Label": "l", "SequenceNumber": 1, "DeliveryCount": 1, "State": "Active", "TimeToLive": 300,
    }.items()  # fmt: skip
    assert path_of(headers) == f"/{queue}/messages/1/{UUID(properties['LockToken'])}"
    left = datetime.strptime(properties["LockedUntilUtc"], DATE).replace(tzinfo=UTC) - datetime.now(UTC)
    assert timedelta(seconds=20) < left < timedelta(seconds=31)
    assert (headers["text"], headers["number"], headers["real"], headers["yes"]) == ('"t"', "7", "7.5", "true")
    begun = time.monotonic()
    status, headers, body = curl.call("POST", f"/{queue}/messages/head?timeout=1")
    assert (status, body) == (204, b"") and "location" not in headers
    assert 1 <= time.monotonic() - begun < 20  # of the minute that it would wait by itself


@pytest.mark.sb(153)
@pytest.mark.feature("settle")
def test_a_lock_is_given_up_renewed_and_completed_and_a_stale_token_is_404(
    curl: Curl, new_queue: Make, amqp: ServiceBusClient
) -> None:
    queue = new_queue()
    head = f"/{queue}/messages/head?timeout=5"
    for body in ("deleted", "locked"):
        assert curl.call("POST", f"/{queue}/messages", body)[0] == 201
    assert curl.call("DELETE", head)[::2] == (200, b"deleted")
    first = path_of(curl.call("POST", head)[1])
    assert curl.call("POST", first)[0] == 200
    assert curl.call("PUT", first)[0] == 200
    assert {curl.call(method, first)[0] for method in ("PUT", "POST", "DELETE")} == {404}
    status, headers, _ = curl.call("POST", head)
    assert (status, said(headers)["DeliveryCount"]) == (201, 2)
    with amqp.get_queue_receiver(queue) as receiver:
        assert not receiver.receive_messages(max_wait_time=0.3)
        assert len(receiver.peek_messages(5)) == 1
        assert curl.call("DELETE", path_of(headers))[0] == 200
        assert not receiver.peek_messages(5)
    assert curl.call("DELETE", path_of(headers))[0] == 404


@pytest.mark.sb(153)
@pytest.mark.feature("locks")
def test_the_token_of_an_amqp_receiver_is_the_one_in_the_address(
    curl: Curl, new_queue: Make, amqp: ServiceBusClient
) -> None:
    queue = new_queue()
    assert curl.call("POST", f"/{queue}/messages", "x")[0] == 201
    with amqp.get_queue_receiver(queue) as receiver:
        [message] = receiver.receive_messages(max_wait_time=WAIT_S)
        assert curl.call("POST", f"/{queue}/messages/{message.sequence_number}/{message.lock_token}")[0] == 200
        assert curl.call("DELETE", f"/{queue}/messages/{message.message_id}/{message.lock_token}")[0] == 200
        assert not receiver.peek_messages(5)


@pytest.mark.sb(153)
@pytest.mark.feature("dead letters")
def test_dead_letters_are_received_and_completed_under_their_address(
    curl: Curl, new_queue: Make, amqp: ServiceBusClient
) -> None:
    queue = new_queue()
    assert curl.call("POST", f"/{queue}/messages", "x")[0] == 201
    with amqp.get_queue_receiver(queue) as receiver:
        [message] = receiver.receive_messages(max_wait_time=WAIT_S)
        receiver.dead_letter_message(message, reason="bad", error_description="no such order")
    status, headers, body = curl.call("POST", f"/{queue}/$DeadLetterQueue/messages/head?timeout=5")
    assert (status, body) == (201, b"x")
    assert (headers["deadletterreason"], headers["deadlettererrordescription"]) == ('"bad"', '"no such order"')
    assert curl.call("DELETE", path_of(headers))[0] == 200
    assert curl.call("DELETE", path_of(headers))[0] == 404
    with amqp.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        assert not receiver.receive_messages(max_wait_time=0.3)


@pytest.mark.sb(154)
@pytest.mark.feature("errors")
def test_what_is_not_there_is_410_for_messages_and_404_for_management(curl: Curl) -> None:
    for method, path in (
        ("POST", "/absent/messages/head?timeout=0"),
        ("DELETE", "/absent/messages/head?timeout=0"),
        *((method, f"/absent/messages/1/{UUID(int=1)}") for method in ("PUT", "POST", "DELETE")),
    ):
        status, _, body = curl.call(method, path)
        assert status == 410 and b"<Code>410</Code>" in body and b"could not be found" in body
    assert curl.call("GET", "/absent")[0] == 404


@pytest.mark.sb(155)
@pytest.mark.feature("sessions")
def test_sessions_are_not_received_over_http(curl: Curl, new_queue: Make) -> None:
    queue = new_queue(requires_session=True)
    assert curl.call("POST", f"/{queue}/messages", "x", 'BrokerProperties: {"SessionId": "s"}')[0] == 201
    assert curl.call("POST", f"/{queue}/messages", "x")[0] == 400
    for method in ("POST", "DELETE"):
        status, _, body = curl.call(method, f"/{queue}/messages/head?timeout=0")
        assert status == 400 and b"requires sessions" in body
