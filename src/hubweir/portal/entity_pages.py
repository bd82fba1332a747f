"""The page of one entity: what it is set to, what it holds now, where it lies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hubweir.broker.commands.fragment import FragmentInfo
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.gateway.entity_counts import EntityCounts, FragmentAnswer, ask_fragments
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.entity import Entity, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.entity_lists import with_counts
from hubweir.portal.event_hub_settings import event_hub_fields, event_hub_values
from hubweir.portal.messaging_settings import messaging_fields, messaging_values
from hubweir.portal.paging import page_of
from hubweir.portal.visit import Visit

PARTITION_ROWS = 32


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """One partition: where it is, and its bounds, or why they are not known."""

    partition_id: str
    store_index: int
    is_up: bool
    info: PartitionInfo | None
    problem: str = ""

    @property
    def events(self) -> int:
        """How many it holds."""
        if self.info is None or self.info.is_empty:
            return 0
        return self.info.last_sequence_number - self.info.begin_sequence_number + 1


@dataclass(frozen=True, slots=True)
class FragmentRow:
    """One fragment: where it is, and what it holds, or why that is not known."""

    place: FragmentPlace
    counts: EntityCounts | None
    problem: str = ""


async def entity(visit: Visit) -> Response:
    """Of any kind. Who may not manage it sees what their rights are good for."""
    found = visit.any_entity()
    if not visit.may(Rights.MANAGE, found.name):
        return visit.show("entity_without_manage.html", entity=found)
    hub = of_kind(found, EventHubDescription)
    if hub is not None:
        return await _event_hub(visit, hub)
    messaging = of_kind(found, MessagingDescription)
    if messaging is None:
        raise ServiceError(NOT_FOUND, "There is no such page.")
    return await _messaging(visit, messaging)


async def fragments(visit: Visit) -> Response:
    """The figures of a queue, a topic or a subscription alone: a page asks for them again and again."""
    found = visit.entity(MessagingDescription)
    rows = await fragment_rows(visit, found)
    return visit.show("_figures.html", entity=found, fragments=rows, counts=_sum(rows))


async def fragment_rows(visit: Visit, of: Entity[MessagingDescription]) -> list[FragmentRow]:
    """All fragments of an entity, by number."""
    places = visit.gateway.directory.fragments(of)
    answers: list[FragmentAnswer] = await visit.ask(partial(ask_fragments, visit.gateway.env, places))
    return [_fragment_row(place, answer) for place, answer in zip(places.places, answers, strict=True)]


def _fragment_row(place: FragmentPlace, answer: FragmentAnswer) -> FragmentRow:
    if isinstance(answer, FragmentInfo):
        return FragmentRow(place, EntityCounts().plus(answer))
    return FragmentRow(place, None, answer.text)


def _sum(rows: Sequence[FragmentRow]) -> EntityCounts:
    known = [row.counts for row in rows if row.counts is not None]
    return EntityCounts(
        active=sum(each.active for each in known),
        dead_lettered=sum(each.dead_lettered for each in known),
        scheduled=sum(each.scheduled for each in known),
        transfer_dead_lettered=sum(each.transfer_dead_lettered for each in known),
        size_bytes=sum(each.size_bytes for each in known),
        is_limited=len(known) < len(rows),
    )


async def _event_hub(visit: Visit, hub: EventHubEntity) -> Response:
    page = page_of(visit.query, hub.description.partition_ids, PARTITION_ROWS)
    rows = await asyncio.gather(*(_partition_row(visit, hub, partition_id) for partition_id in page.items))
    values = event_hub_values(hub.description)
    return visit.show(
        "event_hub.html",
        entity=hub,
        hub=hub.description,
        page=page,
        rows=rows,
        settings=[(field, field.text(values)) for field in event_hub_fields()],
    )


async def _partition_row(visit: Visit, hub: EventHubEntity, partition_id: str) -> PartitionRow:
    place = visit.gateway.directory.partition(hub.name, partition_id)
    store_index, is_up = hub.placements[int(partition_id)].store_index, place.broker.is_up
    try:
        info = await visit.ask(partial(visit.gateway.management.partition_info, hub.name, partition_id))
    except ServiceError as refusal:
        return PartitionRow(partition_id, store_index, is_up, None, refusal.text)
    return PartitionRow(partition_id, store_index, is_up, info)


async def _messaging(visit: Visit, found: Entity[MessagingDescription]) -> Response:
    namespace, description = visit.gateway.namespace, found.description
    rows = await fragment_rows(visit, found)
    values, fields = messaging_values(description), messaging_fields(description, namespace.profile.messaging)
    shown: dict[str, Any] = {
        "entity": found,
        "counts": _sum(rows),
        "fragments": rows,
        "settings": [(field, field.text(values)) for field in fields],
    }
    if isinstance(description, TopicDescription):
        page = page_of(visit.query, namespace.subscriptions(found.name))
        return visit.show("topic.html", **shown, page=page, subscriptions=await with_counts(visit, page.items))
    if isinstance(description, SubscriptionDescription):
        rules = page_of(visit.query, list(namespace.subscription_rules(found.name).listed()))
        return visit.show("subscription.html", **shown, page=rules)
    return visit.show("queue.html", **shown)
