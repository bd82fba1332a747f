"""Changes of an event hub: each makes another description out of the one in the catalog, or says why not.

Nothing is written here: the catalog's writer calls a change when its turn comes, with what is known at that moment.
Raises ServiceError with the hub, the range and the way out.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields

from msgspec.structs import replace

from hubweir.errors import ARGUMENT_ERROR, ENTITY_EXISTS, NOT_ALLOWED, RESOURCE_LIMIT, ServiceError
from hubweir.namespace.asked_settings import asked_settings
from hubweir.namespace.capture_description import check_capture, check_destination_is_served
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import check_user_metadata
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails, check_groups, check_retention
from hubweir.namespace.names import DEFAULT_GROUP, check_group_name, check_publisher_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_description import Rules, check_rules

# A description is read whole by everyone who follows the catalog: this many names of 128 characters are 128 KB.
REVOKED_PUBLISHERS_LIMIT = 1_000


def set_settings(
    hub: EventHubDescription,
    context: ChangeContext,
    wanted: EventHubDescription,
    *,
    seen: EventHubDescription | None = None,
    rules: Rules | None = None,
) -> EventHubDescription:
    """The hub with the settings of wanted; groups, rules and publishers stay, and so does capture when wanted has none.

    seen: see asked_settings. Another partition_count is refused.
    """
    wanted = asked_settings(hub, wanted, seen)
    if wanted.partition_count != hub.partition_count:
        raise ServiceError(
            ARGUMENT_ERROR,
            f"{hub.title} has {hub.partition_count} partitions for its whole life, because the partition of a key "
            f"depends on their number. Create another event hub with {wanted.partition_count}.",
        )
    changed = replace(
        hub,
        retention_ms=wanted.retention_ms,
        durability=wanted.durability,
        availability=wanted.availability,
        user_metadata=check_user_metadata(hub.title, wanted.user_metadata),
        capture=check_capture(hub.name, wanted.capture or hub.capture),
        rules=hub.rules if rules is None else check_rules(hub.title, rules),
        changed_at_ms=context.now_ms,
    )
    check_retention(changed)
    check_destination_is_served(hub.name, changed.capture, context.capture_account)
    context.profile.check_retention(hub.name, changed.retention_ms)
    context.profile.check_capture(hub.name, changed.capture)
    return changed


def add_group(
    hub: EventHubDescription, context: ChangeContext, name: str, user_metadata: str = ""
) -> EventHubDescription:
    """A consumer group more. Raises ENTITY_EXISTS when there is one of this name in any case."""
    existing = hub.find_group(check_group_name(name))
    if existing is not None:
        raise ServiceError(ENTITY_EXISTS, f"{hub.title} has the consumer group '{existing}' already.")
    groups = check_groups(hub, (*hub.consumer_groups, name))
    context.profile.check_group_count(hub.name, len(groups))
    check_user_metadata(_title(hub, name), user_metadata)
    made = GroupDetails(groups[-1], context.now_ms, user_metadata=user_metadata)
    return replace(hub, consumer_groups=groups, group_details=(*hub.group_details, made))


def change_group(
    hub: EventHubDescription, context: ChangeContext, name: str, user_metadata: str | None
) -> EventHubDescription:
    """Another text for a consumer group; None leaves it as it is."""
    group = _group(hub, context, name)
    details = replace_fields(hub.details_of(group), changed_at_ms=context.now_ms)
    if user_metadata is not None:
        details = replace_fields(details, user_metadata=check_user_metadata(_title(hub, group), user_metadata))
    return replace(hub, group_details=(*_details_but(hub, group), details))


def remove_group(hub: EventHubDescription, context: ChangeContext, name: str) -> EventHubDescription:
    """A consumer group less; never $Default."""
    group = _group(hub, context, name)
    if group == DEFAULT_GROUP:
        text = f"The consumer group {DEFAULT_GROUP} always exists: that of the event hub '{hub.name}' stays."
        raise ServiceError(NOT_ALLOWED, text)
    left = tuple(other for other in hub.consumer_groups if other != group)
    return replace(hub, consumer_groups=left, group_details=_details_but(hub, group))


def revoke_publisher(hub: EventHubDescription, context: ChangeContext, publisher: str) -> EventHubDescription:
    """One more publisher that may not send; the same hub when it is revoked already, in any case."""
    known, name = hub.revoked_publishers, check_publisher_name(publisher)
    if any(fold(other) == fold(name) for other in known):
        return hub
    if len(known) >= REVOKED_PUBLISHERS_LIMIT:
        raise ServiceError(
            RESOURCE_LIMIT,
            f"{hub.title} has {REVOKED_PUBLISHERS_LIMIT} revoked publishers, which is the limit: restore one, or "
            "change the key that their tokens are signed with.",
        )
    return replace(hub, revoked_publishers=(*known, name))


def restore_publisher(hub: EventHubDescription, context: ChangeContext, publisher: str) -> EventHubDescription:
    """A revoked publisher may send again; NOT_FOUND when it was not revoked."""
    left = tuple(other for other in hub.revoked_publishers if fold(other) != fold(publisher))
    if len(left) == len(hub.revoked_publishers):
        raise context.not_found(f"{hub.name}/revokedpublishers/{publisher}")
    return replace(hub, revoked_publishers=left)


def _group(hub: EventHubDescription, context: ChangeContext, name: str) -> str:
    """The consumer group as it was created, for a name in any case; else NOT_FOUND."""
    group = hub.find_group(name)
    if group is None:
        raise context.not_found(f"{hub.name}/consumergroups/{name}")
    return group


def _details_but(hub: EventHubDescription, group: str) -> tuple[GroupDetails, ...]:
    return tuple(details for details in hub.group_details if details.name != group)


def _title(hub: EventHubDescription, group: str) -> str:
    return f"Consumer group '{group}' of event hub '{hub.name}'"
