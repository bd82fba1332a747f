"""Limits of a configuration file, and what the official emulators refuse beyond them, as one table.

SERVICE is what holds by default: the ranges of the cloud service, and no quota of a tier, because a namespace's tier
is known elsewhere and has its own table. OFFICIAL_EMULATOR is what the official images accept; a file that passes it
loads there, too. What the operator's flags change of them is `file_limits`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubweir.limits import UNITS_LIMIT
from hubweir.namespace.event_hub_description import GROUPS_PER_HUB_LIMIT, PARTITIONS_LIMIT, RAISED_PARTITIONS_LIMIT
from hubweir.namespace.iso_duration import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, UNLIMITED_MS
from hubweir.namespace.tiers import OFFICIAL_EMULATOR as EMULATOR_PROFILE


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """Counts and lengths of time that a file may ask for; both ends are allowed."""

    # Words that a file of the official emulators must have: the namespaces' names, the logging member, ASCII ranges.
    official: bool = False
    namespaces_limit: int = 1_000
    hubs_min: int = 0
    hubs_limit: int = 10_000
    partitions_limit: int = PARTITIONS_LIMIT
    consumer_groups_limit: int = GROUPS_PER_HUB_LIMIT - 1  # $Default is one, and not counted here
    throughput_units_limit: int = UNITS_LIMIT
    premium_messaging_partitions_limit: int = 16
    entities_limit: int = 10_000  # queues and topics together
    subscriptions_min: int = 0
    subscriptions_limit: int = 2_000  # per topic; Service Bus quotas
    rules_limit: int = 2_000  # per topic in the cloud, so no subscription has more
    time_to_live_min_ms: int = SECOND_MS
    time_to_live_limit_ms: int = UNLIMITED_MS
    duplicate_window_min_ms: int = 5 * SECOND_MS  # the emulators' lower end; the cloud's is 20 s
    duplicate_window_limit_ms: int = 7 * DAY_MS
    lock_min_ms: int = 5 * SECOND_MS
    lock_limit_ms: int = 5 * MINUTE_MS
    delivery_count_limit: int = 2_000


SERVICE = FileLimits()

OFFICIAL_EMULATOR = FileLimits(
    official=True,
    namespaces_limit=1,
    hubs_min=1,
    hubs_limit=10,
    partitions_limit=32,
    consumer_groups_limit=20,
    entities_limit=50,
    subscriptions_min=1,
    subscriptions_limit=50,
    rules_limit=1_000,
    time_to_live_min_ms=5 * MINUTE_MS,
    time_to_live_limit_ms=HOUR_MS,
    duplicate_window_limit_ms=5 * MINUTE_MS,
    delivery_count_limit=10,
)


def file_limits(profile: str, *, allow_more_partitions: bool = False) -> FileLimits:
    """The limits of files under a profile, by its name in namespace/tiers.py. allow_more_partitions: as the setting."""
    limits = OFFICIAL_EMULATOR if profile == EMULATOR_PROFILE.name else SERVICE
    return replace(limits, partitions_limit=RAISED_PARTITIONS_LIMIT) if allow_more_partitions else limits
