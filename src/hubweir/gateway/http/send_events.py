"""POST …/messages: events over HTTPS, one or a JSON batch, to a hub, to one partition, or as a publisher.

The request becomes the bytes of one AMQP transfer and goes the way of all others: into the open run of its partition,
to the broker at the end of the loop turn with whatever links brought meanwhile, and it is answered when that run is as
durable as the hub's mode says (pending_send.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.errors import ARGUMENT_ERROR, INTERNAL_ERROR, NOT_ALLOWED, ServiceError
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.open_run import AddStatus
from hubweir.event_hub.partition_key import is_legal_key, key_too_long
from hubweir.event_hub.publisher_policy import check_publisher
from hubweir.gateway.directory import PartitionPlace, partitions_away
from hubweir.gateway.http.batch_json import JSON_BYTES, is_batch
from hubweir.gateway.http.custom_properties import BROKER_PROPERTIES, check_properties, custom_properties, partition_key
from hubweir.gateway.http.event_json import PostedBatch, read_batch
from hubweir.gateway.http.event_message import PostedEvent, Publication, publication
from hubweir.gateway.http.exchange import Request, Response, Room, too_large
from hubweir.gateway.http.pending_send import PendingSend
from hubweir.gateway.http.route import Match
from hubweir.namespace.availability import check_may_send

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway


async def send_to_hub(gateway: Gateway, request: Request, match: Match) -> Response:
    """To the partition of the key, else to the next in turn."""
    hub = gateway.management.hub(match.entity).name
    return await _send(gateway, request, hub, None, None)


async def send_to_partition(gateway: Gateway, request: Request, match: Match) -> Response:
    """To this partition, whatever the key."""
    place = gateway.directory.partition(match.entity, match.names["partition"])
    return await _send(gateway, request, place.hub, place, None)


async def send_as_publisher(gateway: Gateway, request: Request, match: Match) -> Response:
    """In the name of a publisher, which is the partition key of all it sends."""
    publisher = match.names["publisher"]
    description = gateway.management.hub(match.entity)
    check_publisher(description, publisher)
    hub = description.name
    partition = gateway.router(hub).partition_of_key(publisher.encode())
    return await _send(gateway, request, hub, gateway.directory.partition(hub, str(partition)), publisher)


async def _send(
    gateway: Gateway, request: Request, hub: str, place: PartitionPlace | None, publisher: str | None
) -> Response:
    check_may_send(gateway.management.hub(hub))
    content_type = request.header(b"content-type")
    batched = is_batch(content_type)
    limit = JSON_BYTES if batched else gateway.max_message_size_bytes
    what = "The batch" if batched else "The event"
    room = Room(gateway.process.budget)
    await room.take(request.body_size(limit, what))
    try:
        body = await request.body(limit, what)
        batch = read_batch(body) if batched else _single(request, body, content_type)
    except BaseException:
        room.give_back()
        raise
    return await append_events(gateway, hub, batch, room, place=place, publisher=publisher, is_batch=batched)


async def append_events(
    gateway: Gateway,
    hub: str,
    batch: PostedBatch,
    room: Room,
    *,
    place: PartitionPlace | None = None,
    publisher: str | None = None,
    is_batch: bool = False,
) -> Response:
    """Store events, and wait until they are. place: None, that of their key or the next in turn.

    room: taken for them; it is given back when their outcome is known. Raises ServiceError, HttpRefusal.
    """
    try:
        _check_key(batch.key, publisher)
        made = publication(batch.events, key=batch.key if publisher is None else None, is_batch=is_batch)
        if len(made.data) > gateway.max_message_size_bytes:
            raise too_large("The publication, as it is stored,", gateway.max_message_size_bytes)
        if place is None:
            place = _place_of(gateway, hub, batch.key)
        # Capacity belongs here, before anything is added: who refuses a publication now (len(made.data) bytes,
        # len(batch.events) events, to this place) leaves no trace of it.
        pending = PendingSend(room)
        _add(gateway, place, made, publisher, pending)
    except BaseException:
        room.give_back()
        raise
    gateway.counters["gateway.http_publications_received"] += 1
    return await pending.outcome(hub)


def _single(request: Request, body: bytes, content_type: str | None) -> PostedBatch:
    """The event of a request whose body is stored as it came."""
    properties = custom_properties(request.fields)
    check_properties(properties)
    key = partition_key(request.headers.get(BROKER_PROPERTIES))
    return PostedBatch((PostedEvent(body, properties, content_type),), key)


def _check_key(key: str | None, publisher: str | None) -> None:
    if publisher is not None and key is not None and key != publisher:
        text = f"A publisher's partition key is its own name, '{publisher}'; leave the key out."
        raise ServiceError(NOT_ALLOWED, text)
    if key is not None and not is_legal_key(key.encode()):
        raise key_too_long()


def _place_of(gateway: Gateway, hub: str, key: str | None) -> PartitionPlace:
    router = gateway.router(hub)
    if key is not None:
        partition = router.partition_of_key(key.encode())
    elif gateway.brokers.all_up:
        partition = router.next_partition()
    else:
        partition = router.next_partition(partitions_away(gateway.directory.partitions(hub)))
    return gateway.directory.partition(hub, str(partition))


def _add(
    gateway: Gateway, place: PartitionPlace, made: Publication, publisher: str | None, pending: PendingSend
) -> None:
    """Put the publication into its partition's open run, which is submitted at the end of this turn."""
    queue = gateway.append_queue.of(place)
    name = None if publisher is None else publisher.encode()
    added = queue.run.add_deliveries(memoryview(made.data), made.rows(), 0, 1, publisher=name)
    if added.status is AddStatus.KEY_TOO_LONG:
        raise key_too_long()
    if added.status is AddStatus.PROPERTIES:
        raise properties_too_large(place.hub)
    if added.status is not AddStatus.DONE:
        raise ServiceError(INTERNAL_ERROR, "The service wrote a message that it does not take itself.")
    if not added.events:
        raise ServiceError(ARGUMENT_ERROR, "There is no event in the publication.")
    queue.add_submissions([pending.submission(len(made.data))])
