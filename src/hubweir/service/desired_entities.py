"""Makes the entities of a Config.json at start: an entity that exists stays, and what may change of it is changed.

Twice the same file changes nothing. What a file does not name is left alone. A number of partitions that differs from
the hub's is an error with the place in the file, as is everything else that the namespace refuses; all of them are
told together, and the service does not start. After a crash in between: the next start makes the rest.
"""

from __future__ import annotations

import hmac
from functools import partial

from msgspec.structs import replace

from hubweir.config.emulator_capture import capture_description
from hubweir.config.emulator_entities import (
    AuthorizationRuleConfig,
    HubConfig,
    MessagingProperties,
    NamespaceConfig,
    SubscriptionConfig,
    TopicConfig,
)
from hubweir.config.problems import Kind, Location, Problem, Problems, Severity
from hubweir.errors import ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import answer_of
from hubweir.namespace.entity import parse_availability
from hubweir.namespace.event_hub_changes import add_group, set_settings
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import DEFAULT_GROUP
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SubscriptionDescription, subscription_path
from hubweir.namespace.topic_description import TopicDescription
from hubweir.service.desired_messaging import (
    make_destinations,
    make_queue_or_topic,
    make_subscription,
    make_subscription_rule,
    remove_default_rule,
)


async def make_entities(gateway: Gateway, wanted: NamespaceConfig) -> None:
    """Make all that a file names. Raises EmulatorFileError with everything that could not be."""
    problems = Problems()
    for rule in wanted.rules:
        await _try(problems, rule.location, _make_rule(gateway, None, rule))
    for hub in wanted.hubs:
        if await _try(problems, hub.location, _make_hub(gateway, hub, problems)):
            for rule in hub.rules:
                await _try(problems, rule.location, _make_rule(gateway, hub.name, rule))
    await _make_queues_and_topics(gateway, wanted, problems)
    problems.raise_errors()


async def _make_queues_and_topics(gateway: Gateway, wanted: NamespaceConfig, problems: Problems) -> None:
    """See desired_messaging.py: destinations come last, when all that is forwarded to is there."""
    entities: list[tuple[MessagingDescription, MessagingProperties, Location]] = [
        *((QueueDescription(queue.name), queue.properties, queue.location) for queue in wanted.queues),
        *((TopicDescription(topic.name), topic.properties, topic.location) for topic in wanted.topics),
    ]
    has_sku = wanted.sku is not None
    for new, properties, place in entities:
        if await _try(problems, place, make_queue_or_topic(gateway, new, properties, has_sku=has_sku)):
            for rule in properties.rules:
                await _try(problems, rule.location, _make_rule(gateway, new.name, rule))
    for topic in wanted.topics:
        if gateway.namespace.find(topic.name, TopicDescription) is not None:
            for subscription in topic.subscriptions:
                await _make_subscription(gateway, topic, subscription, problems)
                name = subscription_path(topic.name, subscription.name)
                entities.append((SubscriptionDescription(name), subscription.properties, subscription.location))
    for new, properties, place in entities:
        if gateway.namespace.find(new.name, type(new)) is not None:
            await _try(problems, place, make_destinations(gateway, new, properties))


async def _make_subscription(
    gateway: Gateway, topic: TopicConfig, subscription: SubscriptionConfig, problems: Problems
) -> None:
    if not await _try(problems, subscription.location, make_subscription(gateway, topic, subscription)):
        return
    names = topic.name, subscription.name
    for rule in subscription.rules:
        await _try(problems, rule.location, make_subscription_rule(gateway, *names, rule))
    await _try(problems, subscription.location, remove_default_rule(gateway, *names, subscription.rules))


async def _try(problems: Problems, place: Location, step: object) -> bool:
    try:
        await step  # type: ignore[misc]  # a coroutine of this module
    except ServiceError as refusal:
        problems.add(Problem(Severity.ERROR, Kind.CONTRADICTION, place, refusal.text, "", ""))
        return False
    return True


async def _make_hub(gateway: Gateway, hub: HubConfig, problems: Problems) -> None:
    there = gateway.namespace.find(hub.name, EventHubDescription)
    if there is None:
        groups = (DEFAULT_GROUP, *hub.consumer_groups)
        description = EventHubDescription(hub.name, hub.partition_count, consumer_groups=groups)
        longest_ms = gateway.namespace.profile.retention_ms or description.retention_ms
        retention_ms = hub.retention_ms or min(description.retention_ms, longest_ms)
        wanted = _with(replace(description, retention_ms=retention_ms), hub)
        await answer_of(partial(gateway.keeper.create, wanted))
        return
    known = there.description
    if known.partition_count != hub.partition_count:
        text = f"the event hub '{known.name}' has {known.partition_count} partitions for its whole life"
        allowed = f"{known.partition_count}, another name, or a fresh data folder"
        place = hub.partition_count_location
        problems.add(Problem(Severity.ERROR, Kind.CONTRADICTION, place, text, str(hub.partition_count), allowed))
    changed = _with(replace(known, retention_ms=hub.retention_ms or known.retention_ms), hub)
    if changed != known:
        change = partial(set_settings, wanted=changed, seen=known)
        await answer_of(partial(gateway.keeper.change, hub.name, EventHubDescription, change))
    for group in hub.consumer_groups:
        if known.find_group(group) is None:
            more = partial(add_group, name=group)
            await answer_of(partial(gateway.keeper.change, hub.name, EventHubDescription, more))


def _with(known: EventHubDescription, hub: HubConfig) -> EventHubDescription:
    """The hub with the status, the metadata and the capture that a file names."""
    if hub.status is not None:
        known = replace(known, availability=parse_availability(hub.status.value))
    if hub.user_metadata is not None:
        known = replace(known, user_metadata=hub.user_metadata)
    return known if hub.capture is None else replace(known, capture=capture_description(hub.capture))


async def _make_rule(gateway: Gateway, hub: str | None, rule: AuthorizationRuleConfig) -> None:
    """The rule as the file says; keys that it leaves out stay, or are drawn for a new rule."""

    def key(given: Secret | None, old: Secret | None) -> Secret:
        if given is not None or old is not None:
            return given or old or Secret("")
        return gateway.rules.new_key()

    def wanted(known: AuthorizationRuleDescription | None) -> AuthorizationRuleDescription:
        primary = key(rule.primary, None if known is None else known.primary)
        secondary = key(rule.secondary, None if known is None else known.secondary)
        return AuthorizationRuleDescription(rule.name, rule.rights, primary, secondary)

    known = _find(gateway.rules.rules(hub), rule.name)
    if known is None or not _is_same(known, wanted(known)):
        # The rule as it is when the catalog's turn comes: a key that is renewed meanwhile stays renewed.
        change = partial(
            gateway.keeper.change_rules, hub, lambda level: level.set(wanted(_find(level.rules, rule.name)))
        )
        await answer_of(change)


def _find(rules: Rules, name: str) -> AuthorizationRuleDescription | None:
    return next((each for each in rules if fold(each.name) == fold(name)), None)


def _is_same(known: AuthorizationRuleDescription, wanted: AuthorizationRuleDescription) -> bool:
    if (known.name, known.rights) != (wanted.name, wanted.rights):
        return False
    pairs = ((known.primary, wanted.primary), (known.secondary, wanted.secondary))
    return all(hmac.compare_digest(old.reveal().encode(), new.reveal().encode()) for old, new in pairs)
