"""Queues, topics, subscriptions and rules of a Config.json as descriptions of the catalog, and back as a file has them.

What the file does not say is left as it was, or has the default of the profile in a new entity.
"""

from __future__ import annotations

from dataclasses import replace as replace_fields
from typing import Any, TypeVar

from msgspec.structs import replace

from hubweir.config.authorization_documents import authorization_rule_document
from hubweir.config.emulator_entities import (
    MessagingProperties,
    NamespaceConfig,
    QueueConfig,
    RuleConfig,
    Status,
    SubscriptionConfig,
    TopicConfig,
)
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import parse_availability
from hubweir.namespace.iso_duration import WrittenDuration, written_duration
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription, subscription_path
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    NamedValue,
    RuleFilter,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
)
from hubweir.namespace.tiers import OFFICIAL_EMULATOR, Profile
from hubweir.namespace.topic_description import TopicDescription

M = TypeVar("M", bound=MessagingDescription)
Document = dict[str, object]

_MEMBERS = {
    "DefaultMessageTimeToLive": "default_message_time_to_live",
    "AutoDeleteOnIdle": "auto_delete_on_idle",
    "EnableBatchedOperations": "enable_batched_operations",
    "Status": "status",
    "UserMetadata": "user_metadata",
    "LockDuration": "lock_duration",
    "MaxDeliveryCount": "max_delivery_count",
    "RequiresSession": "requires_session",
    "DeadLetteringOnMessageExpiration": "dead_lettering_on_message_expiration",
    "ForwardTo": "forward_to",
    "ForwardDeadLetteredMessagesTo": "forward_dead_lettered_messages_to",
    "RequiresDuplicateDetection": "requires_duplicate_detection",
    "DuplicateDetectionHistoryTimeWindow": "duplicate_detection_history_time_window",
    "EnablePartitioning": "enable_partitioning",
    "MaxSizeInMegabytes": "max_size_in_megabytes",
    "MaxMessageSizeInKilobytes": "max_message_size_in_kilobytes",
    "SupportOrdering": "support_ordering",
}
# Members of a correlation filter in a file, and what they are called in its description.
CORRELATION_MEMBERS = {
    "ContentType": "content_type",
    "CorrelationId": "correlation_id",
    "Label": "label",
    "MessageId": "message_id",
    "ReplyTo": "reply_to",
    "ReplyToSessionId": "reply_to_session_id",
    "SessionId": "session_id",
    "To": "to",
}


def with_defaults(new: M, profile: Profile, *, has_sku: bool) -> M:
    """A new entity as its profile makes it: the official emulator has defaults of its own.

    has_sku: the file says of which tier its namespace is, so it means what the service does: there an entity is
    partitioned unless it says otherwise. The official emulators have no such thing.
    """
    if profile is not OFFICIAL_EMULATOR:
        if has_sku and isinstance(new, QueueDescription | TopicDescription):
            return replace(new, storage=replace_fields(new.storage, is_partitioned=True))
        return new
    more: dict[str, Any] = {"default_time_to_live": written_duration("PT1H")}
    if not isinstance(new, TopicDescription):
        more["delivery"] = replace_fields(delivery_of(new), max_delivery_count=3)
    if not isinstance(new, SubscriptionDescription):
        more["storage"] = replace_fields(storage_of(new), duplicate_window=written_duration("PT20S"))
    return replace(new, **more)


def with_properties(known: M, properties: MessagingProperties) -> M:
    """The entity with all that a file says of it."""
    status = None if properties.status is None else parse_availability(properties.status.value)
    changed = replace(
        known,
        **_given(
            default_time_to_live=properties.default_message_time_to_live,
            auto_delete_on_idle=properties.auto_delete_on_idle,
            enable_batched_operations=properties.enable_batched_operations,
            availability=status,
            user_metadata=properties.user_metadata,
        ),
    )
    if isinstance(changed, QueueDescription | SubscriptionDescription):
        changed = replace(changed, delivery=_delivery(changed.delivery, properties))
    if isinstance(changed, QueueDescription | TopicDescription):
        changed = replace(changed, storage=_storage(changed.storage, properties))
    return changed


def without_destinations(properties: MessagingProperties) -> MessagingProperties:
    """What a file says of an entity, but where it forwards to."""
    return replace_fields(properties, forward_to=None, forward_dead_lettered_messages_to=None)


def subscription_rule(rule: RuleConfig) -> SubscriptionRuleDescription:
    """The rule that a file describes."""
    action = None if rule.action is None else SqlActionDescription(rule.action)
    return SubscriptionRuleDescription(rule.name, _filter(rule), action)


def _filter(rule: RuleConfig) -> RuleFilter:
    found = rule.correlation_filter
    if found is None:
        return SqlFilterDescription(rule.sql_expression or "")
    texts = {name: getattr(found, name) for name in CORRELATION_MEMBERS.values()}
    return CorrelationFilterDescription(
        **texts, properties=tuple(_value(name, value) for name, value in found.properties)
    )


def _value(name: str, value: str | int | float | bool) -> NamedValue:
    match value:
        case bool():
            return NamedValue(name, ValueType.BOOLEAN, str(value).lower())
        case int():
            return NamedValue(name, ValueType.LONG, str(value))
        case float():
            return NamedValue(name, ValueType.DOUBLE, str(value))
    return NamedValue(name, ValueType.STRING, value)


