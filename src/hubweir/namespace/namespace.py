"""A namespace as everybody reads it: its entities, rules and description, answered at once from the catalog in memory.

Only the catalog's writer changes it (catalog_writer.py), in its own process or, where this is a copy, in another
(followed_catalog.py); every other holder is told of each change by `on_change`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.address import address_at
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.entity import AnyEntity, Entity, EntityDescription, EntityKind, of_kind
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.subscription_description import SubscriptionDescription, SubscriptionEntity
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription
from hubweir.namespace.subscription_rules import SubscriptionRules
from hubweir.namespace.tiers import Profile
from hubweir.namespace.topic_description import TopicDescription

K = TypeVar("K", bound=EntityDescription)


class Namespace:
    """One namespace, read only. profile: whose quotas hold. host: how texts name the namespace.

    kind: the class of the descriptions that are asked for, EntityDescription for all. Entities that are being made or
    removed are not served, and only `unfinished` tells them.
    """

    def __init__(self, catalog: Catalog, *, profile: Profile, host: str) -> None:
        self._catalog = catalog
        self._on_change: Callable[[], None] = lambda: None
        self.profile = profile
        self.host = host

    @property
    def description(self) -> NamespaceDescription:
        """The namespace itself, as of the newest change."""
        return self._catalog.namespace

    @property
    def version(self) -> int:
        """Grows by one with every change."""
        return self._catalog.version

    @property
    def newest(self) -> str:
        """The name of the entity that the newest change is about; "" for none: the namespace itself, or its usage."""
        return self._catalog.newest

    @property
    def usage(self) -> tuple[tuple[int, ...], ...]:
        """What was recorded of each hour, oldest first: rows of counts, the hour's start in front."""
        return self._catalog.usage

    def entities(self, kind: type[K]) -> tuple[Entity[K], ...]:
        """The entities of a kind that are served, in the order they were made."""
        served = (entity for entity in self._catalog.entities() if self._catalog.is_served(entity))
        found = (of_kind(entity, kind) for entity in served)
        return tuple(entity for entity in found if entity is not None)

    def find(self, name: str, kind: type[K]) -> Entity[K] | None:
        """The entity of this name in any case, when it is of the kind and served."""
        entity = of_kind(self._catalog.find(name), kind)
        return entity if entity is not None and self._catalog.is_served(entity) else None

    def find_any(self, name: str) -> AnyEntity | None:
        """As `find`, of any kind."""
        return self.find(name, EntityDescription)

    def kind_of(self, name: str) -> EntityKind | None:
        """The kind of the entity of that name that is served; None: there is none."""
        entity = self.find_any(name)
        return None if entity is None else entity.kind

    def get(self, name: str, kind: type[K]) -> Entity[K]:
        """As `find`, or ServiceError NOT_FOUND with the text that clients match."""
        entity = self.find(name, kind)
        if entity is None:
            raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self.host, name)))
        return entity

    def subscriptions(self, topic: str) -> tuple[SubscriptionEntity, ...]:
        """The subscriptions of a topic that are served, in the order they were made; NOT_FOUND."""
        name = self.get(topic, TopicDescription).name
        found = (of_kind(entity, SubscriptionDescription) for entity in self._catalog.inside(name))
        return tuple(entity for entity in found if entity is not None and entity.is_served)

    def subscription_rules(self, subscription: str) -> SubscriptionRules:
        """The rules of a subscription, by its path, to be read and not kept; NOT_FOUND."""
        return self.rules_of(self.get(subscription, SubscriptionDescription))

    def rules_of(self, subscription: AnyEntity) -> SubscriptionRules:
        """The rules of a subscription, whatever its status, to be read and not kept."""
        return self._catalog.rules_of(subscription.entity_id)

    def subscription_rule(self, subscription: str, name: str) -> SubscriptionRuleDescription:
        """The rule of that name, in any case, of a subscription; NOT_FOUND."""
        rule = self.subscription_rules(subscription).find(name)
        if rule is None:
            raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self.host, f"{subscription}/Rules/{name}")))
        return rule

    def owner_of(self, log_id: str) -> AnyEntity | None:
        """The entity that has this log, whatever its status."""
        return self._catalog.owner_of(log_id)

    def unfinished(self) -> tuple[AnyEntity, ...]:
        """The entities between intent and commit: CREATING or DELETING."""
        return self._catalog.unfinished()

    def rule_level(self, name: str | None) -> RuleLevel:
        """The rules of the namespace, or of the entity of that name; NOT_FOUND."""
        return RuleLevel(self.description if name is None else self.get(name, EntityDescription).description, self.host)

    def rule(self, entity: str | None, name: str) -> AuthorizationRuleDescription:
        """The rule of that name, in any case, of an entity or with None of the namespace; else NOT_FOUND."""
        return self.rule_level(entity).rule(name)

    def rules_at(self, segments: tuple[str, ...]) -> tuple[Rules, ...]:
        """The rules that hold at a path: of the entity it leads to, when there is one, then of the namespace."""
        at = address_at(segments, self.find_any)
        own = () if at is None or at.entity is None else (at.entity.description.rules,)
        return (*own, self.description.rules)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call back after every change but of subscriptions' rules, before whoever asked is answered. One callback."""
        self._on_change = callback

    def changed(self) -> None:
        """The catalog's holder applied an operation."""
        self._on_change()

    def read_from(self, catalog: Catalog) -> None:
        """The catalog's holder has another copy, and tells the changes between the two."""
        self._catalog = catalog
