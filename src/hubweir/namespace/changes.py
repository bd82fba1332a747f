"""Turns a change of the namespace into one operation of the catalog, or a refusal that says why and what to do.

Each method judges against the catalog as it is at that moment and writes nothing. What may become of an entity of one
kind stands beside its description: EntityDescription.checked, and functions such as those of event_hub_changes.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace as replace_fields
from typing import TypeVar

from msgspec.structs import replace

from hubweir.env import Env
from hubweir.errors import ARGUMENT_ERROR, ENTITY_EXISTS, NOT_FOUND, STORE_OFFLINE, ServiceError
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import (
    ChangeEntity,
    CommitCreate,
    CommitDelete,
    DescribeNamespace,
    IntendCreate,
    IntendDelete,
    MoveLog,
    PutRule,
    RemoveRule,
)
from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import AnyEntity, Entity, EntityDescription, EntityKind, EntityStatus, Placement, of_kind
from hubweir.namespace.kinds import Description
from hubweir.namespace.messaging_description import storage_of
from hubweir.namespace.names import check_namespace_name
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import Rules
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import (
    KeptPart,
    SubscriptionRuleDescription,
    WantedRule,
    check_subscription_rule,
)
from hubweir.namespace.tiers import Profile

K = TypeVar("K", bound=EntityDescription)
NamespaceChange = Callable[[NamespaceDescription], NamespaceDescription]
EntityChange = Callable[[K, ChangeContext], K]
RuleChange = Callable[[RuleLevel], Rules]


class Changes:
    """Judges changes of one catalog. profile, host, partitions_limit, capture_account: see ChangeContext."""

    def __init__(
        self, catalog: Catalog, env: Env, *, profile: Profile, host: str, partitions_limit: int, capture_account: str
    ) -> None:
        self._catalog = catalog
        self._env = env
        self._host = host
        self._context = ChangeContext(
            profile, host, partitions_limit, capture_account, now_ms=0, takes_messages=self._takes_messages
        )

    def describe(self, change: NamespaceChange) -> DescribeNamespace:
        """What the namespace is from now on. ServiceError when its name is no legal one."""
        known = self._catalog.namespace
        wanted = change(known)
        if wanted.name != known.name:
            check_namespace_name(wanted.name)
        now_ms = self._env.now_ms()
        made = replace_fields(wanted, created_at_ms=known.created_at_ms or now_ms, changed_at_ms=known.changed_at_ms)
        # Who repeats what is known changes nothing, nor the time. Rules have secrets, which nobody compares: rules that
        # are set are a change.
        is_other = made.rules is not known.rules or replace_fields(made, rules=()) != replace_fields(known, rules=())
        if known.created_at_ms and is_other:
            made = replace_fields(made, changed_at_ms=now_ms)
        return DescribeNamespace(made)

    def create(self, description: EntityDescription, stores: Sequence[int], away: Sequence[int] = ()) -> IntendCreate:
        """A new entity; its logs go to the stores in turn, beginning where the last entity's did not.

        stores: those that can be used now; away: the others. STORE_OFFLINE: it has several fragments, which lie on as
        many stores as there are, for as long as it is there, and too few can be used.
        """
        context, existing = self.context(), self._catalog.entities()
        checked = description.checked(existing, context)
        made = replace(checked, created_at_ms=context.now_ms, changed_at_ms=0)
        if away and storage_of(made).is_partitioned and len(stores) < made.log_count(context.profile):
            raise _too_few_stores(made.title, away, is_chosen=not context.profile.messaging.is_premium)
        placements = tuple(
            Placement(self._env.new_id(), stores[(len(existing) + number) % len(stores)])
            for number in range(made.log_count(context.profile))
        )
        return IntendCreate(self._env.new_id(), _of_the_list(made), placements)

    # An entity that is handed in stands for its id: another that has its name by now is NOT_FOUND.

    def commit_create(self, entity: AnyEntity) -> CommitCreate:
        """Serve an entity whose logs exist. NOT_FOUND, or ARGUMENT_ERROR when it is being deleted."""
        if self.now(entity).status is EntityStatus.DELETING:
            text = f"{entity.description.title} is being deleted; it is not served again."
            raise ServiceError(ARGUMENT_ERROR, text)
        return CommitCreate(entity.entity_id)

    def change(self, name: str, kind: type[K], change: EntityChange[K]) -> ChangeEntity:
        """Another description of an entity that is served. NOT_FOUND, or what change raises."""
        entity = self.served(name, kind)
        return ChangeEntity(entity.entity_id, _of_the_list(change(entity.description, self.context())))

    def change_rules(self, name: str | None, change: RuleChange) -> ChangeEntity | DescribeNamespace:
        """Other authorization rules of an entity that is served, or with None of the namespace."""
        if name is None:
            return self.describe(lambda known: replace_fields(known, rules=change(RuleLevel(known, self._host))))
        return self.change(
            name, EntityDescription, lambda known, _: replace(known, rules=change(RuleLevel(known, self._host)))
        )

    def delete(self, name: str, kind: type[EntityDescription]) -> IntendDelete:
        """Serve an entity no more, whatever its status; NOT_FOUND."""
        return IntendDelete(self.entity(name, kind).entity_id)

    def take_back(self, entity: AnyEntity) -> IntendDelete:
        """Do not make an entity after all; NOT_FOUND."""
        return IntendDelete(self.now(entity).entity_id)

    def commit_delete(self, entity: AnyEntity) -> CommitDelete:
        """Forget an entity whose logs are gone. NOT_FOUND, or ARGUMENT_ERROR when nobody deletes it."""
        if self.now(entity).status is not EntityStatus.DELETING:
            raise ServiceError(ARGUMENT_ERROR, f"{entity.description.title} is not being deleted.")
        return CommitDelete(entity.entity_id)

    def move_log(self, log_id: str, store_index: int) -> MoveLog:
        """Another store for a log of an entity that is served. NOT_FOUND, or ARGUMENT_ERROR when it lies there."""
        entity = self.owner_of(log_id)
        if not self._catalog.is_served(entity):
            raise ServiceError(ARGUMENT_ERROR, f"{entity.description.title} {_UNFINISHED[entity.status]}.")
        if Placement(log_id, store_index) in entity.placements:
            text = f"The log {log_id} of {entity.kind.noun} '{entity.name}' lies in store {store_index} already."
            raise ServiceError(ARGUMENT_ERROR, text)
        return MoveLog(entity.entity_id, log_id, store_index)

    def put_rule(self, subscription: str, wanted: WantedRule) -> PutRule:
        """A rule of a subscription that is served: a new one, or one in the place of that of its name.

        ENTITY_EXISTS, NOT_FOUND, or RESOURCE_LIMIT for a topic that has too many of this sort.
        """
        entity = self.served(subscription, SubscriptionDescription)
        rule, keeps = check_subscription_rule(wanted.rule), wanted.keeps
        known = self._catalog.rules_of(entity.entity_id).find(rule.name)
        if keeps is not None:
            if known is None:
                raise self.context().not_found(f"{entity.name}/Rules/{rule.name}")
            kept = {} if keeps is KeptPart.NOTHING else {keeps.value: getattr(known, keeps.value)}
            made = replace_fields(rule, name=known.name, created_at_ms=known.created_at_ms, **kept)
        else:
            if known is not None:
                text = f"{entity.description.title} has the rule '{known.name}' already."
                raise ServiceError(ENTITY_EXISTS, text)
            made = replace_fields(rule, created_at_ms=self._env.now_ms())
        if known is None or known.is_correlation != made.is_correlation:
            self._check_rule_counts(entity.description.parent, made)
        return PutRule(entity.entity_id, made)

    def remove_rule(self, subscription: str, name: str) -> RemoveRule:
        """A rule less of a subscription that is served; NOT_FOUND."""
        entity = self.served(subscription, SubscriptionDescription)
        if self._catalog.rules_of(entity.entity_id).find(name) is None:
            raise self.context().not_found(f"{entity.name}/Rules/{name}")
        return RemoveRule(entity.entity_id, name)

    def context(self) -> ChangeContext:
        """What changes are judged against now."""
        return replace_fields(self._context, now_ms=self._env.now_ms())

    def entity(self, name: str, kind: type[K]) -> Entity[K]:
        """The entity of that name and kind, whatever its status; else NOT_FOUND."""
        entity = of_kind(self._catalog.find(name), kind)
        if entity is None:
            raise self.context().not_found(name)
        return entity

    def served(self, name: str, kind: type[K]) -> Entity[K]:
        """The entity of that name and kind, when it is served; else NOT_FOUND."""
        entity = self.entity(name, kind)
        if not self._catalog.is_served(entity):
            raise self.context().not_found(name)
        return entity

    def owner_of(self, log_id: str) -> AnyEntity:
        """The entity that has this log, whatever its status; NOT_FOUND."""
        entity = self._catalog.owner_of(log_id)
        if entity is None:
            raise ServiceError(NOT_FOUND, f"No entity has the log {log_id}.")
        return entity

    def now(self, entity: Entity[K]) -> Entity[K]:
        """The entity as it is now, whatever its status; NOT_FOUND when it is gone."""
        found = of_kind(self._catalog.get(entity.entity_id), type(entity.description))
        if found is None:
            raise self.context().not_found(entity.name)
        return found

    def _takes_messages(self, name: str) -> bool:
        entity = self._catalog.find(name)
        return entity is not None and entity.kind in _TAKES_MESSAGES and entity.status is not EntityStatus.DELETING

    def _check_rule_counts(self, topic: str, rule: SubscriptionRuleDescription) -> None:
        """RESOURCE_LIMIT when a topic may not have one more rule of this sort."""
        lists = [self._catalog.rules_of(each.entity_id) for each in self._catalog.inside(topic)]
        sql, correlation = sum(each.sql_count for each in lists), sum(each.correlation_count for each in lists)
        tier = self._context.profile.messaging
        if rule.is_correlation:
            tier.check_rule_counts(topic, 0, correlation + 1)
        else:
            tier.check_rule_counts(topic, sql + 1, 0)


def _too_few_stores(title: str, away: Sequence[int], *, is_chosen: bool) -> ServiceError:
    """is_chosen: an entity of one fragment may be made instead."""
    stores = ", ".join(f"store-{index}" for index in away)
    text = (
        f"{title} was not created: it is partitioned, its fragments are spread over all messaging stores for good, and "
        f"these are away: {stores}. Create it when they are back{', or without partitioning' if is_chosen else ''}."
    )
    return ServiceError(STORE_OFFLINE, text)


_UNFINISHED = {
    EntityStatus.CREATING: "is being made: no log of it is moved before it is served",
    EntityStatus.DELETING: "is being deleted: no log of it is moved any more",
}
_TAKES_MESSAGES = (EntityKind.QUEUE, EntityKind.TOPIC)


def _of_the_list(description: EntityDescription) -> Description:
    """A description of one of the kinds that the catalog can hold (kinds.py): others cannot be read back."""
    assert isinstance(description, Description), f"{type(description).__name__} is no kind of kinds.py"
    return description
