"""Auto-inflate: when ingress or egress reaches the limit, the namespace gets more units, up to a maximum.

The decision is made inside the request that would have been refused or delayed, so that no client sees an error while
there are units to add. A unit that is added comes with its burst. Units are never taken away by themselves, as in the
service: the operator lowers them. (Source: the service's page on auto-inflate, for both directions.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.limits import UNITS_LIMIT, are_sold
from hubweir.throughput_unit.throughput_unit import check_units


class Cause(Enum):
    """Which limit made the namespace grow."""

    INGRESS = "ingress"
    EGRESS = "egress"


@dataclass(frozen=True, slots=True)
class UnitsRaised:
    """Auto-inflate added units at now_ms (monotonic). Whoever keeps the namespace's settings stores the new number."""

    before: int
    after: int
    cause: Cause
    now_ms: int


def inflated(units: int, maximum: int, suffices: Callable[[int], bool]) -> int:
    """The smallest number above units that is sold and suffices; the maximum when none does; units when it is reached.

    suffices(n): whether the request in hand would pass at once with n units.
    """
    if units >= maximum:
        return units
    return next((more for more in filter(are_sold, range(units + 1, maximum)) if suffices(more)), maximum)


def check_maximum(namespace: str, units: int, maximum: int, *, units_limit: int = UNITS_LIMIT) -> int:
    """maximum, when auto-inflate may go up to it; ServiceError ARGUMENT_OUT_OF_RANGE if not."""
    check_units(namespace, maximum, units_limit=units_limit)
    if maximum < units:
        text = (
            f"Namespace '{namespace}' holds {units} throughput units and auto-inflate may go up to {maximum} only; "
            "raise the maximum, or lower the units first."
        )
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, text)
    return maximum
