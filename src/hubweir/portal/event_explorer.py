"""The data explorer of an event hub: events of a partition, from its newest, its first, a number or a time on."""

from __future__ import annotations

from functools import partial

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.event_peek import PeekedEvent, newest_position, peek_events
from hubweir.portal.form import Form
from hubweir.portal.form_fields import number
from hubweir.portal.quantities import read_time_ms
from hubweir.portal.shown_message import VIEWS
from hubweir.portal.visit import Visit

STARTS = (
    ("newest", "The newest"), ("oldest", "The oldest"), ("sequence", "Sequence number"), ("time", "Time (UTC)"),
)  # fmt: skip
COUNTS = ("10", "25", "50", "100")
_DEFAULTS = {"partition": "0", "start": "newest", "at": "", "count": "25", "view": "auto"}


async def events(visit: Visit) -> Response:
    """The events that the query asks for; nothing is taken away, and no reader is disturbed."""
    hub = visit.entity(EventHubDescription)
    asked = {**_DEFAULTS, **{name: visit.query[name] for name in _DEFAULTS if name in visit.query}}
    found: list[PeekedEvent] = []
    problem: ServiceError | None = None
    try:
        found = await _peek(visit, hub.name, asked)
    except ServiceError as refusal:
        problem = refusal
    newer = {**asked, "start": "sequence", "at": str(found[-1].sequence_number + 1)} if found else None
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
    )


async def _peek(visit: Visit, hub: str, asked: Form) -> list[PeekedEvent]:
    if asked["count"] not in COUNTS or asked["view"] not in dict(VIEWS):
        raise ServiceError(ARGUMENT_ERROR, f"There are {', '.join(COUNTS)} events at a time, in the views listed.")
    count = int(asked["count"])
    place = visit.gateway.directory.partition(hub, asked["partition"])
    if asked["start"] == "newest":
        info = await visit.ask(partial(visit.gateway.management.partition_info, hub, asked["partition"]))
        position = newest_position(info, count)
    else:
        position = _position(asked)
    return await peek_events(visit, place, position, count, asked["view"])


def _position(asked: Form) -> EventPosition:
    match asked["start"]:
        case "oldest":
            return EARLIEST
        case "sequence":
            return EventPosition(
                PositionKind.SEQUENCE_NUMBER, number(asked, "at", "The sequence number"), inclusive=True
            )
        case "time":
            return EventPosition(PositionKind.ENQUEUED_TIME, read_time_ms(asked["at"]), inclusive=True)
    raise ServiceError(ARGUMENT_ERROR, "Events begin at the newest, the oldest, a sequence number or a time.")
