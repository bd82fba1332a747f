"""The commands by which brokers make, open, change and remove the logs of an entity: a class for each kind.

Every command goes to the broker of its placement. To make or to remove a log twice does nothing the second time.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.broker.commands.command import Command
from hubweir.broker.commands.fragment import ChangeFragment, CreateFragment, DeleteFragment, OpenFragment
from hubweir.broker.commands.partition import ChangePartition, CreatePartition, DeletePartition, OpenPartition
from hubweir.limits import MIB
from hubweir.namespace.entity import AnyEntity, Entity, Placement, of_kind
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.queue.fragment_settings import FragmentSettings

LogCommands = list[tuple[Placement, Command]]


class EntityLogs(Protocol):
    """The logs of one entity. namespace: the name of the namespace that it is in."""

    def make(self, namespace: str) -> LogCommands:
        """What makes the logs of a new entity."""

    def open(self, namespace: str) -> LogCommands:
        """What opens logs that were made before; one that is lost is never made anew."""

    def change(self) -> LogCommands:
        """What tells the settings to the logs. A change that leaves these commands as they were tells them nothing."""

    def remove(self) -> LogCommands:
        """What removes the logs."""


def logs_of(entity: AnyEntity) -> EntityLogs:
    """The logs of an entity, by its kind."""
    hub = of_kind(entity, EventHubDescription)
    if hub is not None:
        return EventHubLogs(hub)
    messaging = of_kind(entity, MessagingDescription)
    if messaging is not None:
        return FragmentLogs(messaging)
    raise NotImplementedError(f"no broker keeps the logs of a {entity.kind.noun}")


class EventHubLogs:
    """A log for each partition."""

    def __init__(self, hub: EventHubEntity) -> None:
        self._hub = hub.description
        self._placements = hub.placements

    def make(self, namespace: str) -> LogCommands:
        return self._each_partition(CreatePartition, namespace)

    def open(self, namespace: str) -> LogCommands:
        return self._each_partition(OpenPartition, namespace)

    def change(self) -> LogCommands:
        settings = self._hub.durability, self._hub.retention_ms, self._hub.capture
        return [(placement, ChangePartition(placement.log_id, *settings)) for placement in self._placements]

    def remove(self) -> LogCommands:
        return [(placement, DeletePartition(placement.log_id)) for placement in self._placements]

    def _each_partition(self, command: type[CreatePartition], namespace: str) -> LogCommands:
        hub = self._hub
        settings = hub.durability, hub.retention_ms, namespace, hub.capture
        return [
            (placement, command(placement.log_id, hub.name, partition_id, *settings))
            for partition_id, placement in zip(hub.partition_ids, self._placements, strict=True)
        ]


class FragmentLogs:
    """A log for each fragment of a queue or a topic; a subscription lies in its topic's, and has none."""

    def __init__(self, entity: Entity[MessagingDescription]) -> None:
        self._description = entity.description
        self._placements = entity.placements

    def make(self, namespace: str) -> LogCommands:
        return self._each_fragment(CreateFragment, namespace)

    def open(self, namespace: str) -> LogCommands:
        return self._each_fragment(OpenFragment, namespace)

    def change(self) -> LogCommands:
        settings = fragment_settings(self._description)
        return [(placement, ChangeFragment(placement.log_id, settings)) for placement in self._placements]

    def remove(self) -> LogCommands:
        return [(placement, DeleteFragment(placement.log_id)) for placement in self._placements]

    def _each_fragment(self, command: type[CreateFragment], namespace: str) -> LogCommands:
        name, settings = self._description.name, fragment_settings(self._description)
        return [
            (placement, command(placement.log_id, name, settings, namespace, number))
            for number, placement in enumerate(self._placements)
        ]


def fragment_settings(description: MessagingDescription) -> FragmentSettings:
    """What a fragment has to know of its entity."""
    delivery, storage, time_to_live = (
        delivery_of(description),
        storage_of(description),
        description.default_time_to_live,
    )
    return FragmentSettings(
        lock_duration_ms=delivery.lock_duration.ms,
        default_ttl_ms=None if time_to_live.is_unlimited else time_to_live.ms,
        max_delivery_count=delivery.max_delivery_count,
        dead_letters_on_expiry=delivery.dead_letters_on_expiration,
        requires_session=delivery.requires_session,
        duplicate_window_ms=storage.duplicate_window.ms if storage.requires_duplicate_detection else None,
        max_size_bytes=storage.max_size_megabytes * MIB,
        is_express=storage.is_express,
    )
