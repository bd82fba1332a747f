"""Queues, topics and subscriptions as ARM has them: the members of the service's XML, with small first letters.

So a request becomes the element that management over ATOM reads (http/messaging_xml.py), with the same defaults and
refusals, and a description is told from the element that it writes (http/messaging_content.py). A PUT replaces an
entity's settings as a whole; its authorization rules stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TypeVar

from hubweir.auth.authorization_rule import KEY_BYTES, new_key
from hubweir.errors import ARGUMENT_ERROR, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.arm.documents import Document, answer, cut_page, resource
from hubweir.gateway.arm.look_and_act import look_and_act, look_and_delete
from hubweir.gateway.arm.operation import ArmCall
from hubweir.gateway.entity_counts import EntityCounts, ask_counts
from hubweir.gateway.http.exchange import Response, answer_of
from hubweir.gateway.http.messaging_content import TopicFigures, queue_content, subscription_content, topic_content
from hubweir.gateway.http.messaging_xml import WantedEntity, read_queue, read_subscription, read_topic
from hubweir.gateway.http.strict_xml import Element, read_xml
from hubweir.namespace.entity import Entity
from hubweir.namespace.messaging_changes import replace_settings
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.names import check_subscription_name
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.resource_path import fold
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_description import SubscriptionDescription, subscription_path
from hubweir.namespace.topic_description import TopicDescription

K = TypeVar("K", bound=MessagingDescription)

_COMMON = (
    "AutoDeleteOnIdle", "DefaultMessageTimeToLive", "EnableBatchedOperations", "Status", "UserMetadata",
)  # fmt: skip
_DELIVERY = (
    "LockDuration", "RequiresSession", "DeadLetteringOnMessageExpiration", "MaxDeliveryCount", "ForwardTo",
    "ForwardDeadLetteredMessagesTo",
)  # fmt: skip
_STORAGE = (
    "MaxSizeInMegabytes", "MaxMessageSizeInKilobytes", "RequiresDuplicateDetection",
    "DuplicateDetectionHistoryTimeWindow", "EnablePartitioning", "EnableExpress",
)  # fmt: skip
# What a request may say of each kind, by the names of the elements.
TAKEN: dict[type[MessagingDescription], tuple[str, ...]] = {
    QueueDescription: (*_COMMON, *_DELIVERY, *_STORAGE),
    TopicDescription: (*_COMMON, *_STORAGE, "SupportOrdering"),
    SubscriptionDescription: (*_COMMON, *_DELIVERY, "DeadLetteringOnFilterEvaluationExceptions"),
}
# What the service says itself, and a request may repeat.
_READ_ONLY = (
    "CountDetails", "CreatedAt", "UpdatedAt", "AccessedAt", "SizeInBytes", "MessageCount", "SubscriptionCount",
)  # fmt: skip
_NUMBERS = frozenset((
    "MaxSizeInMegabytes", "MaxMessageSizeInKilobytes", "MaxDeliveryCount", "SizeInBytes", "MessageCount",
    "SubscriptionCount",
))  # fmt: skip
_ELEMENTS: dict[type[MessagingDescription], str] = {
    QueueDescription: "QueueDescription",
    TopicDescription: "TopicDescription",
    SubscriptionDescription: "SubscriptionDescription",
}


async def list_queues(call: ArmCall) -> Response:
    return await _list(call, _sorted(call.gateway.namespace.entities(QueueDescription)))


async def list_topics(call: ArmCall) -> Response:
    return await _list(call, _sorted(call.gateway.namespace.entities(TopicDescription)))


async def list_subscriptions(call: ArmCall) -> Response:
    return await _list(call, _sorted(call.gateway.namespace.subscriptions(call.names["topic"])))


async def get_queue(call: ArmCall) -> Response:
    return answer(await _document(call, call.gateway.namespace.get(call.names["queue"], QueueDescription)))


async def get_topic(call: ArmCall) -> Response:
    return answer(await _document(call, call.gateway.namespace.get(call.names["topic"], TopicDescription)))


async def get_subscription(call: ArmCall) -> Response:
    return answer(await _document(call, call.gateway.namespace.get(_path(call), SubscriptionDescription)))


async def put_queue(call: ArmCall) -> Response:
    element = await _element(call, QueueDescription)
    return await _put(call, read_queue(element, call.names["queue"], partial(_new_key, call)))


async def put_topic(call: ArmCall) -> Response:
    element = await _element(call, TopicDescription)
    return await _put(call, read_topic(element, call.names["topic"], partial(_new_key, call)))


async def put_subscription(call: ArmCall) -> Response:
    check_subscription_name(call.names["subscription"])
    element = await _element(call, SubscriptionDescription)
    return await _put(call, read_subscription(element, _path(call)))


async def delete_queue(call: ArmCall) -> Response:
    return await _delete(call, call.names["queue"], QueueDescription)


async def delete_topic(call: ArmCall) -> Response:
    return await _delete(call, call.names["topic"], TopicDescription)


async def delete_subscription(call: ArmCall) -> Response:
    return await _delete(call, _path(call), SubscriptionDescription)


# Parts


def _path(call: ArmCall) -> str:
    return subscription_path(call.names["topic"], call.names["subscription"])


def _new_key(call: ArmCall) -> Secret:
    return new_key(call.gateway.env.random_bytes(KEY_BYTES))


def _sorted(entities: Sequence[Entity[K]]) -> list[Entity[K]]:
    return sorted(entities, key=lambda entity: fold(entity.name))


async def _list(call: ArmCall, entities: Sequence[Entity[K]]) -> Response:
    some, link = cut_page(call.request, entities)
    return answer({"value": list(await asyncio.gather(*(_document(call, each) for each in some)))} | link)


async def _put(call: ArmCall, wanted: WantedEntity[K]) -> Response:
    """Make an entity, or replace all settings of one that is there."""
    gateway, name = call.gateway, wanted.description.name
    kind: type[K] = type(wanted.description)

    async def attempt() -> Entity[K]:
        if gateway.namespace.find(name, kind) is None:
            made = await answer_of(partial(gateway.keeper.create, wanted.new))
        else:
            change = partial(replace_settings, wanted=wanted.description, rules=None)
            made = await answer_of(partial(gateway.keeper.change, name, kind, change))
        return gateway.namespace.get(made.name, kind)

    return answer(await _document(call, await look_and_act(attempt)))


async def _delete(call: ArmCall, name: str, kind: type[K]) -> Response:
    def find() -> Awaitable[object] | None:
        if call.gateway.namespace.find(name, kind) is None:
            return None
        return answer_of(partial(call.gateway.keeper.delete, name, kind))

    return await look_and_delete(find)


async def _element(call: ArmCall, kind: type[MessagingDescription]) -> Element:
    """The description in a request's body, as the element that it is over ATOM."""
    members = await call.members()
    members.pass_over("id", "name", "type", "location", "systemData")
    properties = members.members("properties")
    members.finish()
    properties.pass_over(*_READ_ONLY)
    taken = {fold(name): name for name in TAKEN[kind]}
    found = Element(_ELEMENTS[kind])
    for name, value in properties.take_all().items():
        element_name = taken.get(fold(name))
        if element_name is None and value not in (False, "", [], {}):
            text = f"The property 'properties.{name[:64]}' is not served here: leave it out."
            raise ServiceError(NOT_IMPLEMENTED, text)
        if element_name is not None:
            found.children.append(Element(element_name, text=_text(name, value)))
    return found


