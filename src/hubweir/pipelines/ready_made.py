"""The ready-made pipelines as a table: which program each is, and what it takes. No PySpark here."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.capture_description import ARCHIVE_NAME_FORMAT, SIZE_DEFAULT_BYTES
from hubweir.pipelines.fields import Field

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class PipelineEntry:
    """One pipeline. program: the module whose `start` it is. trigger_s: of micro-batches, when nothing else is said."""

    name: str
    summary: str
    program: str
    parameters: tuple[Field, ...] = ()
    sink: tuple[Field, ...] = ()
    trigger_s: float = 1.0


_SCHEMA = Field("schema", "text", None, "columns of the JSON in each body, such as: device string, celsius double")
_HUB_SINK = (
    Field("eventHub", "text", None, "the event hub that results go to"),
    Field("connectionString", "text", "", "of its namespace; without it the source's"),
    Field("exactlyOnce", "text", "auto", "as docs/spark_write.md has it", ("auto", "require", "off")),
)
_STORAGE = Field("storage", "text", "", "of az://…: its account's connection string, or by HUBWEIR_CAPTURE_STORAGE")
_LAKE_SINK = (
    Field("path", "text", None, "folder of the table"),
    Field("format", "text", "parquet", "plain files, or a Delta table", ("parquet", "delta")),
    Field("compactAfter", "seconds", 10 * MINUTE_S, "how long after its end an hour's small files become one"),
)

_ENTRIES = (
    PipelineEntry(
        "to-lake",
        "a hub into a table of Parquet files or Delta, by date and hour",
        "hubweir.pipelines.lake.to_lake",
        (
            Field("schema", "text", "", "columns of the JSON in each body; without it bodies stay bytes"),
            Field("compact", "flag", True, "make the small files of an hour that is over into one"),
        ),
        _LAKE_SINK,
        trigger_s=MINUTE_S,
    ),
    PipelineEntry(
        "windowed-aggregates",
        "aggregates of windows by key, with a watermark, back into a hub as JSON",
        "hubweir.pipelines.windowed_aggregates",
        (
            _SCHEMA,
            Field("keys", "list", (), "columns to group by"),
            Field("aggregates", "list", None, 'SQL such as ["count(*) AS events", "avg(celsius) AS celsius"]'),
            Field("time", "text", "enqueuedTime", "SQL for an event's time, such as to_timestamp(at)"),
            Field("window", "text", "tumbling", "kind of window", ("tumbling", "sliding", "session")),
            Field("size", "seconds", 5 * MINUTE_S, "length of a window; of a session its gap"),
            Field("slide", "seconds", MINUTE_S, "distance between sliding windows"),
            Field("watermark", "seconds", MINUTE_S, "how late an event may come and still count"),
        ),
        _HUB_SINK,
    ),
    PipelineEntry(
        "per-key-state",
        "when each key was last seen; one event when it falls silent, one when it is back",
        "hubweir.pipelines.per_key_state",
        (
            Field("key", "text", "partitionKey", "SQL for the key, such as properties['device']"),
            Field("silentAfter", "seconds", 5 * MINUTE_S, "how long without an event is silence"),
        ),
        _HUB_SINK,
    ),
    PipelineEntry(
        "dead-letters",
        "bodies that parse by a schema to one hub, the others with the reason to another",
        "hubweir.pipelines.dead_letters",
        (_SCHEMA, Field("required", "list", (), "columns that may not be absent or null")),
        (
            *_HUB_SINK,
            Field("deadLetterHub", "text", None, "the event hub that rows which do not parse go to"),
        ),
    ),
    PipelineEntry(
        "capture",
        "what the broker's capture does, for those who outgrow one machine: the same names and schema",
        "hubweir.pipelines.captured.capture",
        (
            Field("namespace", "text", "", "{Namespace} in the names; without it the host's first label"),
            Field("archiveNameFormat", "text", ARCHIVE_NAME_FORMAT, "how files are called"),
            Field("sizeLimit", "count", SIZE_DEFAULT_BYTES, "bytes at which a file is closed"),
            Field("skipEmptyArchives", "flag", False, "make no file of a partition that had no events in a window"),
        ),
        (
            Field("path", "text", None, "a folder that all machines see, or az://container/prefix"),
            _STORAGE,
        ),
        trigger_s=5 * MINUTE_S,
    ),
    PipelineEntry(
        "replay",
        "captured history, then live events, without a gap and without a repeat",
        "hubweir.pipelines.captured.replay",
        (
            Field("captured", "text", None, "where captured files are: a folder, or az://container/prefix"),
            _STORAGE,
            Field("archiveNameFormat", "text", ARCHIVE_NAME_FORMAT, "how they are called"),
        ),
        (
            Field("eventHub", "text", "", "the event hub to replay into, or"),
            Field("connectionString", "text", "", "of its namespace; without it the source's"),
            Field("exactlyOnce", "text", "auto", "as docs/spark_write.md has it", ("auto", "require", "off")),
            Field("path", "text", "", "the folder of a table"),
            Field("format", "text", "parquet", "of that table", ("parquet", "delta")),
        ),
    ),
)
READY_MADE = {entry.name: entry for entry in _ENTRIES}
