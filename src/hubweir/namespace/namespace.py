"""A namespace: finds, creates, changes and deletes event hubs, their consumer groups and their rules.

Creating takes two steps, so that a crash between them can be carried on (promise P18): `begin_create_hub` writes the
intent, with a log id and a store for every partition; the caller has the brokers make those logs; `commit_create_hub`
makes the hub ACTIVE, and only then `find_hub` finds it. Deleting likewise, which is also how a creation that failed
is taken back. `unfinished` names what was caught in between.

Every change is judged when its turn comes and answered through on_done, with a value or with a ServiceError: once it
is durable, on the loop, never inside the call. Reading answers at once from the catalog in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hubweir.env import Env
from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Durability, Log
from hubweir.namespace.address import find_hub_prefix
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.catalog_log import CatalogLog, Change
from hubweir.namespace.catalog_operation import Operation, RecordUsage, SetUnits
from hubweir.namespace.changes import Changes
from hubweir.namespace.descriptions import (
    PARTITIONS_MAX,
    AuthorizationRuleDescription,
    Availability,
    EntityStatus,
    EventHubDescription,
    NamespaceDescription,
    UnitsDescription,
)
from hubweir.namespace.event_hub_entry import EventHubEntry
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleChanges, RuleKey
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DEVELOPMENT, Profile

OnHub = Callable[[EventHubEntry | ServiceError], None]
OnNamespace = Callable[[NamespaceDescription | ServiceError], None]
OnRule = Callable[[AuthorizationRuleDescription | ServiceError], None]
Rules = tuple[AuthorizationRuleDescription, ...]


class Namespace:
    """One namespace on its catalog's log, which must be DURABLE. host: how texts name it.

    partitions_max: of a hub that is made from now on.
    """

    def __init__(
        self,
        catalog_log: Log,
        env: Env,
        *,
        profile: Profile = DEVELOPMENT,
        host: str = "hubweir",
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        if catalog_log.durability is not Durability.DURABLE:
            raise ValueError("the catalog needs a log in DURABLE mode: its changes are answered as kept")
        self._log = CatalogLog(catalog_log, env)
        self._catalog = self._log.catalog
        self._changes = Changes(self._catalog, env, profile=profile, host=host, partitions_max=partitions_max)
        self._rule_changes = RuleChanges(self._catalog, self._changes)
        self.profile = profile
        self.host = host

    @property
    def description(self) -> NamespaceDescription:
        """The namespace itself, as of the newest change."""
        return self._catalog.namespace

    @property
    def version(self) -> int:
        """Grows by one with every change; commands to brokers carry it."""
        return self._catalog.version

    def hubs(self) -> tuple[EventHubEntry, ...]:
        """The hubs that are served, in the order they were made."""
        return tuple(hub for hub in self._catalog.hubs() if hub.description.status is EntityStatus.ACTIVE)

    def find_hub(self, name: str) -> EventHubEntry | None:
        """The hub of this name in any case, when it is served."""
        entry = self._catalog.find(name)
        return entry if entry is not None and entry.description.status is EntityStatus.ACTIVE else None

    def hub_name(self, name: str) -> str | None:
        """The name as it was created, for parse_address."""
        entry = self.find_hub(name)
        return None if entry is None else entry.name

    def get_hub(self, name: str) -> EventHubEntry:
        """The hub, or ServiceError NOT_FOUND with the text that clients match."""
        entry = self.find_hub(name)
        if entry is None:
            raise self._changes.not_found(name)
        return entry

    def unfinished(self) -> tuple[EventHubEntry, ...]:
        """The hubs between intent and commit: CREATING or DELETING."""
        return self._catalog.unfinished()

    def rules_at(self, segments: tuple[str, ...]) -> tuple[Rules, ...]:
        """The rules that hold at a path: of the hub it leads to, when there is one, then of the namespace."""
        found = find_hub_prefix(segments, self.hub_name)
        own = () if found is None else (self.get_hub(found[0]).description.rules,)
        return (*own, self.description.rules)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after every change, before its on_done. One callback."""
        self._log.on_applied = callback

    def name_namespace(self, name: str, on_done: OnNamespace) -> None:
        """Give the namespace its name."""
        self._change_namespace(lambda: self._changes.name_namespace(name), on_done)

    def begin_create_hub(self, description: EventHubDescription, stores: Sequence[int], on_done: OnHub) -> None:
        """Write the intent to create a hub, its partitions spread over the stores in turn. on_done: its entry."""
        self._change_hub(description.name, lambda: self._changes.create(description, stores), on_done)

    def commit_create_hub(self, name: str, on_done: OnHub) -> None:
        """All partitions exist: serve the hub. Does nothing new when it is served already."""
        self._change_hub(name, lambda: self._changes.commit_create(name), on_done)

    def begin_delete_hub(self, name: str, on_done: OnHub) -> None:
        """Write the intent to delete a hub, which is not served from then on. on_done: its entry."""
        self._change_hub(name, lambda: self._changes.delete(name), on_done)

    def commit_delete_hub(self, name: str, on_done: OnHub) -> None:
        """All partitions are gone: forget the hub. on_done: what it was."""
        gone: list[EventHubEntry] = []

        def plan() -> Operation:
            operation = self._changes.commit_delete(name)
            gone.append(self._changes.entry(name))
            return operation

        self._log.submit(Change(plan, gone.pop, on_done))

    def change_hub(
        self,
        name: str,
        on_done: OnHub,
        *,
        retention_ms: int | None = None,
        durability: Durability | None = None,
        partition_count: int | None = None,
        availability: Availability | None = None,
        user_metadata: str | None = None,
        capture: CaptureDescription | None = None,
    ) -> None:
        """Change settings of a hub; None leaves one as it is. Another partition_count is refused: see Changes."""

        def plan() -> Operation:
            settings = retention_ms, durability, partition_count, availability, user_metadata, capture
            return self._changes.change(name, *settings)

        self._change_hub(name, plan, on_done)

    def add_consumer_group(self, hub: str, group: str, on_done: OnHub, *, user_metadata: str = "") -> None:
        """Add a group, which must not be there; on_done: the hub."""
        self._change_hub(hub, lambda: self._changes.add_group(hub, group, user_metadata), on_done)

    def change_consumer_group(self, hub: str, group: str, user_metadata: str | None, on_done: OnHub) -> None:
        """Give a group another text, None leaves it; on_done: the hub."""
        self._change_hub(hub, lambda: self._changes.change_group(hub, group, user_metadata), on_done)

    def remove_consumer_group(self, hub: str, group: str, on_done: OnHub) -> None:
        """Remove a group, $Default never; on_done: the hub. Who ends its readers follows on_change."""
        self._change_hub(hub, lambda: self._changes.remove_group(hub, group), on_done)

    def revoke_publisher(self, hub: str, publisher: str, on_done: OnHub) -> None:
        """A publisher of a hub may not send from now on, whatever its token says."""
        self._change_hub(hub, lambda: self._changes.revoke_publisher(hub, publisher), on_done)

    def restore_publisher(self, hub: str, publisher: str, on_done: OnHub) -> None:
        """A revoked publisher may send again."""
        self._change_hub(hub, lambda: self._changes.restore_publisher(hub, publisher), on_done)

    def set_rule(self, hub: str | None, rule: AuthorizationRuleDescription, on_done: OnNamespace) -> None:
        """Add a rule to a hub, or with None to the namespace; it takes the place of one with its name."""
        self._change_namespace(lambda: self._rule_changes.set(hub, rule), on_done)

    def set_hub_rules(self, hub: str, rules: Rules, on_done: OnHub) -> None:
        """Give a hub these rules in place of all that it has."""
        self._change_hub(hub, lambda: self._rule_changes.set_all(hub, rules), on_done)

    def remove_rule(self, hub: str | None, name: str, on_done: OnNamespace) -> None:
        """Remove a rule from a hub, or with None from the namespace."""
        self._change_namespace(lambda: self._rule_changes.remove(hub, name), on_done)

    def rule(self, hub: str | None, name: str) -> AuthorizationRuleDescription:
        """The rule of that name, in any case, on a served hub or with None on the namespace; else NOT_FOUND."""
        return self._rule_changes.rule(None if hub is None else self.get_hub(hub).name, name)

    def create_rule(self, hub: str | None, rule: AuthorizationRuleDescription, on_done: OnRule) -> None:
        """Add a rule, which must not be there; on_done: the rule."""
        self._change_rule(hub, rule.name, lambda: self._rule_changes.create(hub, rule), on_done)

    def change_rule(self, hub: str | None, name: str, rights: Rights, on_done: OnRule) -> None:
        """Give a rule other rights; its keys stay."""
        self._change_rule(hub, name, lambda: self._rule_changes.change(hub, name, rights), on_done)

    def renew_key(self, hub: str | None, name: str, key: RuleKey, secret: Secret, on_done: OnRule) -> None:
        """Put another key in the place of one of a rule's two."""
        self._change_rule(hub, name, lambda: self._rule_changes.renew(hub, name, key, secret), on_done)

    def change_units(self, decide: Callable[[UnitsDescription], UnitsDescription], on_done: OnNamespace) -> None:
        """Set the throughput units. decide: from those of the moment in which the change has its turn; it may raise
        ServiceError."""
        self._change_namespace(lambda: SetUnits(decide(self.description.units)), on_done)

    @property
    def usage(self) -> tuple[tuple[int, ...], ...]:
        """What was recorded of each hour, oldest first: rows of counts, the hour's start in front."""
        return self._catalog.usage

    def record_usage(self, hours: Sequence[tuple[int, ...]], oldest_hour_ms: int, on_done: OnNamespace) -> None:
        """Put these rows in place of what is recorded of their hours, and forget what is older than oldest_hour_ms."""
        self._change_namespace(lambda: RecordUsage(tuple(hours), oldest_hour_ms), on_done)

    def _change_hub(self, name: str, plan: Callable[[], Operation], on_done: OnHub) -> None:
        self._log.submit(Change(plan, lambda: self._changes.entry(name), on_done))

    def _change_namespace(self, plan: Callable[[], Operation], on_done: OnNamespace) -> None:
        self._log.submit(Change(plan, lambda: self.description, on_done))

    def _change_rule(self, hub: str | None, name: str, plan: Callable[[], Operation], on_done: OnRule) -> None:
        self._log.submit(Change(plan, lambda: self._rule_changes.rule(hub, name), on_done))
