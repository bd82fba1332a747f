"""Messages as AMQP senders write them, as answers of requests: bodies, ids of every type, and what is no legal AMQP."""

from __future__ import annotations

import json
from array import array
from typing import Any
from uuid import UUID

import pytest

from hubweir.amqp.messaging.message import (
    DataBody,
    Header,
    Message,
    Properties,
    SequenceBody,
    ValueBody,
    encode_message,
)
from hubweir.amqp.types.values import Symbol, Timestamp, ULong
from hubweir.broker.commands.fragment import MessagesReceived
from hubweir.event_hub.open_run import OpenRun
from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.received_message import message_response
from hubweir.gateway.http.send_messages import Publication
from hubweir.kernels import find_record
from hubweir.kernels.contract import (
    FORWARDED_BIT,
    MESSAGE_WIDTH,
    Q_DELIVERY_COUNT,
    Q_ENQUEUE_NUMBER,
    Q_ENQUEUED_MS,
    Q_EXPIRES_MS,
    Q_ID_NUMBER,
    Q_LOCK,
    Q_LOCK_CHECK,
    Q_LOCKED_UNTIL_MS,
    Q_PARTITION,
    Q_RECORD,
    Q_SEQUENCE_NUMBER,
    Q_TTL_MS,
)

PREFIX = b"0123456789abcdef"
TOKEN = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
NOON_MS = 1_795_435_200_000


def response(message: Message | bytes, columns: dict[int, int] | None = None) -> Response:
    """The answer that brings the message, stored as it came and locked. columns: of its row, where they are others."""
    data = message if isinstance(message, bytes) else encode_message(message)
    run, made = OpenRun(names_keys=False), Publication(data, 0)
    assert run.add_deliveries(made.data, made.rows(), 0, 1).events == 1
    stored = bytes(run.take_run())
    row = array("q", bytes(8 * MESSAGE_WIDTH))
    for place in (Q_TTL_MS, Q_EXPIRES_MS, Q_ENQUEUE_NUMBER, Q_PARTITION):
        row[place] = -1
    row[Q_RECORD], row[Q_SEQUENCE_NUMBER], row[Q_ENQUEUED_MS] = find_record(stored, 0, 0), 42, NOON_MS
    row[Q_LOCK], row[Q_LOCK_CHECK] = int.from_bytes(TOKEN.bytes[:8], "big"), int.from_bytes(TOKEN.bytes[8:], "big")
    row[Q_LOCKED_UNTIL_MS] = NOON_MS + 60_000
    for column, value in (columns or {}).items():
        row[column] = value
    return message_response(MessagesReceived(stored, row.tobytes()), PREFIX, 201, "http://h/orders")


def said(answer: Response) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.headers["BrokerProperties"])
    return found


def test_what_broker_and_sender_say_stands_in_broker_properties() -> None:
    message = Message(
        header=Header(ttl=90_500),
        message_annotations={
            Symbol("x-opt-partition-key"): "k",
            Symbol("x-opt-via-partition-key"): "v",
            Symbol("x-opt-scheduled-enqueue-time"): Timestamp(NOON_MS),
            Symbol("x-opt-deadletter-source"): "other",
        },
        properties=Properties(
            message_id="m", correlation_id="c", subject="l", to="t", reply_to="r", reply_to_group_id="rs", group_id="k",
            content_type=Symbol("text/plain"),
        ),
        application_properties={"Carrier": "UA", "n": 7},
        body=DataBody((b"a", b"b")),
    )  # fmt: skip
    was_forwarded = {Q_ENQUEUE_NUMBER: 5, Q_ID_NUMBER: 1 << FORWARDED_BIT}
    answer = response(message, {Q_DELIVERY_COUNT: 2, Q_TTL_MS: 90_500, **was_forwarded})
    assert (answer.status, answer.body, answer.content_type) == (201, b"ab", "text/plain")
    assert answer.headers["Location"] == f"http://h/orders/messages/42/{TOKEN}"
    assert (answer.headers["Carrier"], answer.headers["n"]) == ('"UA"', "7")
    assert said(answer) == {
        "MessageId": "m", "CorrelationId": "c", "SessionId": "k", "Label": "l", "To": "t", "ReplyTo": "r",
        "ReplyToSessionId": "rs", "PartitionKey": "k", "ViaPartitionKey": "v", "DeadLetterSource": "other",
        "ScheduledEnqueueTimeUtc": "Mon, 23 Nov 2026 12:00:00 GMT", "TimeToLive": 90.5, "DeliveryCount": 3,
        "EnqueuedTimeUtc": "Mon, 23 Nov 2026 12:00:00 GMT", "EnqueuedSequenceNumber": 5, "SequenceNumber": 42,
        "LockToken": str(TOKEN), "LockedUntilUtc": "Mon, 23 Nov 2026 12:01:00 GMT", "State": "Active",
    }  # fmt: skip


