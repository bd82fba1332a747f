"""Reads the XML of a PUT on a queue, a topic or a subscription. Elements that the service sets itself are passed over.

A description stands for the whole: what it leaves out gets the service's default, but for authorization rules, which
stay as they are when there is no word of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from msgspec.structs import replace

from hubweir.gateway.http.description_xml import read_rule
from hubweir.gateway.http.rule_xml import read_subscription_rule
from hubweir.gateway.http.strict_xml import Element, refused
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability, parse_availability
from hubweir.namespace.iso_duration import BadDuration, WrittenDuration, written_duration
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import DEFAULT_RULE
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rule_description import Rules
from hubweir.namespace.secret import Secret
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

M = TypeVar("M", bound=MessagingDescription)
NewKey = Callable[[], Secret]

_DIGITS_LIMIT = 9
_PARTITIONING = "EnablePartitioning"
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class WantedEntity(Generic[M]):
    """What a request asks an entity to be. rules: None when it says nothing about them.

    says_partitioning: whether it says if the entity is to be partitioned.
    """

    description: M
    rules: Rules | None
    says_partitioning: bool = False

    @property
    def new(self) -> M:
        """The description of an entity that is to be made."""
        return replace(self.description, rules=self.rules or ())


def read_queue(element: Element, name: str, new_key: NewKey) -> WantedEntity[QueueDescription]:
    """element: QueueDescription. new_key: makes a key for a rule that comes without one. Raises ServiceError."""
    members = _Members(element)
    queue = QueueDescription(name, _delivery(members), _storage(members))
    return WantedEntity(_common(members, queue), _rules(element, new_key), bool(members.text(_PARTITIONING)))


def read_topic(element: Element, name: str, new_key: NewKey) -> WantedEntity[TopicDescription]:
    """element: TopicDescription. As read_queue."""
    members = _Members(element)
    topic = TopicDescription(name, _storage(members))
    return WantedEntity(_common(members, topic), _rules(element, new_key), bool(members.text(_PARTITIONING)))


def read_subscription(element: Element, name: str) -> WantedEntity[SubscriptionDescription]:
    """element: SubscriptionDescription. name: the path. As read_queue."""
    members = _Members(element)
    subscription = SubscriptionDescription(
        name, _delivery(members), members.flag("DeadLetteringOnFilterEvaluationExceptions", True)
    )
    rule = element.child("DefaultRuleDescription")
    if rule is not None and rule.children:
        own = rule.child("Name")
        rule_name = own.text.strip() if own is not None else ""
        subscription = replace(subscription, first_rule=read_subscription_rule(rule, rule_name or DEFAULT_RULE))
    return WantedEntity(_common(members, subscription), None)


class _Members:
    """The members of a description; one that is absent or empty has its default."""

    def __init__(self, element: Element) -> None:
        self._element = element

    def text(self, name: str) -> str:
        child = self._element.child(name)
        return "" if child is None else child.text.strip()

    def flag(self, name: str, default: bool) -> bool:
        text = self.text(name).lower()
        if text and text not in _FLAGS:
            raise refused(f"{name} is neither true nor false")
        return _FLAGS.get(text, default)

    def number(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS_LIMIT:
            raise refused(f"{name} is no number of at most {_DIGITS_LIMIT} digits")
        return int(text)

    def duration(self, name: str, default: WrittenDuration) -> WrittenDuration:
        text = self.text(name)
        try:
            return written_duration(text) if text else default
        except BadDuration as error:
            raise refused(f"{name} is no length of time: {error}") from None


def _common(members: _Members, description: M) -> M:
    status = members.text("Status")
    return replace(
        description,
        default_time_to_live=members.duration("DefaultMessageTimeToLive", description.default_time_to_live),
        auto_delete_on_idle=members.duration("AutoDeleteOnIdle", description.auto_delete_on_idle),
        enable_batched_operations=members.flag("EnableBatchedOperations", True),
        availability=parse_availability(status) if status else Availability.ACTIVE,
        user_metadata=members.text("UserMetadata"),
    )


def _delivery(members: _Members) -> DeliverySettings:
    known = DeliverySettings()
    return DeliverySettings(
        lock_duration=members.duration("LockDuration", known.lock_duration),
        max_delivery_count=members.number("MaxDeliveryCount", known.max_delivery_count),
        requires_session=members.flag("RequiresSession", False),
        dead_letters_on_expiration=members.flag("DeadLetteringOnMessageExpiration", False),
        forward_to=members.text("ForwardTo"),
        forward_dead_letters_to=members.text("ForwardDeadLetteredMessagesTo"),
    )


def _storage(members: _Members) -> StorageSettings:
    known = StorageSettings()
    return StorageSettings(
        max_size_megabytes=members.number("MaxSizeInMegabytes", known.max_size_megabytes),
        requires_duplicate_detection=members.flag("RequiresDuplicateDetection", False),
        duplicate_window=members.duration("DuplicateDetectionHistoryTimeWindow", known.duplicate_window),
        is_partitioned=members.flag(_PARTITIONING, False),
        is_express=members.flag("EnableExpress", False),
        support_ordering=members.flag("SupportOrdering", True),
        max_message_kilobytes=members.number("MaxMessageSizeInKilobytes", 0),
    )


def _rules(element: Element, new_key: NewKey) -> Rules | None:
    rules = element.child("AuthorizationRules")
    return None if rules is None else tuple(read_rule(rule, new_key) for rule in rules.children)
