"""A file while it is made: header first, blocks as they fill up, nothing before there is something."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import fastavro
import pytest

from hubweir.broker.capture.captured_file import CapturedFile
from hubweir.broker.capture.places import CapturePlaces
from hubweir.broker.capture.tests.capture_world import CAPTURED, LOG_ID, CaptureWorld, envelope
from hubweir.capture.capture_mark import CaptureMark, Intent, note_mark
from hubweir.capture.destination import LocalArchive
from hubweir.errors import LogOffline
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.log import Log, Refused, Run
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
    complete_run(run, LogEnd(), nonce=1, enqueued_time_ms=1, durable_upto=0, writer_epoch=1)
    file.add_events(places, Run(bytes(run), 0, 3))
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


@pytest.mark.parametrize("fails", ["commit", "mark"])
def test_what_a_file_lacks_is_counted_though_its_answer_or_its_mark_was_lost(
    monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """The next attempt finds the file there, and must not take it for one of a time when the log had all events."""
    left = 1

    def answer_lost(archive: LocalArchive) -> None:
        nonlocal left
        commit(archive)
        if left:
            left -= 1
            raise OSError("the answer is lost")

    def mark_lost(log: Log, mark: CaptureMark, *, now_ms: int, on_done: Callable[[Refused | None], None]) -> None:
        nonlocal left
        if left and mark.intent is None:
            left -= 1
            on_done(Refused(LogOffline("the disk is sick"), known=False))
        else:
            note_mark(log, mark, now_ms=now_ms, on_done=on_done)

    commit = LocalArchive.commit

    with CaptureWorld(description=replace(CAPTURED, interval_s=900, size_limit_bytes=10**6)) as world:
        world.open()
        for _ in range(30):
            world.send(10, size=60)
            world.run_s(0.2)
        folder = f"store-0/logs/{LOG_ID}"
        oldest = sorted(name for name in world.files.list(folder) if name.endswith(".log"))[0]
        world.files.bytes_of(f"{folder}/{oldest}")[3_000] ^= 1
        if fails == "commit":
            monkeypatch.setattr(LocalArchive, "commit", answer_lost)
        else:
            monkeypatch.setattr("hubweir.broker.capture.runner.note_mark", mark_lost)
        world.run_s(960)
        assert left == 0 and len(world.archives()) == 1
        numbers = [record["SequenceNumber"] for file in world.records() for record in file]
        assert 0 < world.state().uncaptured_events == 300 - len(numbers)
