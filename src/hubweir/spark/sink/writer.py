"""`df.write.format("eventhubs")` and `writeStream`: what Spark calls, and how a task knows what it repeats.

A stream's work is named by its query and batch id, which stand in its checkpoint: a batch that is run again after a
crash is known by them. A batch write inside foreachBatch is told them by the options queryId and batchId; any other
has a name made once on the driver, so that the attempts of its tasks are known as such, and a new job is new work.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from hubweir.spark.errors import IllegalOption, NotExactlyOnce
from hubweir.spark.sink.producer_ids import Work
from hubweir.spark.sink.sink_columns import SinkColumns
from hubweir.spark.sink.task_writer import warn_once, write_rows
from hubweir.spark.sink.write_options import ExactlyOnce, WriteOptions

# Local properties of a task, as Spark sets them. The job group of a stream is the id of this run of it.
_QUERY, _BATCH, _RUN = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
_ADAPTIVE, _ADAPTIVE_STREAMS = "spark.sql.adaptive.enabled", "spark.sql.adaptive.streaming.stateless.enabled"

_MAY_CHANGE = (
    "exactlyOnce is require, and behind a shuffle adaptive execution may give a repeated batch other tasks, which ends "
    "the query: set {} to false"
)

# The first batch that this process wrote, of each run of a query.
_first_of_run: dict[tuple[str, str], int] = {}


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task tells the driver. See task_writer.Written."""

    rows: int
    skipped: int


class EventHubWriter(DataSourceArrowWriter):
    """A batch write."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns
        self._name = uuid.uuid4().hex

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """In a task: store its rows. Errors as of write_rows, and NotExactlyOnce before anything is sent."""
        context = _context()
        options = self._options
        in_stream = context.getLocalProperty(_QUERY) is not None
        if options.query_id is not None:
            if options.exactly_once is ExactlyOnce.REQUIRE and _is_adaptive(context):
                # Inside foreachBatch Spark has it on by itself, and it matters behind a shuffle only.
                if not in_stream:
                    raise NotExactlyOnce(
                        "exactlyOnce is require, and adaptive execution may give a repeated batch other tasks: set "
                        f"{_ADAPTIVE} to false"
                    )
                warn_once(_MAY_CHANGE.format(_ADAPTIVE))
        elif in_stream and options.exactly_once is not ExactlyOnce.OFF:
            text = (
                "a write inside foreachBatch has to say what it repeats: "
                ".option('queryId', 'a name of its own').option('batchId', batch_id)"
            )
            if options.exactly_once is ExactlyOnce.REQUIRE:
                raise NotExactlyOnce(f"exactlyOnce is require, and {text}")
            warn_once(f"rows of a repeated batch are written again: {text}")
            # A name of each batch's own would leave a producer in the hub for each.
            options = replace(options, exactly_once=ExactlyOnce.OFF)
        work = Work(
            options.query_id or self._name,
            options.batch_id or 0,
            context.partitionId(),
            context.attemptNumber(),
            options.query_id is not None and _may_repeat(context, options.query_id, options.batch_id or 0),
        )
        done = write_rows(options, self._columns, work, iterator)
        return TaskWritten(done.rows, done.skipped)


class EventHubStreamWriter(DataSourceStreamArrowWriter):
    """The batches of a stream."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        """IllegalOption for names that a stream has already."""
        if options.query_id is not None:
            raise IllegalOption(
                "queryId and batchId are for a batch write inside foreachBatch: a stream has both in its checkpoint, "
                "leave them out"
            )
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskWritten:
        """In a task: store its rows that are not stored yet. Errors as of write_rows."""
        context = _context()
        query, batch = context.getLocalProperty(_QUERY), context.getLocalProperty(_BATCH)
        if query is None or batch is None:
            raise NotExactlyOnce("Spark did not say which batch of which query this is: use Spark 4.2 or newer")
        streams_adapt = context.getLocalProperty(_ADAPTIVE_STREAMS) != "false"
        if self._options.exactly_once is ExactlyOnce.REQUIRE and streams_adapt and _is_adaptive(context):
            warn_once(_MAY_CHANGE.format(_ADAPTIVE_STREAMS))
        may_repeat = _may_repeat(context, query, int(batch))
        work = Work(query, int(batch), context.partitionId(), context.attemptNumber(), may_repeat)
        done = write_rows(self._options, self._columns, work, iterator)
        return TaskWritten(done.rows, done.skipped)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing is left to do: what a task returned from is stored."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What tasks stored stays; the repeat goes on behind it."""


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise NotExactlyOnce("rows are written by Spark's tasks only")
    return context


def _may_repeat(context: TaskContext, query: str, batch: int) -> bool:
    """Whether another run may have begun this batch: it is the first one of its run, as far as this process knows."""
    run = context.getLocalProperty(_RUN) if context.getLocalProperty(_QUERY) is not None else None
    return run is None or _first_of_run.setdefault((query, run), batch) == batch


def _is_adaptive(context: TaskContext) -> bool:
    """Whether Spark may cut a repeated batch into other tasks, behind a shuffle."""
    return str(context.getLocalProperty(_ADAPTIVE)) != "false"  # no value: Spark's default, true
