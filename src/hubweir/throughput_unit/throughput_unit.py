"""The capacity of a throughput unit, and how many units a namespace may hold.

| direction | bytes a second | events a second | over it |
|---|---|---|---|
| in (ingress) | 1,048,576 | 1,000 | refused as server-busy, nothing stored |
| out (egress) | 2,097,152 | 4,096 | paced, no error |

Whichever is reached first counts. Source: the service's pages on scalability and on quotas, which say "1 MB or 1,000
events" in and "2 MB or 4,096 events" out. A MB is 2**20 bytes here. The same pages give a unit 84 GB of storage a
day, which is what 86,400 seconds at 1 MB come to in powers of two (86.4 otherwise); and the largest publication,
"1 MB", is advertised on links as 1,048,576 bytes, so that one unit takes one of them a second.

Bytes are those of whole deliveries: of a batch, its envelope included.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.limits import RAISED_UNITS_LIMIT, UNITS_LIMIT, are_sold, units_sold


@dataclass(frozen=True, slots=True)
class Rate:
    """One direction's limit: bytes and events a second, each a positive integer."""

    bytes_per_second: int
    events_per_second: int

    def times(self, count: int) -> Rate:
        return Rate(self.bytes_per_second * count, self.events_per_second * count)


@dataclass(frozen=True, slots=True)
class Capacity:
    """The rates that may come in and go out."""

    ingress: Rate
    egress: Rate


UNIT = Capacity(ingress=Rate(1_048_576, 1_000), egress=Rate(2_097_152, 4_096))


def capacity_of(units: int) -> Capacity:
    """What this many units buy together."""
    return Capacity(UNIT.ingress.times(units), UNIT.egress.times(units))


def check_units(namespace: str, units: int, *, units_limit: int = UNITS_LIMIT) -> int:
    """units, when the namespace may hold that many; ServiceError ARGUMENT_OUT_OF_RANGE with the way out if not."""
    if not are_sold(units) or units > units_limit:
        more = f" Up to {RAISED_UNITS_LIMIT} with --max-throughput-units." if units_limit < RAISED_UNITS_LIMIT else ""
        text = f"Namespace '{namespace}': {units} throughput units; it may hold {units_sold(units_limit)}.{more}"
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, text)
    return units


def units_beyond_partitions(namespace: str, units: int, partition_counts: Mapping[str, int]) -> str | None:
    """A warning when the namespace has more units than partitions, so that the partition cap leaves some idle.

    partition_counts: by event hub. None: there is nothing to warn of.
    """
    partitions = sum(partition_counts.values())
    if not partition_counts or units <= partitions:
        return None
    return (
        f"Namespace '{namespace}' has {units} throughput units for {partitions} partitions. A partition carries at "
        f"most one unit, so {units - partitions} of them cannot be used; add event hubs with more partitions, lower "
        "the units, or lift the limit with --no-partition-cap."
    )
