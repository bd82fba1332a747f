"""A received message as the answer of a request: its body, BrokerProperties, and a header for each user property.

The body is the bytes of its data sections, or the text or bytes of its value; any other body, a list or a number, is
empty. What inside a message is no legal AMQP is left out; what the broker knows of it is there all the same.
"""

from __future__ import annotations

import json
from array import array
from uuid import UUID

from hubweir.amqp.messaging.annotations import (
    DEADLETTER_SOURCE,
    PARTITION_KEY,
    SCHEDULED_ENQUEUE_TIME,
    VIA_PARTITION_KEY,
)
from hubweir.amqp.messaging.message import DataBody, Message, Properties, ValueBody, decode_message
from hubweir.amqp.messaging.sections import walk_sections
from hubweir.amqp.types.values import Timestamp
from hubweir.broker.commands.fragment import MessagesReceived
from hubweir.errors import DecodeError
from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.head_receive import token_of
from hubweir.gateway.http.property_headers import date_text, property_headers
from hubweir.kernels import encode_message
from hubweir.kernels.contract import (
    Q_DELIVERY_COUNT,
    Q_ENQUEUE_NUMBER,
    Q_ENQUEUED_MS,
    Q_LOCK,
    Q_LOCKED_UNTIL_MS,
    Q_SEQUENCE_NUMBER,
    Q_TTL_MS,
)

BROKER_PROPERTIES = "BrokerProperties"
_OF_ITS_OWN = ("brokerproperties", "content-type", "content-length", "location")


def message_response(received: MessagesReceived, id_prefix: bytes, status: int, source_uri: str) -> Response:
    """The answer that brings the one message. source_uri: of what it was received from; a lock's address lies below.

    id_prefix: see FragmentPlace.
    """
    row = array("q", received.rows)
    message = _opened(encode_message(received.run, row, 0, id_prefix))
    headers = {BROKER_PROPERTIES: json.dumps(_broker_properties(row, message))}
    if row[Q_LOCK]:
        headers["Location"] = f"{source_uri}/messages/{row[Q_SEQUENCE_NUMBER]}/{UUID(bytes=token_of(row))}"
    headers |= property_headers(message.application_properties or {}, _OF_ITS_OWN)
    media = None if message.properties is None else message.properties.content_type
    known = media if media is not None and media.isascii() and media.isprintable() else None
    return Response(status, _body_of(message), content_type=known, headers=headers)


def _opened(data: bytes) -> Message:
    """The message, without those of its sections that are no legal AMQP, or have more in them than is read here."""
    try:
        return decode_message(data)
    except DecodeError:
        try:
            sections = [data[each.start : each.end] for each in walk_sections(data)]
            return decode_message(b"".join([each for each in sections if _is_legal(each)]))
        except DecodeError:
            return Message()


def _is_legal(section: bytes) -> bool:
    try:
        decode_message(section)
    except DecodeError:
        return False
    return True


def _broker_properties(row: array[int], message: Message) -> dict[str, object]:
    """What the broker and the sender say of the message; what is not there has no member."""
    annotations, properties = message.message_annotations or {}, message.properties or Properties()
    is_locked = row[Q_LOCK] != 0
    said: dict[str, object] = {
        "MessageId": _id_text(properties.message_id),
        "CorrelationId": _id_text(properties.correlation_id),
        "SessionId": properties.group_id,
        "Label": properties.subject,
        "To": properties.to,
        "ReplyTo": properties.reply_to,
        "ReplyToSessionId": properties.reply_to_group_id,
        "PartitionKey": _text(annotations.get(PARTITION_KEY)),
        "ViaPartitionKey": _text(annotations.get(VIA_PARTITION_KEY)),
        "ScheduledEnqueueTimeUtc": _date(annotations.get(SCHEDULED_ENQUEUE_TIME)),
        "DeadLetterSource": _text(annotations.get(DEADLETTER_SOURCE)),
        "TimeToLive": row[Q_TTL_MS] / 1_000 if row[Q_TTL_MS] >= 0 else None,
        # As the service's own clients count: the delivery that this is, too.
        "DeliveryCount": row[Q_DELIVERY_COUNT] + 1,
        "EnqueuedTimeUtc": date_text(row[Q_ENQUEUED_MS]),
        "EnqueuedSequenceNumber": max(0, row[Q_ENQUEUE_NUMBER]),
        "SequenceNumber": row[Q_SEQUENCE_NUMBER],
        "LockToken": str(UUID(bytes=token_of(row))) if is_locked else None,
        "LockedUntilUtc": date_text(row[Q_LOCKED_UNTIL_MS]) if is_locked else None,
        "State": "Active",
    }
    return {name: value for name, value in said.items() if value is not None}


def _body_of(message: Message) -> bytes:
    match message.body:
        case DataBody(parts):
            return b"".join(parts)
        case ValueBody(str() as text):
            return text.encode()
        case ValueBody(bytes() as data):
            return data
    return b""


def _id_text(value: object) -> str | None:
    """An id of any type as text: bytes in hexadecimal digits."""
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else str(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _date(value: object) -> str | None:
    return date_text(value) if isinstance(value, Timestamp) else None
