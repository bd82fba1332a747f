"""Who reads an event hub: each reader with its partition, group, owner level, and how many events it is behind.

A page asks the partitions that it shows, and again every few seconds. The portal's own peeks are none of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hubweir.broker.commands.reader import ReadersTold, ReaderTold
from hubweir.errors import ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.event_peek import GROUP
from hubweir.portal.paging import page_of
from hubweir.portal.visit import Visit

PARTITION_ROWS = 32
NAME_CHARACTERS = 200  # of a name that a client gave itself


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """One reader. lag: events behind the newest one."""

    group: str
    name: str
    owner_level: int | None
    next_sequence_number: int
    lag: int
    process: int
    connection: int


@dataclass(frozen=True, slots=True)
class PartitionReaders:
    """Who reads one partition, or why that is not known."""

    partition_id: str
    readers: Sequence[ReaderRow]
    problem: str = ""


async def readers(visit: Visit) -> Response:
    """Of the partitions of a page; of one that renews itself the table alone."""
    hub = visit.entity(EventHubDescription)
    page = page_of(visit.query, hub.description.partition_ids, PARTITION_ROWS)
    names = {group.lower(): group for group in hub.description.consumer_groups}
    rows = await asyncio.gather(*(_of_partition(visit, hub.name, each, names) for each in page.items))
    template = "_readers.html" if visit.is_fragment else "readers.html"
    return visit.show(template, entity=hub, page=page, rows=rows)


async def _of_partition(visit: Visit, hub: str, partition_id: str, names: dict[str, str]) -> PartitionReaders:
    """names: of consumer groups as they were created, by the lower case in which brokers know them."""
    try:
        told: ReadersTold = await visit.ask(partial(visit.gateway.management.readers, hub, partition_id))
    except ServiceError as refusal:
        return PartitionReaders(partition_id, (), refusal.text)
    rows = [_row(each, told.next_sequence_number, names) for each in told.readers if each.group != GROUP]
    return PartitionReaders(partition_id, sorted(rows, key=lambda row: (row.group, -row.lag)))


def _row(reader: ReaderTold, next_sequence_number: int, names: dict[str, str]) -> ReaderRow:
    return ReaderRow(
        names.get(reader.group, reader.group),
        (reader.name or "")[:NAME_CHARACTERS],
        reader.epoch,
        reader.next_sequence_number,
        max(0, next_sequence_number - reader.next_sequence_number),
        reader.owner.process,
        reader.owner.connection,
    )
