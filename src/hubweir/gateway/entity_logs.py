"""The commands by which brokers make, open, change and remove the logs of an entity: a class for each kind.

Every command goes to the broker of its placement. To make or to remove a log twice does nothing the second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from hubweir.broker.commands.command import Command
from hubweir.broker.commands.fragment import ChangeFragment, CreateFragment, DeleteFragment, OpenFragment
from hubweir.broker.commands.partition import ChangePartition, CreatePartition, DeletePartition, OpenPartition
from hubweir.broker.commands.topic import (
    CreateTopic,
    OpenTopic,
    PutSubscription,
    PutSubscriptionRules,
    RemoveSubscription,
    RemoveSubscriptionRule,
    TopicSubscription,
)
from hubweir.broker.rule_forms import encode_rules
from hubweir.gateway.fragments import fragment_id
from hubweir.limits import MIB
from hubweir.namespace.entity import AnyEntity, Placement, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.queue_description import QueueDescription, QueueEntity
from hubweir.namespace.subscription_description import SubscriptionDescription, SubscriptionEntity
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription
from hubweir.namespace.topic_description import TopicDescription, TopicEntity
from hubweir.queue.fragment_settings import FragmentSettings

LogCommands = list[tuple[Placement, Command]]


class EntityLogs(Protocol):
    """The logs of one entity. namespace: the name of the namespace that it is in."""

    def make(self, namespace: str) -> LogCommands:
        """What makes the logs of a new entity."""

    def open(self, namespace: str) -> LogCommands:
        """What opens logs that were made before; one that is lost is never made anew."""

    def change(self) -> LogCommands:
        """What tells the settings to the logs. A change that leaves these commands as they were tells them nothing."""

    def remove(self) -> LogCommands:
        """What removes the logs."""


def logs_of(entity: AnyEntity, namespace: Namespace) -> EntityLogs:
    """The logs of an entity, by its kind. namespace: has what belongs inside it, or what it belongs inside."""
    hub = of_kind(entity, EventHubDescription)
    if hub is not None:
        return EventHubLogs(hub)
    queue = of_kind(entity, QueueDescription)
    if queue is not None:
        return FragmentLogs(queue, namespace)
    topic = of_kind(entity, TopicDescription)
    if topic is not None:
        return TopicLogs(topic, namespace)
    subscription = of_kind(entity, SubscriptionDescription)
    if subscription is not None:
        return SubscriptionLogs(subscription, namespace)
    raise NotImplementedError(f"no broker keeps the logs of a {entity.kind.noun}")


class EventHubLogs:
    """A log for each partition."""

    def __init__(self, hub: EventHubEntity) -> None:
        self._hub = hub.description
        self._placements = hub.placements

    def make(self, namespace: str) -> LogCommands:
        return self._each_partition(CreatePartition, namespace)

    def open(self, namespace: str) -> LogCommands:
        return self._each_partition(OpenPartition, namespace)

    def change(self) -> LogCommands:
        settings = self._hub.durability, self._hub.retention_ms, self._hub.capture
        return [(placement, ChangePartition(placement.log_id, *settings)) for placement in self._placements]

    def remove(self) -> LogCommands:
        return [(placement, DeletePartition(placement.log_id)) for placement in self._placements]

    def _each_partition(self, command: type[CreatePartition], namespace: str) -> LogCommands:
        hub = self._hub
        settings = hub.durability, hub.retention_ms, namespace, hub.capture
        return [
            (placement, command(placement.log_id, hub.name, partition_id, *settings))
            for partition_id, placement in zip(hub.partition_ids, self._placements, strict=True)
        ]


class FragmentLogs:
    """A log for each fragment of a queue."""

    def __init__(self, entity: QueueEntity, namespace: Namespace) -> None:
        self._description = entity.description
        self._placements = entity.placements
        self._settings = fragment_settings(entity.description, namespace, len(entity.placements))

    def make(self, namespace: str) -> LogCommands:
        return self._each_fragment(CreateFragment, namespace)

    def open(self, namespace: str) -> LogCommands:
        return self._each_fragment(OpenFragment, namespace)

    def change(self) -> LogCommands:
        return _change(self._settings, self._placements)

    def remove(self) -> LogCommands:
        return [(placement, DeleteFragment(placement.log_id)) for placement in self._placements]

    def _each_fragment(self, command: type[CreateFragment], namespace: str) -> LogCommands:
        return [
            (placement, command(placement.log_id, self._description.name, self._settings, namespace, number))
            for number, placement in enumerate(self._placements)
        ]


class TopicLogs:
    """A log for each fragment of a topic, which is opened with all its subscriptions."""

    def __init__(self, entity: TopicEntity, namespace: Namespace) -> None:
        self._name = entity.name
        self._placements = entity.placements
        self._settings = fragment_settings(entity.description, namespace, len(entity.placements))
        self._namespace = namespace

    def make(self, namespace: str) -> LogCommands:
        return [
            (each, CreateTopic(each.log_id, self._name, self._settings, namespace, (), number))
            for number, each in enumerate(self._placements)
        ]

    def open(self, namespace: str) -> LogCommands:
        inside = [topic_subscription(each, self._namespace) for each in self._namespace.subscriptions(self._name)]
        count = len(self._placements)
        return [
            (
                each,
                OpenTopic(
                    each.log_id,
                    self._name,
                    self._settings,
                    namespace,
                    tuple(_in_fragment(said, number, count) for said in inside),
                    number,
                ),
            )
            for number, each in enumerate(self._placements)
        ]

    def change(self) -> LogCommands:
        return _change(self._settings, self._placements)

    def remove(self) -> LogCommands:
        return [(placement, DeleteFragment(placement.log_id)) for placement in self._placements]


class SubscriptionLogs:
    """A subscription lies in its topic's logs, a fragment in each. It is opened and removed with its topic."""

    def __init__(self, entity: SubscriptionEntity, namespace: Namespace) -> None:
        self._entity = entity
        self._namespace = namespace

    def make(self, namespace: str) -> LogCommands:
        return self.change()

    def open(self, namespace: str) -> LogCommands:
        return []

    def change(self) -> LogCommands:
        said, placements = topic_subscription(self._entity, self._namespace), self._topic_placements()
        return [
            (each, PutSubscription(each.log_id, _in_fragment(said, number, len(placements))))
            for number, each in enumerate(placements)
        ]

    def remove(self) -> LogCommands:
        return [(each, RemoveSubscription(each.log_id, named)) for each, named in self._fragments()]

    def put_rule(self, rule: SubscriptionRuleDescription) -> LogCommands:
        """What tells one rule more, or another in the place of the one of its name."""
        rules = encode_rules([rule])
        return [(each, PutSubscriptionRules(each.log_id, named, rules)) for each, named in self._fragments()]

    def remove_rule(self, name: str) -> LogCommands:
        """What tells one rule less."""
        return [(each, RemoveSubscriptionRule(each.log_id, named, name)) for each, named in self._fragments()]

    def _fragments(self) -> list[tuple[Placement, str]]:
        """Each log of the topic, and what the subscription's fragment is called there."""
        placements = self._topic_placements()
        return [
            (each, fragment_id(self._entity.entity_id, number, len(placements)))
            for number, each in enumerate(placements)
        ]

    def _topic_placements(self) -> tuple[Placement, ...]:
        """None when the topic is not served: what it holds goes with it."""
        topic = self._namespace.find(self._entity.description.parent, TopicDescription)
        return () if topic is None else topic.placements


