"""To the lake: a hub into a table of Parquet files, or of Delta, by the date and hour at which events were enqueued.

With a schema the table has the columns of the JSON, and of an event that does not parse nulls in them; `body` stays
beside them. Without one it has the source's columns. Each event is in the table once, over killed processes too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter

from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job, local_folder
from hubweir.pipelines.lake.compaction import recover
from hubweir.pipelines.lake.lake_sink import NAME, PARQUET, LakeDataSource
from hubweir.pipelines.lake.table_lock import locked
from hubweir.spark.json_view import with_json_value


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    events = job.events()
    if schema := job.text("schema"):
        parsed = with_json_value(events, schema)
        own = parsed.select("value.*").columns
        check_columns(own, (*events.columns, "date", "hour"))
        events = parsed.select(*events.columns, *(f.col(f"value.`{name}`") for name in own))
    compact_after_s = job.sink_number("compactAfter") if job.flag("compact") else None
    return into_lake(job, events, compact_after_s)


def check_columns(own: Sequence[str], taken: Sequence[str]) -> None:
    """IllegalDescription when the schema has a column that the table has already."""
    folded = {name.lower() for name in taken}
    if wrong := [name for name in own if name.lower() in folded]:
        raise IllegalDescription(
            f"parameters.schema: the table has a column {wrong[0]} itself; allowed: others than {', '.join(taken)}; "
            "what is left out stays in the body"
        )


def into_lake(job: Job, events: DataFrame, compact_after_s: float | None) -> DataStreamWriter:
    """A stream into the table that the sink names."""
    job.spark.dataSource.register(LakeDataSource)
    if job.sink("format") == PARQUET:
        with locked(Path(job.sink("path"))) as is_ours:
            if is_ours:
                recover(Path(job.sink("path")))
    options = {"path": job.sink("path"), "tableFormat": job.sink("format")}
    if compact_after_s is not None:
        options["compactAfterMs"] = str(round(compact_after_s * 1000))
    checkpoint = local_folder(job.description.checkpoint)
    if checkpoint is not None and (repeats := unfinished_batch(checkpoint)) is not None:
        options["repeats"] = str(repeats)
    placed = events.withColumns({"date": f.date_format("enqueuedTime", "yyyy-MM-dd"), "hour": f.hour("enqueuedTime")})
    return placed.writeStream.format(NAME).options(**options)


def unfinished_batch(checkpoint: Path) -> int | None:
    """The micro-batch that a run before planned and did not end, which is repeated; None when there is none."""
    planned, ended = (
        max((int(path.name) for path in (checkpoint / log).glob("[0-9]*") if path.name.isdigit()), default=-1)
        for log in ("offsets", "commits")
    )
    return planned if planned > ended else None
