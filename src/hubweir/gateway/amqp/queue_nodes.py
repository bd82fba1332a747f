"""The nodes of queues: what a peer may attach to at which part of one, and what an attach needs.

| part                          | peer sends            | peer receives     |
|-------------------------------|-----------------------|-------------------|
| the queue                     | QueueSenderNode       | QueueReceiverNode |
| a topic                       | not implemented       | not allowed       |
| a subscription                | not allowed           | not implemented   |
| a sub-queue of dead letters   | not allowed           | QueueReceiverNode |
| `$management` of any of these | MessageManagementNode | ReplyNode         |

What is not built yet is refused as not implemented: topics and subscriptions, and sending to a queue that forwards,
whose messages would stay where nobody may receive them.
"""

from __future__ import annotations

from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.errors import NOT_ALLOWED, ServiceError
from hubweir.gateway.amqp.message_management import MessageManagementNode
from hubweir.gateway.amqp.node import Node, NodeHost
from hubweir.gateway.amqp.queue_receiver_node import QueueReceiverNode
from hubweir.gateway.amqp.queue_sender_node import QueueSenderNode
from hubweir.gateway.amqp.reply_node import ReplyNode
from hubweir.gateway.amqp.session_filter import SessionWish, session_wish
from hubweir.gateway.queue_admission import check_queue_gives, check_queue_takes, queue_of
from hubweir.namespace.entity import AnyEntity, EntityKind, of_kind
from hubweir.namespace.queue_description import QueueDescription
from hubweir.queue.queue_part import QueuePart
from hubweir.queue.sub_queue import SubQueue

KIB = 1_024


def queue_node(host: NodeHost, link: Link, entity: AnyEntity, part: QueuePart, scope: Scope) -> Node:
    """The node for a link to this part of an entity that holds messages; ServiceError when the attach is refused."""
    if of_kind(entity, QueueDescription) is None:
        _check_direction(link, entity, part)
    queue = queue_of(entity)
    description, gateway = queue.description, host.gateway
    place = gateway.directory.fragment(queue)
    largest = KIB * description.storage.message_kilobytes(gateway.settings.profile.messaging)
    needs_session = description.delivery.requires_session
    if part.is_management:
        if isinstance(link, SenderLink):
            return ReplyNode(host, link)
        assert isinstance(link, ReceiverLink)
        return MessageManagementNode(
            host, link,
            scope=scope, place=place, sub_queue=part.sub_queue, needs_session=needs_session,
            max_message_size_bytes=largest,
        )  # fmt: skip
    if isinstance(link, ReceiverLink):
        if part.sub_queue is not SubQueue.MAIN:
            raise ServiceError(NOT_ALLOWED, f"Nothing can be sent to the dead letters of {description.title}.")
        check_queue_takes(description)
        return QueueSenderNode(
            host, link, scope=scope, place=place, needs_session=needs_session, max_message_size_bytes=largest
        )
    assert isinstance(link, SenderLink)
    check_queue_gives(description, part.sub_queue)
    wish = _wish(link, description, part)
    return QueueReceiverNode(host, link, scope=scope, place=place, sub_queue=part.sub_queue, wish=wish)


def _check_direction(link: Link, entity: AnyEntity, part: QueuePart) -> None:
    """Raise ServiceError NOT_ALLOWED for a receiver of a topic, or a sender to a subscription."""
    if part.is_management:
        return
    title, name = entity.description.title, entity.name
    if entity.kind is EntityKind.TOPIC and isinstance(link, SenderLink):
        text = f"Nothing can be received from {title}: receive from '{name}/Subscriptions/NAME'."
        raise ServiceError(NOT_ALLOWED, text)
    if entity.kind is EntityKind.SUBSCRIPTION and isinstance(link, ReceiverLink):
        text = f"Nothing can be sent to {title}: send to '{entity.description.parent}'."
        raise ServiceError(NOT_ALLOWED, text)


def _wish(link: SenderLink, queue: QueueDescription, part: QueuePart) -> SessionWish | None:
    """The session that a receiver wants. Raises ServiceError NOT_ALLOWED for a receiver of the wrong kind."""
    wish = session_wish(link)
    is_needed = queue.delivery.requires_session and part.sub_queue is SubQueue.MAIN
    if wish is None and is_needed:
        text = (
            "It is not possible for an entity that requires sessions to create a non-sessionful message receiver: "
            f"{queue.title} requires sessions."
        )
        raise ServiceError(NOT_ALLOWED, text)
    if wish is not None and not is_needed:
        text = (
            "A sessionful message receiver cannot be created on an entity that does not require sessions: "
            f"{queue.title} does not, and its dead letters never do."
        )
        raise ServiceError(NOT_ALLOWED, text)
    return wish
