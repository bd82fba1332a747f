"""What the operator may set on each kind of entity, with ranges and defaults: frozen values, checked when made.

Every description is legal once it exists: `check_…` functions raise ServiceError with the entity, the range and the
way out, and the catalog holds only what passed them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, RESOURCE_LIMIT, ServiceError
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, check_capture
from hubweir.namespace.names import DEFAULT_GROUP, check_group_name, check_hub_name, check_rule_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights, check_rights
from hubweir.namespace.secret import KEY_LIMIT, Secret

# MOST: where the operator allows more than the service does; each is a log, with files and memory of its own.
PARTITIONS_MIN, PARTITIONS_MAX, PARTITIONS_MOST = 1, 32, 1_024
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RETENTION_MIN_MS, RETENTION_MAX_MS, RETENTION_DEFAULT_MS = HOUR_MS, 90 * DAY_MS, DAY_MS
# Of any publication: one event, or one batch envelope. Powers of two.
MESSAGE_SIZE_LIMIT_BYTES = 1_048_576
GROUPS_PER_HUB_MAX = 1_000
RULES_PER_LEVEL_MAX = 12
USER_METADATA_LIMIT = 1_024
# A description is read whole by everyone who follows the catalog: this many names of 128 characters are 128 KB.
REVOKED_PUBLISHERS_MAX = 1_000


class EntityStatus(IntEnum):
    """Where an entity is in its life. Kept in the catalog: never change a number."""

    CREATING = 1  # intent written: partitions are being made; not yet served
    ACTIVE = 2
    DELETING = 3  # intent written: partitions are being removed; not served any more


class Availability(IntEnum):
    """What an operator lets an entity take part in. Kept in the catalog: never change a number."""

    ACTIVE = 1
    DISABLED = 2
    SEND_DISABLED = 3
    RECEIVE_DISABLED = 4

    @property
    def text(self) -> str:
        """As the service's descriptions have it: Active, Disabled, SendDisabled, ReceiveDisabled."""
        return "".join(word.capitalize() for word in self.name.split("_"))


@dataclass(frozen=True, slots=True)
class AuthorizationRuleDescription:
    """A named pair of keys and what they allow, on the namespace or on one hub. secondary may be an empty Secret."""

    name: str
    rights: Rights
    primary: Secret
    secondary: Secret


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


@dataclass(frozen=True, slots=True)
class EventHubDescription:
    """One event hub. partition_count never changes: the hash of a key depends on it. `$Default` is always a group.

    changed_at_ms: of its newest change; 0: never, or by a version that did not keep it.
    """

    name: str
    partition_count: int
    retention_ms: int = RETENTION_DEFAULT_MS
    durability: Durability = Durability.DURABLE
    consumer_groups: tuple[str, ...] = (DEFAULT_GROUP,)
    created_at_ms: int = 0
    status: EntityStatus = EntityStatus.ACTIVE
    rules: tuple[AuthorizationRuleDescription, ...] = ()
    revoked_publishers: tuple[str, ...] = ()
    availability: Availability = Availability.ACTIVE
    user_metadata: str = ""
    changed_at_ms: int = 0
    group_details: tuple[GroupDetails, ...] = ()  # of groups that were made or changed by themselves
    capture: CaptureDescription | None = None  # None: it was never set

    @property
    def updated_at_ms(self) -> int:
        """When it was changed, or else made."""
        return self.changed_at_ms or self.created_at_ms

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


@dataclass(frozen=True, slots=True)
class UnitsDescription:
    """The throughput units of a namespace. held: 0 is off. maximum: how far auto-inflate may go; 0: there is none.

    from_settings: held and maximum as the settings gave them when they were last applied.
    """

    held: int = 0
    maximum: int = 0
    from_settings: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class NamespaceDescription:
    """The namespace itself: its name, the rules that hold for all of its entities, and the units they share."""

    name: str
    rules: tuple[AuthorizationRuleDescription, ...] = ()
    created_at_ms: int = 0
    units: UnitsDescription = UnitsDescription()