def test_without_a_lock_there_is_no_address_of_one() -> None:
    answer = response(Message(body=DataBody((b"x",))), {Q_LOCK: 0, Q_LOCK_CHECK: 0, Q_LOCKED_UNTIL_MS: -1})
    assert "Location" not in answer.headers
    assert not {"LockToken", "LockedUntilUtc"} & said(answer).keys()
    assert answer.content_type is None


@pytest.mark.parametrize(
    ("body", "payload"),
    [
        (DataBody((b"\x00\xff",)), b"\x00\xff"),
        (ValueBody("t\u00fc"), "t\u00fc".encode()),
        (ValueBody(b"\x01"), b"\x01"),
        (ValueBody(None), b""),
        (ValueBody(5), b""),
        (SequenceBody(([1, 2],)), b""),
        (None, b""),
    ],
)
def test_a_body_is_its_bytes_or_its_text(body: Any, payload: bytes) -> None:
    assert response(Message(body=body)).body == payload


@pytest.mark.parametrize(
    ("message_id", "text"),
    [("m", "m"), (TOKEN, str(TOKEN)), (ULong(7), "7"), (b"\x00\xff", "00ff"), (None, "0123456789abcdef" + "0" * 16)],
)
def test_ids_of_every_type_are_text(message_id: Any, text: str) -> None:
    answer = response(Message(properties=Properties(message_id=message_id), body=DataBody((b"",))))
    assert said(answer)["MessageId"] == text


def test_nothing_that_a_sender_wrote_breaks_out_of_a_header() -> None:
    wicked = "a\r\nset-cookie: b=c\x7f\u2028"
    message = Message(
        properties=Properties(message_id=wicked, subject=wicked, content_type=Symbol("text/plain\r\nset-cookie: b=c")),
        application_properties={wicked: 1, "value": wicked, "BrokerProperties": "{}", "Location": "elsewhere"},
        body=DataBody((b"x",)),
    )
    answer = response(message)
    assert answer.content_type is None
    assert answer.headers.keys() == {"BrokerProperties", "Location", "value"}
    assert all(text.isascii() and text.isprintable() for text in answer.headers.values())
    assert (said(answer)["Label"], json.loads(answer.headers["value"])) == (wicked, wicked)


def test_what_inside_a_message_is_no_legal_amqp_is_left_out() -> None:
    """Kernels do not read inside a value, so a text that is no UTF-8 can be stored."""
    answer = response(bytes.fromhex("005377a101ff"))
    assert (answer.status, answer.body) == (201, b"")
    assert said(answer).items() >= {"SequenceNumber": 42, "LockToken": str(TOKEN), "DeliveryCount": 1}.items()


def test_of_a_message_with_more_properties_than_are_read_the_rest_is_told() -> None:
    many = Message(
        properties=Properties(subject="s"),
        application_properties={f"k{number}": None for number in range(5_000)},
        body=DataBody((b"a", b"b")),
    )
    answer = response(encode_message(many))
    assert (answer.body, said(answer)["Label"]) == (b"ab", "s")
