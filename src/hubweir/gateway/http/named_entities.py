"""Requests on `/{entity}` and its messages: an event hub, a queue or a topic, whichever has the name.

Or, of one that is to be made, is described in the body.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http import entities, send_events, send_messages
from hubweir.gateway.http.entity_requests import is_change, read_body
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.message_source import gone_where_absent
from hubweir.gateway.http.messaging_entities import entity_response, patch, put_queue, put_topic
from hubweir.gateway.http.route import Match
from hubweir.gateway.http.strict_xml import read_xml
from hubweir.namespace.address import not_found
from hubweir.namespace.entity import AnyEntity, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_description import MessagingDescription

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway


async def get_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    entity = _named(gateway, match)
    messaging = of_kind(entity, MessagingDescription)
    if messaging is None:
        return await entities.get_hub(gateway, request, match)
    return await entity_response(gateway, request, messaging)


async def put_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    """What the body describes; without a body an event hub."""
    is_change(request)
    data = await read_body(gateway, request)
    root = read_xml(data) if data.strip() else None
    for name, put in (("QueueDescription", put_queue), ("TopicDescription", put_topic)):
        element = None if root is None else root.find(name)
        if element is not None:
            return await put(gateway, request, match.entity, element)
    return await entities.put_hub(gateway, request, match.entity, data)


async def patch_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    """Of a queue or a topic; the PUT of an event hub changes what it names already."""
    is_change(request)
    messaging = of_kind(_named(gateway, match), MessagingDescription)
    if messaging is None:
        raise ServiceError(ARGUMENT_ERROR, "A PUT with 'If-Match: *' changes what it names of an event hub: send that.")
    return await patch(gateway, request, messaging)


async def delete_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    is_change(request)
    entity = _named(gateway, match)
    await answer_of(partial(gateway.keeper.delete, entity.name, type(entity.description)))
    return Response(200)


async def send_to_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    """Events to a hub, messages to a queue or a topic. What does not exist is 404, as of hubs, or 410, as of queues."""
    entity = gateway.namespace.find_any(match.entity)
    if entity is None and _has_queues_alone(gateway):
        with gone_where_absent():
            raise not_found(match.entity, host=gateway.settings.host_name)
    messaging = of_kind(entity, MessagingDescription)
    if messaging is None:
        return await send_events.send_to_hub(gateway, request, match)
    return await send_messages.send_to_queue(gateway, request, messaging)


def _has_queues_alone(gateway: Gateway) -> bool:
    """Whether the namespace is one of messages: each service has an answer of its own for an absent name."""
    namespace = gateway.namespace
    return not namespace.entities(EventHubDescription) and bool(namespace.entities(MessagingDescription))


def _named(gateway: Gateway, match: Match) -> AnyEntity:
    entity = gateway.namespace.find_any(match.entity)
    if entity is None:
        raise not_found(match.entity, host=gateway.settings.host_name)
    return entity
