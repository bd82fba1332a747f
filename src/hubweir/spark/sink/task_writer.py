"""Writes one task's rows into an event hub. Runs in a task and knows nothing of Spark.

Each partition has a target of its own: numbered, so that a repeat of the task stores nothing twice, or resending, which
stores at least once. Publishers are always the latter: their addresses take no numbers. All targets share one bound of
what is on its way. Nothing here looks at a row: batches are cut, encoded and digested by the kernels.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass

import pyarrow as pa

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.spark.errors import NotExactlyOnce
from hubweir.spark.hub_connection import client_of
from hubweir.spark.sink.numbered_target import NoNumbers, NumberedTarget
from hubweir.spark.sink.producer_ids import Work
from hubweir.spark.sink.resending_target import ResendingTarget
from hubweir.spark.sink.row_targets import targeted_rows
from hubweir.spark.sink.sink_columns import SinkColumns
from hubweir.spark.sink.sorted_rows import sorted_rows
from hubweir.spark.sink.unsettled import Unsettled
from hubweir.spark.sink.write_options import ExactlyOnce, WriteOptions
from hubweir.spark.sink.write_patience import WritePatience
from hubweir.spark.worker_process import freeze_garbage

logger = logging.getLogger(__name__)

# Links to publishers that a task holds at once.
_PUBLISHERS_LIMIT = 64
# An attach waits for a sync of its log; more than these gain nothing.
_OPENED_AT_ONCE = 16
_told: set[str] = set()


@dataclass(frozen=True, slots=True)
class Written:
    """rows: of the task. skipped: how many of them an earlier attempt had stored."""

    rows: int
    skipped: int


def write_rows(options: WriteOptions, columns: SinkColumns, work: Work, batches: Iterable[pa.RecordBatch]) -> Written:
    """Store the rows of one task; returns when all are as durable as the hub's mode says.

    IllegalRow, ChangedRepeat, NotExactlyOnce, ServiceError: then some may be stored, and a repeat goes on behind them.
    """
    freeze_garbage()
    writer = TaskWriter(options, columns, work, client_of(options))
    try:
        for batch in sorted_rows(batches, columns, options.sort_by) if options.sort_by else batches:
            if batch.num_rows:
                writer.put(batch)
        return writer.finish()
    finally:
        writer.close()


def warn_once(text: str) -> None:
    """Once in each process that runs tasks."""
    if text not in _told:
        _told.add(text)
        logger.warning(text)


class TaskWriter:
    """See the module's text."""

    def __init__(self, options: WriteOptions, columns: SinkColumns, work: Work, client: BlockingEventHubClient) -> None:
        self._options = options
        self._columns = columns
        self._work = work
        self._client = client
        self._unsettled = Unsettled()
        self._partition_ids: tuple[str, ...] = ()
        self._partitions: dict[str, NumberedTarget | ResendingTarget] = {}
        self._publishers: OrderedDict[str, ResendingTarget] = OrderedDict()
        self._numbered = options.exactly_once is not ExactlyOnce.OFF
        self._rows = 0

    def put(self, batch: pa.RecordBatch) -> None:
        """Send the rows of a record batch that are not stored yet."""
        found = targeted_rows(
            batch,
            self._columns,
            partitions=len(self._ids()),
            first_number=self._rows + 1,
            task=self._work.task,
        )
        if found.publishers:
            self._tell_of_publishers(next(iter(found.publishers)))
        ranges = [
            (partition_id, found.starts[place], found.starts[place + 1])
            for place, partition_id in enumerate(self._partition_ids)
            if found.starts[place] < found.starts[place + 1]
        ]
        self._open([partition_id for partition_id, *_ in ranges])
        for partition_id, first, last in ranges:
            self._partitions[partition_id].put(found.rows, found.order, first, last)
        for name, rows in found.publishers.items():
            self._publisher(name).put(found.rows, rows, 0, len(rows))
        self._rows += batch.num_rows

    def finish(self) -> Written:
        """After the last row: wait for all of them, and see that a repeat made all that was stored before."""
        numbered = self._numbered_ones()
        for target in numbered:
            target.check_all_came()
        work = self._work
        if self._numbered and (work.attempt or work.may_repeat or any(target.stored for target in numbered)):
            self._check_others()
        self._unsettled.settle()
        return Written(self._rows, sum(target.skipped for target in numbered))

    def close(self) -> None:
        """Detach all."""
        for target in (*self._partitions.values(), *self._publishers.values()):
            target.close()

    def _ids(self) -> tuple[str, ...]:
        """The hub's partitions, the same for all rows of the task."""
        if not self._partition_ids:
            hub = f"event hub '{self._options.event_hub}'"
            found = WritePatience(hub, self._options.operation_timeout_s).tried(self._client.describe)
            self._partition_ids = tuple(sorted(found.partition_ids, key=int))
        return self._partition_ids

    def _numbered_ones(self) -> list[NumberedTarget]:
        return [each for each in self._partitions.values() if isinstance(each, NumberedTarget)]

    def _open(self, partition_ids: Sequence[str]) -> None:
        """Attach to those of the partitions that are not attached to, all at once: each waits for a sync of its log."""
        fresh = [each for each in partition_ids if each not in self._partitions]
        if not fresh:
            return
        if self._numbered:
            try:
                self._partitions |= zip(fresh, self._numbered_targets(fresh), strict=True)
                return
            except NoNumbers as error:
                if self._options.exactly_once is ExactlyOnce.REQUIRE:
                    raise NotExactlyOnce(f"exactlyOnce is require, and that cannot be: {error.text}") from error
                if self._partitions:  # half a task with numbers and half without would be neither
                    raise NotExactlyOnce(
                        f"some rows of task {self._work.task} were written exactly once, and for others that cannot "
                        f"be: set exactlyOnce to off. {error.text}"
                    ) from error
                self._numbered = False
                warn_once(f"rows are written at least once, not exactly once: {error.text}")
        for each in fresh:
            self._partitions[each] = ResendingTarget(self._client, self._options, self._unsettled, partition_id=each)

    def _numbered_target(self, partition_id: str) -> NumberedTarget:
        return NumberedTarget(self._client, self._options, self._work, partition_id, self._unsettled)

    def _numbered_targets(self, partition_ids: Sequence[str]) -> list[NumberedTarget]:
        """One for each; the first error when one cannot be, and then none is left open. NotExactlyOnce when others have
        rows of an earlier attempt: without numbers these would be stored again.
        """
        with ThreadPoolExecutor(min(_OPENED_AT_ONCE, len(partition_ids))) as pool:
            opening = [pool.submit(self._numbered_target, each) for each in partition_ids]
        failed = [error for each in opening if (error := each.exception()) is not None]
        opened = [each.result() for each in opening if each.exception() is None]
        if not failed:
            return opened
        for target in opened:
            target.close()
        # What is wrong with the work counts before what the service cannot do.
        error = next((each for each in failed if not isinstance(each, NoNumbers)), failed[0])
        if isinstance(error, NoNumbers) and any(target.stored for target in opened):
            raise NotExactlyOnce(
                f"task {self._work.task} is repeated, and some of its rows were stored exactly once: for the others "
                f"that cannot be now; try again later, or set exactlyOnce to off, which stores some twice. {error.text}"
            ) from error
        raise error

    def _check_others(self) -> None:
        """Partitions that a repeat has no rows for may hold some of the first time. ChangedRepeat when one does."""

        def checked(partition_id: str) -> None:
            # No numbers there: no room for a producer that stored nothing yet.
            with suppress(NoNumbers), closing(self._numbered_target(partition_id)) as target:
                target.check_all_came()

        others = [each for each in self._ids() if each not in self._partitions]
        if others:
            with ThreadPoolExecutor(min(_OPENED_AT_ONCE, len(others))) as pool:
                list(pool.map(checked, others))

    def _publisher(self, name: str) -> ResendingTarget:
        target = self._publishers.get(name)
        if target is None:
            if len(self._publishers) >= _PUBLISHERS_LIMIT:
                self._unsettled.settle()
                self._publishers.popitem(last=False)[1].close()
            target = ResendingTarget(self._client, self._options, self._unsettled, publisher=name)
            self._publishers[name] = target
        self._publishers.move_to_end(name)
        return target

    def _tell_of_publishers(self, name: str) -> None:
        if self._options.exactly_once is ExactlyOnce.REQUIRE:
            raise NotExactlyOnce(
                f"exactlyOnce is require, and a row has the publisher '{name[:64]}': publishers' addresses take no "
                "numbered events; send these rows by partitionKey, or in a write of their own with auto"
            )
        if self._options.exactly_once is ExactlyOnce.AUTO:
            warn_once("rows with a publisher are written at least once: publishers' addresses take no numbered events")
