"""Finds the node behind an address, and checks what an attach to it needs. Each kind of entity has its own nodes.

| address                    | peer sends      | peer receives | right  |
|----------------------------|-----------------|---------------|--------|
| $cbs                       | CbsNode         | ReplyNode     | none: rights come from here |
| $management, hub/…         | ManagementNode  | ReplyNode     | none: every request is checked |
| hub, hub/Partitions/N      | PublisherNode   | not allowed   | Send   |
| hub/Partitions/N, numbered | NumberedPublisherNode | not allowed | Send |
| hub/Publishers/P           | PublisherNode   | not allowed   | Send   |
| hub/ConsumerGroups/…/N     | not allowed     | ConsumerNode  | Listen |
| of a queue, topic or subscription | queue_nodes.py | queue_nodes.py | Send, Listen |
| none: a coordinator        | CoordinatorNode | not possible  | none: what a transaction does is checked |

Claims are asked before existence: who has none for the address learns nothing about what exists (rule R23).
"""

from __future__ import annotations

from hubweir.amqp.messaging.terminus import Coordinator
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.errors import INVALID_FIELD, NOT_ALLOWED, NOT_IMPLEMENTED, ServiceError
from hubweir.event_hub.hub_part import (
    ConsumerPart,
    HubPart,
    PartitionPart,
    PublisherPart,
    WholeHub,
    parse_hub_part,
)
from hubweir.event_hub.publisher_policy import check_publisher
from hubweir.gateway.amqp.cbs_node import CbsNode
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.coordinator_node import CoordinatorNode
from hubweir.gateway.amqp.management_node import ManagementNode
from hubweir.gateway.amqp.node import Node, NodeHost
from hubweir.gateway.amqp.numbered_publisher_node import NumberedPublisherNode, wants_numbers
from hubweir.gateway.amqp.publisher_node import PublisherNode
from hubweir.gateway.amqp.queue_nodes import queue_node
from hubweir.gateway.amqp.request_node import ReplyNode
from hubweir.namespace.address import Address, not_found, parse_address
from hubweir.namespace.availability import check_may_receive, check_may_send
from hubweir.namespace.entity import Entity, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.queue_part import QueuePart, parse_queue_part

_NAME_LIMIT = 128  # of what a peer asked for, where it is repeated


def open_node(host: NodeHost, link: Link) -> Node:
    """The node for a link that the peer attaches; ServiceError when the attach is refused."""
    if isinstance(link, ReceiverLink) and isinstance(link.target, Coordinator):
        return CoordinatorNode(host, link)
    text = address_of(link)
    found = _parse(host, text)
    if isinstance(found, Address) and found.is_cbs:
        return _cbs(host, link)
    queue, queue_part = _of_queue(found)
    if queue is not None and queue_part is not None and queue_part.is_management:
        # Every request is checked: a claim on the queue, on its sub-queue or on this node alone is enough.
        return queue_node(host, link, queue, queue_part, host.gateway.authorization.scope_of(text))
    if isinstance(found, Address) and found.is_management:
        return ManagementNode(host, link) if isinstance(link, ReceiverLink) else ReplyNode(host, link)
    scope = host.gateway.authorization.scope_of(text)
    host.claims.require(Rights.SEND if isinstance(link, ReceiverLink) else Rights.LISTEN, scope)
    if isinstance(found, ServiceError):
        raise found
    if queue is not None and queue_part is not None:
        return queue_node(host, link, queue, queue_part, scope)
    hub = of_kind(found.entity, EventHubDescription)
    part = None if hub is None else parse_hub_part(found.part)
    if hub is None or part is None:
        raise not_found("/".join(scope.segments), host=host.gateway.settings.host_name)
    return _event_hub_node(host, link, hub.name, part, scope)


