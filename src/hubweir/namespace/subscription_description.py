"""Description of a subscription: what its operator may set, and what a new one must satisfy.

A subscription's name in the catalog is its path, `topic/Subscriptions/name`. It goes with its topic. Its rules are not
part of it, because there may be a hundred thousand: they are kept by operations of their own (catalog_operation.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_fields
from typing import ClassVar, Self

from msgspec.structs import replace

from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings, check_delivery
from hubweir.namespace.entity import AnyEntity, Entity, EntityKind, check_name_is_free
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import check_subscription_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription, check_subscription_rule
from hubweir.namespace.tiers import Profile

SUBSCRIPTIONS = "Subscriptions"


class SubscriptionDescription(MessagingDescription, frozen=True, tag=EntityKind.SUBSCRIPTION.value):
    """One subscription. It lies in its topic's log. first_rule: what it was made with; it never changes."""

    kind: ClassVar[EntityKind] = EntityKind.SUBSCRIPTION

    name: str
    delivery: DeliverySettings = DeliverySettings()
    dead_letters_on_filter_errors: bool = True
    first_rule: SubscriptionRuleDescription = SubscriptionRuleDescription()

    def log_count(self, profile: Profile) -> int:
        return 0

    @property
    def parent(self) -> str:
        """The topic's name."""
        return self.name.rsplit("/", 2)[0]

    @property
    def own_name(self) -> str:
        """The name within the topic."""
        return self.name.rsplit("/", 1)[1]

    def legal(self, context: ChangeContext) -> Self:
        """See MessagingDescription."""
        check_delivery(self.title, self.delivery, context)
        return super().legal(context)

    def checked(self, existing: Sequence[AnyEntity], context: ChangeContext) -> Self:
        """See EntityDescription. NOT_FOUND when the topic is not there; its spelling of the topic's name is kept."""
        topic = next((each for each in existing if _is_topic(each, self.parent)), None)
        if topic is None:
            raise context.not_found(self.parent)
        check_subscription_name(self.own_name)
        named = replace(self, name=subscription_path(topic.name, self.own_name))
        check_name_is_free(named, [each for each in existing if each.kind is self.kind])
        tier, siblings = context.profile.messaging, [each for each in existing if is_inside(each, topic.name)]
        tier.check_subscription_count(topic.name, len(siblings) + 1)
        rule = check_subscription_rule(replace_fields(self.first_rule, created_at_ms=context.now_ms))
        return replace(named.legal(context), first_rule=rule)


SubscriptionEntity = Entity[SubscriptionDescription]


def subscription_path(topic: str, own_name: str) -> str:
    """The name in the catalog of a topic's subscription."""
    return f"{topic}/{SUBSCRIPTIONS}/{own_name}"


def is_inside(entity: AnyEntity, name: str) -> bool:
    """Whether an entity belongs inside the one of that name, in any case."""
    parent = entity.description.parent
    return parent is not None and fold(parent) == fold(name)


def _is_topic(entity: AnyEntity, name: str) -> bool:
    return entity.kind is EntityKind.TOPIC and entity.is_served and fold(entity.name) == fold(name)
