"""State by key: when a device was last seen, an alert when it falls silent, and a word when it is back.

The state of a key is kept by Spark in RocksDB: events so far, the last one's enqueued time in ms, and whether it was
called silent. An alert is one event keyed by the key: `{"key", "state": "silent" or "back", "events", "lastSeen",
"at"}`, times in ms since 1970. The timer is of processing time, which Spark fixes for each batch, so a batch that is
repeated makes the same rows; the first event of a key makes none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from hubweir.pipelines.job import Job
from hubweir.pipelines.named_hubs import hub_options
from hubweir.pipelines.sinks import json_rows
from hubweir.spark.event_columns import COLUMN_NAMES

ALERT = "key string, state string, events bigint, lastSeen bigint, at bigint"


class LastSeen(StatefulProcessor):
    """One key's life. Times are integers: a timestamp read back from state has no zone, and one of a row has."""

    def __init__(self, silent_after_ms: int) -> None:
        self._silent_after_ms = silent_after_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._seen = handle.getValueState("seen", "events bigint, last bigint, silent boolean")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        """Count the events, and put off the alarm."""
        events, last, was_silent = self._seen.get() if self._seen.exists() else (0, 0, False)
        for row in rows:
            events, last = events + 1, max(last, row.time)
        now = timerValues.getCurrentProcessingTimeInMs()
        self._seen.update((events, last, False))
        for timer in list(self._handle.listTimers()):
            self._handle.deleteTimer(timer)
        self._handle.registerTimer(now + self._silent_after_ms)
        if was_silent:
            yield Row(key=key[0], state="back", events=events, lastSeen=last, at=now)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:
        """The alarm: nothing came for so long."""
        events, last, _ = self._seen.get()
        self._seen.update((events, last, True))
        at = expiredTimerInfo.getExpiryTimeInMs()
        yield Row(key=key[0], state="silent", events=events, lastSeen=last, at=at)

    def close(self) -> None:
        """Nothing is open."""


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    key = job.text("key")
    # Columns cost: only those that the key is made of.
    events = job.events(*(name for name in COLUMN_NAMES if name.lower() in key.lower() or name == "enqueuedTime"))
    rows = events.select(f.expr(key).alias("key"), f.unix_millis("enqueuedTime").alias("time"))
    alerts = (
        rows.where("key IS NOT NULL")
        .groupBy("key")
        .transformWithState(
            statefulProcessor=LastSeen(round(job.number("silentAfter") * 1000)),
            outputStructType=ALERT,
            outputMode="Append",
            timeMode="ProcessingTime",
        )
    )
    out = json_rows(alerts, ["key"]).writeStream.outputMode("append")
    return out.format("eventhubs").options(**hub_options(job.description), sortBy="partitionKey,body")
