"""Downloads of what was peeked at: the body of one event or message, byte by byte, or all that a page shows as JSON.

A file is always a download, of a kind that no browser runs: its bytes are strangers'. It holds no more than a peek
reads.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields

from hubweir.amqp.messaging.message import Message, decode_message
from hubweir.errors import ARGUMENT_ERROR, NOT_FOUND, DecodeError, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.error_text import timestamp
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.event_explorer import asked_of, peek_asked
from hubweir.portal.event_peek import PEEK_BYTES, PeekedEvent, peek_events
from hubweir.portal.form_fields import sequence_number
from hubweir.portal.held_room import held_room
from hubweir.portal.message_explorer import PEEK_COUNT, holding_entity, sub_queue_of
from hubweir.portal.message_peek import PeekedMessage, peek_messages
from hubweir.portal.rendering import SECURITY_HEADERS
from hubweir.portal.shown_message import body_of
from hubweir.portal.visit import Visit

BYTES, JSON = "application/octet-stream", "application/json"
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")


async def event_body(visit: Visit) -> Response:
    """The body of the event of one sequence number."""
    hub, partition_id = visit.entity(EventHubDescription).name, visit.query.get("partition", "")
    wanted = sequence_number(visit.query, "at")
    place = visit.gateway.directory.partition(hub, partition_id)
    async with held_room(visit, PEEK_BYTES):
        position = EventPosition(PositionKind.SEQUENCE_NUMBER, wanted, inclusive=True)
        for event in await peek_events(visit, place, position, 1):
            if event.sequence_number == wanted:
                return _file(_body(event.data), BYTES, f"{hub}-{partition_id}-{wanted}.bin")
    raise ServiceError(NOT_FOUND, f"Partition {partition_id} of '{hub}' has no event {wanted} any more.")


async def events_file(visit: Visit) -> Response:
    """The events that the query asks for, as the data explorer shows them."""
    hub, asked = visit.entity(EventHubDescription), asked_of(visit.query)
    async with held_room(visit, PEEK_BYTES):
        found = await peek_asked(visit, hub.name, asked)
        data = _json([_event(event, asked["partition"]) for event in found])
        return _file(data, JSON, f"{hub.name}-{asked['partition']}.json")


async def message_body(visit: Visit) -> Response:
    """The body of the message of one sequence number."""
    wanted, part = sequence_number(visit.query, "at"), visit.query.get("part", "messages")
    name = holding_entity(visit).name
    async with held_room(visit, PEEK_BYTES):
        for message in await _messages(visit, part, wanted, 1):
            if message.sequence_number == wanted:
                return _file(_body(message.data), BYTES, f"{name}-{wanted}.bin")
    raise ServiceError(NOT_FOUND, f"'{name}' has no message {wanted} there any more.")


async def messages_file(visit: Visit) -> Response:
    """The messages that a page shows."""
    part, name = visit.query.get("part", "messages"), holding_entity(visit).name
    first = sequence_number(visit.query, "from") if visit.query.get("from") else 0
    async with held_room(visit, PEEK_BYTES):
        found = await _messages(visit, part, first, PEEK_COUNT)
        return _file(_json([_message(each) for each in found]), JSON, f"{name}-{part}.json")


async def _messages(visit: Visit, part: str, first: int, count: int) -> list[PeekedMessage]:
    fragments = visit.gateway.directory.fragments(holding_entity(visit))
    return await peek_messages(visit, fragments, sub_queue_of(part), first, count)


def _file(data: bytes, media_type: str, name: str) -> Response:
    """A download. name: what browsers call it, without what file names and headers cannot have."""
    safe = _NO_FILE_NAME.sub("-", name).strip("-.")[-120:]
    return Response(
        200, data, media_type, {**SECURITY_HEADERS, "content-disposition": f'attachment; filename="{safe}"'}
    )


def _body(data: bytes) -> bytes:
    """Of an encoded message. ServiceError ARGUMENT_ERROR: it is none that can be read."""
    try:
        return body_of(decode_message(data))
    except DecodeError as error:
        raise ServiceError(ARGUMENT_ERROR, f"It is no legal AMQP message: {error}.") from None


def _event(event: PeekedEvent, partition_id: str) -> dict[str, object]:
    return {
        "partition": partition_id,
        "sequence_number": event.sequence_number,
        "offset": str(event.offset),
        "enqueued_time": timestamp(event.enqueued_time_ms),
        "partition_key": event.key or None,
        **_content(event.data),
    }


def _message(message: PeekedMessage) -> dict[str, object]:
    return {
        "sequence_number": message.sequence_number,
        "enqueued_time": timestamp(message.enqueued_ms),
        "delivery_count": message.delivery_count,
        "state": message.state.lower(),
        **_content(message.data),
    }


def _content(data: bytes) -> dict[str, object]:
    """What an encoded message holds; of one that cannot be read, its bytes."""
    try:
        message = decode_message(data)
    except DecodeError:
        return {"message": _plain(data)}
    return {
        "properties": _plain(message.application_properties or {}),
        "system_properties": _system(message),
        "annotations": _plain(message.message_annotations or {}),
        "body": _plain(body_of(message)),
    }


def _system(message: Message) -> dict[str, object]:
    if message.properties is None:
        return {}
    values = {each.name: getattr(message.properties, each.name) for each in fields(message.properties)}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: object) -> object:
    """A value as JSON has it. Bytes that are UTF-8 are text; others stand in an object as base64."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case bool() | int() | float() | None:
            return value
        case str():
            return value.encode(errors="replace").decode()
        case bytes() | bytearray() | memoryview():
            try:
                return bytes(value).decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(value).decode()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
    return str(value)


def _json(rows: list[dict[str, object]]) -> bytes:
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
