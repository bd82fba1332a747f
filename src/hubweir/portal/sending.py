"""The page that sends one event or message, with its properties; the same way in as over HTTP."""

from __future__ import annotations

from hubweir.amqp.messaging.batch import MESSAGE_FORMAT
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, ServiceError
from hubweir.gateway.http.broker_properties import broker_properties
from hubweir.gateway.http.custom_properties import check_properties
from hubweir.gateway.http.event_json import PostedBatch
from hubweir.gateway.http.event_message import PostedEvent, Publication
from hubweir.gateway.http.exchange import Response, Room
from hubweir.gateway.http.property_headers import date_text
from hubweir.gateway.http.send_events import append_events
from hubweir.gateway.http.send_messages import enqueue_message
from hubweir.gateway.queue_admission import check_takes
from hubweir.namespace.availability import check_may_send
from hubweir.namespace.entity import AnyEntity, Entity, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.portal.quantities import read_span, read_time_ms
from hubweir.portal.visit import Visit

PROPERTIES_LIMIT = 100
# Of a message in the service's own names: field of the form, member of BrokerProperties.
_MEMBERS = (
    ("message_id", "MessageId"), ("session_id", "SessionId"), ("subject", "Label"), ("to", "To"),
    ("correlation_id", "CorrelationId"), ("reply_to", "ReplyTo"), ("partition_key", "PartitionKey"),
)  # fmt: skip


async def new_message(visit: Visit) -> Response:
    return _show(visit, _entity(visit), None)


async def send(visit: Visit) -> Response:
    """Store it; the page comes back for the next one, with what was entered."""
    entity = _entity(visit)
    hub, messaging = of_kind(entity, EventHubDescription), of_kind(entity, MessagingDescription)
    try:
        if hub is not None:
            await _send_event(visit, hub)
        elif messaging is not None:
            await _send_message(visit, messaging)
    except ServiceError as refusal:
        return _show(visit, entity, refusal)
    return _show(visit, entity, None, is_sent=True)


async def enqueue_again(visit: Visit, goal: Entity[MessagingDescription], data: bytes) -> None:
    """Store a message that was received; ServiceError when it is not, or that is not known."""
    check_takes(goal.description)
    room = await _room(visit, len(data))
    await enqueue_message(visit.gateway, goal, Publication(data, MESSAGE_FORMAT), room)


async def _send_event(visit: Visit, hub: Entity[EventHubDescription]) -> None:
    check_may_send(hub.description)
    gateway, partition = visit.gateway, visit.form.get("partition", "")
    key = visit.form.get("partition_key", "") or None
    if partition and key:
        raise ServiceError(NOT_ALLOWED, "An event goes to a partition or by a key: leave one of them out.")
    event = PostedEvent(_body(visit), _properties(visit), visit.form.get("content_type", "").strip() or None)
    place = gateway.directory.partition(hub.name, partition) if partition else None
    room = await _room(visit, len(event.body))
    await append_events(gateway, hub.name, PostedBatch((event,), key), room, place=place)


async def _send_message(visit: Visit, entity: Entity[MessagingDescription]) -> None:
    check_takes(entity.description)
    said: dict[str, object] = {member: visit.form[name] for name, member in _MEMBERS if visit.form.get(name)}
    if visit.form.get("scheduled", "").strip():
        said["ScheduledEnqueueTimeUtc"] = date_text(read_time_ms(visit.form["scheduled"]))
    if visit.form.get("time_to_live", "").strip():
        said["TimeToLive"] = read_span(visit.form["time_to_live"], "The time to live").ms / 1_000
    content_type = visit.form.get("content_type", "").strip() or None
    data = broker_properties(said, "The message").message(_body(visit), _properties(visit), content_type)
    room = await _room(visit, len(data))
    await enqueue_message(visit.gateway, entity, Publication(data, MESSAGE_FORMAT), room)


async def _room(visit: Visit, size: int) -> Room:
    """A place for so many bytes; ServiceError SERVER_BUSY when there is none in time."""
    room = Room(visit.gateway.process.budget)
    await room.take(size)
    return room


def _body(visit: Visit) -> bytes:
    """Browsers end lines of a form as mail does; a body has the lines that were typed."""
    return visit.form.get("body", "").replace("\r\n", "\n").encode()


def _properties(visit: Visit) -> dict[str, object]:
    """One a line, `name: value`. Raises ServiceError ARGUMENT_ERROR."""
    found: dict[str, object] = {}
    for line in filter(str.strip, visit.form.get("properties", "").splitlines()):
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or name.strip() in found:
            raise ServiceError(ARGUMENT_ERROR, "Properties are lines such as 'colour: red', each name once.")
        found[name.strip()] = value.strip()
    if len(found) > PROPERTIES_LIMIT:
        raise ServiceError(ARGUMENT_ERROR, f"{len(found)} properties; at most {PROPERTIES_LIMIT} are sent from here.")
    check_properties(found)
    return found


def _entity(visit: Visit) -> AnyEntity:
    entity = visit.any_entity()
    if isinstance(entity.description, SubscriptionDescription):
        raise ServiceError(NOT_ALLOWED, f"Nothing is sent to a subscription: send to '{entity.description.parent}'.")
    return entity


def _show(visit: Visit, entity: AnyEntity, problem: ServiceError | None, *, is_sent: bool = False) -> Response:
    hub = of_kind(entity, EventHubDescription)
    partitions = () if hub is None else hub.description.partition_ids
    return visit.show_form(
        "send.html", problem, entity=entity, partitions=partitions, values=visit.form, is_hub=hub is not None,
        is_sent=is_sent,
    )  # fmt: skip
