"""Queues, topics and subscriptions of a live namespace in the words of a Config.json, and how files differ from them.

Only what a file can say is told; keys of rules are the caller's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityInfo, EntityType
from hubweir.config.authorization_documents import rights_words
from hubweir.config.emulator_entities import MessagingProperties, NamespaceConfig, RuleConfig, TopicConfig
from hubweir.config.emulator_messaging import rule_document, said_members
from hubweir.namespace.forward_address import forward_name
from hubweir.namespace.messaging_tier import PREMIUM_SKU, STANDARD_FRAGMENTS
from hubweir.namespace.names import DEFAULT_RULE
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.subscription_description import subscription_path

Document = dict[str, object]

_FLAGS = frozenset(
    (
        *("RequiresSession", "DeadLetteringOnMessageExpiration", "RequiresDuplicateDetection", "EnablePartitioning"),
        *("EnableBatchedOperations", "SupportOrdering"),
    )
)
_NUMBERS = frozenset(("MaxDeliveryCount", "MaxSizeInMegabytes", "MaxMessageSizeInKilobytes"))
_TEXTS = frozenset(
    (
        *("DefaultMessageTimeToLive", "AutoDeleteOnIdle", "Status", "UserMetadata", "LockDuration"),
        "DuplicateDetectionHistoryTimeWindow",
    )
)
_DESTINATIONS = frozenset(("ForwardTo", "ForwardDeadLetteredMessagesTo"))
# A file can give it to topics alone.
_OF_TOPICS = "SupportOrdering"


def live_queues_and_topics(administration: Administration, *, with_keys: bool) -> Document:
    """The members Queues and Topics of what is there, each left out when there is none.

    with_keys: authorization rules have their keys, in clear.
    """
    queues: list[Document] = [
        {"Name": queue.name, "Properties": _properties(queue, with_keys=with_keys, leave_out=_OF_TOPICS)}
        for queue in administration.list(EntityType.QUEUE)
    ]
    topics = [_topic(administration, topic, with_keys=with_keys) for topic in administration.list(EntityType.TOPIC)]
    if administration.namespace().members.get("MessagingSKU") != PREMIUM_SKU:
        for each in (*queues, *topics):
            _tell_size_as_asked(_object(each["Properties"]))
    return {name: found for name, found in (("Queues", queues), ("Topics", topics)) if found}


def messaging_differences(wanted: NamespaceConfig, live: Document) -> list[str]:
    """One line for each difference, as of `hubweir config diff`. live: of live_queues_and_topics."""
    lines = []
    queues, topics = (_by_name(live.get(member, [])) for member in ("Queues", "Topics"))
    for queue in wanted.queues:
        there = queues.pop(fold(queue.name), None)
        lines += [f"+ queue {queue.name}"] if there is None else _entity_lines("queue", queue.properties, there)
    for topic in wanted.topics:
        there = topics.pop(fold(topic.name), None)
        if there is None:
            lines.append(f"+ topic {topic.name}")
        else:
            lines += _entity_lines("topic", topic.properties, there) + _subscription_lines(topic, there)
    lines += [f"- queue {each['Name']}" for each in queues.values()]
    return lines + [f"- topic {each['Name']}" for each in topics.values()]


def _topic(administration: Administration, topic: EntityInfo, *, with_keys: bool) -> Document:
    subscriptions = [
        _subscription(administration, topic.name, each)
        for each in administration.list(EntityType.SUBSCRIPTION, topic.name)
    ]
    return {"Name": topic.name, "Properties": _properties(topic, with_keys=with_keys), "Subscriptions": subscriptions}


def _subscription(administration: Administration, topic: str, subscription: EntityInfo) -> Document:
    path = subscription_path(topic, subscription.name)
    rules = [_rule(rule) for rule in administration.list(EntityType.RULE, path)]
    document: Document = {"Name": subscription.name, "Properties": _properties(subscription)}
    return document if rules == [_EVERYTHING] else document | {"Rules": rules}


def _properties(entity: EntityInfo, *, with_keys: bool = False, leave_out: str = "") -> Document:
    document: Document = {}
    for name, text in entity.members.items():
        if name == leave_out:
            continue
        if name in _FLAGS:
            document[name] = text == "true"
        elif name in _NUMBERS:
            document[name] = int(text)
        elif name in _TEXTS:
            document[name] = text
        elif name in _DESTINATIONS:
            document[name] = forward_name(text)
    if entity.rules:
        document["AuthorizationRules"] = [_authorization_rule(rule, with_keys=with_keys) for rule in entity.rules]
    return document


def _tell_size_as_asked(properties: Document) -> None:
    """Outside of the premium tier a partitioned entity tells the size of all fragments; a file asks for a share's."""
    size = properties.get("MaxSizeInMegabytes")
    if properties.get("EnablePartitioning") and isinstance(size, int):
        properties["MaxSizeInMegabytes"] = size // STANDARD_FRAGMENTS


