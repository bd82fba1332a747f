"""Makes queues, topics, subscriptions and rules of a Config.json at start; what is there stays, and may be changed.

Queues and topics come first, without what they forward to; then subscriptions with their rules; then destinations,
which exist by then, whatever order the file has. What the file does not say stays as it is, or has the profile's
default in what is new. After a crash in between: the next start makes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from hubweir.config.emulator_entities import MessagingProperties, RuleConfig, SubscriptionConfig, TopicConfig
from hubweir.config.emulator_messaging import subscription_rule, with_defaults, with_properties, without_destinations
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.subscription_rule_management import check_rule
from hubweir.namespace.messaging_changes import partitioned_as, replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import DEFAULT_RULE
from hubweir.namespace.resource_path import fold
from hubweir.namespace.subscription_description import SubscriptionDescription, subscription_path
from hubweir.namespace.subscription_rule import TrueFilterDescription

M = TypeVar("M", bound=MessagingDescription)


async def make_queue_or_topic(gateway: Gateway, wanted: M, properties: MessagingProperties, *, has_sku: bool) -> None:
    """Make it, without destinations, or change what the file says otherwise. wanted: as new. Raises ServiceError.

    has_sku: see with_defaults.
    """
    new = with_defaults(wanted, gateway.namespace.profile, has_sku=has_sku)
    await _make(gateway, new, without_destinations(properties))


async def make_subscription(gateway: Gateway, topic: TopicConfig, wanted: SubscriptionConfig) -> None:
    """As make_queue_or_topic; a new one begins with the first of its rules."""
    name = subscription_path(topic.name, wanted.name)
    new = with_defaults(SubscriptionDescription(name), gateway.namespace.profile, has_sku=False)
    if wanted.rules:
        new = replace(new, first_rule=check_rule(subscription_rule(wanted.rules[0])))
    await _make(gateway, new, without_destinations(wanted.properties))


async def make_destinations(gateway: Gateway, wanted: M, properties: MessagingProperties) -> None:
    """Have an entity forward to where the file says. Raises ServiceError."""
    if properties.forward_to is not None or properties.forward_dead_lettered_messages_to is not None:
        await _make(gateway, wanted, properties)


async def make_subscription_rule(gateway: Gateway, topic: str, subscription: str, rule: RuleConfig) -> None:
    """Make a rule, or replace it when the file says otherwise. Raises ServiceError."""
    path, wanted = subscription_path(topic, subscription), subscription_rule(rule)
    known = gateway.namespace.subscription_rules(path).find(rule.name)
    if known is None:
        await answer_of(partial(gateway.subscription_rules.create, path, wanted))
    elif (known.filter, known.action) != (wanted.filter, wanted.action):
        await answer_of(partial(gateway.subscription_rules.replace, path, wanted))


async def remove_default_rule(gateway: Gateway, topic: str, subscription: str, rules: Iterable[RuleConfig]) -> None:
    """Rules of a file stand in the place of the one that lets every message through. Raises ServiceError."""
    path, names = subscription_path(topic, subscription), {fold(rule.name) for rule in rules}
    default = gateway.namespace.subscription_rules(path).find(DEFAULT_RULE)
    if not names or fold(DEFAULT_RULE) in names or default is None or default.action is not None:
        return
    if isinstance(default.filter, TrueFilterDescription):
        await answer_of(partial(gateway.subscription_rules.delete, path, DEFAULT_RULE))


async def _make(gateway: Gateway, new: M, properties: MessagingProperties) -> None:
    kind = type(new)
    there = gateway.namespace.find(new.name, kind)
    if there is None:
        await answer_of(partial(gateway.keeper.create, with_properties(new, properties)))
        return
    changed = with_properties(there.description, properties)
    if gateway.namespace.profile.messaging.is_premium:
        changed = partitioned_as(there.description, changed)  # as when it was made, the tier decides
    if changed != there.description:
        change = partial(replace_settings, wanted=changed, seen=there.description)
        await answer_of(partial(gateway.keeper.change, new.name, kind, change))
