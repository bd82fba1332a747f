"""The nodes of queues, topics and subscriptions: what a peer may attach to at which part, and what an attach needs.

| part                          | peer sends            | peer receives     |
|-------------------------------|-----------------------|-------------------|
| a queue                       | QueueSenderNode       | QueueReceiverNode |
| a topic                       | QueueSenderNode       | not allowed       |
| a subscription                | not allowed           | QueueReceiverNode |
| a sub-queue of dead letters   | not allowed           | QueueReceiverNode |
| `$management` of any of these | MessageManagementNode | ReplyNode         |

Nobody receives from the messages of an entity that forwards them: its sub-queues of dead letters are received from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Symbol
from hubweir.auth.resource_scope import Scope
from hubweir.errors import INVALID_FIELD, NOT_ALLOWED, ServiceError
from hubweir.gateway.amqp.message_management import MessageManagementNode
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties
from hubweir.gateway.amqp.queue_receiver_node import QueueReceiverNode
from hubweir.gateway.amqp.queue_sender_node import QueueSenderNode
from hubweir.gateway.amqp.request_node import ReplyNode
from hubweir.gateway.amqp.session_filter import SessionWish, session_wish
from hubweir.gateway.amqp.via_sender_node import ViaSenderNode
from hubweir.gateway.destinations import Way
from hubweir.gateway.queue_admission import check_gives, check_takes
from hubweir.namespace.address import not_found, parse_address
from hubweir.namespace.entity import Entity, EntityKind, of_kind
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.namespace.rights import Rights
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.queue_part import QueuePart
from hubweir.queue.sub_queue import SubQueue

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

KIB = 1_024
# The property of a link that sends by way of another entity.
VIA = Symbol("com.microsoft:transfer-destination-address")


def queue_node(host: NodeHost, link: Link, entity: Entity[MessagingDescription], part: QueuePart, scope: Scope) -> Node:
    """The node for a link to this part of an entity that holds messages; ServiceError when the attach is refused."""
    description, gateway = entity.description, host.gateway
    if not part.is_management:
        _check_direction(link, description)
    fragments = gateway.directory.fragments(entity)
    needs_session = delivery_of(description).requires_session
    largest = _largest(gateway, description)
    if part.is_management:
        if isinstance(link, SenderLink):
            return ReplyNode(host, link)
        assert isinstance(link, ReceiverLink)
        return MessageManagementNode(
            host, link,
            scope=scope, kind=entity.kind, fragments=fragments,
            choice=None if entity.kind is EntityKind.SUBSCRIPTION else gateway.fragment_choice(entity),
            sub_queue=part.sub_queue, needs_session=needs_session, max_message_size_bytes=largest,
        )  # fmt: skip
    if isinstance(link, ReceiverLink):
        if part.sub_queue is not SubQueue.MAIN:
            raise ServiceError(NOT_ALLOWED, f"Nothing can be sent to the dead letters of {description.title}.")
        check_takes(description)
        if VIA in attach_properties(link):
            return _via_node(host, link, entity, scope, largest)
        return QueueSenderNode(
            host, link,
            scope=scope, place=fragments.places[0], needs_session=needs_session, max_message_size_bytes=largest,
            choice=gateway.fragment_choice(entity),
        )  # fmt: skip
    assert isinstance(link, SenderLink)
    check_gives(description, part.sub_queue)
    wish = _wish(link, description, part)
    return QueueReceiverNode(host, link, scope=scope, fragments=fragments, sub_queue=part.sub_queue, wish=wish)


def _via_node(
    host: NodeHost,
    link: ReceiverLink,
    entity: Entity[MessagingDescription],
    scope: Scope,
    largest: int,
) -> ViaSenderNode:
    """The node for a link that sends by way of an entity. scope, largest: of that one; largest in bytes."""
    gateway, text = host.gateway, attach_properties(link)[VIA]
    if not isinstance(text, str):
        raise ServiceError(INVALID_FIELD, f"The property {VIA} of a link is the address of a queue or a topic.")
    destination_scope = gateway.authorization.scope_of(text)
    host.claims.require(Rights.SEND, destination_scope)
    host_name = gateway.settings.host_name
    found = parse_address(text, gateway.namespace.find_any, host=host_name)
    destination = of_kind(found.entity, MessagingDescription)
    if destination is None or found.part:
        raise not_found(text, host=host_name)
    description = destination.description
    _check_direction(link, description)
    # What cannot go on stays in one fragment, whatever its keys: those are keys of the destination's fragments.
    via = gateway.directory.fragments(entity).of_key(destination.name.encode())
    return ViaSenderNode(
        host,
        link,
        scope=scope,
        destination_scope=destination_scope,
        place=gateway.directory.fragments(destination).places[0],
        way=Way(gateway.namespace, entity, via, destination),
        needs_session=delivery_of(description).requires_session,
        max_message_size_bytes=min(largest, _largest(gateway, description)),
        choice=gateway.fragment_choice(destination),
    )


def _largest(gateway: Gateway, description: MessagingDescription) -> int:
    """The bytes of the largest message that it takes."""
    return KIB * _stored(gateway, description).message_kilobytes(gateway.settings.profile.messaging)


def _stored(gateway: Gateway, description: MessagingDescription) -> StorageSettings:
    """How what an entity holds is stored: what a subscription holds, in its topic."""
    if description.parent is not None:
        return gateway.namespace.get(description.parent, TopicDescription).description.storage
    return storage_of(description)


def _check_direction(link: Link, description: MessagingDescription) -> None:
    """Raise ServiceError NOT_ALLOWED for a receiver of a topic, or a sender to a subscription."""
    title, name = description.title, description.name
    if description.kind is EntityKind.TOPIC and isinstance(link, SenderLink):
        text = f"Nothing can be received from {title}: receive from '{name}/Subscriptions/NAME'."
        raise ServiceError(NOT_ALLOWED, text)
    if description.kind is EntityKind.SUBSCRIPTION and isinstance(link, ReceiverLink):
        raise ServiceError(NOT_ALLOWED, f"Nothing can be sent to {title}: send to '{description.parent}'.")


def _wish(link: SenderLink, entity: MessagingDescription, part: QueuePart) -> SessionWish | None:
    """The session that a receiver wants. Raises ServiceError NOT_ALLOWED for a receiver of the wrong kind."""
    wish = session_wish(link)
    is_needed = delivery_of(entity).requires_session and part.sub_queue is SubQueue.MAIN
    if wish is None and is_needed:
        text = (
            "It is not possible for an entity that requires sessions to create a non-sessionful message receiver: "
            f"{entity.title} requires sessions."
        )
        raise ServiceError(NOT_ALLOWED, text)
    if wish is not None and not is_needed:
        text = (
            "A sessionful message receiver cannot be created on an entity that does not require sessions: "
            f"{entity.title} does not, and its dead letters never do."
        )
        raise ServiceError(NOT_ALLOWED, text)
    return wish
