"""Which node stands behind an address, and what an attach to it needs.

| address                    | peer sends      | peer receives | right  |
|----------------------------|-----------------|---------------|--------|
| $cbs                       | CbsNode         | ReplyNode     | none: rights come from here |
| $management, hub/…         | ManagementNode  | ReplyNode     | none: every request is checked |
| hub, hub/Partitions/N      | PublisherNode   | not allowed   | Send   |
| hub/Partitions/N, numbered | NumberedPublisherNode | not allowed | Send |
| hub/Publishers/P           | PublisherNode   | not allowed   | Send   |
| hub/ConsumerGroups/…/N     | not allowed     | ConsumerNode  | Listen |

Claims are asked before existence: who has none for the address learns nothing about what exists (rule R23).
"""

from __future__ import annotations

from hubweir.amqp.messaging.terminus import Coordinator
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.errors import INVALID_FIELD, NOT_ALLOWED, NOT_IMPLEMENTED, ServiceError
from hubweir.event_hub.availability import check_may_receive, check_may_send
from hubweir.event_hub.publisher_policy import check_publisher
from hubweir.gateway.amqp.cbs_node import CbsNode
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.management_node import ManagementNode
from hubweir.gateway.amqp.node import Node, NodeHost
from hubweir.gateway.amqp.numbered_publisher_node import NumberedPublisherNode, wants_numbers
from hubweir.gateway.amqp.publisher_node import PublisherNode
from hubweir.gateway.amqp.reply_node import ReplyNode
from hubweir.namespace.address import (
    Address,
    CbsAddress,
    ConsumerAddress,
    HubAddress,
    ManagementAddress,
    PartitionAddress,
    PublisherAddress,
    parse_address,
)
from hubweir.namespace.rights import Rights


def open_node(host: NodeHost, link: Link) -> Node:
    """The node for a link that the peer attaches; ServiceError when the attach is refused."""
    text = address_of(link)
    address, missing = _parse(host, text)
    if isinstance(address, CbsAddress):
        return _cbs(host, link)
    if isinstance(address, ManagementAddress):
        return ManagementNode(host, link) if isinstance(link, ReceiverLink) else ReplyNode(host, link)
    scope = host.gateway.authorization.scope_of(text)
    host.claims.require(Rights.SEND if isinstance(link, ReceiverLink) else Rights.LISTEN, scope)
    if missing is not None:
        raise missing
    if isinstance(link, ReceiverLink):
        return _publisher(host, link, address, scope)
    if isinstance(link, SenderLink) and isinstance(address, ConsumerAddress):
        directory = host.gateway.directory
        group = directory.group(address.hub, address.group)
        place = directory.partition(address.hub, address.partition_id)
        check_may_receive(directory.hub(address.hub).description)
        return ConsumerNode(host, link, scope=scope, place=place, group=group)
    raise ServiceError(
        NOT_ALLOWED,
        f"Nothing can be received from '{text[:128]}'. Receive from EVENTHUB/ConsumerGroups/GROUP/Partitions/ID.",
    )


def address_of(link: Link) -> str:
    """The address of the node that the peer attaches to: its target when it sends, its source when it receives.

    Raises ServiceError when there is none, or a kind of node that does not exist here.
    """
    terminus = link.target if isinstance(link, ReceiverLink) else link.source
    if isinstance(terminus, Coordinator):
        raise ServiceError(NOT_IMPLEMENTED, "There is no transaction coordinator here; send without transactions.")
    if terminus is None:
        raise ServiceError(INVALID_FIELD, "The attach names no node: it has no source or no target.")
    if terminus.dynamic:
        raise ServiceError(NOT_IMPLEMENTED, "Nodes are not made on demand; attach to the address of an event hub.")
    if not terminus.address:
        raise ServiceError(INVALID_FIELD, "The attach names no node: its address is empty.")
    return terminus.address


def _parse(host: NodeHost, text: str) -> tuple[Address | None, ServiceError | None]:
    """The address, or why there is none: to be told only after the claims were asked."""
    try:
        return parse_address(text, host.gateway.directory.name_of, host=host.settings.host_name), None
    except ServiceError as error:
        return None, error


def _cbs(host: NodeHost, link: Link) -> Node:
    if not isinstance(link, ReceiverLink):
        return ReplyNode(host, link)
    if any(isinstance(node, CbsNode) for node in host.nodes):
        text = "This connection has a sender on $cbs already; detach it before you attach another."
        raise ServiceError(NOT_ALLOWED, text)
    return CbsNode(host, link)


def _publisher(host: NodeHost, link: ReceiverLink, address: Address | None, scope: Scope) -> Node:
    directory = host.gateway.directory
    if wants_numbers(link) and not isinstance(address, PartitionAddress | None):
        text = "Idempotent producers send to one partition: attach to EVENTHUB/Partitions/ID."
        raise ServiceError(NOT_ALLOWED, text)
    if isinstance(address, HubAddress | PartitionAddress | PublisherAddress):
        check_may_send(directory.hub(address.hub).description)
    match address:
        case HubAddress(hub):
            places = directory.partitions(hub)
            return PublisherNode(host, link, scope=scope, places=places, router=host.gateway.router(hub))
        case PartitionAddress(hub, partition_id):
            place = directory.partition(hub, partition_id)
            if wants_numbers(link):
                return NumberedPublisherNode(host, link, scope=scope, place=place)
            return PublisherNode(host, link, scope=scope, places=(place,), router=None)
        case PublisherAddress(hub, publisher):
            check_publisher(directory.hub(hub).description, publisher)
            name = publisher.encode()
            place = directory.partition(hub, str(host.gateway.router(hub).partition_of_key(name)))
            return PublisherNode(host, link, scope=scope, places=(place,), router=None, publisher=name)
    raise ServiceError(
        NOT_ALLOWED, "Nothing can be sent to this address. Send to EVENTHUB, EVENTHUB/Partitions/ID or a publisher."
    )
