"""hubweir store: a data folder from outside. A server may run on it, but for renew and move."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from hubweir.cli.capture_mark import shown_mark
from hubweir.cli.counted import counted
from hubweir.cli.data_folder import DataFolder, OwnedLog, Unreadable, takes_data
from hubweir.cli.options import as_json, print_json
from hubweir.cli.render import table
from hubweir.cli.store_backup import backup
from hubweir.cli.store_move import move
from hubweir.cli.store_records import records
from hubweir.cli.store_renew import renew
from hubweir.cli.store_restore import restore
from hubweir.cli.store_verify import verify
from hubweir.env import join_path
from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.disk.inspection import StoredBatch, batches, other_files
from hubweir.messaging_store.disk.layout import PREVIOUS_SNAPSHOT_NAME, SNAPSHOT_NAME
from hubweir.messaging_store.disk.read_only_files import read_again
from hubweir.messaging_store.disk.recovery import Recovered
from hubweir.messaging_store.disk.segment_files import Segment, read_saved_indexes
from hubweir.messaging_store.disk.snapshot import load_snapshot


class ReadsFiles(click.Group):
    """A group whose commands end with one line when the system does not let them read."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except OSError as error:
            raise Unreadable(f"cannot read {error.filename or 'the data folder'}: {error.strerror or error}") from error


@click.group(name="store", cls=ReadsFiles)
def store() -> None:
    """Look into a data folder, or copy it. Nothing is locked, and nothing in it is written, but by renew and move."""


store.add_command(records)
store.add_command(verify)
store.add_command(backup)
store.add_command(restore)
store.add_command(renew)
store.add_command(move)


@store.command(name="list")
@takes_data
@as_json
def list_logs(data: Path, as_json: bool) -> None:
    """List the logs of all stores, and whose they are."""
    folder = DataFolder(data)
    documents = [_summary(folder, log) for log in folder.logs()]
    if as_json:
        print_json(documents)
        return
    columns = ("store", "log", "entity", "state", "segments", "bytes", "first", "last", "last_offset")
    rows = [
        (
            *(_text(document[column]) for column in columns),
            _time(document["first_enqueued_time_ms"]),
            _time(document["last_enqueued_time_ms"]),
            _text(document["epoch"]),
            _text(document["durability"]),
        )
        for document in documents
    ]
    headings = (*columns[:8], "last offset", "first enqueued", "last enqueued", "epoch", "durability")
    table(headings, rows)


@store.command()
@click.argument("log")
@takes_data
@as_json
def show(log: str, data: Path, as_json: bool) -> None:
    """Show one log, named by its id, by HUB/PARTITION, or as `catalog`: segments, indexes, snapshots, capture."""
    folder = DataFolder(data)
    owned = folder.find(log)
    found = folder.recovered(owned)
    segments = [_segment(folder, segment) for segment in found.segments]
    snapshots = [_snapshot(folder, owned, name) for name in (SNAPSHOT_NAME, PREVIOUS_SNAPSHOT_NAME)]
    names = other_files(folder.files, owned.folder)
    others = {name: _size(folder, join_path(owned.folder, name)) for name in names}
    mark = read_again(lambda: shown_mark(folder.files, owned.folder, found.end.index))
    if as_json:
        document = {
            **_summary(folder, owned),
            "next_index": found.end.index,
            "next_offset": found.end.offset,
            "closed_cleanly": found.clean,
            "superseded": found.superseded,
            "alarms": found.findings(),
            "segments_in_order": segments,
            "snapshots": [snapshot for snapshot in snapshots if snapshot],
            "capture": None if mark is None else mark.document(),
            "other_files": others,
        }
        print_json(document)
        return
    ended = "closed cleanly" if found.clean else "open, or not closed cleanly"
    click.echo(f"log {owned.log_id} in {owned.store}: {owned.entity}{f' ({owned.state})' if owned.state else ''}")
    click.echo(f"next index {found.end.index}, next offset {found.end.offset}; {ended}")
    _print_segments(segments)
    for snapshot in snapshots:
        if snapshot:
            click.echo(
                f"{snapshot['file']}: {snapshot['bytes']} bytes, "
                + ("damaged" if snapshot["damaged"] else f"state up to index {snapshot['index']}")
            )
    for line in () if mark is None else mark.lines():
        click.echo(line)
    for name, size in others.items():
        click.echo(f"{name}: {counted(size, 'byte')}")
    for line in (*(f"superseded: {name}" for name in found.superseded), *found.findings()):
        click.echo(line)


