"""An event hub as a stream: how far each micro-batch goes, and which tasks read it.

Spark makes one of these a query, in a process beside the driver, where it keeps its connection; a copy made at the
start goes to the tasks, which use `read` alone. What Spark calls, and when, is told in docs/spark.md; what the numbers
of an offset mean is in offsets.py. After a crash of the driver the checkpoint's ends are planned again, with the same
ranges and the same tasks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from hubweir.errors import ServiceError
from hubweir.spark.errors import IllegalOffset
from hubweir.spark.hub_connection import close_clients
from hubweir.spark.patience import Patience
from hubweir.spark.source.hub_bounds import HubBounds
from hubweir.spark.source.offsets import (
    Offset,
    PartitionBounds,
    batch_range,
    end_offset,
    initial_offset,
    plain,
    ranges,
    split_by_lag,
)
from hubweir.spark.source.range_reader import read_ranges, report_loss
from hubweir.spark.source.read_options import ReadOptions
from hubweir.spark.source.read_tasks import ReadTask, tasks_of
from hubweir.spark.worker_process import end_quietly

# A relaxed hub skips twice this many numbers behind an unclean stop. A partition that has so much waiting may be before
# such a gap, which small batches would take hours to cross; it is worth asking for its first event.
_GAP = 1 << 24


class EventHubStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """See the module's text."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._hub = HubBounds(options)
        self._first: Offset | None = None
        self._seen: dict[str, int] | None = None  # what the hub had when it was last asked
        self._target: dict[str, int] | None = None  # of AvailableNow: where the query ends
        self._batch_at_s = time.monotonic()
        self._patience = Patience(f"event hub '{options.event_hub}'", options.operation_timeout_s)

    def initialOffset(self) -> Offset:
        """Where a query without a checkpoint starts: resolved once, although Spark asks twice."""
        if self._first is None:
            self._hub.check_group()
            self._first = initial_offset(self._hub.resolve(self._options.starting, option="startingPosition"))
        return self._first

    def prepareForTriggerAvailableNow(self) -> None:
        """Freeze the end of this run: what comes from now on is the next run's."""
        self._target = self._highs(self._hub.bounds())

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_events_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next batch; start itself while there is nothing to read, too little to bother, or nobody to
        ask: a query outlives a service that is away for less than the operationTimeout.
        """
        asked_s = time.monotonic()
        try:
            end = self._next_end(start, limit)
        except ServiceError as error:
            if not self._may_wait(error, asked_s):
                raise
            return start
        self._patience.succeeded()
        return end

    def _may_wait(self, error: ServiceError, asked_s: float) -> bool:
        """Whether the hub may be asked again with the next trigger. Not when it was never there, which is a mistake in
        the options as a rule; and not with AvailableNow, which would take it for the end.
        """
        return self._seen is not None and self._target is None and self._patience.may_go_on(error, asked_s)

    def _next_end(self, start: Offset, limit: ReadLimit) -> Offset:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        # If a full batch is already waiting, older bounds are good enough: the hub is not asked again.
        bounds = self._hub.bounds() if most is None else self._hub.bounds_behind(plain(start), most)
        highs = self._highs(bounds)
        begin = self._begin(plain(start), bounds)
        if self._target is not None:
            # "latest" may have been resolved after the target was frozen, so an end is never before its start.
            highs = {key: max(begin[key], min(high, self._target.get(key, 0))) for key, high in highs.items()}
        end = self._end(begin, highs, bounds, most)
        events = sum(end[key] - begin[key] for key in begin)
        if events < self._least(limit) and not self._is_late():
            return start
        if events:
            self._batch_at_s = time.monotonic()
        return end_offset(start, end)

    def reportLatestOffset(self) -> dict[str, int] | None:
        """What the hub had when it was last asked; the query's progress shows it beside the batch's end."""
        return self._seen

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The tasks of a batch. DataLoss when events of it are gone already and that matters."""
        begin, upto = batch_range(start, end)
        if begin == upto:
            return []
        if not self._options.fail_on_data_loss:  # the hub was made anew: its numbers began again
            begin = {key: number if number <= upto.get(key, number) else 0 for key, number in begin.items()}
        found = ranges(begin, upto)
        bounds = self._hub.bounds_behind(upto, 0)  # as a rule what the end was made of, just now
        self._check_partitions(upto, bounds)
        kept = [self._hub.kept(one, bounds[one.partition_id]) for one in found]
        tasks = tasks_of([one for one in kept if one is not None], self._options.min_partitions)
        return tasks

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the events of its ranges."""
        assert isinstance(partition, ReadTask)
        return read_ranges(self._options, partition.ranges, self._columns)

    def commit(self, end: Offset) -> None:
        """The checkpoint is Spark's; an event hub keeps no position for a reader."""

    def stop(self) -> None:
        """The query ends, and this process with it."""
        close_clients()
        end_quietly()

    def _end(
        self, begin: dict[str, int], highs: dict[str, int], bounds: dict[str, PartitionBounds], limit: int | None
    ) -> dict[str, int]:
        """The end of a batch of at most limit events. A gap that is wider than the batch is crossed in one."""
        end = split_by_lag(begin, highs, limit)
        firsts = {
            key: self._hub.first_from(key, begin[key])
            for key in begin
            if end[key] < highs[key] and highs[key] - begin[key] >= _GAP and begin[key] >= bounds[key].low
        }
        if all(first <= begin[key] for key, first in firsts.items()):
            return end
        behind = {key: min(highs[key], max(number, firsts.get(key, 0))) for key, number in begin.items()}
        return split_by_lag(behind, highs, limit)

    def _highs(self, bounds: dict[str, PartitionBounds]) -> dict[str, int]:
        self._seen = {key: each.high for key, each in bounds.items()}
        return dict(self._seen)

    def _begin(self, begin: dict[str, int], bounds: dict[str, PartitionBounds]) -> dict[str, int]:
        """Where every partition goes on: one that was added meanwhile from its first event, one that was made anew
        from its oldest, if failOnDataLoss lets it.
        """
        self._check_partitions(begin, bounds)
        found = {key: begin.get(key, 0) for key in bounds}
        for key, number in found.items():
            if number > bounds[key].high:
                why = f"the next one now is {bounds[key].high}: the event hub was made anew"
                report_loss(self._options, key, bounds[key].high, number, why)
                found[key] = bounds[key].low
        return found

    def _check_partitions(self, read: dict[str, int], bounds: dict[str, PartitionBounds]) -> None:
        if missing := sorted(set(read) - set(bounds)):
            raise IllegalOffset(
                f"event hub '{self._options.event_hub}' has no partition {', '.join(missing)}, and the checkpoint read "
                "it: it was made anew with fewer; give the query another checkpoint folder"
            )

    def _least(self, limit: ReadLimit) -> int:
        if self._target is not None or isinstance(limit, ReadAllAvailable) and self._options.max_events_per_trigger:
            return 0  # AvailableNow, or a trigger that takes all there is
        return limit.min_rows if isinstance(limit, ReadMinRows) else self._options.min_events_per_trigger

    def _is_late(self) -> bool:
        return time.monotonic() - self._batch_at_s >= self._options.max_trigger_delay_s