def address_of(link: Link) -> str:
    """The address of the node that the peer attaches to: its target when it sends, its source when it receives.

    Raises ServiceError when there is none, or a kind of node that does not exist here.
    """
    terminus = link.target if isinstance(link, ReceiverLink) else link.source
    if isinstance(terminus, Coordinator):
        raise ServiceError(NOT_IMPLEMENTED, "A coordinator has no address, and gives nothing out.")
    if terminus is None:
        raise ServiceError(INVALID_FIELD, "The attach names no node: it has no source or no target.")
    if terminus.dynamic:
        raise ServiceError(NOT_IMPLEMENTED, "Nodes are not made on demand; attach to the address of an event hub.")
    if not terminus.address:
        raise ServiceError(INVALID_FIELD, "The attach names no node: its address is empty.")
    return terminus.address


def asked_entity(host: NodeHost, link: Link) -> str:
    """What a refused attach asked for, in its reference: the first name of its address. A node of ours is no entity."""
    try:
        segments = host.gateway.authorization.scope_of(address_of(link)).segments
    except ServiceError:
        return ""
    first = segments[0] if segments else ""
    return "" if first.startswith("$") else first


def _of_queue(found: Address | ServiceError) -> tuple[Entity[MessagingDescription] | None, QueuePart | None]:
    """The entity that holds messages, and its part, that an address names; None and None when it names none such."""
    entity = of_kind(found.entity, MessagingDescription) if isinstance(found, Address) else None
    if entity is None or not isinstance(found, Address):
        return None, None
    return entity, parse_queue_part(entity.description, found.part)


def _parse(host: NodeHost, text: str) -> Address | ServiceError:
    """The address, or why there is none: to be told only after the claims were asked."""
    try:
        return parse_address(text, host.gateway.namespace.find_any, host=host.gateway.settings.host_name)
    except ServiceError as error:
        return error


def _cbs(host: NodeHost, link: Link) -> Node:
    if not isinstance(link, ReceiverLink):
        return ReplyNode(host, link)
    if any(isinstance(node, CbsNode) for node in host.nodes):
        text = "This connection has a sender on $cbs already; detach it before you attach another."
        raise ServiceError(NOT_ALLOWED, text)
    return CbsNode(host, link)


def _event_hub_node(host: NodeHost, link: Link, hub: str, part: HubPart, scope: Scope) -> Node:
    """The node of a part of an event hub. hub: its name as created."""
    if isinstance(link, ReceiverLink):
        return _publisher(host, link, hub, part, scope)
    if isinstance(link, SenderLink) and isinstance(part, ConsumerPart):
        directory = host.gateway.directory
        group = directory.group(hub, part.group)
        place = directory.partition(hub, part.partition_id)
        check_may_receive(directory.hub(hub).description)
        return ConsumerNode(host, link, scope=scope, place=place, group=group)
    raise ServiceError(
        NOT_ALLOWED,
        f"Nothing can be received from '{address_of(link)[:_NAME_LIMIT]}'. "
        "Receive from EVENTHUB/ConsumerGroups/GROUP/Partitions/ID.",
    )


def _publisher(host: NodeHost, link: ReceiverLink, hub: str, part: HubPart, scope: Scope) -> Node:
    directory = host.gateway.directory
    if wants_numbers(link) and not isinstance(part, PartitionPart):
        text = "Idempotent producers send to one partition: attach to EVENTHUB/Partitions/ID."
        raise ServiceError(NOT_ALLOWED, text)
    if isinstance(part, WholeHub | PartitionPart | PublisherPart):
        check_may_send(directory.hub(hub).description)
    match part:
        case WholeHub():
            places = directory.partitions(hub)
            return PublisherNode(host, link, scope=scope, places=places, router=host.gateway.router(hub))
        case PartitionPart(partition_id):
            place = directory.partition(hub, partition_id)
            if wants_numbers(link):
                return NumberedPublisherNode(host, link, scope=scope, place=place)
            return PublisherNode(host, link, scope=scope, places=(place,), router=None)
        case PublisherPart(publisher):
            check_publisher(directory.hub(hub).description, publisher)
            name = publisher.encode()
            place = directory.partition(hub, str(host.gateway.router(hub).partition_of_key(name)))
            return PublisherNode(host, link, scope=scope, places=(place,), router=None, publisher=name)
    raise ServiceError(
        NOT_ALLOWED, "Nothing can be sent to this address. Send to EVENTHUB, EVENTHUB/Partitions/ID or a publisher."
    )
