"""Alarms that the processes of a service tell one another: with each heartbeat, through the supervisor."""

from __future__ import annotations

from collections.abc import Iterable

from hubweir.alarms import Alarms
from hubweir.broker.commands.broker_process import StandingAlarm

# They are told twice a second to each process, and a hub may have an alarm for each of 1,024 partitions.
TOLD_ALARMS = 1_000


def standing_alarms(alarms: Alarms) -> tuple[StandingAlarm, ...]:
    """The alarms of this process; of very many, the oldest."""
    return tuple(StandingAlarm(each.kind.name, each.about) for each in alarms.current()[:TOLD_ALARMS])


def hear_alarms(alarms: Alarms, told: Iterable[StandingAlarm]) -> None:
    """Have `/ready` and the pages of this process know what stands in the others, in the place of what they knew."""
    alarms.hear((each.kind, each.about) for each in told)
