"""What a gateway may ask of a broker, and what comes back: frozen classes, the same in one process and over a socket.

Every command is answered once, with the answer class that stands beside it or with Refusal. A broker may also push
(ReaderClosed). Nothing here is shared by accident: wire.py carries every command and answer as bytes, and one
conformance run sends all of them over a socket pair.

A partition is named by its log id (a placement names the store; the catalog says which entity it belongs to).
`placement_version` is the version of the catalog that the asker acted on; a broker that knows a newer placement
answers ENTITY_MOVED. `owner` says for whom a reader is open: a process and a connection of it, so that the end of
either frees its readers.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.event_hub.event_position import EventPosition
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a reader: a gateway process and one of its connections."""

    process: int
    connection: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The request was refused. symbol: a condition of hubweir.errors; text: for the person who reads it.

    known: nothing was stored. Not known: stored or not; a gateway then detaches with a timeout, and never settles.
    """

    symbol: str
    text: str
    known: bool = True


@dataclass(frozen=True, slots=True)
class CreatePartition:
    """Make the log of a new partition; does nothing when it is there (creation is resumed after a crash).

    namespace: whose hub it is, for what is set for a whole namespace (CapPartitions).
    """

    log_id: str
    hub: str
    partition_id: str
    durability: Durability
    retention_ms: int
    namespace: str = ""
    capture: CaptureDescription | None = None


@dataclass(frozen=True, slots=True)
class DeletePartition:
    """Remove a partition's log and end its readers; does nothing when it is gone.

    While it is being removed the same command joins: both are answered when it is done.
    """

    log_id: str


@dataclass(frozen=True, slots=True)
class ChangePartition:
    """Set retention, durability and capture of a partition. Answered when the mark of capture is durable."""

    log_id: str
    durability: Durability
    retention_ms: int
    capture: CaptureDescription | None = None


@dataclass(frozen=True, slots=True)
class CapPartitions:
    """From now on every partition of this namespace carries at most one throughput unit, or as much as comes."""

    is_on: bool
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The answer of a command that returns nothing."""


@dataclass(frozen=True, slots=True)
class AppendEvents:
    """Store a run of sealed batches (headers not completed) whole. The broker owns run from now on.

    events, size_bytes: what it counts for where partitions are capped; the bytes are those of the deliveries.
    """

    log_id: str
    placement_version: int
    run: bytearray
    events: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class EventsAppended:
    """The run is as durable as the hub's mode says, and visible. Ends are exclusive."""

    first_sequence_number: int
    next_sequence_number: int


@dataclass(frozen=True, slots=True)
class OpenProducer:
    """Hold an idempotent producer of a partition for one link; None where the service is to assign.

    sequence_number: of the last event that the producer sent. Whoever held the producer before may not send any more.
    round: of a sink that resumes, from 0; None for other producers (event_hub/producer_sequence.py).
    """

    log_id: str
    placement_version: int
    producer_id: int | None
    epoch: int | None
    sequence_number: int | None
    owner: Owner
    round: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerOpened:
    """opening_id is the broker's; the others are what the attach is answered with. No crash takes them back.

    digest: as it came with the event of that number; 0 without a round, or when there is none.
    """

    opening_id: int
    producer_id: int
    epoch: int
    sequence_number: int
    digest: int = 0


@dataclass(frozen=True, slots=True)
class CloseProducer:
    """The link is gone. What it sent and was not answered goes on."""

    opening_id: int


@dataclass(frozen=True, slots=True)
class AppendNumbered:
    """Store one delivery of an idempotent producer: as AppendEvents, every batch with its producer block.

    Answered EventsAppended, or AlreadyAppended when the same events are stored and durable as the hub's mode says.
    """

    opening_id: int
    run: bytearray
    events: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AlreadyAppended:
    """All events of the delivery were stored before; nothing was stored now."""


@dataclass(frozen=True, slots=True)
class OpenReader:
    """Start reading a partition for a consumer group. epoch: owner level, or None; name: for people.

    Answered when every reader that it displaces has been confirmed closed, or had its time for that.
    """

    log_id: str
    placement_version: int
    consumer_group: str
    position: EventPosition
    epoch: int | None
    name: str | None
    owner: Owner


@dataclass(frozen=True, slots=True)
class ReaderOpened:
    """reader_id is the broker's; sequence_number: of the first event that it will give."""

    reader_id: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class CloseReader:
    reader_id: int


@dataclass(frozen=True, slots=True)
class ConfirmReaderClosed:
    """The link of a reader that ReaderClosed named is detached. Does nothing for any other reader."""

    reader_id: int


@dataclass(frozen=True, slots=True)
class CloseOwner:
    """Close all readers and producers of an owner; connection -1: of the whole process."""

    owner: Owner


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """The next events of a reader; one outstanding a reader. Answers when there are some, or after wait_ms empty.

    again_from: go back to this sequence number first, to one that was read already and not used.
    """

    reader_id: int
    max_bytes: int
    wait_ms: int
    again_from: int | None = None


@dataclass(frozen=True, slots=True)
class CancelRead:
    """Give up the outstanding read of a reader: it is answered with an empty EventsRead."""

    reader_id: int


@dataclass(frozen=True, slots=True)
class EventsRead:
    """Whole stored batches; the events from sequence_number on are the reader's next (maybe inside the first batch).

    next_sequence_number: where its next read goes on. Both are equal and run is empty when nothing came in time.
    """

    reader_id: int
    sequence_number: int
    next_sequence_number: int
    run: bytes | memoryview


@dataclass(frozen=True, slots=True)
class AskPartitionInfo:
    log_id: str


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Bounds of a partition. begin, last_offset and last sequence number are -1 while nothing was ever stored."""

    log_id: str
    begin_sequence_number: int
    last_sequence_number: int
    last_offset: int
    last_enqueued_time_ms: int | None
    is_empty: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class AskCaptureState:
    log_id: str


@dataclass(frozen=True, slots=True)
class CaptureState:
    """How far capture of a partition is. next_sequence_number: the first event in no finished file; -1: not captured.

    behind: what the log holds from there on. last_file, failure: empty when there is none.
    """

    log_id: str
    is_running: bool
    next_sequence_number: int
    behind_events: int
    behind_bytes: int
    files: int
    uncaptured_events: int
    last_file: str
    failure: str


@dataclass(frozen=True, slots=True)
class AskCounters:
    """Everything this broker counts."""


@dataclass(frozen=True, slots=True)
class CountersTaken:
    values: dict[str, int]


@dataclass(frozen=True, slots=True)
class ReaderClosed:
    """Pushed: the broker ended a reader (its entity was deleted, another took over, its log is damaged).

    The gateway detaches its link, then sends ConfirmReaderClosed, even when the link is gone already.
    """

    reader_id: int
    owner: Owner
    symbol: str
    text: str


Command = (
    CreatePartition
    | DeletePartition
    | ChangePartition
    | CapPartitions
    | AppendEvents
    | OpenProducer
    | CloseProducer
    | AppendNumbered
    | OpenReader
    | CloseReader
    | ConfirmReaderClosed
    | CloseOwner
    | ReadEvents
    | CancelRead
    | AskPartitionInfo
    | AskCaptureState
    | AskCounters
)
Answer = (
    Done
    | EventsAppended
    | ProducerOpened
    | AlreadyAppended
    | ReaderOpened
    | EventsRead
    | PartitionInfo
    | CaptureState
    | CountersTaken
    | Refusal
)
Push = ReaderClosed
