"""Windowed aggregates: JSON events grouped by window and keys, back into a hub as JSON when a window is closed.

A window is closed when the watermark has passed its end: the newest time seen, less `watermark`. An event that comes
later than that counts no more. A result is one event: `{"start": …, "end": …, keys, aggregates}`, keyed by the keys.
Rows are sorted in each task before they are written, so a batch that is repeated writes the same rows in the same
order.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job
from hubweir.pipelines.named_hubs import hub_options
from hubweir.pipelines.sinks import json_rows
from hubweir.spark.json_view import with_json_value

# Of every row, for the windows.
_OWN = {"enqueuedtime", "event_time", "window"}
_ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSX"


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    keys = job.texts("keys")
    events = with_json_value(job.events("body", "enqueuedTime"), job.text("schema"))
    check_columns(events.select("value.*").columns)
    rows = events.where("value IS NOT NULL").select("enqueuedTime", "value.*")
    timed = rows.withColumn("event_time", f.expr(job.text("time")))
    grouped = timed.withWatermark("event_time", seconds(job.number("watermark"))).groupBy(window(job), *keys)
    results = grouped.agg(*(f.expr(text) for text in job.texts("aggregates")))
    check_results([name for name in results.columns if name != "window"])
    named = results.select(
        f.date_format("window.start", _ISO).alias("start"),
        f.date_format("window.end", _ISO).alias("end"),
        *(f.col(name) for name in results.columns if name != "window"),
    )
    out = json_rows(named, keys).writeStream.outputMode("append")
    return out.format("eventhubs").options(
        **hub_options(job.description), sortBy=",".join(["partitionKey", "body"][not keys :])
    )


def check_columns(own: Sequence[str]) -> None:
    """IllegalDescription when the schema has a column that every row has already."""
    if wrong := [name for name in own if name.lower() in _OWN]:
        raise IllegalDescription(
            f"parameters.schema: a row has a column {wrong[0]} itself; allowed: others than {', '.join(sorted(_OWN))}"
        )


def check_results(names: Sequence[str]) -> None:
    """IllegalDescription when a result would have a name twice. names: of keys and aggregates."""
    taken = ["start", "end"]
    for name in names:
        if name.lower() in taken:
            raise IllegalDescription(
                f"parameters: a result has {name} already; allowed: keys and aggregates of names of their own, other "
                "than start and end: write … AS another_name"
            )
        taken.append(name.lower())


def window(job: Job) -> Column:
    """The windows that an event lies in."""
    size = seconds(job.number("size"))
    match job.text("window"):
        case "session":
            return f.session_window("event_time", size).alias("window")
        case "sliding":
            return f.window("event_time", size, seconds(job.number("slide"))).alias("window")
    return f.window("event_time", size).alias("window")


def seconds(count: float) -> str:
    """A duration as Spark writes it."""
    return f"{round(count * 1000)} milliseconds"
