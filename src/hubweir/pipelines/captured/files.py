"""Blocks into captured files: the broker's names and header, closed at a size; and a batch's second, kept over a kill.

A file's name has a second in it. A micro-batch that is repeated must use the one it used before, and the next batch a
later one, or a file would be written over. So the driver notes the second before any file of the batch is written, and
the last one used when all are there; both are synced. With the second the note has all else that names and cuts files,
so a batch that is repeated under a changed description ends as it was begun. Files appear whole
(capture/destination.py), and a repeated batch writes the same bytes under the same names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from hubweir.capture.archive_name import archive_name, name_second
from hubweir.capture.avro import header
from hubweir.capture.destination import Archive, Destination
from hubweir.pipelines.captured.blob_storage import destination_of
from hubweir.pipelines.captured.blocks import sync_marker
from hubweir.pipelines.durable_file import publish

FILES = "partition string, name string, second bigint, events bigint, size bigint"
_ARROW = pa.schema(
    [("partition", pa.string()), ("name", pa.string())] + [(name, pa.int64()) for name in ("second", "events", "size")]
)
_KEPT = 100


@dataclass(frozen=True, slots=True)
class FileNames:
    """What all names of a pipeline's files share. second: of the first file that a partition gets of this batch.

    place: a folder's path, or az://container/prefix; storage: its account's connection string.
    """

    place: str
    pattern: str
    namespace: str
    hub: str
    size_limit_bytes: int
    second: int
    storage: str = field(default="", repr=False)


def write_blocks(batches: Iterable[pa.RecordBatch], names: FileNames) -> Iterator[pa.RecordBatch]:
    """In a task: blocks into files; a row of FILES for each. A file ends behind the block that fills it."""
    place = destination_of(names.place, names.storage)
    seconds: dict[str, int] = {}
    opened: _OpenFile | None = None
    try:
        for batch in batches:
            for row in batch.to_pylist():
                if opened is not None and opened.ends_before(row["partition"], names.size_limit_bytes):
                    yield opened.finish()
                    opened = None
                if opened is None:
                    second = seconds.get(row["partition"], names.second)
                    seconds[row["partition"]] = second + 1
                    opened = _OpenFile(place, names, row["partition"], second)
                opened.add(row["block"], row["events"])
        if opened is not None:
            yield opened.finish()
            opened = None
    finally:
        if opened is not None:
            opened.archive.abandon()


class _OpenFile:
    """One file while it is made."""

    def __init__(self, place: Destination, names: FileNames, partition: str, second: int) -> None:
        self.partition, self.size, self.events = partition, 0, 0
        self.name = archive_name(
            names.pattern, namespace=names.namespace, hub=names.hub, partition_id=partition, second=second
        )
        self._second = second
        self.archive: Archive = place.begin(self.name)
        self._write(header(sync_marker(names.hub, partition)))

    def _write(self, data: bytes) -> None:
        self.archive.write([data])
        self.size += len(data)

    def ends_before(self, partition: str, size_limit_bytes: int) -> bool:
        """Whether the next block, of this partition, goes into another file."""
        return self.partition != partition or self.size >= size_limit_bytes

    def add(self, block: bytes, events: int) -> None:
        """One block; without events nothing, and the file has its header alone."""
        if block:
            self._write(block)
        self.events += events

    def finish(self) -> pa.RecordBatch:
        """Whole under its name; its row."""
        self.archive.commit()
        row = (self.partition, self.name, self._second, self.events, self.size)
        return pa.RecordBatch.from_arrays(
            [pa.array([value], field.type) for value, field in zip(row, _ARROW, strict=True)], schema=_ARROW
        )


@dataclass(frozen=True, slots=True)
class BatchNote:
    """A batch that has begun, or is over. last_second: the latest of its files, -1 until it is over.

    The others as of FileNames; there is no secret among them.
    """

    batch: int
    second: int
    last_second: int = -1
    place: str = ""
    pattern: str = ""
    namespace: str = ""
    size_limit_bytes: int = 0

    def of(self, names: FileNames) -> FileNames:
        """The names of this batch's files, whatever has changed since it began."""
        if not self.place:  # written before a note had more than seconds
            return replace(names, second=self.second)
        return replace(
            names,
            second=self.second,
            place=self.place,
            pattern=self.pattern,
            namespace=self.namespace,
            size_limit_bytes=self.size_limit_bytes,
        )


class CaptureNotes:
    """The notes of the newest batches, each a file `capture-<batch>.json`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, batch: int, names: FileNames, now_ms: Callable[[], int]) -> BatchNote:
        """The note of a batch that begins, or that began before and is repeated. names: its second does not matter."""
        found = self._read(batch)
        if found is None:
            before = max((self._read(number) or BatchNote(number, 0) for number in self._batches()),
                         key=lambda note: note.batch, default=BatchNote(-1, 0, 0))  # fmt: skip
            second = name_second(now_ms(), max(before.second, before.last_second))
            found = BatchNote(batch, second, -1, names.place, names.pattern, names.namespace, names.size_limit_bytes)
            self._write(found)
        return found

    def finish(self, note: BatchNote, last_second: int) -> None:
        """All files of a batch are there."""
        self._write(replace(note, last_second=max(note.second, last_second)))
        for old in sorted(self._batches())[:-_KEPT]:
            with suppress(FileNotFoundError):
                self._path(old).unlink()

    def _path(self, batch: int) -> Path:
        return self._folder / f"capture-{batch:010}.json"

    def _batches(self) -> list[int]:
        return [int(path.stem.removeprefix("capture-")) for path in self._folder.glob("capture-*.json")]

    def _read(self, batch: int) -> BatchNote | None:
        path = self._path(batch)
        return BatchNote(**json.loads(path.read_text())) if path.exists() else None

    def _write(self, note: BatchNote) -> None:
        unfinished = self._folder / f".{note.batch}.new"
        unfinished.write_text(json.dumps(asdict(note)))
        publish(unfinished, self._path(note.batch))
