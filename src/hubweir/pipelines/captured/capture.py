"""Capture on Spark: the broker's names, header and records, made by tasks. For hubs that one machine cannot follow.

The trigger is the window: a micro-batch makes one file of each partition, more where a file is full (`sizeLimit`), and
a file without events of a partition that had none, unless `skipEmptyArchives` says no. With trigger once a run is a
window. The broker's window ends as soon as it is full; here that is seen when the trigger comes, and a file ends with
the block that fills it.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming import DataStreamWriter

from hubweir.namespace.capture_description import check_archive_name_format
from hubweir.namespace.connection_string import ConnectionString
from hubweir.pipelines.captured.blob_storage import VARIABLE, check_address, destination_of, storage_of
from hubweir.pipelines.captured.blocks import CaptureBlocksDataSource
from hubweir.pipelines.captured.files import FILES, CaptureNotes, FileNames, write_blocks
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.job import Job, local_folder


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    job.spark.dataSource.register(CaptureBlocksDataSource)
    names = file_names(job)
    notes = CaptureNotes(job.notes())

    def capture(blocks: DataFrame, batch: int) -> None:
        note = notes.begin(batch, names, lambda: int(time.time() * 1000))
        of_batch = note.of(names)

        def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return write_blocks(batches, of_batch)

        made = blocks.mapInArrow(write, FILES).collect()
        notes.finish(note, max((row.second for row in made), default=note.second))

    is_counted = str(not job.flag("skipEmptyArchives")).lower()
    return job.source(CaptureBlocksDataSource.NAME, countWindows=is_counted).writeStream.foreachBatch(capture)


def file_names(job: Job) -> FileNames:
    """What the names of this pipeline's files share. IllegalDescription when they cannot be; BadStorage, or OSError,
    when the container is not there.
    """
    options = job.options
    place, storage = captured_place(job.sink("path"), job.sink("storage"))
    check_archive_name_format(options.event_hub, job.text("archiveNameFormat"))
    namespace = job.text("namespace") or first_label(ConnectionString.parse(options.connection_string).host)
    size = round(job.number("sizeLimit"))
    return FileNames(place, job.text("archiveNameFormat"), namespace, options.event_hub, size, 0, storage)


def captured_place(path: str, storage: str) -> tuple[str, str]:
    """The place, and the connection string of its account, which is asked once: so a wrong one ends at the start."""
    folder = local_folder(path)
    if folder is not None:
        return str(folder.absolute()), ""
    check_address(path, "sink.path")
    if not (storage := storage_of(storage)):
        raise IllegalDescription(
            f"sink.storage is missing: the connection string of the storage account of {path}, or give it by {VARIABLE}"
        )
    destination_of(path, storage).exists("hubweir")
    return path, storage


def first_label(host: str) -> str:
    """The namespace that a host's name begins with; of an address, which has none, all of it with dashes."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.partition(".")[0]
    return host.replace(".", "-").replace(":", "-")
