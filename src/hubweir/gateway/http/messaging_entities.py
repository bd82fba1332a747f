"""Queues, topics, subscriptions and their rules over HTTP: reads of the catalog, changes by the keeper.

| call                          | answer            |
|-------------------------------|-------------------|
| PUT                           | 201; 409 when it is there |
| PUT with `If-Match: *`        | 200: replaced as a whole; 404 when it is not there |
| PATCH                         | 200: what it names is changed; 404; of ours, for whoever shares an entity |
| GET, DELETE                   | 200; 404 |
| GET of `…/$Fragments`         | 200, a feed by number; of ours, for operators |
| GET of a list                 | 200, a feed in order of names; rules `$Default` first, then as they were made |

The requests that name a queue, a topic or an event hub alike come in at named_entities.py. (Service Bus management over
ATOM)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hubweir.auth.authorization_rule import KEY_BYTES, new_key
from hubweir.gateway.entity_counts import EntityCounts, FragmentAnswer, ask_counts, ask_fragments
from hubweir.gateway.http.atom import AtomEntry
from hubweir.gateway.http.entity_requests import (
    api_version,
    entry,
    entry_uri,
    feed,
    is_change,
    knows_partitioning,
    page_of,
    read_body,
)
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.forward_authorization import check_forwarding
from hubweir.gateway.http.messaging_content import (
    TopicFigures,
    fragment_content,
    namespace_content,
    queue_content,
    subscription_content,
    topic_content,
)
from hubweir.gateway.http.messaging_xml import WantedEntity, read_queue, read_subscription, read_topic
from hubweir.gateway.http.route import Match
from hubweir.gateway.http.rule_xml import read_subscription_rule, subscription_rule_content
from hubweir.gateway.http.strict_xml import Element, read_xml, refused
from hubweir.gateway.subscription_rule_management import check_rule
from hubweir.namespace.entity import Entity, EntityDescription
from hubweir.namespace.messaging_changes import partitioned_as, replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import check_subscription_name, check_subscription_rule_name
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SUBSCRIPTIONS, SubscriptionDescription, subscription_path
from hubweir.namespace.subscription_rule import KeptPart, SubscriptionRuleDescription
from hubweir.namespace.topic_description import TopicDescription

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

K = TypeVar("K", bound=MessagingDescription)

RULES = "Rules"
FRAGMENTS = "$Fragments"
# The first version whose descriptions of topics count filters.
FILTER_COUNTS_VERSION = "2024-05"


# Namespaces and lists


async def namespace_info(gateway: Gateway, request: Request, match: Match) -> Response:
    described, tier = gateway.namespace.description, gateway.namespace.profile.messaging
    uri, told = entry_uri(request, *request.segments), namespace_content(described, tier)
    return entry(gateway, AtomEntry(uri, described.name, described.created_at_ms, told, described.updated_at_ms))


async def list_queues(gateway: Gateway, request: Request, match: Match) -> Response:
    return await _list(gateway, request, "Queues", gateway.namespace.entities(QueueDescription))


async def list_topics(gateway: Gateway, request: Request, match: Match) -> Response:
    return await _list(gateway, request, "Topics", gateway.namespace.entities(TopicDescription))


async def list_subscriptions(gateway: Gateway, request: Request, match: Match) -> Response:
    return await _list(gateway, request, SUBSCRIPTIONS, gateway.namespace.subscriptions(match.entity))


async def _list(gateway: Gateway, request: Request, title: str, entities: Sequence[Entity[K]]) -> Response:
    page = page_of(request, sorted(entities, key=lambda entity: fold(entity.name)))
    entries = await asyncio.gather(*(_entry_of(gateway, request, entity) for entity in page.items))
    return feed(gateway, request, title, entries, page.next_uri)


# Queues and topics, whose names say nothing about their kind


async def put_queue(gateway: Gateway, request: Request, name: str, element: Element) -> Response:
    """element: QueueDescription, of the request's body."""
    return await _put(gateway, request, read_queue(element, name, partial(_new_key, gateway)))


async def put_topic(gateway: Gateway, request: Request, name: str, element: Element) -> Response:
    """element: TopicDescription, of the request's body."""
    return await _put(gateway, request, read_topic(element, name, partial(_new_key, gateway)))


async def patch(gateway: Gateway, request: Request, entity: Entity[MessagingDescription]) -> Response:
    """Change what the body names, an empty element to its default. All else stays as it is when the change is made."""
    told = read_xml(_content(gateway, request, entity.description, EntityCounts()).encode())
    told.children = [child for child in told.children if child.name != "AuthorizationRules"]
    element = read_xml(await read_body(gateway, request)).find(told.name)
    if element is None:
        raise refused(f"it holds no {told.name}")
    check_forwarding(gateway, request, _read(gateway, entity.name, element).description)
    over = Element(told.name, children=[*element.children, *told.children])  # of two of one name the first one holds
    seen, wanted = (_read(gateway, entity.name, each) for each in (told, over))
    return await _change(gateway, request, wanted, seen.description)


