"""The page that asks whether an entity is really to go: its name has to be typed."""

from __future__ import annotations

from functools import partial

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.entity import EntityKind
from hubweir.namespace.resource_path import fold
from hubweir.portal.visit import Visit

LISTS = {EntityKind.EVENT_HUB: "event-hubs", EntityKind.QUEUE: "queues", EntityKind.TOPIC: "topics"}


async def ask_delete(visit: Visit) -> Response:
    return visit.show("delete.html", entity=visit.any_entity())


async def delete(visit: Visit) -> Response:
    """Remove it and what it holds, when its name was typed."""
    entity = visit.any_entity()
    own_name = entity.name.rsplit("/", 1)[-1] if entity.kind is EntityKind.SUBSCRIPTION else entity.name
    if fold(visit.form.get("confirmed", "").strip()) != fold(own_name):
        problem = ServiceError(ARGUMENT_ERROR, f"Type the name '{own_name}' to delete it.")
        return visit.show_form("delete.html", problem, entity=entity)
    parent = entity.description.parent
    await visit.ask(partial(visit.gateway.keeper.delete, entity.name, type(entity.description)))
    if parent is not None:
        return visit.go("entity", parent, notice="deleted")
    return visit.go(LISTS[entity.kind], notice="deleted")
