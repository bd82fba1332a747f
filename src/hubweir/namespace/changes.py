"""What a change of the namespace becomes: one operation of the catalog, or a refusal that says why and what to do.

Each method judges against the catalog as it is at that moment and writes nothing. Authorization rules have a file of
their own, rule_changes.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hubweir.env import Env
from hubweir.errors import ARGUMENT_ERROR, ENTITY_EXISTS, NOT_FOUND, RESOURCE_LIMIT, ServiceError
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, check_capture
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import (
    ChangeHub,
    CommitCreate,
    CommitDelete,
    IntendCreate,
    IntendDelete,
    NameNamespace,
    SetGroups,
    SetRevoked,
)
from hubweir.namespace.descriptions import (
    REVOKED_PUBLISHERS_MAX,
    Availability,
    EntityStatus,
    EventHubDescription,
    GroupDetails,
    check_event_hub,
    check_groups,
    check_retention,
    check_user_metadata,
)
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.event_hub_entry import EventHubEntry, Placement
from hubweir.namespace.names import DEFAULT_GROUP, check_group_name, check_namespace_name, check_publisher_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.tiers import Profile


class Changes:
    """Judges changes of one catalog, with the quotas of a profile. host: how texts name the namespace.

    partitions_max: of a hub that is made; those that are there keep theirs.
    """

    def __init__(self, catalog: Catalog, env: Env, *, profile: Profile, host: str, partitions_max: int) -> None:
        self._catalog = catalog
        self._env = env
        self._profile = profile
        self._host = host
        self._partitions_max = partitions_max

    def name_namespace(self, name: str) -> NameNamespace:
        """The namespace's name. ServiceError when it is no legal one."""
        return NameNamespace(check_namespace_name(name), self._env.now_ms())

    def create(self, description: EventHubDescription, stores: Sequence[int]) -> IntendCreate:
        """A new hub; its partitions go to the stores in turn, beginning where the last hub's did not."""
        asked = check_event_hub(description, self._partitions_max)
        hubs = self._catalog.hubs()
        self._check_new_name(asked.name)
        self._profile.check_hub_count(len(hubs) + 1)
        self._profile.check_group_count(asked.name, len(asked.consumer_groups))
        self._profile.check_retention(asked.name, asked.retention_ms)
        self._profile.check_capture(asked.name, asked.capture)
        placements = tuple(
            Placement(self._env.new_id(), stores[(len(hubs) + number) % len(stores)])
            for number in range(asked.partition_count)
        )
        checked = replace(asked, created_at_ms=self._env.now_ms(), status=EntityStatus.CREATING)
        return IntendCreate(self._env.new_id(), checked, placements)

    def commit_create(self, name: str) -> CommitCreate:
        """Serve a hub whose partitions exist. NOT_FOUND, or ARGUMENT_ERROR when it is being deleted."""
        entry = self.entry(name)
        if entry.description.status is EntityStatus.DELETING:
            raise ServiceError(ARGUMENT_ERROR, f"Event hub '{entry.name}' is being deleted; it is not served again.")
        return CommitCreate(entry.hub_id)

    def delete(self, name: str) -> IntendDelete:
        """Serve a hub no more, whatever its status; NOT_FOUND."""
        return IntendDelete(self.entry(name).hub_id)

    def commit_delete(self, name: str) -> CommitDelete:
        """Forget a hub whose partitions are gone. NOT_FOUND, or ARGUMENT_ERROR when nobody deletes it."""
        entry = self.entry(name)
        if entry.description.status is not EntityStatus.DELETING:
            raise ServiceError(ARGUMENT_ERROR, f"Event hub '{entry.name}' is not being deleted.")
        return CommitDelete(entry.hub_id)

    def change(
        self,
        name: str,
        retention_ms: int | None,
        durability: Durability | None,
        partition_count: int | None,
        availability: Availability | None = None,
        user_metadata: str | None = None,
        capture: CaptureDescription | None = None,
    ) -> ChangeHub:
        """New settings; None leaves one as it is. A new partition count is always refused."""
        entry = self.served(name)
        known = entry.description
        if partition_count is not None and partition_count != known.partition_count:
            raise ServiceError(
                ARGUMENT_ERROR,
                f"Event hub '{known.name}' has {known.partition_count} partitions for its whole life, because the "
                f"partition of a key depends on their number. Create another event hub with {partition_count}.",
            )
        retention_ms = known.retention_ms if retention_ms is None else retention_ms
        check_retention(known.name, retention_ms)
        self._profile.check_retention(known.name, retention_ms)
        if user_metadata is not None:
            check_user_metadata(known.name, user_metadata)
        kept = known.durability if durability is None else durability
        capture = known.capture if capture is None else check_capture(known.name, capture)
        self._profile.check_capture(known.name, capture)
        return ChangeHub(
            entry.hub_id,
            retention_ms,
            kept,
            availability=availability,
            user_metadata=user_metadata,
            changed_at_ms=self._env.now_ms(),
            capture=capture,
        )

    def add_group(self, name: str, group: str, user_metadata: str = "") -> SetGroups:
        """A consumer group more. Raises ENTITY_EXISTS when there is one of this name in any case."""
        entry = self.served(name)
        known = entry.description
        existing = known.find_group(check_group_name(group))
        if existing is not None:
            raise ServiceError(ENTITY_EXISTS, f"Event hub '{known.name}' has the consumer group '{existing}' already.")
        groups = check_groups(known.name, (*known.consumer_groups, group))
        self._profile.check_group_count(known.name, len(groups))
        check_user_metadata(f"{known.name}/{group}", user_metadata)
        return SetGroups(
            entry.hub_id, groups, GroupDetails(groups[-1], self._env.now_ms(), user_metadata=user_metadata)
        )

    def change_group(self, name: str, group: str, user_metadata: str | None) -> SetGroups:
        """Another text for a consumer group; None leaves it as it is."""
        entry = self.served(name)
        known = entry.description
        existing = known.find_group(group)
        if existing is None:
            raise self.not_found(f"{known.name}/consumergroups/{group}")
        details = known.details_of(existing)
        if user_metadata is not None:
            check_user_metadata(f"{known.name}/{existing}", user_metadata)
            details = replace(details, user_metadata=user_metadata)
        return SetGroups(entry.hub_id, known.consumer_groups, replace(details, changed_at_ms=self._env.now_ms()))

    def remove_group(self, name: str, group: str) -> SetGroups:
        """A consumer group less; never $Default."""
        entry = self.served(name)
        known = entry.description
        existing = known.find_group(group)
        if existing is None:
            raise self.not_found(f"{known.name}/consumergroups/{group}")
        if existing == DEFAULT_GROUP:
            raise ServiceError(ARGUMENT_ERROR, f"Every event hub has {DEFAULT_GROUP}; that of '{known.name}' stays.")
        return SetGroups(entry.hub_id, tuple(kept for kept in known.consumer_groups if kept != existing))

    def revoke_publisher(self, name: str, publisher: str) -> SetRevoked:
        """One more publisher that may not send; nothing new when it is revoked already, in any case."""
        entry = self.served(name)
        known = entry.description.revoked_publishers
        if any(fold(other) == fold(check_publisher_name(publisher)) for other in known):
            return SetRevoked(entry.hub_id, known)
        if len(known) >= REVOKED_PUBLISHERS_MAX:
            raise ServiceError(
                RESOURCE_LIMIT,
                f"Event hub '{entry.name}' has {REVOKED_PUBLISHERS_MAX} revoked publishers, which is the limit: "
                "restore one, or change the key that their tokens are signed with.",
            )
        return SetRevoked(entry.hub_id, (*known, check_publisher_name(publisher)))

    def restore_publisher(self, name: str, publisher: str) -> SetRevoked:
        """A revoked publisher may send again; NOT_FOUND when it was not revoked."""
        entry = self.served(name)
        known = entry.description.revoked_publishers
        kept = tuple(other for other in known if fold(other) != fold(publisher))
        if len(kept) == len(known):
            raise self.not_found(f"{entry.name}/revokedpublishers/{publisher}")
        return SetRevoked(entry.hub_id, kept)

    def entry(self, name: str) -> EventHubEntry:
        """The hub of that name, whatever its status; else NOT_FOUND."""
        entry = self._catalog.find(name)
        if entry is None:
            raise self.not_found(name)
        return entry

    def not_found(self, path: str) -> ServiceError:
        """NOT_FOUND with the text that clients match."""
        return ServiceError(NOT_FOUND, entity_not_found(entity_uri(self._host, path)))

    def served(self, name: str) -> EventHubEntry:
        """The hub of that name, when it is served; else NOT_FOUND."""
        entry = self.entry(name)
        if entry.description.status is not EntityStatus.ACTIVE:
            raise self.not_found(name)
        return entry

    def _check_new_name(self, name: str) -> None:
        """One hub's name must not lead to another's: the rights of a path hold for everything below it."""
        folded = fold(name)
        for hub in self._catalog.hubs():
            other = fold(hub.name)
            if other == folded:
                text = {
                    EntityStatus.CREATING: "is being created",
                    EntityStatus.ACTIVE: "exists already",
                    EntityStatus.DELETING: "is being deleted: try again in a moment",
                }[hub.description.status]
                raise ServiceError(ENTITY_EXISTS, f"Event hub '{hub.name}' {text}.")
            if other.startswith(folded + "/") or folded.startswith(other + "/"):
                raise ServiceError(
                    ENTITY_EXISTS, f"'{name}' and the event hub '{hub.name}' would lie inside one another: rename it."
                )
