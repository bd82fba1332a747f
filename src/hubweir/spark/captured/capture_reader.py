"""`format("eventhubs-capture")`: captured files as a table with the source's columns.

| option | means |
|---|---|
| `path` (or `load(path)`) | a folder, `file://…`, or `az://container/prefix` |
| `partition` | only these partitions: `0` or `0,3` |
| `since`, `until` | enqueued at or after the one, before the other: ISO times, UTC without a zone |
| `archiveNameFormat` | how the files are called, when the hub has another format than the default |
| `columns` | only these columns, as a schema does |
| `store.…` | settings of the blob store, by obstore's names, such as `store.account_name`, `store.account_key` |

Times are held against file names first, then against the first rows of some files, where names do not tell, then
against the rows of the files that are left. They are options and no filters of a query for the reason told in
source/batch_reader.py; so a plain `where` works too, and reads every file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from hubweir.capture.avro import SYNC_SIZE
from hubweir.event_hub.event_position import EARLIEST, PositionKind
from hubweir.spark.captured.avro_file import HEADER_BYTES, EventTimes, begins_before, read_blocks, read_header
from hubweir.spark.captured.file_parts import FilePart, parts_of, wanted_files
from hubweir.spark.captured.places import (
    DEFAULT_FORMAT,
    BlobPlace,
    CapturedName,
    LocalPlace,
    name_pattern,
    parse_name,
    place_of,
)
from hubweir.spark.errors import IllegalCapture, IllegalOption
from hubweir.spark.event_format import EventFormat, columns_of
from hubweir.spark.option_texts import OptionTexts
from hubweir.spark.source.positions import parse_positions
from hubweir.spark.worker_process import freeze_garbage

_KNOWN = ("path", "partition", "since", "until", "archiveNameFormat", "columns")
_STORE = "store."
# A block is at most 1 MiB but for one larger event: what is read behind a part's end to have its last block whole.
_BEHIND = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """What one source reads. It travels to the tasks; its repr shows no setting of the store."""

    path: str
    partitions: frozenset[str] | None
    times: EventTimes
    name_format: str
    store: Mapping[str, str] = field(repr=False)


class CaptureDataSource(EventFormat):
    """Captured files below one place."""

    NAME = "eventhubs-capture"

    def reader(self, schema: StructType) -> CaptureReader:
        return CaptureReader(parse_capture_options(self._given), columns_of(schema))


class CapturePartition(InputPartition):
    """The parts of files that one task reads."""

    def __init__(self, parts: tuple[FilePart, ...]) -> None:
        super().__init__(None)
        self.parts = parts


class CaptureReader(DataSourceReader):
    """One read of the files that are there when it is planned."""

    def __init__(self, options: CaptureOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks: small files together, a large one in parts."""
        options = self._options
        place, pattern = place_of(options.path, options.store), name_pattern(options.name_format)
        names = [parse_name(pattern, place.prefix, path, size) for path, size in place.files()]
        wanted = wanted_files(names, options.partitions, options.times, partial(_begins_before, place))
        return [CapturePartition(parts) for parts in parts_of(wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """In a task: the events of its parts."""
        if isinstance(partition, CapturePartition):
            freeze_garbage()
            place = place_of(self._options.path, self._options.store)
            try:
                for part in partition.parts:
                    yield from _read_part(place, part, self._columns, self._options.times)
            finally:
                freeze_garbage()


def parse_capture_options(given: Mapping[str, str]) -> CaptureOptions:
    """The options of a reader. IllegalOption for the first that is not right."""
    store = {key[len(_STORE) :]: text for key, text in given.items() if key.lower().startswith(_STORE)}
    texts = OptionTexts({key: text for key, text in given.items() if not key.lower().startswith(_STORE)})
    unknown = sorted(set(texts.texts) - {name.lower() for name in _KNOWN})
    if unknown:
        raise IllegalOption(f"option {unknown[0]} is not known: there are {', '.join(_KNOWN)}, {_STORE}…")
    path = texts.text("path")
    if path is None:
        raise IllegalOption("path is missing: load('/captured') or load('az://container/prefix')")
    chosen = None
    if (partitions := texts.text("partition")) is not None:
        ids = [one.strip() for one in partitions.split(",")]
        if not all(one.isascii() and one.isdigit() for one in ids):
            raise IllegalOption(f"partition is one id or several, as 0,3, not '{partitions[:64]}'")
        chosen = frozenset(str(int(one)) for one in ids)
    times = EventTimes(_time_ms(texts, "since", EventTimes().since_ms), _time_ms(texts, "until", EventTimes().until_ms))
    return CaptureOptions(path, chosen, times, texts.text("archiveNameFormat") or DEFAULT_FORMAT, store)


def _time_ms(texts: OptionTexts, name: str, otherwise: int) -> int:
    text = texts.text(name)
    if text is None:
        return otherwise
    try:
        position = parse_positions(name, text, EARLIEST).default
    except IllegalOption:
        position = EARLIEST  # no time either
    if position.kind is not PositionKind.ENQUEUED_TIME:
        raise IllegalOption(f"{name} is a time such as 2026-01-31T12:00:00Z, not '{text[:64]}'")
    return position.value


def _begins_before(place: LocalPlace | BlobPlace, file: CapturedName, time_ms: int) -> bool | None:
    """See wanted_files. Reads little, as a rule; more where the first event is large, or its block is compressed."""
    path, size = file.path, file.size_bytes
    data = place.read(path, 0, min(size, HEADER_BYTES))
    header = read_header(data, path)
    try:
        return begins_before(data, header, time_ms, path)
    except IllegalCapture:
        if size <= HEADER_BYTES:
            raise
    return begins_before(place.read(path, 0, min(size, HEADER_BYTES + _BEHIND)), header, time_ms, path)


def _read_part(
    place: LocalPlace | BlobPlace, part: FilePart, columns: tuple[str, ...], times: EventTimes
) -> Iterator[pa.RecordBatch]:
    path, size = part.file.path, part.file.size_bytes
    header = read_header(place.read(path, 0, min(size, HEADER_BYTES)), path)
    # A block that begins in this part stands behind a sync marker that may begin before it.
    first = header.size if part.start <= header.size else part.start - SYNC_SIZE
    data = place.read(path, first, min(size, part.end + _BEHIND))
    start = 0
    if first > header.size:
        found = data.find(header.sync_marker)
        if found < 0:
            return
        start = found + SYNC_SIZE
    try:
        yield from read_blocks(
            data,
            start,
            header,
            name=path,
            partition_id=part.file.partition_id,
            columns=columns,
            times=times,
            end=part.end - first,
        )
    except IllegalCapture as error:
        raise IllegalCapture(
            f"{error}. What stands before it in {path} is whole; move the file away to go on"
        ) from None
