"""What an address on the wire names: a hub, a partition, a publisher, a group's partition, a system node.

| address                             | class             | who attaches |
|-------------------------------------|-------------------|--------------|
| `hub`                               | HubAddress        | sender |
| `hub/Partitions/N`                  | PartitionAddress  | sender |
| `hub/Publishers/P`                  | PublisherAddress  | sender |
| `hub/ConsumerGroups/G`              | GroupAddress      | nobody; an audience of tokens |
| `hub/ConsumerGroups/G/Partitions/N` | ConsumerAddress   | receiver |
| `hub/$management`, `$management`    | ManagementAddress | both |
| `$cbs`                              | CbsAddress        | both |

Clients write them bare, with a leading slash, or as a URI with any host; keywords and hub names in any case. A hub's
name may contain slashes: the longest name that exists wins. (Event Hubs AMQP guide; client libraries)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.names import HUB_NAME_LIMIT
from hubweir.namespace.resource_path import IllegalPath, fold, parse_path


@dataclass(frozen=True, slots=True)
class HubAddress:
    """The hub; the service picks a partition."""

    hub: str


@dataclass(frozen=True, slots=True)
class PartitionAddress:
    """One partition of the hub, for senders. Nobody has looked whether partition_id exists."""

    hub: str
    partition_id: str


@dataclass(frozen=True, slots=True)
class PublisherAddress:
    """A publisher of the hub: its name is the partition key of all it sends."""

    hub: str
    publisher: str


@dataclass(frozen=True, slots=True)
class GroupAddress:
    """A consumer group as a whole. Nobody has looked whether it exists."""

    hub: str
    group: str


@dataclass(frozen=True, slots=True)
class ConsumerAddress:
    """One partition as a consumer group reads it. Nobody has looked whether group and partition exist."""

    hub: str
    group: str
    partition_id: str


@dataclass(frozen=True, slots=True)
class ManagementAddress:
    """The management node of a hub; of the namespace when hub is None."""

    hub: str | None


@dataclass(frozen=True, slots=True)
class CbsAddress:
    """The node that takes tokens."""


Address = (
    HubAddress
    | PartitionAddress
    | PublisherAddress
    | GroupAddress
    | ConsumerAddress
    | ManagementAddress
    | CbsAddress
)  # fmt: skip

HubFinder = Callable[[str], str | None]

CBS, MANAGEMENT = "$cbs", "$management"


def parse_address(text: str, hubs: HubFinder, *, host: str = "hubweir") -> Address:
    """The thing that an address names.

    hubs: the hub's name as it was created, for a name in any case; None when there is none.
    host: of this namespace, for texts. Raises ServiceError NOT_FOUND with the text that clients match.
    """
    try:
        segments = parse_path(text).segments
    except IllegalPath:
        raise not_found(text, host=host) from None
    if len(segments) == 1 and fold(segments[0]) == CBS:
        return CbsAddress()
    if len(segments) == 1 and fold(segments[0]) == MANAGEMENT:
        return ManagementAddress(None)
    found = find_hub_prefix(segments, hubs)
    if found is None:
        raise not_found("/".join(segments), host=host)
    hub, depth = found
    address = _below_hub(hub, segments[depth:])
    if address is None:
        raise not_found("/".join(segments), host=host)
    return address


def find_hub_prefix(segments: tuple[str, ...], hubs: HubFinder) -> tuple[str, int] | None:
    """The longest leading part of segments that names a hub: (its name as created, how many segments it has)."""
    for depth in range(min(len(segments), HUB_NAME_LIMIT), 0, -1):
        hub = hubs("/".join(segments[:depth]))
        if hub is not None:
            return hub, depth
    return None


def not_found(path: str, *, host: str) -> ServiceError:
    """NOT_FOUND with the text that clients match; path may be anything a peer wrote."""
    return ServiceError(NOT_FOUND, entity_not_found(entity_uri(host, path)))


def _below_hub(hub: str, rest: tuple[str, ...]) -> Address | None:
    words = tuple(fold(segment) for segment in rest[::2])
    match len(rest), words:
        case 0, _:
            return HubAddress(hub)
        case 1, ("$management",):
            return ManagementAddress(hub)
        case 2, ("partitions",):
            return PartitionAddress(hub, rest[1])
        case 2, ("publishers",):
            return PublisherAddress(hub, rest[1])
        case 2, ("consumergroups",):
            return GroupAddress(hub, rest[1])
        case 4, ("consumergroups", "partitions"):
            return ConsumerAddress(hub, rest[1], rest[3])
    return None
