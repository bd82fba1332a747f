"""POST …/messages to a queue or a topic: one message, whose properties are headers, or a JSON batch.

The request becomes the bytes of one AMQP transfer and goes the way of all others: into the open run of its fragment of
the queue, after the same kernel has looked whether the queue takes it. A batch is stored whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.amqp.messaging.batch import BATCH_FORMAT, MESSAGE_FORMAT, pack_batch
from hubweir.errors import INTERNAL_ERROR, ServiceError
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.open_run import AddStatus
from hubweir.gateway.http.batch_json import JSON_BYTES, batch_items, is_batch
from hubweir.gateway.http.broker_properties import broker_properties, header_properties
from hubweir.gateway.http.custom_properties import BROKER_PROPERTIES, check_properties, custom_properties
from hubweir.gateway.http.event_message import Publication
from hubweir.gateway.http.exchange import Request, Response, Room, too_large
from hubweir.gateway.http.message_source import gone_where_absent
from hubweir.gateway.http.pending_send import PendingSend
from hubweir.gateway.http.property_headers import property_of
from hubweir.gateway.queue_admission import ID_LIMIT_CHARACTERS, check_takes, refusal_of
from hubweir.kernels import check_messages
from hubweir.namespace.entity import Entity
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

# Over HTTP the service takes no larger ones, whatever the queue's own limit is. (Service Bus quotas, message size)
MESSAGE_BYTES = 1024 * 1024
# What the service says of a message that is too large.
FORBIDDEN = 403


async def send_to_queue(gateway: Gateway, request: Request, entity: Entity[MessagingDescription]) -> Response:
    """201: stored."""
    description = entity.description
    check_takes(description)
    content_type = request.header(b"content-type")
    batched = is_batch(content_type)
    most = _message_limit(gateway, description)
    limit, what = (JSON_BYTES, "The batch") if batched else (most, "The message")
    room = Room(gateway.process.budget)
    await room.take(request.body_size(limit, what, status=FORBIDDEN))
    try:
        body = await request.body(limit, what, status=FORBIDDEN)
        made = _batch(body) if batched else _single(request, body, content_type)
    except BaseException:
        room.give_back()
        raise
    return await enqueue_message(gateway, entity, made, room, what=what)


async def enqueue_message(
    gateway: Gateway, entity: Entity[MessagingDescription], made: Publication, room: Room, *, what: str = "The message"
) -> Response:
    """Store a message or a batch, and wait until it is. what: names it in texts.

    room: taken for it; it is given back when its outcome is known. Raises ServiceError, HttpRefusal.
    """
    most = _message_limit(gateway, entity.description)
    try:
        if len(made.data) > most:
            raise too_large(f"{what}, as it is stored,", most, status=FORBIDDEN)
        pending = PendingSend(room)
        _add(gateway, entity, made, pending)
    except BaseException:
        room.give_back()
        raise
    gateway.counters["gateway.http_publications_received"] += 1
    with gone_where_absent():
        return await pending.outcome(entity.name)


def _message_limit(gateway: Gateway, description: MessagingDescription) -> int:
    """The largest message that is taken over HTTP, as it is stored."""
    return min(MESSAGE_BYTES, 1_024 * storage_of(description).message_kilobytes(gateway.settings.profile.messaging))


def _single(request: Request, body: bytes, content_type: str | None) -> Publication:
    """The message of a request whose body is stored as it came."""
    properties = custom_properties(request.fields, property_of)
    check_properties(properties)
    said = header_properties(request.headers.get(BROKER_PROPERTIES))
    return Publication(said.message(body, properties, content_type), MESSAGE_FORMAT)


def _batch(body: bytes) -> Publication:
    messages = [
        broker_properties(item.broker_properties, f"BrokerProperties of {item.what[0].lower()}{item.what[1:]}").message(
            item.body, item.properties
        )
        for item in batch_items(body, "message")
    ]
    return Publication(pack_batch(messages), BATCH_FORMAT)


def _add(gateway: Gateway, entity: Entity[MessagingDescription], made: Publication, pending: PendingSend) -> None:
    """Put the message, or the batch, into its fragment's open run, which is submitted at the end of this turn."""
    description = entity.description
    rows = made.rows()
    row, status = check_messages(made.data, rows, 0, 1, ID_LIMIT_CHARACTERS, delivery_of(description).requires_session)
    if row < 1:
        raise refusal_of(status, description.name)
    choice = gateway.fragment_choice(entity)
    if choice is None:
        open_queue = gateway.enqueue_queue.of(gateway.directory.fragments(entity).only)
    else:
        open_queue = choice.queue_of(made.data, rows)
    added = open_queue.run.add_deliveries(memoryview(made.data), rows, 0, 1)
    if added.status is AddStatus.PROPERTIES:
        raise properties_too_large(description.name)
    if added.status is not AddStatus.DONE:
        raise ServiceError(INTERNAL_ERROR, "The service wrote a message that it does not take itself.")
    open_queue.add_submissions([pending.submission(len(made.data))])
