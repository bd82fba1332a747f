"""Which broker holds which partition, by the catalog. One look-up per attach or request, none per event.

Names are compared without case, as everywhere. A place stays good until the catalog says otherwise: the broker that
gets a command with an old placement version refuses it as moved.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, NOT_FOUND, ServiceError
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.namespace.error_text import entity_not_found, entity_uri, invalid_partition
from hubweir.namespace.event_hub_entry import EventHubEntry
from hubweir.namespace.namespace import Namespace


@dataclass(frozen=True, slots=True)
class Place:
    """Where one partition lives. hub: its name as created. placement_version: the catalog's when this was read."""

    hub: str
    partition_id: str
    log_id: str
    placement_version: int
    broker: BrokerClient


class Directory:
    """The catalog and the brokers, read together."""

    def __init__(self, namespace: Namespace, brokers: Brokers, *, host_name: str) -> None:
        self._namespace = namespace
        self._brokers = brokers
        self._host_name = host_name

    def name_of(self, hub: str) -> str | None:
        """The hub's name as created, or None when no hub of that name is served."""
        entry = self._namespace.find_hub(hub)
        return None if entry is None else entry.description.name

    def hub(self, name: str) -> EventHubEntry:
        """The hub; ServiceError NOT_FOUND with the text that clients match."""
        entry = self._namespace.find_hub(name)
        if entry is None:
            raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self._host_name, name)))
        return entry

    def group(self, hub: str, group: str) -> str:
        """The consumer group's name as created; ServiceError NOT_FOUND for a hub or group that is not there."""
        found = self.hub(hub).description.find_group(group)
        if found is None:
            path = f"{hub}/consumergroups/{group}"
            raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(self._host_name, path)))
        return found

    def partition(self, hub: str, partition_id: str) -> Place:
        """Where this partition lives; ServiceError NOT_FOUND (hub) or ARGUMENT_OUT_OF_RANGE (partition)."""
        entry = self.hub(hub)
        description = entry.description
        if not description.has_partition(partition_id):
            text = invalid_partition(partition_id, hub=description.name, partition_count=description.partition_count)
            raise ServiceError(ARGUMENT_OUT_OF_RANGE, text)
        placement = entry.placements[int(partition_id)]
        broker = self._brokers.of_store(placement.store_index)
        return Place(description.name, partition_id, placement.log_id, self._namespace.version, broker)

    def partitions(self, hub: str) -> tuple[Place, ...]:
        """The places of all partitions of a hub, in order."""
        return tuple(self.partition(hub, partition_id) for partition_id in self.hub(hub).description.partition_ids)
