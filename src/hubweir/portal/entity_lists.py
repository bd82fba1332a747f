"""The lists of event hubs, queues and topics, by name, in pages, searched as a person types."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from hubweir.gateway.entity_counts import EntityCounts, ask_counts
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.entity import Entity, EntityDescription
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.paging import ListPage, matches, page_of, search_of
from hubweir.portal.visit import Visit

K = TypeVar("K", bound=EntityDescription)
M = TypeVar("M", bound=MessagingDescription)


async def event_hubs(visit: Visit) -> Response:
    page = _found(visit, visit.gateway.namespace.entities(EventHubDescription))
    return _show(visit, "event_hubs", page, rows=page.items)


async def queues(visit: Visit) -> Response:
    page = _found(visit, visit.gateway.namespace.entities(QueueDescription))
    return _show(visit, "queues", page, rows=await with_counts(visit, page.items))


async def topics(visit: Visit) -> Response:
    namespace = visit.gateway.namespace
    page = _found(visit, namespace.entities(TopicDescription))
    rows = [
        (topic, counts, len(namespace.subscriptions(topic.name)))
        for topic, counts in await with_counts(visit, page.items)
    ]
    return _show(visit, "topics", page, rows=rows)


async def with_counts(visit: Visit, entities: Sequence[Entity[M]]) -> list[tuple[Entity[M], EntityCounts]]:
    """Each entity with what it holds now."""
    env, directory = visit.gateway.env, visit.gateway.directory
    counts = await asyncio.gather(
        *(visit.ask(partial(ask_counts, env, directory.fragments(entity))) for entity in entities)
    )
    return list(zip(entities, counts, strict=True))


def _found(visit: Visit, entities: Sequence[Entity[K]]) -> ListPage[Entity[K]]:
    search = search_of(visit.query)
    found = [entity for entity in entities if matches(entity.name, search)]
    return page_of(visit.query, sorted(found, key=lambda entity: fold(entity.name)))


def _show(visit: Visit, template: str, page: ListPage[Entity[K]], *, rows: object) -> Response:
    """The whole page; of a search the list alone."""
    name = f"_{template}_rows.html" if visit.is_fragment else f"{template}.html"
    return visit.show(name, page=page, rows=rows)
