"""Pages of an event hub's readers: each with its partition, group, owner level, and how many events it is behind.

A page asks about the partitions that it shows, and again every few seconds. The portal's own peeks are none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hubweir.gateway.http.exchange import Response
from hubweir.gateway.reading import readers_of
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.event_peek import GROUP
from hubweir.portal.paging import page_of
from hubweir.portal.visit import Visit

PARTITION_ROWS = 32
# Five of a group are a quota that a profile may not have: what is more is counted and not shown.
READER_ROWS = 50


@dataclass(frozen=True, slots=True)
class PartitionReaders:
    """Who reads one partition. readers: as gateway/reading.py tells them. more: how many there are besides.

    is_known: its store answered.
    """

    partition_id: str
    readers: Sequence[dict[str, Any]]
    more: int
    is_known: bool


async def readers(visit: Visit) -> Response:
    """Of the partitions of a page; of one that renews itself the table alone."""
    hub = visit.entity(EventHubDescription)
    page = page_of(visit.query, hub.description.partition_ids, PARTITION_ROWS)
    told = await readers_of(visit.gateway, hub.name, page.items)
    by_partition: dict[str, list[dict[str, Any]]] = {partition_id: [] for partition_id in page.items}
    for each in told["readers"]:
        if each["consumer_group"] != GROUP:
            by_partition[each["partition"]].append(each)
    silent = frozenset(told["stores_without_answer"])
    rows = [
        PartitionReaders(
            partition_id, found[:READER_ROWS], len(found[READER_ROWS:]),
            hub.placements[int(partition_id)].store_index not in silent,
        )
        for partition_id, found in by_partition.items()
    ]  # fmt: skip
    template = "_readers.html" if visit.is_fragment else "readers.html"
    return visit.show(template, entity=hub, page=page, rows=rows)
