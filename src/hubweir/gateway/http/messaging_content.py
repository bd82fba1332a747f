"""Descriptions of queues, topics and subscriptions as XML, in the service's order of elements.

| element      | what is told |
|--------------|--------------|
| lengths of time | the text that was sent |
| MaxSizeInMegabytes | the whole size: of a partitioned entity of the standard tier, all of its fragments |
| ForwardTo    | the text that was sent; a bare name with the namespace's host in front |
| AccessedAt   | of the newest send or receive; before there was one the year 1, of a subscription when it was made |

Keys of rules are part of a description: only who may manage the entity gets one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hubweir.broker.commands.fragment import FragmentInfo
from hubweir.gateway.entity_counts import EntityCounts, FragmentAnswer
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.http.atom import YEAR_ONE_MS, description, rule_content
from hubweir.gateway.http.strict_xml import xml_text
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.error_text import timestamp
from hubweir.namespace.forward_address import forward_uri
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.messaging_tier import MessagingTier
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription

COUNTS = "http://schemas.microsoft.com/netservices/2011/06/servicebus"

Member = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """What a topic's description counts besides messages. None of filters: the request's version does not ask."""

    subscriptions: int
    sql_filters: int | None = None
    correlation_filters: int | None = None


def queue_content(
    queue: QueueDescription, counts: EntityCounts, *, tier: MessagingTier, host: str, tells_partitioning: bool = True
) -> str:
    """QueueDescription. host: of the namespace, for destinations of forwarding.

    tells_partitioning: the version of the request does.
    """
    delivery, storage = queue.delivery, queue.storage
    return description(
        "QueueDescription",
        (
            ("LockDuration", xml_text(delivery.lock_duration.text)),
            ("MaxSizeInMegabytes", str(storage.size_in_megabytes(tier))),
            ("RequiresDuplicateDetection", flag_text(storage.requires_duplicate_detection)),
            ("RequiresSession", flag_text(delivery.requires_session)),
            ("DefaultMessageTimeToLive", xml_text(queue.default_time_to_live.text)),
            ("DeadLetteringOnMessageExpiration", flag_text(delivery.dead_letters_on_expiration)),
            ("DuplicateDetectionHistoryTimeWindow", xml_text(storage.duplicate_window.text)),
            ("MaxDeliveryCount", str(delivery.max_delivery_count)),
            ("EnableBatchedOperations", flag_text(queue.enable_batched_operations)),
            ("SizeInBytes", str(counts.size_bytes)),
            ("MessageCount", str(counts.all)),
            ("IsAnonymousAccessible", "false"),
            ("AuthorizationRules", _rules(queue)),
            ("Status", queue.availability.text),
            *_forward("ForwardTo", delivery.forward_to, host),
            *_metadata(queue),
            *_times(queue, _accessed(counts)),
            ("SupportOrdering", flag_text(storage.support_ordering)),
            ("CountDetails", _count_members(counts)),
            ("AutoDeleteOnIdle", xml_text(queue.auto_delete_on_idle.text)),
            *_partitioning(storage, is_told=tells_partitioning),
            *_forward("ForwardDeadLetteredMessagesTo", delivery.forward_dead_letters_to, host),
            ("EntityAvailabilityStatus", _availability(counts)),
            ("EnableExpress", flag_text(storage.is_express)),
            *_message_size(storage, tier),
        ),
    ).replace("<CountDetails>", _COUNT_DETAILS)


def topic_content(
    topic: TopicDescription,
    counts: EntityCounts,
    figures: TopicFigures,
    *,
    tier: MessagingTier,
    tells_partitioning: bool = True,
) -> str:
    """TopicDescription. counts: of what waits on the topic itself. tells_partitioning: see queue_content."""
    storage = topic.storage
    filters = (("SqlFilterCount", figures.sql_filters), ("CorrelationFilterCount", figures.correlation_filters))
    return description(
        "TopicDescription",
        (
            ("DefaultMessageTimeToLive", xml_text(topic.default_time_to_live.text)),
            ("MaxSizeInMegabytes", str(storage.size_in_megabytes(tier))),
            ("RequiresDuplicateDetection", flag_text(storage.requires_duplicate_detection)),
            ("DuplicateDetectionHistoryTimeWindow", xml_text(storage.duplicate_window.text)),
            ("EnableBatchedOperations", flag_text(topic.enable_batched_operations)),
            ("SizeInBytes", str(counts.size_bytes)),
            ("FilteringMessagesBeforePublishing", "false"),
            ("IsAnonymousAccessible", "false"),
            ("AuthorizationRules", _rules(topic)),
            ("Status", topic.availability.text),
            *_metadata(topic),
            *_times(topic, _accessed(counts)),
            ("SupportOrdering", flag_text(storage.support_ordering)),
            ("CountDetails", _count_members(counts)),
            ("SubscriptionCount", str(figures.subscriptions)),
            *((name, str(count)) for name, count in filters if count is not None),
            ("AutoDeleteOnIdle", xml_text(topic.auto_delete_on_idle.text)),
            *_partitioning(storage, is_told=tells_partitioning),
            ("EntityAvailabilityStatus", _availability(counts)),
            ("EnableSubscriptionPartitioning", "false"),
            ("EnableExpress", flag_text(storage.is_express)),
            *_message_size(storage, tier),
        ),
    ).replace("<CountDetails>", _COUNT_DETAILS)


def subscription_content(subscription: SubscriptionDescription, counts: EntityCounts, *, host: str) -> str:
    """SubscriptionDescription. host: of the namespace, for destinations of forwarding."""
    delivery: DeliverySettings = subscription.delivery
    return description(
        "SubscriptionDescription",
        (
            ("LockDuration", xml_text(delivery.lock_duration.text)),
            ("RequiresSession", flag_text(delivery.requires_session)),
            ("DefaultMessageTimeToLive", xml_text(subscription.default_time_to_live.text)),
            ("DeadLetteringOnMessageExpiration", flag_text(delivery.dead_letters_on_expiration)),
            ("DeadLetteringOnFilterEvaluationExceptions", flag_text(subscription.dead_letters_on_filter_errors)),
            ("MessageCount", str(counts.all)),
            ("MaxDeliveryCount", str(delivery.max_delivery_count)),
            ("EnableBatchedOperations", flag_text(subscription.enable_batched_operations)),
            ("Status", subscription.availability.text),
            *_forward("ForwardTo", delivery.forward_to, host),
            *_times(subscription, counts.accessed_at_ms or subscription.created_at_ms),
            ("CountDetails", _count_members(counts)),
            *_metadata(subscription),
            *_forward("ForwardDeadLetteredMessagesTo", delivery.forward_dead_letters_to, host),
            ("AutoDeleteOnIdle", xml_text(subscription.auto_delete_on_idle.text)),
            ("EntityAvailabilityStatus", _availability(counts)),
        ),
    ).replace("<CountDetails>", _COUNT_DETAILS)


def fragment_content(place: FragmentPlace, answer: FragmentAnswer, *, processes: int) -> str:
    """FragmentDescription: where one fragment of an entity is, and what it holds. It is ours, and not the service's.

    processes: of the service; Broker is the number of the one that has the store, as `hubweir broker list` tells it.
    Of a fragment that does not answer it is told why, and no counts.
    """
    members = [
        ("Number", str(place.number)),
        ("Broker", str(place.store_index % processes)),
        ("Store", str(place.store_index)),
        ("Log", place.stored_in),
        ("Status", "Available" if isinstance(answer, FragmentInfo) else "Unavailable"),
    ]
    if isinstance(answer, FragmentInfo):
        counts = EntityCounts().plus(answer)
        members += [("SizeInBytes", str(counts.size_bytes)), ("CountDetails", _count_members(counts))]
    else:
        members.append(("Reason", xml_text(answer.text)))
    return description("FragmentDescription", members).replace("<CountDetails>", _COUNT_DETAILS)


def namespace_content(namespace: NamespaceDescription, tier: MessagingTier) -> str:
    """NamespaceInfo; only a premium namespace has messaging units."""
    units = (("MessagingUnits", "1"),) if tier.is_premium else ()
    return description(
        "NamespaceInfo",
        (
            ("Alias", ""),
            ("CreatedTime", time_text(namespace.created_at_ms)),
            ("MessagingSKU", tier.sku),
            *units,
            ("ModifiedTime", time_text(namespace.updated_at_ms)),
            ("Name", xml_text(namespace.name)),
            ("NamespaceType", "Messaging"),
        ),
    )


def flag_text(value: bool) -> str:
    """As XML writes booleans."""
    return "true" if value else "false"


def time_text(time_ms: int) -> str:
    """UTC as descriptions tell it: `2020-01-01T00:00:00.123Z`; whole seconds without a fraction."""
    fraction = f".{time_ms % 1000:03d}" if time_ms % 1000 else ""
    return f"{timestamp(time_ms)}{fraction}Z"


def _rules(entity: MessagingDescription) -> str:
    return "".join(rule_content(rule) for rule in entity.rules)


def _metadata(entity: MessagingDescription) -> Iterator[Member]:
    if entity.user_metadata:
        yield "UserMetadata", xml_text(entity.user_metadata)


def _forward(name: str, text: str, host: str) -> Iterator[Member]:
    if text:
        yield name, xml_text(forward_uri(text, host))


def _partitioning(storage: StorageSettings, *, is_told: bool) -> Iterator[Member]:
    if is_told:
        yield "EnablePartitioning", flag_text(storage.is_partitioned)


def _times(entity: MessagingDescription, accessed_at_ms: int) -> Iterator[Member]:
    yield "CreatedAt", time_text(entity.created_at_ms)
    yield "UpdatedAt", time_text(entity.updated_at_ms)
    yield "AccessedAt", time_text(accessed_at_ms)


def _accessed(counts: EntityCounts) -> int:
    return YEAR_ONE_MS if counts.accessed_at_ms is None else counts.accessed_at_ms


def _message_size(storage: StorageSettings, tier: MessagingTier) -> Iterator[Member]:
    yield "MaxMessageSizeInKilobytes", str(storage.message_kilobytes(tier))


def _availability(counts: EntityCounts) -> str:
    return "Limited" if counts.is_limited else "Available"


def _count_members(counts: EntityCounts) -> str:
    members = (
        ("ActiveMessageCount", counts.active),
        ("DeadLetterMessageCount", counts.dead_lettered),
        ("ScheduledMessageCount", counts.scheduled),
        ("TransferMessageCount", 0),
        ("TransferDeadLetterMessageCount", counts.transfer_dead_lettered),
    )
    return "".join(f"<d2p1:{name}>{count}</d2p1:{name}>" for name, count in members)


# The prefix is declared here and nowhere else: one client wants the element to have exactly this attribute.
_COUNT_DETAILS = f'<CountDetails xmlns:d2p1="{COUNTS}">'
