"""One range of one partition, read into Arrow record batches. Runs in a task and knows nothing of Spark.

The link is asked for exactly as many events as the range has, so nothing is read that is thrown away. Every event's
sequence number is held against the one before it, and the last against the range's end: what is missing is data loss,
which `failOnDataLoss` decides about. A connection that breaks is made again under a fresh link name, behind the last
event that was taken; a service that is away, such as for a restart, is waited for. By default no owner level is
claimed, so two queries on one DataFrame do not end each other's links; five readers of one partition and consumer group
is the service's limit then, and one more waits for a place.
"""

from __future__ import annotations

import logging
import time
from array import array
from collections.abc import Iterator
from concurrent.futures import Future

import pyarrow as pa

from hubweir.client.blocking import BlockingEventHubClient, BlockingReceiver
from hubweir.client.event_run import EventRun
from hubweir.client.loop_thread import wait
from hubweir.client.receiver import ReceiverOptions
from hubweir.errors import ARGUMENT_ERROR, EVENTS_LOST, RESOURCE_LIMIT, TIMED_OUT, ServiceError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.kernels.columns_contract import COLUMNS_FULL, COLUMNS_MALFORMED, COLUMNS_UNTIL
from hubweir.spark.errors import DataLoss
from hubweir.spark.hub_connection import client_of
from hubweir.spark.patience import Patience
from hubweir.spark.record_batches import fresh_columns, mask_of, record_batch
from hubweir.spark.source.offsets import EventRange
from hubweir.spark.source.read_options import ReadOptions
from hubweir.spark.source.small_ranges import read_together
from hubweir.spark.worker_process import freeze_garbage, keep_freed_memory

logger = logging.getLogger(__name__)

# Smaller ones cost calls, larger ones memory without gain: 4 MB at 400 bytes an event.
ROWS_A_BATCH = 10_000
# How long a link may be silent before the partition is asked whether the events are still there.
_SILENCE_S = 2.0
# How long to wait before asking again for a place among a partition's readers: tasks of one query that share a
# partition by minPartitions may be more than it has places, and each gives its own back in the end.
_AGAIN_S = 0.25