async def entity_response(
    gateway: Gateway, request: Request, entity: Entity[MessagingDescription], status: int = 200
) -> Response:
    """The answer that holds a queue, a topic or a subscription, with what it holds now."""
    return entry(gateway, await _entry_of(gateway, request, entity), status)


async def list_fragments(gateway: Gateway, request: Request, match: Match) -> Response:
    """Where the fragments of a queue or a topic are, and what each holds: for operators, and no call of the service."""
    return await _list_fragments(gateway, request, gateway.namespace.get(match.entity, MessagingDescription))


async def list_subscription_fragments(gateway: Gateway, request: Request, match: Match) -> Response:
    """The same of a subscription."""
    return await _list_fragments(gateway, request, gateway.namespace.get(_path(match), SubscriptionDescription))


async def _list_fragments(gateway: Gateway, request: Request, entity: Entity[K]) -> Response:
    fragments = gateway.directory.fragments(entity)
    answers: list[FragmentAnswer] = await answer_of(partial(ask_fragments, gateway.env, fragments))
    entries = [
        AtomEntry(
            entry_uri(request, entity.name, FRAGMENTS, str(place.number)),
            str(place.number),
            entity.description.created_at_ms,
            fragment_content(place, answer, processes=gateway.process.processes),
        )
        for place, answer in zip(fragments.places, answers, strict=True)
    ]
    return feed(gateway, request, "Fragments", entries, None)


# Subscriptions


async def get_subscription(gateway: Gateway, request: Request, match: Match) -> Response:
    return await entity_response(gateway, request, gateway.namespace.get(_path(match), SubscriptionDescription))


async def put_subscription(gateway: Gateway, request: Request, match: Match) -> Response:
    check_subscription_name(match.names["subscription"])
    body = await read_body(gateway, request)
    element = read_xml(body).find("SubscriptionDescription") if body.strip() else Element("SubscriptionDescription")
    if element is None:
        raise refused("it holds no SubscriptionDescription")
    wanted = read_subscription(element, _path(match))
    check_rule(wanted.description.first_rule)
    return await _put(gateway, request, wanted)


async def patch_subscription(gateway: Gateway, request: Request, match: Match) -> Response:
    is_change(request)
    return await patch(gateway, request, gateway.namespace.get(_path(match), SubscriptionDescription))


async def delete_subscription(gateway: Gateway, request: Request, match: Match) -> Response:
    is_change(request)
    await answer_of(partial(gateway.keeper.delete, _path(match), SubscriptionDescription))
    return Response(200)


# Rules


async def list_rules(gateway: Gateway, request: Request, match: Match) -> Response:
    subscription = gateway.namespace.get(_path(match), SubscriptionDescription)
    rules = list(gateway.namespace.subscription_rules(subscription.name).listed())
    page = page_of(request, rules)
    entries = [_rule_entry(request, subscription.name, rule) for rule in page.items]
    return feed(gateway, request, RULES, entries, page.next_uri)


async def get_rule(gateway: Gateway, request: Request, match: Match) -> Response:
    subscription = gateway.namespace.get(_path(match), SubscriptionDescription)
    rule = gateway.namespace.subscription_rule(subscription.name, match.names["rule"])
    return entry(gateway, _rule_entry(request, subscription.name, rule))


async def put_rule(gateway: Gateway, request: Request, match: Match) -> Response:
    change = is_change(request)
    name = check_subscription_rule_name(match.names["rule"])
    element = read_xml(await read_body(gateway, request)).find("RuleDescription")
    if element is None:
        raise refused("it holds no RuleDescription")
    subscription = gateway.namespace.get(_path(match), SubscriptionDescription).name
    rule = read_subscription_rule(element, name)
    rules = gateway.subscription_rules
    kept = await answer_of(partial(rules.replace if change else rules.create, subscription, rule))
    return entry(gateway, _rule_entry(request, subscription, kept), 200 if change else 201)