def _delivery(known: DeliverySettings, properties: MessagingProperties) -> DeliverySettings:
    return replace_fields(
        known,
        **_given(
            lock_duration=properties.lock_duration,
            max_delivery_count=properties.max_delivery_count,
            requires_session=properties.requires_session,
            dead_letters_on_expiration=properties.dead_lettering_on_message_expiration,
            forward_to=properties.forward_to,
            forward_dead_letters_to=properties.forward_dead_lettered_messages_to,
        ),
    )


def _storage(known: StorageSettings, properties: MessagingProperties) -> StorageSettings:
    return replace_fields(
        known,
        **_given(
            max_size_megabytes=properties.max_size_in_megabytes,
            requires_duplicate_detection=properties.requires_duplicate_detection,
            duplicate_window=properties.duplicate_detection_history_time_window,
            is_partitioned=properties.enable_partitioning,
            support_ordering=properties.support_ordering,
            max_message_kilobytes=properties.max_message_size_in_kilobytes,
        ),
    )


def _given(**values: Any) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def queues_and_topics(namespace: NamespaceConfig, profile: Profile) -> Document:
    """The members Queues and Topics of a namespace, with defaults filled in and without keys of rules."""
    has_sku = namespace.sku is not None
    document: Document = {"Queues": [_queue(queue, profile, has_sku=has_sku) for queue in namespace.queues]}
    return document | {"Topics": [_topic(topic, profile, has_sku=has_sku) for topic in namespace.topics]}


def _queue(queue: QueueConfig, profile: Profile, *, has_sku: bool) -> Document:
    made = with_properties(with_defaults(QueueDescription(queue.name), profile, has_sku=has_sku), queue.properties)
    return {"Name": queue.name, "Properties": _properties(made, queue.properties)}


def _topic(topic: TopicConfig, profile: Profile, *, has_sku: bool) -> Document:
    made = with_properties(with_defaults(TopicDescription(topic.name), profile, has_sku=has_sku), topic.properties)
    subscriptions = [_subscription(topic, subscription, profile) for subscription in topic.subscriptions]
    return {"Name": topic.name, "Properties": _properties(made, topic.properties), "Subscriptions": subscriptions}


def _subscription(topic: TopicConfig, subscription: SubscriptionConfig, profile: Profile) -> Document:
    new = SubscriptionDescription(subscription_path(topic.name, subscription.name))
    made = with_properties(with_defaults(new, profile, has_sku=False), subscription.properties)
    document: Document = {"Name": subscription.name, "Properties": _properties(made, subscription.properties)}
    return document | {"Rules": [rule_document(rule) for rule in subscription.rules]}


def _properties(made: MessagingDescription, said: MessagingProperties) -> Document:
    document: Document = {
        "DefaultMessageTimeToLive": made.default_time_to_live.text,
        "AutoDeleteOnIdle": made.auto_delete_on_idle.text,
        "EnableBatchedOperations": made.enable_batched_operations,
        "Status": made.availability.text,
        "UserMetadata": made.user_metadata,
    }
    if not isinstance(made, TopicDescription):
        delivery = delivery_of(made)
        document |= {
            "LockDuration": delivery.lock_duration.text,
            "MaxDeliveryCount": delivery.max_delivery_count,
            "RequiresSession": delivery.requires_session,
            "DeadLetteringOnMessageExpiration": delivery.dead_letters_on_expiration,
            "ForwardTo": delivery.forward_to,
            "ForwardDeadLetteredMessagesTo": delivery.forward_dead_letters_to,
        }
    if not isinstance(made, SubscriptionDescription):
        storage = storage_of(made)
        document |= {
            "RequiresDuplicateDetection": storage.requires_duplicate_detection,
            "DuplicateDetectionHistoryTimeWindow": storage.duplicate_window.text,
            "EnablePartitioning": storage.is_partitioned,
            "MaxSizeInMegabytes": storage.max_size_megabytes,
        }
        if storage.max_message_kilobytes:
            document["MaxMessageSizeInKilobytes"] = storage.max_message_kilobytes
    if isinstance(made, TopicDescription):
        document["SupportOrdering"] = made.storage.support_ordering
    if said.rules:
        document["AuthorizationRules"] = [authorization_rule_document(rule) for rule in said.rules]
    return document


def said_members(properties: MessagingProperties) -> Document:
    """The members of Properties that a file names, but for authorization rules, with their values."""
    said = {member: getattr(properties, name) for member, name in _MEMBERS.items()}
    document: Document = {}
    for member, value in said.items():
        if isinstance(value, WrittenDuration):
            document[member] = value.text
        elif value is not None:
            document[member] = value.value if isinstance(value, Status) else value
    return document


def rule_document(rule: RuleConfig) -> Document:
    """An element of Rules."""
    properties: Document = {"FilterType": rule.filter_type.value}
    found = rule.correlation_filter
    if found is not None:
        texts = {member: getattr(found, name) for member, name in CORRELATION_MEMBERS.items()}
        members: Document = {member: text for member, text in texts.items() if text is not None}
        if found.properties:
            members["Properties"] = dict(found.properties)
        properties["CorrelationFilter"] = members
    if rule.sql_expression is not None:
        properties["SqlFilter"] = {"SqlExpression": rule.sql_expression}
    if rule.action is not None:
        properties["Action"] = {"SqlExpression": rule.action}
    return {"Name": rule.name, "Properties": properties}
