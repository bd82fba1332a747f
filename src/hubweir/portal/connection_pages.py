"""Pages of the namespace's connections: each AMQP connection of any process, with its rule and its entities."""

from __future__ import annotations

from hubweir.gateway.connections import count_connections, list_connections
from hubweir.gateway.http.exchange import Response
from hubweir.portal.paging import PAGE_COUNT, ListPage, page_number
from hubweir.portal.visit import Visit


async def connections(visit: Visit) -> Response:
    """A page of them. A process that does not answer in time is named, and its connections are missing."""
    process, namespace = visit.gateway.process, visit.gateway.settings.namespace
    counts = await count_connections(process, namespace)
    total = sum(count or 0 for count in counts.values())
    number = page_number(visit.query, total)
    found = await list_connections(process, namespace, counts, (number - 1) * PAGE_COUNT, PAGE_COUNT)
    silent = [index for index, count in counts.items() if count is None]
    has_processes = len(counts) > 1
    return visit.show(
        "connections.html", page=ListPage(found, number, total), silent=silent, has_processes=has_processes
    )
