"""Description of an event hub: what its operator may set, with ranges and defaults, and what a new one must satisfy.

A description in the catalog is legal: `checked` and the changes in event_hub_changes.py raise ServiceError with the
hub, the range and the way out, and the catalog holds only what passed them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from msgspec.structs import replace

from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, check_capture, check_destination_is_served
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import (
    AnyEntity,
    Availability,
    Entity,
    EntityDescription,
    EntityKind,
    check_name_is_free,
    check_user_metadata,
    out_of_range,
)
from hubweir.namespace.names import DEFAULT_GROUP, check_group_name, check_hub_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_description import check_rules
from hubweir.namespace.tiers import DAY_MS, HOUR_MS, Profile, time_text

# RAISED: where the operator allows more than the service does; each is a log, with files and memory of its own.
PARTITIONS_MIN, PARTITIONS_LIMIT, RAISED_PARTITIONS_LIMIT = 1, 32, 1_024
RETENTION_MIN_MS, RETENTION_LIMIT_MS, RETENTION_DEFAULT_MS = HOUR_MS, 90 * DAY_MS, DAY_MS
GROUPS_PER_HUB_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class GroupDetails:
    """What is kept about a consumer group besides its name. changed_at_ms 0: it never was."""

    name: str
    created_at_ms: int
    changed_at_ms: int = 0
    user_metadata: str = ""

    @property
    def updated_at_ms(self) -> int:
        """When it was changed, or else made."""
        return self.changed_at_ms or self.created_at_ms


class EventHubDescription(EntityDescription, frozen=True, tag=EntityKind.EVENT_HUB.value):
    """One event hub. partition_count never changes: the hash of a key depends on it. `$Default` is always a group."""

    kind: ClassVar[EntityKind] = EntityKind.EVENT_HUB

    name: str
    partition_count: int
    retention_ms: int = RETENTION_DEFAULT_MS
    durability: Durability = Durability.DURABLE
    consumer_groups: tuple[str, ...] = (DEFAULT_GROUP,)
    group_details: tuple[GroupDetails, ...] = ()  # of groups that were made or changed by themselves
    revoked_publishers: tuple[str, ...] = ()
    capture: CaptureDescription | None = None  # None: it was never set

    def log_count(self, profile: Profile) -> int:
        return self.partition_count

    def details_of(self, group: str) -> GroupDetails:
        """What is kept about a group, by its name as created; one that was made with the hub is as old as the hub."""
        found = (details for details in self.group_details if details.name == group)
        return next(found, GroupDetails(group, self.created_at_ms))

    @property
    def partition_ids(self) -> tuple[str, ...]:
        """`"0"`, `"1"`, … in order."""
        return tuple(str(number) for number in range(self.partition_count))

    def find_group(self, name: str) -> str | None:
        """The consumer group as it was created, whatever the case of name; None when there is none."""
        folded = fold(name)
        return next((group for group in self.consumer_groups if fold(group) == folded), None)

    def has_partition(self, partition_id: str) -> bool:
        """True for the decimal text of 0 … count - 1; not for `01`, `+1` or digits of other scripts."""
        return partition_id in self.partition_ids

    def checked(self, existing: Sequence[AnyEntity], context: ChangeContext) -> Self:
        """See EntityDescription. The groups come in order, $Default first."""
        check_hub_name(self.name)
        check_name_is_free(self, existing)
        check_partition_count(self, context.partitions_limit)
        check_retention(self)
        check_rules(self.title, self.rules)
        check_user_metadata(self.title, self.user_metadata)
        check_capture(self.name, self.capture)
        check_destination_is_served(self.name, self.capture, context.capture_account)
        profile, groups = context.profile, check_groups(self, self.consumer_groups)
        profile.check_hub_count(sum(entity.kind is self.kind for entity in existing) + 1)
        profile.check_group_count(self.name, len(groups))
        profile.check_retention(self.name, self.retention_ms)
        profile.check_capture(self.name, self.capture)
        return replace(
            self,
            durability=Durability(self.durability),
            availability=Availability(self.availability),
            consumer_groups=groups,
        )


EventHubEntity = Entity[EventHubDescription]


def check_partition_count(hub: EventHubDescription, limit: int) -> None:
    """Raise ServiceError ARGUMENT_OUT_OF_RANGE for a number of partitions that is not 1 to limit."""
    count = hub.partition_count
    if not PARTITIONS_MIN <= count <= limit:
        text = f"{count} partitions are asked for; {PARTITIONS_MIN} to {limit} are allowed"
        if limit < count <= RAISED_PARTITIONS_LIMIT:
            text += f", and up to {RAISED_PARTITIONS_LIMIT} when the service runs with --allow-more-partitions"
        raise out_of_range(hub.title, text)


def check_retention(hub: EventHubDescription) -> None:
    """Raise ServiceError ARGUMENT_OUT_OF_RANGE for less than an hour or more than 90 days."""
    if not RETENTION_MIN_MS <= hub.retention_ms <= RETENTION_LIMIT_MS:
        raise out_of_range(
            hub.title,
            f"events would be kept for {time_text(hub.retention_ms)}; {time_text(RETENTION_MIN_MS)} to "
            f"{time_text(RETENTION_LIMIT_MS)} are allowed",
        )


def check_groups(hub: EventHubDescription, names: tuple[str, ...]) -> tuple[str, ...]:
    """`$Default`, then the others as given, each once whatever its case."""
    groups = {fold(DEFAULT_GROUP): DEFAULT_GROUP}
    for name in names:
        groups.setdefault(fold(name), check_group_name(name))
    if len(groups) > GROUPS_PER_HUB_LIMIT:
        raise out_of_range(hub.title, f"{len(groups)} consumer groups; at most {GROUPS_PER_HUB_LIMIT} are allowed")
    return tuple(groups.values())
