"""Running a pipeline: a session, its query on its checkpoint, a progress line, a status file, and a clean stop.

SIGTERM and Ctrl-C stop the query between two calls of Spark: a micro-batch that is under way is given up, and repeated
with the same events by the next run. So a stop loses nothing and doubles nothing, as little as a kill does.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from hubweir.errors import HubweirError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.pipelines.checkpoint_owner import CheckpointOwner, locked_checkpoint
from hubweir.pipelines.description import Description
from hubweir.pipelines.errors import PipelineFailed
from hubweir.pipelines.job import Job, local_folder
from hubweir.pipelines.named_hubs import check_hubs
from hubweir.pipelines.program import load_program
from hubweir.pipelines.run_status import (
    FAILED,
    RUNNING,
    STOPPED,
    RunStatus,
    known_partitions,
    progress_of,
    write_status,
)
from hubweir.spark import session
from hubweir.spark.source.read_options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_LOOK_S = 0.5
# Of a repeated batch the tasks must be the same, or a sink cannot tell its rows: docs/spark_write.md.
SETTINGS = {"spark.sql.adaptive.enabled": "false"}
# PySpark tells of an error of a query by a line of JSON of many screens, and then raises it.
_TALKATIVE = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class PipelineRun:
    """One run of a pipeline. tell: takes each progress line. events: read so far."""

    def __init__(self, description: Description, tell: Callable[[str], None]) -> None:
        self._description = description
        self._tell = tell
        self._folder = local_folder(description.checkpoint)
        options = parse_options(description.source, is_stream=True)
        endpoint = ConnectionString.parse(options.connection_string).endpoint
        self._owner = CheckpointOwner(description.pipeline, options.event_hub, endpoint)
        self._batch, self.events, self._events_per_s = -1, 0, 0.0
        self._partitions = {} if self._folder is None else known_partitions(self._folder)

    def run(self, spark: SparkSession, *, once: bool, is_over: Callable[[], bool] = lambda: False) -> None:
        """Until the stream ends or is_over, asked often, says so. PipelineFailed with what Spark's error says.

        CheckpointInUse, IllegalDescription as of checkpoint_claim.locked_checkpoint: then nothing was touched.
        """
        with self.locked():
            self.run_locked(spark, once=once, is_over=is_over)

    def tell_beginning(self, master: str) -> None:
        """Say what runs: until the first micro-batch is over nothing else does, and Spark takes its time."""
        its = self._description
        self._tell(
            f"{its.name}: {its.pipeline} over event hub {self._owner.event_hub}, checkpoint {its.checkpoint}, "
            f"by Spark of {master}"
        )

    def run_locked(self, spark: SparkSession, *, once: bool, is_over: Callable[[], bool]) -> None:
        """The same for who is inside `locked_checkpoint` already."""
        try:
            self._watch(self._writer(spark, once=once).start(), is_over)
        except Exception as error:
            # Ctrl-C reaches Spark's worker processes as well, and their tasks fail of it.
            if not is_over():
                raise self.failed(error) from error
        self.stopped()

    def stopped(self) -> None:
        """Note that this run is over, as it should."""
        self._keep(STOPPED)

    def locked(self) -> AbstractContextManager[None]:
        """While inside, the checkpoint is this run's alone, where it is a folder of this machine. Errors as of run."""
        return nullcontext() if self._folder is None else locked_checkpoint(self._folder, self._owner)

    def failed(self, error: Exception) -> PipelineFailed:
        """What to raise for an error, which the status file keeps."""
        text = first_line(error)
        self._keep(FAILED, text)
        return PipelineFailed(f"pipeline {self._description.name}: {text}")

    def _writer(self, spark: SparkSession, *, once: bool) -> DataStreamWriter:
        its = self._description
        writer = load_program(its.program)(Job(spark, its)).queryName(its.name)
        writer = writer.option("checkpointLocation", its.checkpoint)
        if once or its.trigger_s is None:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=f"{round(its.trigger_s * 1000)} milliseconds")

    def _watch(self, query: StreamingQuery, is_over: Callable[[], bool]) -> None:
        self._keep(RUNNING)
        try:
            while not is_over():
                has_ended = query.awaitTermination(_LOOK_S)
                self._take(query.recentProgress)
                if has_ended:
                    return
            self._take(query.recentProgress)
        finally:
            query.stop()

    def _take(self, entries: list[Any]) -> None:
        """Tell of every micro-batch that is over and was not told of yet; one without events is for the status."""
        for entry in entries:
            if entry["batchId"] <= self._batch or "addBatch" not in entry["durationMs"]:
                continue
            progress = progress_of(entry, self._partitions)
            self._batch, self._partitions = progress.batch, progress.partitions
            self.events += progress.events
            self._events_per_s = progress.events_per_s
            self._keep(RUNNING)
            if not progress.events:  # of timers, watermarks or empty windows: a line a second, for days
                continue
            behind = sum(each.behind for each in progress.partitions.values())
            self._tell(
                f"{self._description.name}: batch {progress.batch}, {progress.events:,} events, "
                f"{progress.events_per_s:,.0f}/s, behind {behind:,}, {self.events:,} in all"
            )

    def _keep(self, state: str, failure: str = "") -> None:
        """Write the status file, where the checkpoint is a folder of this machine."""
        if self._folder is None:
            return
        its = self._description
        status = RunStatus(
            its.name, its.pipeline, self._owner.event_hub, state, os.getpid(), int(time.time() * 1000), self._batch,
            self.events, round(self._events_per_s, 1), self._partitions, failure, self._owner.endpoint,
        )  # fmt: skip
        write_status(self._folder, status)