def _text(name: str, value: object) -> str:
    """A value as XML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise ServiceError(
        ARGUMENT_ERROR, f"The property 'properties.{name[:64]}' must be a text, a number, true or false."
    )


async def _document(call: ArmCall, entity: Entity[K]) -> Document:
    gateway = call.gateway
    counts: EntityCounts = await answer_of(partial(ask_counts, gateway.env, gateway.directory.fragments(entity)))
    name, described = gateway.settings.namespace, entity.description
    properties = _properties(read_xml(_content(call, entity, counts).encode()), type(described))
    kind = f"{call.path.provider}/Namespaces"
    if isinstance(described, SubscriptionDescription):
        topic = described.name.partition("/Subscriptions/")[0]
        resource_id = call.path.id_of("namespaces", name, "topics", topic, "subscriptions", described.own_name)
        return resource(resource_id, f"{kind}/Topics/Subscriptions", described.own_name, properties)
    types = "queues" if isinstance(described, QueueDescription) else "topics"
    resource_id = call.path.id_of("namespaces", name, types, entity.name)
    return resource(resource_id, f"{kind}/{types.capitalize()}", entity.name, properties)


def _content(call: ArmCall, entity: Entity[K], counts: EntityCounts) -> str:
    tier, host, described = (
        call.gateway.namespace.profile.messaging,
        call.gateway.settings.host_name,
        entity.description,
    )
    match described:
        case QueueDescription():
            return queue_content(described, counts, tier=tier, host=host)
        case TopicDescription():
            figures = TopicFigures(len(call.gateway.namespace.subscriptions(described.name)))
            return topic_content(described, counts, figures, tier=tier)
        case SubscriptionDescription():
            return subscription_content(described, counts, host=host)
    raise TypeError(f"no description of a {described.kind.noun} is told here")


def _properties(element: Element, kind: type[MessagingDescription]) -> Document:
    """What a kind is told with: no more than a request may say or repeat, so that an answer may be sent again."""
    told = (*TAKEN[kind], *_READ_ONLY)
    return {_small(each.name): _value(each) for each in element.children if each.name in told}


def _value(element: Element) -> object:
    if element.name == "CountDetails":
        return {_small(each.name): int(each.text) for each in element.children}
    if element.name in _NUMBERS:
        return int(element.text)
    return {"true": True, "false": False}.get(element.text, element.text)


def _small(name: str) -> str:
    return name[:1].lower() + name[1:]
