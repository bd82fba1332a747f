"""The consumer groups of an event hub: listed, added, deleted."""

from __future__ import annotations

from functools import partial

from hubweir.errors import ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.event_hub_changes import add_group as adding
from hubweir.namespace.event_hub_changes import remove_group
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.paging import page_of
from hubweir.portal.visit import Visit


async def groups(visit: Visit) -> Response:
    return _show(visit)


async def add_group(visit: Visit) -> Response:
    hub, name = visit.entity(EventHubDescription).name, visit.form.get("name", "").strip()
    change = partial(adding, name=name, user_metadata=visit.form.get("user_metadata", "").strip())
    try:
        await visit.ask(partial(visit.gateway.keeper.change, hub, EventHubDescription, change))
    except ServiceError as refusal:
        return _show(visit, refusal)
    return visit.go("consumer-groups", hub, notice="group-added")


async def delete_group(visit: Visit) -> Response:
    hub = visit.entity(EventHubDescription).name
    change = partial(remove_group, name=visit.form.get("name", ""))
    await visit.ask(partial(visit.gateway.keeper.change, hub, EventHubDescription, change))
    return visit.go("consumer-groups", hub, notice="group-deleted")


def _show(visit: Visit, problem: ServiceError | None = None) -> Response:
    hub = visit.entity(EventHubDescription)
    page = page_of(visit.query, hub.description.consumer_groups)
    rows = [(group, hub.description.details_of(group)) for group in page.items]
    values = {"name": visit.form.get("name", ""), "user_metadata": visit.form.get("user_metadata", "")}
    return visit.show_form("consumer_groups.html", problem, entity=hub, page=page, rows=rows, values=values)
