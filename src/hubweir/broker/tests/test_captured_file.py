"""A file while it is made: header first, blocks as they fill up, nothing before there is something."""

from __future__ import annotations

import io

import fastavro

from hubweir.broker.capture_places import CapturePlaces
from hubweir.broker.captured_file import CapturedFile
from hubweir.broker.tests.capture_world import envelope
from hubweir.capture.capture_mark import Intent
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.log import Run
from hubweir.namespace.capture_description import CaptureDestination
from hubweir.testing.memory_files import MemoryFiles

MARKER = b"m" * 16


def made(end: int) -> tuple[MemoryFiles, CapturePlaces, CapturedFile]:
    files = MemoryFiles("made")
    intent = Intent(0, end, 0, 0, "a/b.avro", CaptureDestination.LOCAL_FOLDER, "")
    return files, CapturePlaces(files, "capture"), CapturedFile(intent, MARKER)


def finished(files: MemoryFiles, places: CapturePlaces, file: CapturedFile) -> list[bytes]:
    """Write what is open, commit, and read the bodies back."""
    file.write(places, file.blocks.flush())
    assert file.archive is not None
    file.archive.commit()
    data = bytes(files.bytes_of("capture/a/b.avro"))
    assert len(data) == file.size
    return [record["Body"] for record in fastavro.reader(io.BytesIO(data))]


def test_events_below_the_end_are_in_it_and_counted() -> None:
    files, places, file = made(end=2)
    run = envelope([b"one", b"two", b"three"])
    complete_run(run, nonce=1, first_index=0, first_offset=0, enqueued_time_ms=1, durable_upto=0, writer_epoch=1)
    file.add(places, Run(bytes(run), 0, 3))
    assert file.archive is None, "nothing is begun before a block is full"
    assert finished(files, places, file) == [b"one", b"two"]
    assert file.blocks.events == 2


def test_a_file_without_events_is_its_header() -> None:
    files, places, file = made(end=0)
    assert finished(files, places, file) == []


def test_a_file_that_is_abandoned_leaves_nothing() -> None:
    files, places, file = made(end=0)
    file.abandon()
    file.write(places, [])
    file.abandon()
    assert files.list("capture/a") == []