async def patch_rule(gateway: Gateway, request: Request, match: Match) -> Response:
    """Put another filter or action in the place of the one that it has; what the body does not name stays."""
    is_change(request)
    element = read_xml(await read_body(gateway, request)).find("RuleDescription")
    if element is None:
        raise refused("it holds no RuleDescription")
    subscription = gateway.namespace.get(_path(match), SubscriptionDescription).name
    rule = gateway.namespace.subscription_rule(subscription, match.names["rule"])
    has_filter, has_action = (element.child(name) is not None for name in ("Filter", "Action"))
    if has_filter or has_action:
        # An empty element has its default, as it has where it is left out of a whole rule.
        element.children = [child for child in element.children if child.type or child.children]
        wanted, rules = read_subscription_rule(element, rule.name), gateway.subscription_rules
        keeps = KeptPart.ACTION if not has_action else KeptPart.NOTHING if has_filter else KeptPart.FILTER
        rule = await answer_of(partial(rules.replace, subscription, wanted, keeps=keeps))
    return entry(gateway, _rule_entry(request, subscription, rule))


async def delete_rule(gateway: Gateway, request: Request, match: Match) -> Response:
    is_change(request)
    await answer_of(partial(gateway.subscription_rules.delete, _path(match), match.names["rule"]))
    return Response(200)


# Parts


async def _put(gateway: Gateway, request: Request, wanted: WantedEntity[K]) -> Response:
    """Make an entity, or replace all settings of one that is there."""
    kind: type[K] = type(wanted.description)
    # What says nothing of partitioning asks for none; in the premium tier, for what the tier decided.
    is_premium = gateway.namespace.profile.messaging.is_premium
    if not knows_partitioning(request) or (is_premium and not wanted.says_partitioning):
        there = gateway.namespace.find(wanted.description.name, kind)
        known = None if there is None else there.description
        wanted = replace(wanted, description=partitioned_as(known, wanted.description))
    change = is_change(request)
    check_forwarding(gateway, request, wanted.description)
    if change:
        return await _change(gateway, request, wanted, None)
    made = await answer_of(partial(gateway.keeper.create, wanted.new))
    return await entity_response(gateway, request, gateway.namespace.get(made.name, kind), 201)


async def _change(gateway: Gateway, request: Request, wanted: WantedEntity[K], seen: K | None) -> Response:
    """seen: see replace_settings."""
    kind: type[K] = type(wanted.description)
    its = partial(replace_settings, wanted=wanted.description, seen=seen, rules=wanted.rules)
    made = await answer_of(partial(gateway.keeper.change, wanted.description.name, kind, its))
    return await entity_response(gateway, request, gateway.namespace.get(made.name, kind))


def _read(gateway: Gateway, name: str, element: Element) -> WantedEntity[Any]:
    """A description of any kind. name: of the entity, of a subscription its path."""
    match element.name:
        case "QueueDescription":
            return read_queue(element, name, partial(_new_key, gateway))
        case "TopicDescription":
            return read_topic(element, name, partial(_new_key, gateway))
        case _:
            return read_subscription(element, name)


async def _entry_of(gateway: Gateway, request: Request, entity: Entity[K]) -> AtomEntry:
    counts: EntityCounts = await answer_of(partial(ask_counts, gateway.env, gateway.directory.fragments(entity)))
    described: EntityDescription = entity.description
    content, title = _content(gateway, request, described, counts), entity.name
    if isinstance(described, SubscriptionDescription):
        title = described.own_name
    uri = entry_uri(request, entity.name)
    return AtomEntry(uri, title, described.created_at_ms, content, described.updated_at_ms)


def _content(gateway: Gateway, request: Request, described: EntityDescription, counts: EntityCounts) -> str:
    tier, host = gateway.namespace.profile.messaging, gateway.settings.host_name
    knows = knows_partitioning(request)
    match described:
        case QueueDescription():
            return queue_content(described, counts, tier=tier, host=host, tells_partitioning=knows)
        case TopicDescription():
            figures = _figures(gateway, request, described.name)
            return topic_content(described, counts, figures, tier=tier, tells_partitioning=knows)
        case SubscriptionDescription():
            return subscription_content(described, counts, host=host)
    raise TypeError(f"no description of a {described.kind.noun} is told here")


def _figures(gateway: Gateway, request: Request, topic: str) -> TopicFigures:
    subscriptions = gateway.namespace.subscriptions(topic)
    if api_version(request) < FILTER_COUNTS_VERSION:
        return TopicFigures(len(subscriptions))
    rules = [gateway.namespace.subscription_rules(each.name) for each in subscriptions]
    sql, correlation = sum(each.sql_count for each in rules), sum(each.correlation_count for each in rules)
    return TopicFigures(len(subscriptions), sql, correlation)


def _rule_entry(request: Request, subscription: str, rule: SubscriptionRuleDescription) -> AtomEntry:
    uri = entry_uri(request, subscription, RULES, rule.name)
    return AtomEntry(uri, rule.name, rule.created_at_ms, subscription_rule_content(rule))


def _path(match: Match) -> str:
    return subscription_path(match.entity, match.names["subscription"])


def _new_key(gateway: Gateway) -> Secret:
    return new_key(gateway.env.random_bytes(KEY_BYTES))
