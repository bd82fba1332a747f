"""The one writer of the catalog: hubs are made and removed in steps that a crash may interrupt. (Promise P18)

Creating: the intent in the catalog, with a log id for every partition → the brokers make their logs, which does
nothing for a log that is there → the commit. Deleting likewise. An intent found at start is carried on to its end.
At start the brokers are told every partition that the catalog names; what it does not name they leave alone.
After a crash a hub is served or it is not: never with a part of its partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from hubweir.broker.commands import (
    Answer,
    ChangePartition,
    Command,
    CreatePartition,
    DeletePartition,
    Refusal,
)
from hubweir.errors import CONDITIONS, INTERNAL_ERROR, ServiceError
from hubweir.gateway.brokers import Brokers
from hubweir.namespace.descriptions import EntityStatus, EventHubDescription
from hubweir.namespace.event_hub_entry import EventHubEntry, Placement
from hubweir.namespace.namespace import Namespace

logger = logging.getLogger(__name__)

OnHub = Callable[[EventHubDescription | ServiceError], None]
OnRefusals = Callable[[list[Refusal]], None]
_CONDITION_OF = {condition.symbol: condition for condition in CONDITIONS}


class CatalogKeeper:
    """Changes hubs in the catalog and at the brokers. Every on_done is called once, on the loop."""

    def __init__(self, namespace: Namespace, brokers: Brokers) -> None:
        self._namespace = namespace
        self._brokers = brokers
        self.on_removed: Callable[[EventHubEntry], None] | None = None

    def start(self, on_done: Callable[[list[ServiceError]], None]) -> None:
        """Have the brokers open every partition of the catalog, and carry on what a crash interrupted.

        on_done: with what could not be opened or carried on; the rest is served.
        """
        problems: list[ServiceError] = []
        open_hubs = list(self._namespace.hubs())
        unfinished = list(self._namespace.unfinished())
        left = len(open_hubs) + len(unfinished)

        def finished(result: EventHubDescription | ServiceError) -> None:
            nonlocal left
            left -= 1
            if isinstance(result, ServiceError):
                logger.error("at start: %s", result.text)
                problems.append(result)
            if not left:
                on_done(problems)

        if not left:
            on_done(problems)
            return
        for entry in open_hubs:
            self._open(entry, finished)
        for entry in unfinished:
            logger.info("event hub %s was %s when the service ended", entry.name, entry.description.status.name)
            if entry.description.status is EntityStatus.CREATING:
                self._make_partitions(entry, finished)
            else:
                self._remove_partitions(entry, finished)

    def create(self, description: EventHubDescription, on_done: OnHub) -> None:
        """Make a hub; on_done when it is served and durable, or with why not: then nothing of it is left."""

        def intended(result: EventHubEntry | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_done(result)
            else:
                self._make_partitions(result, on_done)

        self._namespace.begin_create_hub(description, range(len(self._brokers)), intended)

    def delete(self, name: str, on_done: OnHub) -> None:
        """Remove a hub and its events. From the intent on it is not served any more."""

        def intended(result: EventHubEntry | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_done(result)
            else:
                self._remove_partitions(result, on_done)

        self._namespace.begin_delete_hub(name, intended)

    def change(self, wanted: EventHubDescription, on_done: OnHub) -> None:
        """Set what may change of a hub, first in the catalog, then at its brokers.

        Another number of partitions is refused, with the reason.
        A broker that is away gets them at its next start, from the catalog.
        """

        def changed(result: EventHubEntry | ServiceError) -> None:
            if isinstance(result, ServiceError):
                on_done(result)
                return
            hub = result.description
            commands = (
                (placement, ChangePartition(placement.log_id, hub.durability, hub.retention_ms, hub.capture))
                for placement in result.placements
            )
            self._submit_all(commands, lambda refusals: on_done(_outcome(refusals, hub)))

        self._namespace.change_hub(
            wanted.name,
            retention_ms=wanted.retention_ms,
            durability=wanted.durability,
            partition_count=wanted.partition_count,
            availability=wanted.availability,
            user_metadata=wanted.user_metadata,
            capture=wanted.capture,
            on_done=changed,
        )

    def revoke_publisher(self, hub: str, publisher: str, on_done: OnHub) -> None:
        """A publisher may not send from now on: its links end, new ones and tokens for it are refused."""
        self._namespace.revoke_publisher(hub, publisher, described(on_done))

    def restore_publisher(self, hub: str, publisher: str, on_done: OnHub) -> None:
        """A revoked publisher may send again."""
        self._namespace.restore_publisher(hub, publisher, described(on_done))

    # Steps

    def _open(self, entry: EventHubEntry, on_done: OnHub) -> None:
        self._submit_all(self._creations(entry), lambda refusals: on_done(_outcome(refusals, entry.description)))

    def _make_partitions(self, entry: EventHubEntry, on_done: OnHub) -> None:
        def made(refusals: list[Refusal]) -> None:
            if refusals:
                # Take it back, so that the name is free again; a crash in between is carried on as a deletion.
                refusal = service_error(refusals[0])
                self.delete(entry.name, lambda _: on_done(refusal))
            else:
                self._namespace.commit_create_hub(entry.name, described(on_done))

        self._submit_all(self._creations(entry), made)

    def _creations(self, entry: EventHubEntry) -> list[tuple[Placement, Command]]:
        """What makes, or opens, the partitions of a hub."""
        hub, namespace = entry.description, self._namespace.description.name
        settings = hub.durability, hub.retention_ms, namespace, hub.capture
        return [
            (placement, CreatePartition(placement.log_id, hub.name, partition_id, *settings))
            for partition_id, placement in zip(hub.partition_ids, entry.placements, strict=True)
        ]

    def _remove_partitions(self, entry: EventHubEntry, on_done: OnHub) -> None:
        def removed(refusals: list[Refusal]) -> None:
            if refusals:
                on_done(service_error(refusals[0]))
            else:
                if self.on_removed is not None:
                    self.on_removed(entry)
                self._namespace.commit_delete_hub(entry.name, described(on_done))

        commands = ((placement, DeletePartition(placement.log_id)) for placement in entry.placements)
        self._submit_all(commands, removed)

    def _submit_all(self, commands: Iterable[tuple[Placement, Command]], on_done: OnRefusals) -> None:
        """Give each command to the broker of its placement; on_done with the refusals when all have answered."""
        waiting = list(commands)
        left = len(waiting)
        refusals: list[Refusal] = []

        def answered(answer: Answer) -> None:
            nonlocal left
            left -= 1
            if isinstance(answer, Refusal):
                refusals.append(answer)
            if not left:
                on_done(refusals)

        for placement, command in waiting:
            self._brokers.of_store(placement.store_index).submit(command, answered)


def described(on_done: OnHub) -> Callable[[EventHubEntry | ServiceError], None]:
    """An on_done of the namespace that gives the hub's description on."""

    def done(result: EventHubEntry | ServiceError) -> None:
        on_done(result if isinstance(result, ServiceError) else result.description)

    return done


def _outcome(refusals: list[Refusal], hub: EventHubDescription) -> EventHubDescription | ServiceError:
    return service_error(refusals[0]) if refusals else hub


def service_error(refusal: Refusal) -> ServiceError:
    """A broker's refusal as an error to raise or answer; a symbol that the table has not is a fault of ours."""
    return ServiceError(_CONDITION_OF.get(refusal.symbol, INTERNAL_ERROR), refusal.text)
