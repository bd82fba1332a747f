"""A purge of an event hub: all of its events go, its numbers go on, and its readers are told (broker/purge.py).

Who may manage the hub may purge it, as they may delete it. Partitions are purged side by side; when one cannot be, the
others are all the same, and the request is refused with its reason: it may come again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import PartitionPurged, PurgePartition
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.brokers import error_of
from hubweir.gateway.directory import PartitionPlace
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.route import Match
from hubweir.namespace.entity import of_kind
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.service_log import ENTITY_PURGED

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

logger = logging.getLogger(__name__)


async def purge(gateway: Gateway, request: Request, match: Match) -> Response:
    """Remove all events of a hub. The answer tells how many went from each partition, and its first number now."""
    entity = gateway.namespace.find_any(match.entity)
    if entity is not None and of_kind(entity, MessagingDescription) is not None:
        text = f"'{match.entity}' has messages, which are purged with `hubweir message purge`; this purges event hubs."
        raise ServiceError(ARGUMENT_ERROR, text)
    places = gateway.directory.partitions(match.entity)
    answers = await asyncio.gather(*(answer_of(partial(_purge, place)) for place in places), return_exceptions=True)
    purged = [each for each in answers if isinstance(each, PartitionPurged)]
    if purged:
        events, title = sum(each.purged for each in purged), f"Event hub '{match.entity}'"
        ENTITY_PURGED.say(logger, entity=title, namespace=gateway.settings.namespace, events=events)
    for each in answers:
        if isinstance(each, BaseException):
            raise each
    told = [
        {"partition": place.partition_id, "purged": each.purged, "first_sequence_number": each.first_sequence_number}
        for place, each in zip(places, purged, strict=True)
    ]
    document = {"event_hub": match.entity, "partitions": told}
    return Response(200, json.dumps(document).encode(), "application/json", {"cache-control": "no-store"})


def _purge(place: PartitionPlace, on_done: Callable[[PartitionPurged | ServiceError], None]) -> None:
    def answered(answer: Answer) -> None:
        on_done(answer if isinstance(answer, PartitionPurged) else error_of(answer))

    place.broker.submit(PurgePartition(place.log_id), answered)