def check_event_hub(description: EventHubDescription, partitions_max: int = PARTITIONS_MAX) -> EventHubDescription:
    """The description with its groups in order ($Default first), when all of it is legal.

    Raises ServiceError ARGUMENT_OUT_OF_RANGE with the hub, the value and the range.
    """
    hub = check_hub_name(description.name)
    check_partition_count(hub, description.partition_count, partitions_max)
    check_retention(hub, description.retention_ms)
    return EventHubDescription(
        name=hub,
        partition_count=description.partition_count,
        retention_ms=description.retention_ms,
        durability=Durability(description.durability),
        consumer_groups=check_groups(hub, description.consumer_groups),
        created_at_ms=description.created_at_ms,
        status=description.status,
        rules=check_rules(hub, description.rules),
        revoked_publishers=description.revoked_publishers,
        availability=Availability(description.availability),
        user_metadata=check_user_metadata(hub, description.user_metadata),
        changed_at_ms=description.changed_at_ms,
        group_details=description.group_details,
        capture=check_capture(hub, description.capture),
    )


def check_partition_count(hub: str, count: int, most: int) -> None:
    """Raise ServiceError ARGUMENT_OUT_OF_RANGE for a count that is not 1 to most."""
    if not PARTITIONS_MIN <= count <= most:
        text = f"partition_count is {count}; {PARTITIONS_MIN} to {most} are allowed"
        if most < count <= PARTITIONS_MOST:
            text += f", and up to {PARTITIONS_MOST} when the service runs with --allow-more-partitions"
        raise _out_of_range(hub, text)


def check_retention(hub: str, retention_ms: int) -> None:
    """Raise ServiceError ARGUMENT_OUT_OF_RANGE for less than an hour or more than 90 days."""
    if not RETENTION_MIN_MS <= retention_ms <= RETENTION_MAX_MS:
        raise _out_of_range(
            hub,
            f"retention_ms is {retention_ms}; {RETENTION_MIN_MS} (1 hour) to {RETENTION_MAX_MS} (90 days) are allowed",
        )


def check_user_metadata(hub: str, text: str) -> str:
    """The text that its owner keeps with a hub, when it is not too long."""
    if len(text) > USER_METADATA_LIMIT:
        raise _out_of_range(hub, f"user_metadata has {len(text)} characters; at most {USER_METADATA_LIMIT} are allowed")
    return text


def parse_availability(text: str) -> Availability:
    """The availability of that name in any case. Raises ServiceError ARGUMENT_ERROR with what there is."""
    for each in Availability:
        if each.text.casefold() == text.casefold():
            return each
    allowed = ", ".join(each.text for each in Availability)
    raise ServiceError(ARGUMENT_ERROR, f"There is no status {text[:32]!r}; use one of {allowed}.")


def check_rule(rule: AuthorizationRuleDescription) -> AuthorizationRuleDescription:
    """The rule, when name, rights and keys are legal. Raises ServiceError ARGUMENT_OUT_OF_RANGE."""
    check_rule_name(rule.name)
    check_rights(rule.rights)
    for key, required in ((rule.primary, True), (rule.secondary, False)):
        size = len(key.reveal())
        if size > KEY_LIMIT or (required and not size):
            raise ServiceError(
                ARGUMENT_OUT_OF_RANGE,
                f"A key of rule '{rule.name}' has {size} characters; 1 to {KEY_LIMIT} are allowed.",
            )
    return rule


def check_rules(hub: str, rules: tuple[AuthorizationRuleDescription, ...]) -> tuple[AuthorizationRuleDescription, ...]:
    """The rules of a hub, when each is legal, no name comes twice in any case, and there are not too many."""
    if len(rules) > RULES_PER_LEVEL_MAX:
        text = f"Event hub '{hub}': {len(rules)} authorization rules; at most {RULES_PER_LEVEL_MAX} are allowed."
        raise ServiceError(RESOURCE_LIMIT, text)
    names = {fold(check_rule(rule).name) for rule in rules}
    if len(names) < len(rules):
        raise _out_of_range(hub, "two authorization rules have one name")
    return rules


def check_groups(hub: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """`$Default`, then the others as given, each once whatever its case."""
    groups = {fold(DEFAULT_GROUP): DEFAULT_GROUP}
    for name in names:
        groups.setdefault(fold(name), check_group_name(name))
    if len(groups) > GROUPS_PER_HUB_MAX:
        raise _out_of_range(hub, f"{len(groups)} consumer groups; at most {GROUPS_PER_HUB_MAX} are allowed")
    return tuple(groups.values())


def _out_of_range(hub: str, what: str) -> ServiceError:
    return ServiceError(ARGUMENT_OUT_OF_RANGE, f"Event hub '{hub}': {what}.")
