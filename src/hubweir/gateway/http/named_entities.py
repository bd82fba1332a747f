"""Requests on `/{entity}`: an event hub, a queue or a topic, whichever has the name, or is described in the body."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hubweir.gateway.http import entities
from hubweir.gateway.http.entity_requests import is_change, read_body
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.messaging_entities import entity_response, put_queue, put_topic
from hubweir.gateway.http.route import Match
from hubweir.gateway.http.strict_xml import read_xml
from hubweir.namespace.address import not_found
from hubweir.namespace.entity import AnyEntity, of_kind
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


async def delete_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    is_change(request)
    entity = _named(gateway, match)
    await answer_of(partial(gateway.keeper.delete, entity.name, type(entity.description)))
    return Response(200)


def _named(gateway: Gateway, match: Match) -> AnyEntity:
    entity = gateway.namespace.find_any(match.entity)
    if entity is None:
        raise not_found(match.entity, host=gateway.settings.host_name)
    return entity
