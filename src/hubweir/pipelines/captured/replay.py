"""Replay: the captured history of a hub, then what the hub holds behind it, and on. Into another hub, or a table.

Where history ends is looked up at the first start and noted in the checkpoint, so files that are captured meanwhile
change nothing: each event is read once, from a file or from the hub. What neither has any more stops the pipeline, or
is counted and left out (`failOnDataLoss`). In another hub an event goes where its partition key sends it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql.streaming import DataStreamWriter

from hubweir.pipelines.captured.blob_storage import is_blobs, storage_of, store_settings
from hubweir.pipelines.captured.history import read_history
from hubweir.pipelines.captured.replay_source import ReplayDataSource
from hubweir.pipelines.durable_file import publish
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job
from hubweir.pipelines.lake.to_lake import into_lake
from hubweir.pipelines.named_hubs import hub_options


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    if bool(job.sink("eventHub")) is bool(job.sink("path")):
        raise IllegalDescription(f"pipeline {job.description.name}: sink takes one of eventHub and path")
    job.spark.dataSource.register(ReplayDataSource)
    place = {"captured": job.text("captured"), "archiveNameFormat": job.text("archiveNameFormat")}
    store = store_settings(storage_of(job.text("storage"))) if is_blobs(job.text("captured")) else {}
    ends = json.dumps(history_end(job, store))
    events = job.source(
        ReplayDataSource.NAME, **place, historyEnd=ends, **{f"store.{name}": text for name, text in store.items()}
    )
    if job.sink("path"):
        return into_lake(job, events, None)
    kept = events.select("body", "partitionKey", "properties")
    return kept.writeStream.format("eventhubs").options(**hub_options(job.description))


def history_end(job: Job, store: Mapping[str, str]) -> dict[str, int]:
    """The number behind the last captured event of each partition, as it was at the first start.

    IllegalDescription when nothing is captured there: a misspelt place would begin with what the hub has, and say
    nothing.
    """
    note = job.notes() / "history.json"
    if note.exists():
        return {key: int(end) for key, end in json.loads(note.read_text()).items()}
    files = read_history(job.text("captured"), job.text("archiveNameFormat"), store)
    if not files:
        raise IllegalDescription(
            f"parameters.captured: {job.text('captured')} has no captured file with events; allowed: a place that has"
        )
    ends = {key: found[-1].end for key, found in files.items()}
    unfinished = note.with_name(".history.new")
    unfinished.write_text(json.dumps(ends))
    publish(unfinished, note)
    return ends
