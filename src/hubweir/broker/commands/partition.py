"""Partitions of event hubs: made, opened, changed, deleted, appended to, and asked for their bounds."""

from __future__ import annotations

from typing import ClassVar

from hubweir.broker.commands.command import Answer, CreateLog, LogCommand, answer, command, in_namespace
from hubweir.broker.commands.process import Done
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription


@command(1, Done)
class CreatePartition(CreateLog, frozen=True):
    """Make the log of a new partition; does nothing when it is there (creation is resumed after a crash).

    namespace: whose hub it is, for what is set for a whole namespace (CapPartitions).
    """

    hub: str
    partition_id: str
    durability: Durability
    retention_ms: int
    namespace: str = ""
    capture: CaptureDescription | None = None

    @property
    def name(self) -> str:
        return in_namespace(f"partition {self.partition_id} of {self.hub}", self.namespace)

    @property
    def log_durability(self) -> Durability:
        return self.durability


@command(21, Done)
class OpenPartition(CreatePartition, frozen=True):
    """Open the log of a partition that was made before; it is never made anew, whatever became of its files."""

    makes: ClassVar[bool] = False


@command(2, Done)
class DeletePartition(LogCommand, frozen=True):
    """Remove a partition's log and end its readers; does nothing when it is gone.

    While it is being removed the same command joins: both are answered when it is done.
    """


@command(3, Done)
class ChangePartition(LogCommand, frozen=True):
    """Set retention, durability and capture of a partition. Answered when the mark of capture is durable."""

    durability: Durability
    retention_ms: int
    capture: CaptureDescription | None = None


@answer(65)
class EventsAppended(Answer, frozen=True):
    """The run is as durable as the hub's mode says, and visible. Ends are exclusive."""

    first_sequence_number: int
    next_sequence_number: int


@command(4, EventsAppended)
class AppendEvents(LogCommand, frozen=True):
    """Store a run of sealed batches (headers not completed) whole. The broker owns run from now on.

    events, size_bytes: what it counts for where partitions are capped; the bytes are those of the deliveries.
    """

    run: bytearray
    events: int = 0
    size_bytes: int = 0


@answer(68)
class PartitionInfo(Answer, frozen=True):
    """Bounds of a partition. begin, last_offset and last sequence number are -1 while nothing was ever stored."""

    log_id: str
    begin_sequence_number: int
    last_sequence_number: int
    last_offset: int
    last_enqueued_time_ms: int | None
    is_empty: bool
    size_bytes: int


@command(10, PartitionInfo)
class AskPartitionInfo(LogCommand, frozen=True):
    """Answered PartitionInfo, as it is at that moment."""


@answer(235)
class PartitionPurged(Answer, frozen=True):
    """Nothing is left of what was there. purged: how many numbers went; first_sequence_number: of what comes next."""

    purged: int
    first_sequence_number: int


@command(215, PartitionPurged)
class PurgePartition(LogCommand, frozen=True):
    """Remove all events that are there; numbers go on. Answered when they are gone, or that some of them must stay."""
