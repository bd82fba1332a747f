"""One partition as its handler sees it: its names, and how far it is marked as handled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hubweir.client.checkpoint_store import CheckpointStore, Record
from hubweir.client.event_run import Event
from hubweir.errors import ILLEGAL_STATE, LINK_STOLEN, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind


@dataclass(frozen=True, slots=True)
class GroupName:
    """A consumer group, spelled as checkpoint records spell it."""

    namespace: str
    hub: str
    group: str

    def record(self, partition_id: str, **more: object) -> Record:
        """The members that every record begins with, and more."""
        return {
            "fully_qualified_namespace": self.namespace,
            "eventhub_name": self.hub,
            "consumer_group": self.group,
            "partition_id": partition_id,
            **more,
        }


class PartitionContext:
    """Given to every handler. Valid until the partition is closed."""

    def __init__(self, name: GroupName, partition_id: str, store: CheckpointStore) -> None:
        self.name = name
        self.partition_id = partition_id
        # False once another processor has the partition.
        self.is_owned = True
        self.last_event: Event | None = None
        self._store = store
        self._marked: int | None = None

    @property
    def unmarked_count(self) -> int:
        """How many events were given since the last checkpoint; they come again after a failure."""
        return 0 if self.last_event is None else self.unmarked(self.last_event)

    def unmarked(self, event: Event) -> int:
        """How far event lies behind the last checkpoint, in events; 0 when that covers it."""
        return 0 if self._marked is None else max(0, event.sequence_number - self._marked)

    async def checkpoint(self, event: Event | None = None) -> None:
        """Mark everything up to event as handled; without event, everything up to the end of the run given last.

        ServiceError: LINK_STOLEN when the partition is another processor's by now, which gets those events again;
        ILLEGAL_STATE when no event was given yet. As durable as the checkpoint store makes it.
        """
        event = event or self.last_event
        if event is None:
            raise ServiceError(ILLEGAL_STATE, f"partition {self.partition_id} gave no event yet: nothing to mark")
        await self.mark(event.sequence_number, event.offset)

    async def mark(self, sequence_number: int, offset: str) -> None:
        """The same for an event that is known by its numbers. ServiceError as of `checkpoint`."""
        if not self.is_owned:
            raise ServiceError(
                LINK_STOLEN, f"partition {self.partition_id} of '{self.name.hub}' has another owner: it goes on there"
            )
        await self._store.update_checkpoint(
            self.name.record(self.partition_id, offset=offset, sequence_number=sequence_number)
        )
        self._marked = sequence_number

    def give(self, first: Event, last: Event) -> None:
        """A run from first to last is being handed to the handler."""
        self.last_event = last
        if self._marked is None:
            self._marked = first.sequence_number - 1

    async def stored_position(self) -> EventPosition | None:
        """Behind the stored checkpoint; None when there is none. ValueError when it holds an offset of another kind."""
        name = self.name
        for record in await self._store.list_checkpoints(name.namespace, name.hub, name.group):
            if record["partition_id"] == self.partition_id:
                return _position(record)
        return None


def _position(record: dict[str, Any]) -> EventPosition | None:
    """Clients of some languages write one of the two only."""
    sequence_number, offset = record.get("sequence_number"), record.get("offset")
    if sequence_number is not None:
        return EventPosition(PositionKind.SEQUENCE_NUMBER, int(sequence_number))
    return None if offset is None else EventPosition(PositionKind.OFFSET, int(offset))
