"""Lists the readers of a namespace's event hubs, each with its partition and group, its place, and where it came from.

Every broker is asked, whichever process has it. A store that does not answer in time is named, so that nobody takes its
readers for gone. Nothing of it is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from hubweir.broker.commands.status import AskReaders, ReadersTold, ReaderTold
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.status import ask_in_time
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.resource_path import fold

Document = dict[str, Any]


async def readers_of(gateway: Gateway, hub: str | None = None, partitions: Collection[str] = ()) -> Document:
    """The document of docs/http.md. Takes status.ANSWER_S at most. hub, partitions: of these of a hub alone."""
    hubs = gateway.namespace.entities(EventHubDescription)
    if hub is not None:
        hubs = tuple(each for each in hubs if each.name == hub)
    places = [
        (each, str(number), place)
        for each in hubs
        for number, place in enumerate(each.placements)
        if hub is None or str(number) in partitions
    ]
    question = AskReaders(() if hub is None else tuple(place.log_id for _, _, place in places))
    answers = await asyncio.gather(*(ask_in_time(broker, question) for broker in gateway.brokers))
    by_log: dict[str, list[ReaderTold]] = {}
    for answer in answers:
        if isinstance(answer, ReadersTold):
            for reader in answer.readers:
                by_log.setdefault(reader.log_id, []).append(reader)
    readers = []
    for each, number, place in places:
        its = sorted(by_log.get(place.log_id, ()), key=lambda reader: reader.consumer_group)
        if its:
            groups = {fold(group): group for group in (DEFAULT_GROUP, *each.description.consumer_groups)}
            readers += [_reader(told, each.name, number, groups) for told in its]
    silent = [index for index, answer in enumerate(answers) if not isinstance(answer, ReadersTold)]
    return {"readers": readers, "stores_without_answer": silent}


def _reader(told: ReaderTold, hub: str, partition: str, groups: dict[str, str]) -> Document:
    return {
        "event_hub": hub,
        "partition": partition,
        "consumer_group": groups.get(told.consumer_group, told.consumer_group),
        "name": told.name or None,
        "owner_level": None if told.owner_level < 0 else told.owner_level,
        "next_sequence_number": told.next_sequence_number,
        "behind_events": told.behind_events,
        "peer": told.peer,
        "client": told.client,
        "process": told.process,
    }