def topic_subscription(entity: SubscriptionEntity, namespace: Namespace) -> TopicSubscription:
    """What a topic of one log has to know of a subscription, with all its rules."""
    description = entity.description
    return TopicSubscription(
        entity.entity_id,
        description.name,
        fragment_settings(description, namespace),
        description.dead_letters_on_filter_errors,
        encode_rules(namespace.rules_of(entity)),
    )


def _in_fragment(said: TopicSubscription, number: int, count: int) -> TopicSubscription:
    """The same for the topic's log of this number. count: of those logs."""
    return replace(said, subscription_id=fragment_id(said.subscription_id, number, count))


def _change(settings: FragmentSettings, placements: tuple[Placement, ...]) -> LogCommands:
    return [(placement, ChangeFragment(placement.log_id, settings)) for placement in placements]


def fragment_settings(description: MessagingDescription, namespace: Namespace, count: int = 1) -> FragmentSettings:
    """What a fragment has to know of its entity. count: of its fragments, among which the entity's size is divided."""
    delivery, storage, time_to_live = (
        delivery_of(description),
        storage_of(description),
        description.default_time_to_live,
    )
    return FragmentSettings(
        lock_duration_ms=delivery.lock_duration.ms,
        default_ttl_ms=None if time_to_live.is_unlimited else time_to_live.ms,
        max_delivery_count=delivery.max_delivery_count,
        dead_letters_on_expiry=delivery.dead_letters_on_expiration,
        requires_session=delivery.requires_session,
        duplicate_window_ms=storage.duplicate_window.ms if storage.requires_duplicate_detection else None,
        max_size_bytes=storage.size_in_megabytes(namespace.profile.messaging) * MIB // count,
        is_express=storage.is_express,
        duplicates_have_keys=storage.requires_duplicate_detection and count > 1,
    )
