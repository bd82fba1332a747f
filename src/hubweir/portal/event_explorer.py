"""The data explorer of an event hub: events of a partition, from its newest, its first, a number or a time on; or live.

To follow is to ask once a second for what came since: the page holds what it has shown, the service nothing. A page
that cannot keep up with its partition passes events by, and says how many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.event_peek import PEEK_BYTES, PeekedEvent, newest_position, peek_events
from hubweir.portal.form import Form
from hubweir.portal.form_fields import sequence_number
from hubweir.portal.held_room import held_room
from hubweir.portal.quantities import read_time_ms
from hubweir.portal.shown_message import VIEWS, ShownMessage
from hubweir.portal.shown_page import shown_messages
from hubweir.portal.visit import Visit

STARTS = (
    ("newest", "The newest"), ("oldest", "The oldest"), ("sequence", "Sequence number"), ("time", "Time (UTC)"),
)  # fmt: skip
COUNTS = ("10", "25", "50", "100")
FOLLOW_COUNT = 50  # once a second
NO_CONTENT = 204
_DEFAULTS = {"partition": "0", "start": "newest", "at": "", "count": "25", "view": "auto"}


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event, and its message as a page shows it."""

    event: PeekedEvent
    message: ShownMessage


async def events(visit: Visit) -> Response:
    """The events that the query asks for; nothing is taken away, and no reader is disturbed."""
    hub = visit.entity(EventHubDescription)
    asked = asked_of(visit.query)
    found: Sequence[ShownEvent] = ()
    problem: ServiceError | None = None
    follow_from: int | None = None
    try:
        async with held_room(visit, PEEK_BYTES):
            peeked = await peek_asked(visit, hub.name, asked)
            found = await _shown(visit, peeked, asked["view"])
            if visit.query.get("follow"):
                follow_from = await _behind(visit, hub.name, asked["partition"], peeked)
    except ServiceError as refusal:
        problem = refusal
    newer = {**asked, "start": "sequence", "at": str(found[-1].event.sequence_number + 1)} if found else None
    return visit.show_form(
        "events.html",
        problem,
        entity=hub,
        partitions=hub.description.partition_ids,
        asked=asked,
        starts=STARTS,
        counts=COUNTS,
        views=VIEWS,
        events=found,
        newer=newer,
        shown_range={**asked, "start": "sequence", "at": str(found[0].event.sequence_number)} if found else None,
        follow_from=follow_from,
    )


async def follow(visit: Visit) -> Response:
    """What came behind a page that follows; nothing to show, when nothing did."""
    hub, asked = visit.entity(EventHubDescription), asked_of(visit.query)
    first = sequence_number(visit.query, "from")
    info = await _info(visit, hub.name, asked["partition"])
    if info.last_sequence_number < first:
        return Response(NO_CONTENT, b"", None, {"cache-control": "no-store"})
    skipped = max(0, info.last_sequence_number - first + 1 - FOLLOW_COUNT)
    position = EventPosition(PositionKind.SEQUENCE_NUMBER, first + skipped, inclusive=True)
    place = visit.gateway.directory.partition(hub.name, asked["partition"])
    async with held_room(visit, PEEK_BYTES):
        peeked = await peek_events(visit, place, position, FOLLOW_COUNT)
        found = await _shown(visit, peeked, asked["view"])
        follow_from = peeked[-1].sequence_number + 1 if peeked else first + skipped
        return visit.show(
            "_followed.html", entity=hub, asked=asked, events=found, skipped=skipped, follow_from=follow_from
        )


def asked_of(query: Form) -> Mapping[str, str]:
    """What a query asks for, with defaults for what it leaves out."""
    return {**_DEFAULTS, **{name: query[name] for name in _DEFAULTS if name in query}}


async def peek_asked(visit: Visit, hub: str, asked: Form) -> list[PeekedEvent]:
    """The events that are asked for. Raises ServiceError."""
    if asked["count"] not in COUNTS or asked["view"] not in dict(VIEWS):
        raise ServiceError(ARGUMENT_ERROR, f"There are {', '.join(COUNTS)} events at a time, in the views listed.")
    count = int(asked["count"])
    place = visit.gateway.directory.partition(hub, asked["partition"])
    if asked["start"] == "newest":
        position = newest_position(await _info(visit, hub, asked["partition"]), count)
    else:
        position = _position(asked)
    return await peek_events(visit, place, position, count)


async def _shown(visit: Visit, events: Sequence[PeekedEvent], view: str) -> list[ShownEvent]:
    messages = await shown_messages(visit, [event.data for event in events], view)
    return [ShownEvent(event, message) for event, message in zip(events, messages, strict=True)]


async def _info(visit: Visit, hub: str, partition_id: str) -> PartitionInfo:
    return await visit.ask(partial(visit.gateway.management.partition_info, hub, partition_id))


async def _behind(visit: Visit, hub: str, partition_id: str, events: Sequence[PeekedEvent]) -> int:
    """The sequence number behind what is shown; with nothing, behind the last event."""
    if events:
        return events[-1].sequence_number + 1
    return (await _info(visit, hub, partition_id)).last_sequence_number + 1


def _position(asked: Form) -> EventPosition:
    match asked["start"]:
        case "oldest":
            return EARLIEST
        case "sequence":
            return EventPosition(PositionKind.SEQUENCE_NUMBER, sequence_number(asked, "at"), inclusive=True)
        case "time":
            return EventPosition(PositionKind.ENQUEUED_TIME, read_time_ms(asked["at"]), inclusive=True)
    raise ServiceError(ARGUMENT_ERROR, "Events begin at the newest, the oldest, a sequence number or a time.")
