"""Finds the brokers of partitions and fragments by the catalog. One look-up per attach or request, none per event.

Names are compared without case, as everywhere. A place stays good for as long as its log is there: a broker refuses
commands for a log that it does not have as moved (ENTITY_MOVED), and clients look again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hubweir.broker.commands.partition import AppendEvents
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, NOT_FOUND, ServiceError
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.gateway.fragments import FragmentPlace, Fragments, fragment_id
from hubweir.namespace.entity import Entity
from hubweir.namespace.error_text import entity_not_found, entity_uri, invalid_partition
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.topic_description import TopicDescription


@dataclass(frozen=True, slots=True)
class PartitionPlace:
    """Where one partition lives. hub: its name as created."""

    hub: str
    partition_id: str
    log_id: str
    broker: BrokerClient

    @property
    def entity(self) -> str:
        """As texts name the entity that the log belongs to."""
        return self.hub

    def store(self, run: bytearray, events: int, size_bytes: int) -> AppendEvents:
        """The command that stores a run here."""
        return AppendEvents(self.log_id, run, events, size_bytes)


def partitions_away(places: Iterable[PartitionPlace]) -> frozenset[int]:
    """Of the partitions of a hub, in order, the numbers of those whose brokers are away."""
    return frozenset(number for number, place in enumerate(places) if not place.broker.is_up)


class Directory:
    """The catalog and the brokers, read together."""

    def __init__(self, namespace: Namespace, brokers: Brokers, *, host_name: str) -> None:
        self._namespace = namespace
        self._brokers = brokers
        self._host_name = host_name

    def hub(self, name: str) -> EventHubEntity:
        """The hub; ServiceError NOT_FOUND with the text that clients match."""
        found = self._namespace.find(name, EventHubDescription)
        if found is None:
            raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self._host_name, name)))
        return found

    def group(self, hub: str, group: str) -> str:
        """The consumer group's name as created; ServiceError NOT_FOUND for a hub or group that is not there."""
        found = self.hub(hub).description.find_group(group)
        if found is None:
            path = f"{hub}/consumergroups/{group}"
            raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self._host_name, path)))
        return found

    def partition(self, hub: str, partition_id: str) -> PartitionPlace:
        """Where this partition lives; ServiceError NOT_FOUND (hub) or ARGUMENT_OUT_OF_RANGE (partition)."""
        entity = self.hub(hub)
        description = entity.description
        if not description.has_partition(partition_id):
            text = invalid_partition(partition_id, hub=description.name, partition_count=description.partition_count)
            raise ServiceError(ARGUMENT_OUT_OF_RANGE, text)
        placement = entity.placements[int(partition_id)]
        broker = self._brokers.of_store(placement.store_index)
        return PartitionPlace(description.name, partition_id, placement.log_id, broker)

    def fragments(self, entity: Entity[MessagingDescription]) -> Fragments:
        """Where the fragments of a queue, a topic or a subscription live. ServiceError NOT_FOUND: its topic is gone."""
        name, topic, entity_id = entity.description.name, entity.description.parent, entity.entity_id
        placements = entity.placements
        if topic is not None:
            placements = self._namespace.get(topic, TopicDescription).placements
        count = len(placements)
        return Fragments(
            tuple(
                FragmentPlace(
                    name,
                    placement.log_id if topic is None else fragment_id(entity_id, number, count),
                    self._brokers.of_store(placement.store_index),
                    placement.log_id,
                    topic,
                    number,
                    placement.store_index,
                )
                for number, placement in enumerate(placements)
            )
        )

    def partitions(self, hub: str) -> tuple[PartitionPlace, ...]:
        """The places of all partitions of a hub, in order."""
        return tuple(self.partition(hub, partition_id) for partition_id in self.hub(hub).description.partition_ids)
