"""The parts of an event hub that an address names, behind the hub's name.

| behind the name             | class         | who attaches |
|-----------------------------|---------------|--------------|
| nothing                     | WholeHub      | sender |
| `Partitions/N`              | PartitionPart | sender |
| `Publishers/P`              | PublisherPart | sender |
| `ConsumerGroups/G`          | GroupPart     | nobody; an audience of tokens |
| `ConsumerGroups/G/Partitions/N` | ConsumerPart | receiver |

Keywords come in any case. Nobody has looked whether the partition or the group exists.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.resource_path import fold


@dataclass(frozen=True, slots=True)
class WholeHub:
    """The hub; the service picks a partition."""


@dataclass(frozen=True, slots=True)
class PartitionPart:
    """One partition, for senders."""

    partition_id: str


@dataclass(frozen=True, slots=True)
class PublisherPart:
    """A publisher: its name is the partition key of all it sends."""

    publisher: str


@dataclass(frozen=True, slots=True)
class GroupPart:
    """A consumer group as a whole."""

    group: str


@dataclass(frozen=True, slots=True)
class ConsumerPart:
    """One partition as a consumer group reads it."""

    group: str
    partition_id: str


HubPart = WholeHub | PartitionPart | PublisherPart | GroupPart | ConsumerPart


def parse_hub_part(part: tuple[str, ...]) -> HubPart | None:
    """The part of an event hub that these segments of an address name; None when a hub has none such."""
    words = tuple(fold(segment) for segment in part[::2])
    match len(part), words:
        case 0, _:
            return WholeHub()
        case 2, ("partitions",):
            return PartitionPart(part[1])
        case 2, ("publishers",):
            return PublisherPart(part[1])
        case 2, ("consumergroups",):
            return GroupPart(part[1])
        case 4, ("consumergroups", "partitions"):
            return ConsumerPart(part[1], part[3])
    return None
