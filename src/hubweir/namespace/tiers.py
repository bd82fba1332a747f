"""Quotas by profile, as one table. (Event Hubs quotas and limits)

Safety limits (sizes of frames, names, tokens) stand where they are checked and hold in every profile. Here are the
limits that a tier of the service sells; the profile `development` has none of them but the size of a message. None:
no quota.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import RESOURCE_LIMIT, ServiceError
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.messaging_tier import MESSAGING_TIERS, MessagingTier

SECOND_MS, MINUTE_MS = 1_000, 60_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
# Of any publication: one event, or one batch envelope. Powers of two.
MESSAGE_SIZE_LIMIT_BYTES = 1_048_576


@dataclass(frozen=True, slots=True)
class Profile:
    """One row of the table. message_size_bytes: of one event or one batch, as it is transferred."""

    name: str
    message_size_bytes: int
    event_hubs: int | None
    consumer_groups: int | None  # of one hub, $Default included
    retention_ms: int | None
    connections: int | None
    management_reads_per_second: int | None  # of runtime information
    has_capture: bool = True

    @property
    def messaging(self) -> MessagingTier:
        """What holds for queues, topics and subscriptions."""
        return MESSAGING_TIERS[self.name]

    @property
    def has_quotas(self) -> bool:
        """False of the profile `development`: there only safety limits hold."""
        return self.name != DEVELOPMENT.name

    def check_hub_count(self, count: int) -> None:
        """Raise RESOURCE_LIMIT when a namespace may not have this many event hubs."""
        if self.event_hubs is not None and count > self.event_hubs:
            raise self._over(f"The namespace would have {count} event hubs", self.event_hubs, "Delete one")

    def check_group_count(self, hub: str, count: int) -> None:
        """Raise RESOURCE_LIMIT when a hub may not have this many consumer groups."""
        if self.consumer_groups is not None and count > self.consumer_groups:
            what = f"Event hub '{hub}' would have {count} consumer groups, $Default included"
            raise self._over(what, self.consumer_groups, "Delete one")

    def check_retention(self, hub: str, retention_ms: int) -> None:
        """Raise RESOURCE_LIMIT when a hub may not keep events this long."""
        if self.retention_ms is not None and retention_ms > self.retention_ms:
            what = f"Event hub '{hub}' would keep events for {time_text(retention_ms)}"
            raise self._over(what, time_text(self.retention_ms), "Ask for less")

    def check_capture(self, hub: str, capture: CaptureDescription | None) -> None:
        """Raise RESOURCE_LIMIT when a hub may not be captured."""
        if capture is not None and capture.enabled and not self.has_capture:
            raise ServiceError(
                RESOURCE_LIMIT,
                f"Event hub '{hub}': profile '{self.name}' has no capture. Serve the namespace under another profile "
                "(serve --profile, Sku in a Config.json).",
            )

    def _over(self, what: str, limit: object, way_out: str) -> ServiceError:
        return ServiceError(
            RESOURCE_LIMIT,
            f"{what}; the quota of profile '{self.name}' is {limit}. {way_out}, or serve the namespace under another "
            "profile (serve --profile, Sku in a Config.json).",
        )


def time_text(ms: int) -> str:
    """A time for people, in the largest unit in which it is a whole number."""
    for unit_ms, unit in ((DAY_MS, "day"), (HOUR_MS, "hour"), (MINUTE_MS, "minute"), (SECOND_MS, "second")):
        if ms % unit_ms == 0:
            count = ms // unit_ms
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{ms} ms"


_MIB, _KIB = MESSAGE_SIZE_LIMIT_BYTES, 1024
PROFILES = {
    profile.name: profile
    for profile in (
        #       name                 message    hubs  groups  retention     connections  reads  capture
        Profile("development",       _MIB,      None, None,   None,         None,        None),
        Profile("official-emulator", _MIB,      10,   21,     HOUR_MS,      10,          None,  False),
        Profile("basic",             256 * _KIB, 10,  1,      DAY_MS,       100,         50,    False),
        Profile("standard",          _MIB,      10,   20,     7 * DAY_MS,   5_000,       50),
        Profile("premium",           _MIB,      100,  100,    90 * DAY_MS,  10_000,      50),
    )
}  # fmt: skip
DEVELOPMENT, OFFICIAL_EMULATOR = PROFILES["development"], PROFILES["official-emulator"]
