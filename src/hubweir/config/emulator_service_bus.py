"""Queues, topics, subscriptions and rules in a configuration file: the elements of `Queues` and `Topics`.

What the official files do not have are extensions, with the names that resource templates of the cloud have. (Service
Bus emulator, schema of the configuration file; ARM reference)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hubweir.config.emulator_entities import (
    CorrelationFilterConfig,
    FilterType,
    MessagingProperties,
    QueueConfig,
    RuleConfig,
    Status,
    SubscriptionConfig,
    TopicConfig,
)
from hubweir.config.emulator_limits import FileLimits
from hubweir.config.emulator_members import (
    ENTITY_NAME,
    ENTITY_NAME_LIMIT,
    SHORT_NAME_LIMIT,
    UniqueNames,
    entity_name,
    official_and,
    read_authorization_rules,
    read_user_metadata,
)
from hubweir.config.json_fields import Fields, shown
from hubweir.config.problems import Kind
from hubweir.namespace.iso_duration import MINUTE_MS, UNLIMITED_MS
from hubweir.namespace.names import check_entity_name, check_subscription_name, check_subscription_rule_name

SQL_LIMIT = 1_024  # characters of a filter, and of an action
AUTO_DELETE_MIN_MS = 5 * MINUTE_MS
SIZE_LIMIT_MEGABYTES = 81_920
MESSAGE_LIMIT_KILOBYTES = 102_400


def read_queues_and_topics(
    namespace: Fields, limits: FileLimits
) -> tuple[tuple[QueueConfig, ...], tuple[TopicConfig, ...]]:
    """The members Queues and Topics of a namespace; their names are of one kind."""
    names = UniqueNames("queue or topic")
    queues = []
    for fields in namespace.objects("Queues", most=limits.entities_limit):
        name = _read_name(fields, limits, partial(check_entity_name, "queue"), ENTITY_NAME_LIMIT)
        properties = _read_properties(fields, limits, kind="queue")
        fields.finish()
        if name is not None and names.take_name(name, fields):
            queues.append(QueueConfig(name=name, properties=properties, location=fields.place("Name")))
    topics = []
    for fields in namespace.objects("Topics", most=limits.entities_limit):
        name = _read_name(fields, limits, partial(check_entity_name, "topic"), ENTITY_NAME_LIMIT)
        properties = _read_properties(fields, limits, kind="topic")
        subscriptions = _read_subscriptions(fields, limits)
        fields.finish()
        if name is not None and names.take_name(name, fields):
            place = fields.place("Name")
            topics.append(TopicConfig(name=name, properties=properties, subscriptions=subscriptions, location=place))
    if max(len(queues), len(topics)) <= limits.entities_limit < len(queues) + len(topics):
        what = f"the namespace has {len(queues) + len(topics)} queues and topics"
        namespace.wrong("Topics", what, kind=Kind.WRONG_COUNT, allowed=f"at most {limits.entities_limit} together")
    return tuple(queues), tuple(topics)


def _read_name(fields: Fields, limits: FileLimits, check: Callable[[str], str], length: int) -> str | None:
    checked = official_and(check, official=limits.official)
    return fields.text("Name", required=True, check=checked, allowed=f"1 to {length} characters: {ENTITY_NAME}")


def _read_subscriptions(topic: Fields, limits: FileLimits) -> tuple[SubscriptionConfig, ...]:
    names = UniqueNames("subscription")
    subscriptions = []
    least = limits.subscriptions_min
    for fields in topic.objects("Subscriptions", required=least > 0, least=least, most=limits.subscriptions_limit):
        name = _read_name(fields, limits, check_subscription_name, SHORT_NAME_LIMIT)
        properties = _read_properties(fields, limits, kind="subscription")
        rules = _read_rules(fields, limits)
        fields.finish()
        if name is not None and names.take_name(name, fields):
            place = fields.place("Name")
            subscriptions.append(SubscriptionConfig(name=name, properties=properties, rules=rules, location=place))
    return tuple(subscriptions)


def _read_properties(entity: Fields, limits: FileLimits, *, kind: str) -> MessagingProperties:
    """The member Properties of a queue, a topic or a subscription."""
    fields = entity.object("Properties")
    if fields is None:
        return MessagingProperties()
    delivery = {} if kind == "topic" else _read_delivery(fields, limits)
    storage = {} if kind == "subscription" else _read_storage(fields, limits)
    if kind == "subscription":
        # The official process shows it for subscriptions, without an effect.
        fields.ignore("DuplicateDetectionHistoryTimeWindow")
    properties = MessagingProperties(
        default_message_time_to_live=fields.duration(
            "DefaultMessageTimeToLive", least_ms=limits.time_to_live_min_ms, most_ms=limits.time_to_live_limit_ms
        ),
        support_ordering=fields.boolean("SupportOrdering") if kind == "topic" else None,
        auto_delete_on_idle=fields.duration("AutoDeleteOnIdle", least_ms=AUTO_DELETE_MIN_MS, most_ms=UNLIMITED_MS),
        status=fields.choice("Status", Status),
        user_metadata=read_user_metadata(fields),
        enable_batched_operations=fields.boolean("EnableBatchedOperations"),
        **delivery,
        **storage,
    )
    fields.finish()
    return properties


def _read_delivery(fields: Fields, limits: FileLimits) -> dict[str, Any]:
    """What queues and subscriptions have, which hand messages out."""
    return {
        "dead_lettering_on_message_expiration": fields.boolean("DeadLetteringOnMessageExpiration"),
        "forward_dead_lettered_messages_to": _read_forward(fields, "ForwardDeadLetteredMessagesTo"),
        "forward_to": _read_forward(fields, "ForwardTo"),
        "lock_duration": fields.duration("LockDuration", least_ms=limits.lock_min_ms, most_ms=limits.lock_limit_ms),
        "max_delivery_count": fields.integer("MaxDeliveryCount", least=1, most=limits.delivery_count_limit),
        "requires_session": fields.boolean("RequiresSession"),
    }


def _read_storage(fields: Fields, limits: FileLimits) -> dict[str, Any]:
    """What queues and topics have, which take messages in."""
    return {
        "duplicate_detection_history_time_window": fields.duration(
            "DuplicateDetectionHistoryTimeWindow",
            least_ms=limits.duplicate_window_min_ms,
            most_ms=limits.duplicate_window_limit_ms,
        ),
        "requires_duplicate_detection": fields.boolean("RequiresDuplicateDetection"),
        "enable_partitioning": fields.boolean("EnablePartitioning"),
        "max_size_in_megabytes": fields.integer("MaxSizeInMegabytes", least=1, most=SIZE_LIMIT_MEGABYTES),
        "max_message_size_in_kilobytes": fields.integer(
            "MaxMessageSizeInKilobytes", least=1, most=MESSAGE_LIMIT_KILOBYTES
        ),
        "rules": read_authorization_rules(fields),
    }


def _read_forward(fields: Fields, name: str) -> str | None:
    """The name of another entity; the empty text means none."""
    check = entity_name(ENTITY_NAME_LIMIT)
    allowed = f"the name of a queue or topic, or an empty text: {ENTITY_NAME}"
    return fields.text(name, check=lambda text: check(text) if text else "", allowed=allowed) or None


def _read_rules(subscription: Fields, limits: FileLimits) -> tuple[RuleConfig, ...]:
    names = UniqueNames("rule")
    rules = []
    for fields in subscription.objects("Rules", most=limits.rules_limit):
        rule = _read_rule(fields, limits)
        fields.finish()
        if rule is not None and names.take_name(rule.name, fields):
            rules.append(rule)
    return tuple(rules)


def _read_rule(fields: Fields, limits: FileLimits) -> RuleConfig | None:
    """The rule; None when it is not usable, which was noted then."""
    name = _read_name(fields, limits, check_subscription_rule_name, SHORT_NAME_LIMIT)
    properties = fields.object("Properties", required=True)
    if properties is None:
        return None
    filter_type = properties.choice("FilterType", FilterType, required=True)
    correlation = properties.object("CorrelationFilter", required=filter_type is FilterType.CORRELATION)
    sql = properties.object("SqlFilter", required=filter_type is FilterType.SQL)
    action = properties.object("Action")
    correlation_filter = None if correlation is None else _read_correlation(correlation)
    sql_expression = None if sql is None else _read_sql(sql)
    action_text = None if action is None else _read_sql(action)
    properties.finish()
    if name is None or filter_type is None:
        return None
    return RuleConfig(
        name=name,
        filter_type=filter_type,
        correlation_filter=correlation_filter,
        sql_expression=sql_expression,
        action=action_text,
        location=fields.place("Name"),
    )


def _read_sql(fields: Fields) -> str | None:
    allowed = f"an SQL expression of 1 to {SQL_LIMIT} characters"
    text = fields.bounded_text("SqlExpression", required=True, least=1, most=SQL_LIMIT, allowed=allowed)
    fields.finish()
    return text


def _read_correlation(fields: Fields) -> CorrelationFilterConfig:
    properties = _read_user_properties(fields)
    correlation = CorrelationFilterConfig(
        content_type=fields.text("ContentType"),
        correlation_id=fields.text("CorrelationId"),
        label=fields.text("Label"),
        message_id=fields.text("MessageId"),
        reply_to=fields.text("ReplyTo"),
        reply_to_session_id=fields.text("ReplyToSessionId"),
        session_id=fields.text("SessionId"),
        to=fields.text("To"),
        properties=properties,
    )
    if not fields.holds_any():
        what = "a correlation filter needs at least one member"
        fields.file.error(Kind.MISSING, fields.at, fields.steps, what, found="none", allowed="such as Label")
    fields.finish()
    return correlation


def _read_user_properties(filter_fields: Fields) -> tuple[tuple[str, str | int | float | bool], ...]:
    """Names and values that a message's user properties must have; at least one when the member is there."""
    fields = filter_fields.object("Properties")
    if fields is None:
        return ()
    properties = []
    allowed = "a text, a number, true or false"
    for name, node in fields.members():
        value = node.value
        if isinstance(value, str | int | float):
            properties.append((name, value))
        else:
            steps = (*fields.steps, name)
            what = "a user property is compared with a plain value"
            fields.file.error(Kind.WRONG_TYPE, node.at, steps, what, found=shown(node), allowed=allowed)
    if not fields.holds_any():
        what = "the filter's Properties need at least one member"
        fields.file.error(Kind.MISSING, fields.at, fields.steps, what, found="none", allowed="names and values")
    return tuple(properties)
