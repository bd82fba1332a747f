"""The open run: what one process has taken for ONE partition in this turn of its loop, as stored batches.

A batch is sealed when the next event has another name (partition key of its envelope, or publisher) or comes from an
idempotent producer, whose deliveries have batches of their own, at 64 KiB of
records, and when the run is taken at the end of the turn; so the order in the run is the order of arrival. A delivery
too large for one batch becomes a chain: several batches, all but the last flagged *continues*, stored whole or not at
all. Nothing here is durable; the run is given to the partition's log.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from enum import IntEnum

from msgspec import Struct

from hubweir.errors import KernelRefusal
from hubweir.event_hub.partition_key import is_legal_key
from hubweir.kernels import find_key, ingest
from hubweir.kernels.contract import (
    D_FORMAT,
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    INGEST_MALFORMED,
    INGEST_NAME,
    INGEST_PROPERTIES,
    INGEST_ROOM,
    KEY_ENVELOPE,
    KEY_MALFORMED,
)
from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT, RECORD_HEADER_SIZE
from hubweir.messaging_store.record import Producer, begin_batch, seal_batch

Readable = bytes | bytearray | memoryview


class AddStatus(IntEnum):
    """Outcomes of an add."""

    DONE = 0  # all rows are in the run
    MALFORMED = 1  # Added.row is no legal message; nothing of it is in the run
    KEY_TOO_LONG = 2  # Added.row has a partition key over the limit; nothing of it is in the run
    PROPERTIES = 3  # Added.row holds an event whose properties are over the limit; nothing of it is in the run


_REFUSED = {INGEST_MALFORMED: AddStatus.MALFORMED, INGEST_PROPERTIES: AddStatus.PROPERTIES}


class Added(Struct, frozen=True):
    """row: the first row that is not in the run. events: how many events the rows before it gave."""

    row: int
    status: AddStatus
    events: int


class _Batch(Struct):
    """The batch at the end of the run, not yet sealed. start: of its header; records: of its first record. count: its
    events so far."""

    start: int
    records: int
    name: bytes
    is_publisher: bool
    producer: Producer | None = None
    count: int = 0


class _Mark(Struct, frozen=True):
    """The end of the run before a delivery: what to go back to when a later part of it proves malformed."""

    size: int
    events: int
    batch: _Batch
    count: int


class OpenRun:
    """Open batches of one partition. Take the run, and the object is empty and ready again."""

    def __init__(self, *, names_keys: bool = True) -> None:
        """names_keys: the key of an envelope is that of every event in it. Of queues it is not: only what the messages
        themselves say counts, and messages of different keys lie in one batch.
        """
        self._names_keys = names_keys
        self._out = bytearray()
        self._batch: _Batch | None = None
        self.events = 0

    @property
    def size_bytes(self) -> int:
        """Bytes of the run so far, headers included."""
        return len(self._out)

    def add_deliveries(
        self,
        data: Readable,
        rows: array[int],
        first_row: int,
        last_row: int,
        *,
        publisher: bytes | None = None,
        producer: Producer | None = None,
    ) -> Added:
        """Take the deliveries rows[first_row:last_row] (delivery rows of kernels.contract; positions in data).

        publisher: UTF-8 name of the link's publisher, which is then the key of every event; None: no publisher link.
        producer: who numbered the events of the one delivery that the call then has, and the first one's number; its
        batches hold nothing else, and each says the number of its own first event.
        Stops at the first row that is no legal message or over a limit (AddStatus): the rows before it are in the run,
        nothing of it is, and the caller may go on with the row behind it. data is not kept.
        """
        if producer is not None and last_row != first_row + 1:
            raise KernelRefusal(f"{last_row - first_row} deliveries cannot have one first number")
        row, status, events_before = first_row, AddStatus.DONE, self.events
        while row < last_row and status is AddStatus.DONE:
            batch = self._batch_for(publisher, producer, rows, row)
            size, events, count = len(self._out), self.events, batch.count
            row, resume_at, ended = self._ingest(batch, data, rows, row, last_row, 0)
            if resume_at:
                # Only the first delivery of a call stops inside, so this is its start.
                row, status = self._take_chain(_Mark(size, events, batch, count), data, rows, row, resume_at)
            elif ended in _REFUSED:
                status = _REFUSED[ended]
            elif ended == INGEST_NAME:
                status = self._change_name(batch.name, data, rows, row)
            elif ended == INGEST_ROOM:
                self._seal()
        if producer is not None:
            self._seal()
        return Added(row, status, self.events - events_before)

    def add_numbered(
        self,
        data: Readable,
        rows: array[int],
        row: int,
        *,
        producer_id: int,
        epoch: int,
        first_number: int,
        round: int = 0,
        digest: int = 0,
    ) -> Added:
        """As add_deliveries, one delivery of an idempotent producer. round, digest: of a sink that resumes, else 0."""
        producer = Producer(producer_id, epoch, first_number, round, digest)
        return self.add_deliveries(data, rows, row, row + 1, producer=producer)

    def take_run(self) -> bytearray:
        """The sealed run, the caller's from now on; empty when nothing was added."""
        self._seal()
        run, self._out, self.events = self._out, bytearray(), 0
        return run

    def _ingest(
        self, batch: _Batch, data: Readable, rows: array[int], row: int, last_row: int, resume_at: int
    ) -> tuple[int, int, int]:
        """Append what the batch has room for; return (first row not finished, where it goes on or 0, status)."""
        room = BATCH_RECORDS_LIMIT - (len(self._out) - batch.records)
        name = None if batch.is_publisher or not self._names_keys else batch.name
        row, resume_at, events, status = ingest(data, rows, row, last_row, resume_at, name, self._out, room)
        batch.count += events
        self.events += events
        return row, resume_at, status

    def _take_chain(
        self, mark: _Mark, data: Readable, rows: array[int], row: int, resume_at: int
    ) -> tuple[int, AddStatus]:
        """Take the rest of a delivery that did not fit into one batch: all of it, or back to mark.

        Returns the row to go on with, or the row itself when it is malformed.
        """
        next_row = row
        while resume_at:
            self._seal(continues=True)
            before, producer = mark.batch, mark.batch.producer
            if producer is not None:
                producer = replace(producer, first_number=producer.first_number + self.events - mark.events)
            batch = self._begin(before.name, is_publisher=before.is_publisher, producer=producer)
            next_row, resume_at, status = self._ingest(batch, data, rows, row, row + 1, resume_at)
            if status in _REFUSED:
                del self._out[mark.size :]
                self._batch, self.events = mark.batch, mark.events
                mark.batch.count = mark.count
                return row, _REFUSED[status]
        return next_row, AddStatus.DONE

    def _batch_for(self, publisher: bytes | None, producer: Producer | None, rows: array[int], row: int) -> _Batch:
        """The batch that the delivery `row` may go to: the open one when publisher and size allow, else a new one."""
        batch, is_publisher, name = self._batch, publisher is not None, publisher or b""
        if batch is not None and batch.producer is not None and batch.producer == producer and batch.count == 0:
            return batch  # begun for the name of this very delivery
        if (
            producer is None
            and batch is not None
            and batch.producer is None
            and batch.is_publisher == is_publisher
            and (not is_publisher or batch.name == name)
        ):
            # A batch that holds others must not grow over the limit by one event, or begin a chain for it.
            if self._has_room(batch, rows[row * DELIVERY_WIDTH + D_LENGTH] + RECORD_HEADER_SIZE):
                return batch
            name = batch.name
        if batch is not None:
            self._seal()
        return self._begin(name, is_publisher=is_publisher, producer=producer)

    def _has_room(self, batch: _Batch, size: int) -> bool:
        return batch.count == 0 or len(self._out) - batch.records + size <= BATCH_RECORDS_LIMIT

    def _change_name(self, name: bytes, data: Readable, rows: array[int], row: int) -> AddStatus:
        """Begin a batch for the key of the delivery `row`, which the open batch (of that name) may not hold."""
        at = row * DELIVERY_WIDTH
        start, length = rows[at + D_START], rows[at + D_LENGTH]
        key_start, key_length, where = find_key(data, start, start + length, rows[at + D_FORMAT])
        if where == KEY_MALFORMED:
            return AddStatus.MALFORMED
        # The key of a single message stays in its own annotations; only an envelope's names a batch.
        key = bytes(data[key_start : key_start + key_length]) if where == KEY_ENVELOPE else b""
        if not is_legal_key(key):
            return AddStatus.KEY_TOO_LONG
        if key == name:
            raise KernelRefusal(f"ingest and find_key disagree about the key of delivery row {row}")
        producer = None if self._batch is None else self._batch.producer
        self._seal()
        self._begin(key, is_publisher=False, producer=producer)
        return AddStatus.DONE

    def _begin(self, name: bytes, *, is_publisher: bool, producer: Producer | None = None) -> _Batch:
        start = begin_batch(self._out, name=name, name_is_publisher=is_publisher, producer=producer)
        self._batch = _Batch(start, len(self._out), name, is_publisher, producer)
        return self._batch

    def _seal(self, *, continues: bool = False) -> None:
        """Close the open batch; one without events leaves nothing behind."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        if batch.count == 0:
            del self._out[batch.start :]
        else:
            seal_batch(self._out, batch.start, count=batch.count, continues=continues)