def _authorization_rule(rule: AuthorizationRuleDescription, *, with_keys: bool) -> Document:
    document: Document = {"KeyName": rule.name, "Rights": rights_words(rule.rights)}
    if with_keys:
        keys = {"PrimaryKey": rule.primary.reveal(), "SecondaryKey": rule.secondary.reveal()}
        document |= {name: key for name, key in keys.items() if key}
    return document


def _rule(rule: EntityInfo) -> Document:
    found, properties = rule.filter, Document()
    if found is not None and found.kind == "CorrelationFilter":
        members: Document = dict(found.members)
        if found.values:
            members["Properties"] = dict(found.values)
        properties |= {"FilterType": "Correlation", "CorrelationFilter": members}
    elif found is not None:
        properties |= {"FilterType": "Sql", "SqlFilter": {"SqlExpression": found.members["SqlExpression"]}}
    if rule.action is not None:
        properties["Action"] = {"SqlExpression": rule.action.members["SqlExpression"]}
    return {"Name": rule.name, "Properties": properties}


def _entity_lines(kind: str, wanted: MessagingProperties, live: Document) -> list[str]:
    where = f"{kind} {live['Name']}"
    rules = {
        fold(str(rule["KeyName"])): rule for rule in _objects(_object(live["Properties"]).get("AuthorizationRules", []))
    }
    lines = [
        f"+ {where}: authorization rule {rule.name}"
        for rule in wanted.rules
        if rules.pop(fold(rule.name), None) is None
    ]
    lines += [f"- {where}: authorization rule {rule['KeyName']}" for rule in rules.values()]
    return _property_lines(where, wanted, live) + lines


def _property_lines(where: str, wanted: MessagingProperties, live: Document) -> list[str]:
    known = _object(live["Properties"])
    return [
        f"~ {where}: {member} is {json.dumps(value)} in the files, {json.dumps(known.get(member))} in the namespace"
        for member, value in said_members(wanted).items()
        if value != known.get(member, "" if isinstance(value, str) else None)
    ]


def _subscription_lines(topic: TopicConfig, live: Document) -> list[str]:
    known = _by_name(live.get("Subscriptions", []))
    lines = []
    for subscription in topic.subscriptions:
        there = known.pop(fold(subscription.name), None)
        where = f"subscription {subscription.name} of topic {topic.name}"
        if there is None:
            lines.append(f"+ {where}")
        else:
            lines += _property_lines(where, subscription.properties, there)
            lines += _rule_lines(where, subscription.rules, there)
    return lines + [f"- subscription {each['Name']} of topic {topic.name}" for each in known.values()]


def _rule_lines(where: str, wanted: Sequence[RuleConfig], live: Document) -> list[str]:
    known = _by_name(live.get("Rules", [_EVERYTHING] if wanted else []))
    lines = []
    for rule in wanted:
        there = known.pop(fold(rule.name), None)
        if there is None:
            lines.append(f"+ {where}: rule {rule.name}")
        elif rule_document(rule)["Properties"] != there["Properties"]:
            lines.append(f"~ {where}: rule {rule.name} has another filter or action")
    return lines + [f"- {where}: rule {rule['Name']}" for rule in known.values()]


def _by_name(value: object) -> dict[str, Document]:
    return {fold(str(each["Name"])): each for each in _objects(value)}


def _object(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[Document]:
    return [_object(each) for each in value] if isinstance(value, list) else []


# What a subscription has that nobody gave a rule.
_EVERYTHING: Document = {
    "Name": DEFAULT_RULE,
    "Properties": {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}},
}