def run(description: Description, *, master: str, once: bool, tell: Callable[[str], None]) -> int:
    """Run a pipeline in this process until it ends, or a signal asks for it; how many events it read.

    A Spark session that is there already is used, and stays. Only for the main thread, which gets the signals.
    IllegalDescription before Spark is asked for anything when a hub is not there: see check_hubs.
    """
    one = PipelineRun(description, tell)
    came: list[int] = []
    with one.locked(), stop_signals(came):
        check_hubs(description)
        one.tell_beginning(master)
        try:
            spark, is_own = open_session(one, master, description.name)
        except KeyboardInterrupt:  # of PySpark's handler, which it puts in place while it makes its session
            one.stopped()
            return 0
        try:
            with stop_signals(came) as is_over:  # in place of PySpark's
                if is_over():
                    one.stopped()
                else:
                    one.run_locked(spark, once=once, is_over=is_over)
        finally:
            if is_own:
                # A signal to the whole process group, such as systemd's, has ended the JVM as well.
                with suppress(*((Exception,) if came else ())):
                    spark.stop()
    return one.events


def open_session(one: PipelineRun, master: str, name: str) -> tuple[SparkSession, bool]:
    """A session, and whether it was made here. PipelineFailed when the master gives none."""
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    for talkative in _TALKATIVE:
        PySparkLogger.getLogger(talkative).setLevel(logging.CRITICAL + 1)
    is_own = SparkSession.getActiveSession() is None
    try:
        return session(master=master, app_name=name, settings=SETTINGS), is_own
    except HubweirError:
        raise
    except Exception as error:
        text = f"Spark's master {master} gives no session, is it there and does it answer? {first_line(error)}"
        raise one.failed(RuntimeError(text)) from error


@contextmanager
def stop_signals(came: list[int]) -> Iterator[Callable[[], bool]]:
    """While inside, SIGTERM and SIGINT are put into `came`; the function tells whether one is there."""
    signals = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda got, _: came.append(got)) for number in signals}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def first_line(error: Exception) -> str:
    """What of an error a person wants: the last line of the Python traceback that Spark's text holds, or the first."""
    lines = [line.strip() for line in str(error).partition("\n===")[0].splitlines() if line.strip()]
    if len(lines) > 1 and lines[1].startswith(": "):  # behind "An error occurred while calling …" of the JVM
        lines = [line.removeprefix(": ") for line in lines[1:]]
    errors = [line for line in lines if re.match(r"[\w.]*(\.\w+|Error|Exception): ", line)]
    own = [line.partition(": ")[2] for line in errors if line.startswith("hubweir.")]
    found = (own or errors or lines[:1] or [type(error).__name__])[-1]
    found = re.sub(r"^\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: ", "", found)
    return re.sub(r"\s*(SQLSTATE: \w+[\s;]*)+(line \d+ pos \d+;?)?$", "", found)
