"""The one writer of a catalog: creates, changes and deletes entities of every kind, and changes the namespace itself.

Creating takes two steps, so that a crash between them can be carried on (promise P18): `begin_create` writes the
intent, with a log id and a store for every log; the caller has the brokers make those logs; `commit_create` makes the
entity ACTIVE, and only then it is served. Deleting likewise, which is also how a creation that failed is taken back.

Every change is judged when its turn comes (changes.py) and answered through on_done, with a value or with a
ServiceError: once it is durable and every process that follows the catalog has it, on the loop, never inside the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hubweir.env import Env
from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Durability, Log
from hubweir.namespace.catalog_followers import CatalogFollowers
from hubweir.namespace.catalog_log import CatalogLog, Change, LoadedCatalog
from hubweir.namespace.catalog_operation import Operation, RecordUsage
from hubweir.namespace.changes import Changes, EntityChange, NamespaceChange, RuleChange
from hubweir.namespace.entity import Entity, EntityDescription
from hubweir.namespace.event_hub_description import PARTITIONS_LIMIT
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription, WantedRule
from hubweir.namespace.tiers import DEVELOPMENT, Profile

T = TypeVar("T")
K = TypeVar("K", bound=EntityDescription)
OnEntity = Callable[[Entity[K] | ServiceError], None]
OnNamespace = Callable[[NamespaceDescription | ServiceError], None]
OnSubscriptionRule = Callable[[SubscriptionRuleDescription | ServiceError], None]
OnRemoved = Callable[[None | ServiceError], None]
OnRules = Callable[[RuleLevel | ServiceError], None]


class CatalogWriter:
    """A namespace's catalog on its log, which must be DURABLE. namespace: what everybody else reads.

    loaded: what load_catalog read from that log. profile, host, partitions_limit, capture_account: what changes are
    judged against (ChangeContext).
    """

    def __init__(
        self,
        catalog_log: Log,
        env: Env,
        loaded: LoadedCatalog,
        *,
        profile: Profile = DEVELOPMENT,
        host: str = "hubweir",
        partitions_limit: int = PARTITIONS_LIMIT,
        capture_account: str = "",
    ) -> None:
        if catalog_log.durability is not Durability.DURABLE:
            raise ValueError("the catalog needs a log in DURABLE mode: its changes are answered as kept")
        self._log = CatalogLog(catalog_log, env, loaded)
        catalog = self._log.catalog
        self._changes = Changes(
            catalog, env, profile=profile, host=host, partitions_limit=partitions_limit, capture_account=capture_account
        )
        self.namespace = Namespace(catalog, profile=profile, host=host)
        self._log.on_applied = self.namespace.changed

    @property
    def followers(self) -> CatalogFollowers:
        """The processes that have a copy of the catalog: a change is answered when they have applied it."""
        return self._log.followers

    def snapshot(self) -> tuple[int, bytes]:
        """The catalog's version, and the whole of it as bytes (Catalog.restore)."""
        return self._log.catalog.version, self._log.catalog.snapshot()

    def begin_create(
        self, description: K, stores: Sequence[int], on_done: OnEntity[K], *, away: Sequence[int] = ()
    ) -> None:
        """Write the intent to create an entity, its logs spread over the stores in turn. stores, away: see Changes."""
        name, kind = description.name, type(description)
        self._submit(
            lambda: self._changes.create(description, stores, away), lambda: self._changes.entity(name, kind), on_done
        )

    def commit_create(self, entity: Entity[K], on_done: OnEntity[K]) -> None:
        """All logs exist: serve the entity. Does nothing new when it is served already."""
        self._submit(lambda: self._changes.commit_create(entity), lambda: self._changes.now(entity), on_done)

    def change(self, name: str, kind: type[K], change: EntityChange[K], on_done: OnEntity[K]) -> None:
        """Change an entity of a kind that is served. change: another description, or a ServiceError raised."""
        self._submit(
            lambda: self._changes.change(name, kind, change), lambda: self._changes.entity(name, kind), on_done
        )

    def begin_delete(self, name: str, kind: type[K], on_done: OnEntity[K]) -> None:
        """Write the intent to delete an entity, which is not served from then on."""
        self._submit(lambda: self._changes.delete(name, kind), lambda: self._changes.entity(name, kind), on_done)

    def take_back(self, entity: Entity[K], on_done: OnEntity[K]) -> None:
        """Write the intent to delete an entity that is not to be made after all."""
        self._submit(lambda: self._changes.take_back(entity), lambda: self._changes.now(entity), on_done)

    def commit_delete(self, entity: Entity[K], on_done: OnEntity[K]) -> None:
        """All logs are gone: forget the entity. on_done: what it was."""
        self._submit(lambda: self._changes.commit_delete(entity), lambda: entity, on_done)

    def check_move(self, log_id: str, store_index: int) -> None:
        """ServiceError when `move_log` would be refused now: for whoever copies the log first."""
        self._changes.move_log(log_id, store_index)

    def move_log(self, log_id: str, store_index: int, on_done: OnEntity[EntityDescription]) -> None:
        """From now on a log lies in that store. The whole of it must be there; only then this may be asked for."""
        self._submit(
            lambda: self._changes.move_log(log_id, store_index), lambda: self._changes.owner_of(log_id), on_done
        )

    def put_rule(self, subscription: str, wanted: WantedRule, on_done: OnSubscriptionRule) -> None:
        """Make a rule of a subscription, by its path, or replace one. on_done: with it as it is then."""
        self._submit(
            lambda: self._changes.put_rule(subscription, wanted),
            lambda: self.namespace.subscription_rule(subscription, wanted.rule.name),
            on_done,
        )

    def remove_rule(self, subscription: str, name: str, on_done: OnRemoved) -> None:
        """Remove a rule of a subscription. on_done: with None, or why not."""
        self._submit(lambda: self._changes.remove_rule(subscription, name), lambda: None, on_done)

    def change_rules(self, name: str | None, change: RuleChange, on_done: OnRules) -> None:
        """Change the authorization rules of an entity, or with None of the namespace. on_done: as they are then."""
        self._submit(lambda: self._changes.change_rules(name, change), lambda: self.namespace.rule_level(name), on_done)

    def describe(self, change: NamespaceChange, on_done: OnNamespace) -> None:
        """Change what the namespace is. change: from what it is at its turn; it may raise ServiceError."""
        self._submit(lambda: self._changes.describe(change), lambda: self.namespace.description, on_done)

    def record_usage(self, hours: Sequence[tuple[int, ...]], oldest_hour_ms: int, on_done: OnNamespace) -> None:
        """Put these rows in place of what is recorded of their hours, and forget what is older than oldest_hour_ms."""
        rows = tuple(hours)
        self._submit(lambda: RecordUsage(rows, oldest_hour_ms), lambda: self.namespace.description, on_done)

    def _submit(
        self, plan: Callable[[], Operation], result: Callable[[], T], on_done: Callable[[T | ServiceError], None]
    ) -> None:
        self._log.submit(Change(plan, result, on_done))