def _print_segments(segments: list[dict[str, object]]) -> None:
    """One row a segment, as `_segment` tells it."""
    headings = ("segment", "bytes", "first index", "end index", "first offset", "last offset before")
    more = ("created", "epoch", "durability", "index entries")
    columns = ("file", "bytes", "first_index", "end_index", "first_offset", "last_offset_before")
    behind = ("epoch", "durability", "index_entries")
    table(
        (*headings, *more),
        [
            (
                *(_text(segment[column]) for column in columns),
                _time(segment["created_ms"]),
                *(_text(segment[column]) for column in behind),
            )
            for segment in segments
        ],
    )


def _summary(folder: DataFolder, log: OwnedLog) -> dict[str, object]:
    """One log as a row. first, last: sequence numbers; None where there is none, or it cannot be read."""
    document: dict[str, object] = {
        "store": log.store,
        "log": log.log_id,
        "entity": log.entity,
        "state": log.state,
        "namespace": log.namespace,
        "hub": log.hub,
        "partition_id": log.partition_id,
        "segments": 0,
        "bytes": folder.size_bytes(log),
        **dict.fromkeys(("first", "last", "last_offset", "first_enqueued_time_ms", "last_enqueued_time_ms")),
        "epoch": None,
        "durability": None,
    }
    if log.state == "missing":
        return document
    try:
        found = folder.recovered(log)
        first_time_ms = read_again(lambda: _first_time_ms(folder, found))
    except (CorruptStore, NewerFormat) as error:
        return document | {"state": f"unreadable: {error}"}
    document["segments"] = len(found.segments)
    if found.segments:
        newest, first = found.segments[-1].header, found.segments[0].first_index
        document |= {"epoch": newest.writer_epoch, "durability": newest.durability.name.lower()}
        if found.end.index > first:
            document |= {"first": first, "last": found.end.index - 1, "first_enqueued_time_ms": first_time_ms}
        if found.last_offset >= 0:
            document |= {"last_offset": found.last_offset, "last_enqueued_time_ms": found.last_time_ms}
    return document


def _first_time_ms(folder: DataFolder, found: Recovered) -> int | None:
    for item in batches(folder.files, found.segments[:1]):
        if isinstance(item, StoredBatch) and item.header.count:
            return item.header.enqueued_time_ms
    return None


def _segment(folder: DataFolder, segment: Segment) -> dict[str, object]:
    header, saved = segment.header, read_saved_indexes(folder.files, segment)
    return {
        "file": header.name.file_name,
        "bytes": _size(folder, segment.path),
        "first_index": header.first_index,
        "end_index": segment.end_index,
        "first_offset": header.first_offset,
        "last_offset_before": header.last_offset,
        "last_time_before_ms": header.last_time_ms,
        "created_ms": header.created_ms,
        "epoch": header.writer_epoch,
        "durability": header.durability.name.lower(),
        "index_entries": None if saved is None else len(saved.offsets),
        "damaged_ranges": len(segment.damage),
    }


def _snapshot(folder: DataFolder, log: OwnedLog, name: str) -> dict[str, object] | None:
    path = join_path(log.folder, name)
    if not folder.files.exists(path):
        return None
    snapshot = load_snapshot(folder.files, path)
    return {
        "file": name,
        "bytes": _size(folder, path),
        "damaged": snapshot is None,
        "index": None if snapshot is None else snapshot.index,
    }


def _size(folder: DataFolder, path: str) -> int:
    file = folder.files.open_to_read(path)
    try:
        return file.size()
    finally:
        file.close()


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _time(time_ms: object) -> str:
    if not isinstance(time_ms, int) or time_ms < 0:
        return ""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