def read_ranges(
    options: ReadOptions, ranges: tuple[EventRange, ...], columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """The events of the ranges of one task, range by range. Errors as of RangeReader."""
    freeze_garbage()
    keep_freed_memory()
    client = client_of(options)
    readers = [RangeReader(options, client, one, columns) for one in ranges]
    try:
        yield from read_together(readers, options.prefetch_count, ROWS_A_BATCH)
    finally:
        freeze_garbage()


class RangeReader:
    """Reads one range once."""

    def __init__(
        self, options: ReadOptions, client: BlockingEventHubClient, wanted: EventRange, columns: tuple[str, ...]
    ) -> None:
        self.lost = 0
        self._options = options
        self._client = client
        self._wanted = wanted
        self._names = columns
        self._mask = mask_of(columns)
        self._columns = fresh_columns()
        self._rows = 0
        self._next = wanted.start
        self._is_damaged = False  # the service told of lost events
        self._heard_s = 0.0  # when the service last gave something, or refused a place
        self._refused_s: float | None = None  # when it first refused a place, of times in a row
        self._receiver: BlockingReceiver | None = None
        self._first: Future[list[EventRun]] | None = None  # what begin asked for
        self._patience = Patience(f"event hub '{options.event_hub}'", options.operation_timeout_s)

    def __len__(self) -> int:
        """How many events the range has."""
        return len(self._wanted)

    def begin(self) -> None:
        """Ask for the link and the first events, and do not wait for them; `read` has to follow, or `close`."""
        self._receiver = self._made_receiver()
        self._first = self._begun(self._receiver)

    def close(self) -> None:
        """Give the link back, if there is one. Safe to call twice."""
        receiver, self._receiver = self._receiver, None
        first, self._first = self._first, None
        if first is not None:
            first.cancel()
        if receiver is not None:
            receiver.begin_close()

    def read(self) -> Iterator[pa.RecordBatch]:
        """Record batches of ROWS_A_BATCH events or a little more. DataLoss when events are missing and that matters;
        ServiceError when the service is away for longer than operationTimeout, or has no place for one more reader all
        the time of receiverTimeout.

        May be closed early: the link is given back.
        """
        wanted = self._wanted
        receiver = self._receiver = self._receiver or self._made_receiver()
        self._heard_s = time.monotonic()
        try:
            while self._next < wanted.end:
                runs = self._receive(receiver)
                if runs:
                    self._heard_s = time.monotonic()
                elif self._is_gone(time.monotonic() - max(self._heard_s, self._patience.back_s)):
                    break
                for run in runs:
                    yield from self._take(run)
            if self._rows:
                yield self._batch()
        finally:
            self.close()

    def _made_receiver(self) -> BlockingReceiver:
        options = ReceiverOptions(
            position=EventPosition(PositionKind.SEQUENCE_NUMBER, self._next, True),
            epoch=0 if self._options.use_exclusive_receiver else None,
            credit=self._options.prefetch_count,
            limit=len(self._wanted),
            stored_batches=True,
        )
        return self._client.receiver(self._wanted.partition_id, options, group=self._options.consumer_group)

    def _receive(self, receiver: BlockingReceiver) -> list[EventRun]:
        """The next runs; none when none came in time, or when none will ever come."""
        while True:
            try:
                found = self._patience.tried(lambda: self._next_runs(receiver))
            except ServiceError as error:
                if error.condition is EVENTS_LOST:
                    logger.warning("%s", error.text)
                    self._is_damaged = True  # the gap is found when the next events come
                elif error.condition is RESOURCE_LIMIT:
                    self._wait_for_a_place(error)
                elif error.condition is ARGUMENT_ERROR and self._is_gone(0.0):
                    return []
                else:
                    raise
            else:
                self._refused_s = None
                return found

    def _next_runs(self, receiver: BlockingReceiver) -> list[EventRun]:
        begun, self._first = self._first or self._begun(receiver), None
        return wait(begun)

    def _wait_for_a_place(self, error: ServiceError) -> None:
        """All readers that the partition may have are there already."""
        now_s = time.monotonic()
        self._refused_s = now_s if self._refused_s is None else self._refused_s
        if now_s - self._refused_s >= self._options.receiver_timeout_s:
            raise self._without_place(error) from error
        time.sleep(_AGAIN_S)
        self._heard_s = time.monotonic()  # the service did answer

    def _without_place(self, error: ServiceError) -> ServiceError:
        options = self._options
        return ServiceError(
            error.condition,
            f"partition {self._wanted.partition_id} of event hub '{options.event_hub}' had no place for one more "
            f"reader of consumer group '{options.consumer_group}' for {options.receiver_timeout_s:g} s: give each "
            f"query a consumer group of its own, or cache what several actions read. {error.text}",
        )

    def _begun(self, receiver: BlockingReceiver) -> Future[list[EventRun]]:
        wanted = min(self._wanted.end - self._next, ROWS_A_BATCH - self._rows)
        return receiver.begin_runs(wanted, max_wait_s=min(_SILENCE_S, self._options.receiver_timeout_s))

    def _take(self, run: EventRun) -> Iterator[pa.RecordBatch]:
        """Append a run to the columns; a batch each time that they are full."""
        row, count = 0, run.delivery_count
        while row < count and self._next < self._wanted.end:
            before = row
            # As many as the batch has room for: one call for most runs.
            last_row = min(count, row + ROWS_A_BATCH - self._rows)
            row, first, last, gap, status = run.append_columns(
                row, last_row, self._next, self._wanted.end, self._mask, self._rows, self._columns
            )
            if gap >= 0:
                self._missing(run, before, row, first, last)
            self._rows += row - before
            if last >= 0:
                self._next = last + 1
            if status == COLUMNS_MALFORMED:
                raise ServiceError(
                    TIMED_OUT,
                    f"what came for partition {self._wanted.partition_id} of '{self._options.event_hub}' behind "
                    f"sequence number {self._next - 1} is no event of an event hub: is this address one?",
                )
            if status == COLUMNS_UNTIL and self._next < self._wanted.end:
                self._loss(self._next, self._wanted.end, "there is a gap in the partition")
                self._next = self._wanted.end
            if self._rows and (self._rows >= ROWS_A_BATCH or status == COLUMNS_FULL):
                yield self._batch()

    def _batch(self) -> pa.RecordBatch:
        made = record_batch(self._columns, self._rows, self._names, self._wanted.partition_id)
        self._columns, self._rows = fresh_columns(), 0
        return made

    def _missing(self, run: EventRun, before: int, row: int, first: int, last: int) -> None:
        """Rows before…row of a run are not the numbers that follow self._next without a hole."""
        numbers: array[int] = run.sequence_numbers()[before:row]
        expected = self._next
        for number in numbers:  # once a gap, not once an event of a sound partition
            if number < expected:
                raise DataLoss(
                    f"partition {self._wanted.partition_id} of event hub '{self._options.event_hub}' gave sequence "
                    f"number {number} after {expected - 1}: its order is broken"
                )
            if number > expected:
                self._loss(expected, number, "they were removed, or lost in an unclean stop")
            expected = number + 1

    def _is_gone(self, silent_s: float) -> bool:
        """The link is silent: whether the rest of the range will never come. ServiceError TIMED_OUT when it should."""
        options, wanted = self._options, self._wanted
        state = self._patience.tried(lambda: self._client.partition(wanted.partition_id))
        high, low = state.last_sequence_number + 1, max(0, state.begin_sequence_number)
        if high < wanted.end or low >= wanted.end:
            why = "the event hub was made anew" if high < wanted.end else f"the oldest one now is {low}"
            self._loss(self._next, wanted.end, why)
            self._next = wanted.end
            return True
        if silent_s >= options.receiver_timeout_s and self._is_damaged:
            self._loss(self._next, wanted.end, "what the disk holds of them is damaged")
            self._next = wanted.end
            return True
        if silent_s >= options.receiver_timeout_s:
            raise ServiceError(
                TIMED_OUT,
                f"partition {wanted.partition_id} of event hub '{options.event_hub}' gave nothing for {silent_s:.0f} "
                f"s, and sequence number {self._next} of {wanted.start} to {wanted.end - 1} is there: try again, or "
                "raise receiverTimeout",
            )
        return False

    def _loss(self, start: int, end: int, why: str) -> None:
        self.lost += end - start
        report_loss(self._options, self._wanted.partition_id, start, end, why)


def report_loss(options: ReadOptions, partition_id: str, start: int, end: int, why: str) -> None:
    """Events start up to end are not there: DataLoss when failOnDataLoss says so, else a warning."""
    text = (
        f"{end - start} events of partition {partition_id} of event hub '{options.event_hub}' are missing, sequence "
        f"numbers {start} to {end - 1}: {why}"
    )
    if options.fail_on_data_loss:
        raise DataLoss(f"{text}. Set failOnDataLoss to false to go on without them")
    logger.warning("%s; going on without them", text)
