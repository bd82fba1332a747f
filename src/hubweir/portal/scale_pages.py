"""The scale page: throughput units, auto-inflate, and what each hour used.

What is live is asked for again and again; the chart is of the hours that the page was opened with.
"""

from __future__ import annotations

from functools import partial

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.portal.entered_values import entered_values
from hubweir.portal.form_fields import flag, flag_value, number
from hubweir.portal.visit import Visit
from hubweir.throughput_unit.throughput_unit import capacity_of
from hubweir.throughput_unit.usage import HourUsage

HOURS_SHOWN = 48


async def scale(visit: Visit) -> Response:
    return await _show(visit, None)


async def usage_now(visit: Visit) -> Response:
    """What this hour used so far."""
    hours = await _hours(visit)
    return visit.show("_usage_now.html", now=hours[-1] if hours else None)


async def change_scale(visit: Visit) -> Response:
    """Hold what was entered; with auto-inflate off its maximum means nothing."""
    entered = entered_values(visit.form, _values(visit))
    try:
        held = number(entered, "units", "Throughput units")
        maximum = number(entered, "maximum", "The maximum") if flag(entered, "inflates") else 0
        if flag(entered, "inflates") and not maximum:
            raise ServiceError(ARGUMENT_ERROR, "Auto-inflate needs a maximum of throughput units above 0.")
        await visit.ask(partial(visit.gateway.units.change, held=held, maximum=maximum))
    except ServiceError as refusal:
        return await _show(visit, refusal)
    return visit.go("scale", notice="scaled")


def _values(visit: Visit) -> dict[str, str]:
    units = visit.gateway.namespace.description.units
    return {"units": str(units.held), "inflates": flag_value(units.maximum > 0), "maximum": str(units.maximum or "")}


async def _hours(visit: Visit) -> list[HourUsage]:
    """The newest hours, oldest first."""
    rows = await visit.ask(visit.gateway.units.ask_usage)
    return [HourUsage(*row) for row in rows[-HOURS_SHOWN:]]


async def _show(visit: Visit, problem: ServiceError | None) -> Response:
    namespace = visit.gateway.namespace
    units, seen = namespace.description.units, _values(visit)
    hours = await _hours(visit)
    return visit.show_form(
        "scale.html",
        problem,
        values=seen if problem is None else entered_values(visit.form, seen),
        seen=seen,
        units=units,
        capacity=capacity_of(units.held) if units.held else None,
        warning=visit.gateway.units.warning,
        partitions=sum(hub.description.partition_count for hub in namespace.entities(EventHubDescription)),
        hours=hours,
        now=hours[-1] if hours else None,
    )
