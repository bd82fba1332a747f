"""hubweir store backup: a copy of a data folder that a start can use, made while a service runs on it or not.

Every log is looked at first, the catalogs before all others, and copied afterwards as it was at that look
(messaging_store/disk/log_copy.py). Captured files in the data folder are listed between: a file is in the copy exactly
when the copied mark of its partition covers it, or names it as the file that is being made. When an entity is made or
deleted meanwhile, the looks begin again. Of one namespace alone its catalog is copied, the logs that this names, and
captured files with names as its hubs give them now.

After a crash: the copy lies under DESTINATION.partial, which no start is meant for; it gets its name when all of it is
durable.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from hubweir.cli.chosen_namespace import chosen_namespace, takes_namespace
from hubweir.cli.counted import counted
from hubweir.cli.data_folder import LEFT_OVER, DataFolder, OwnedLog, takes_data
from hubweir.cli.store_verify import ProgressReport, wrong_with
from hubweir.env import join_path
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.layout import CLOCK_NAME, EPOCH_NAME, FORMAT_NAME, LOGS_FOLDER
from hubweir.messaging_store.disk.log_copy import LogChanged, LogCopy
from hubweir.messaging_store.disk.notes import note_files
from hubweir.messaging_store.disk.whole_file import read_whole, write_whole
from hubweir.namespace.resource_path import fold
from hubweir.service.backup import PARTIAL, NoBackup
from hubweir.service.captured_files import captured_files, captured_paths, copy_file, sync_path
from hubweir.service.data_folder import CATALOG_FOLDER, TLS_FOLDER

# A log that falls idle is vouched for within a second; what is not vouched for by then waits for no running service.
VOUCHED_WITHIN_S = 5.0
LOOK_AGAIN_S = 0.1
TRIES = 10
# Marks of capture are written twice a file. With so many partitions that one is always being written, files of the
# last moment may hold events that a restored service captures once more; the command says so.
MARK_LOOKS = 50


@dataclass(slots=True)
class _Moment:
    """What is copied: each log as it was looked at, and the captured files that belong to these looks."""

    copies: list[LogCopy]
    captured: list[Path]
    is_exact: bool


@click.command()
@click.argument("destination", type=click.Path(path_type=Path))
@takes_namespace("Copy")
@takes_data
def backup(destination: Path, data: Path, namespace: str | None, connection_string: str | None) -> None:
    """Copy a data folder to DESTINATION, also while a service runs on it.

    The copy holds everything that was accepted before the command began, and nothing that was refused. To restore it,
    copy it to where the service keeps its data, and start the service there. Exit code 1 when something in the folder
    is damaged or missing: then the copy is there all the same, and what is damaged in it is told.

    Of one namespace of several it has the entities with all that they hold, rules and keys, units and settings, and the
    captured files in the folder that are named as its hubs name them now. Nothing of the others is in it, nor are
    certificates: a start on it makes its own.
    """
    if destination.exists():
        raise NoBackup(f"{destination} is there already: name a folder that is not, one for each backup")
    findings = copy_folder(data, destination, lambda folder: chosen_namespace(folder, namespace, connection_string))
    if findings:
        sys.exit(1)
    click.echo(f"a start on it serves it: hubweir serve --data {destination}")


def copy_folder(data: Path, destination: Path, choose: Callable[[DataFolder], str | None] = lambda _: None) -> int:
    """Copy a data folder to a place where nothing is, or an empty folder, durably; then read every batch of the copy.

    choose: says of which namespace alone everything is copied; None: all of the folder.
    Returns how much is damaged in it, as in the folder that was copied; all of that is told. Raises NoBackup.
    After a crash: see the module's text. The folder that is copied is only read.
    """
    partial = destination.with_name(destination.name + PARTIAL)
    if partial.exists():
        raise NoBackup(f"{partial} is left of a copy that did not end, or belongs to one that runs: remove it first")
    folder = DataFolder(data)
    moment = _copy(folder, partial, choose(folder))
    os.replace(partial, destination)
    sync_path(destination.parent)
    findings = tell_damage(destination)
    events = sum(copy.size_bytes for copy in moment.copies)
    what = [counted(len(moment.copies), "log"), f"{counted(events, 'byte')} of segments"]
    if moment.captured:
        what.append(counted(len(moment.captured), "captured file"))
    click.echo(f"{', '.join(what)} copied to {destination}, every batch verified")
    if not moment.is_exact:
        click.echo("captured files of the last moment are in the copy; a start captures their events once more")
    return findings


def _copy(folder: DataFolder, partial: Path, namespace: str | None) -> _Moment:
    """Make the copy at partial, durably, from new looks when the folder changed too much since the last ones."""
    for left in reversed(range(TRIES)):
        try:
            moment = _moment(folder, namespace)
            _wait_until_vouched(moment.copies)
            _write(folder, moment, partial, has_certificates=namespace is None)
            return moment
        except LogChanged as changed:
            shutil.rmtree(partial, ignore_errors=True)
            if not left:
                raise NoBackup(f"{changed}; so it went {TRIES} times: try again when less changes") from changed
            click.echo(f"{changed}: the backup begins again", err=True)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    raise AssertionError("the last try ends one way or the other")


def _moment(folder: DataFolder, namespace: str | None = None) -> _Moment:
    """Look at every log, or at those of one namespace. LogChanged when an entity was made or deleted meanwhile."""
    logs = [log for log in folder.logs() if log.state not in ("missing", LEFT_OVER)]
    paths = None
    if namespace is not None:
        logs = [log for log in logs if log.namespace is not None and fold(log.namespace) == fold(namespace)]
        paths = captured_paths(folder.catalogs(), namespace)
    logs.sort(key=lambda log: not _is_catalog(log))
    copies = {log.folder: LogCopy(folder.files, log.folder, log.log_id) for log in logs}
    captured, is_exact = _captured(folder, logs, copies, paths)
    for log in logs:
        if _is_catalog(log):
            now = LogCopy(folder.files, log.folder, log.log_id)
            if now.next_index != copies[log.folder].next_index:
                raise LogChanged(f"the {log.entity} was changed")
    return _Moment(list(copies.values()), captured, is_exact)


def _captured(
    folder: DataFolder, logs: list[OwnedLog], copies: dict[str, LogCopy], paths: re.Pattern[str] | None
) -> tuple[list[Path], bool]:
    """The captured files that belong to the looks; logs whose mark moved meanwhile are looked at again.

    paths: of the files that are meant; None: all are.
    """
    for _ in range(MARK_LOOKS):
        captured = list(captured_files(folder.path, paths))
        moved = [log for log in logs if _notes(folder, log) != copies[log.folder].notes()]
        if not moved:
            return captured, True
        for log in moved:
            copies[log.folder] = LogCopy(folder.files, log.folder, log.log_id)
    return list(captured_files(folder.path, paths)), False


def _notes(folder: DataFolder, log: OwnedLog) -> dict[str, bytes | None]:
    """The files of a log that hold its notes, marks of capture among them."""
    return {
        name: read_whole(folder.files, join_path(log.folder, name)) for name in note_files(folder.files, log.folder)
    }


def _wait_until_vouched(copies: list[LogCopy]) -> None:
    until = time.monotonic() + VOUCHED_WITHIN_S
    waiting = copies
    while waiting := [copy for copy in waiting if not copy.is_vouched()]:
        if time.monotonic() > until:
            return
        time.sleep(LOOK_AGAIN_S)


def _write(folder: DataFolder, moment: _Moment, partial: Path, *, has_certificates: bool) -> None:
    target = SystemFiles(partial)
    progress = ProgressReport(sum(copy.size_bytes for copy in moment.copies), "copied")
    for store in folder.stores:
        target.make_folder(join_path(store, LOGS_FOLDER))
        _copy_small(folder, target, store, FORMAT_NAME)
    for copy in moment.copies:
        copy.copy_to(target, progress.add)
    for store in folder.stores:
        # Behind the logs: neither is older than what the copy holds. By CLOCK a restored service knows that it was off.
        for name in (EPOCH_NAME, CLOCK_NAME):
            _copy_small(folder, target, store, name)
        target.sync_folder(join_path(store, LOGS_FOLDER))
    certificates = _files_below(folder.path, TLS_FOLDER) if has_certificates else ()
    for path in (*moment.captured, *certificates):
        copy_file(folder.path / path, partial / path)
    _copy_small(folder, target, "", FORMAT_NAME)
    for parent, _, _ in os.walk(partial, topdown=False):
        sync_path(Path(parent))


def _copy_small(folder: DataFolder, target: SystemFiles, parent: str, name: str) -> None:
    data = read_whole(folder.files, join_path(parent, name))
    if data is not None:
        write_whole(target, parent, name, data)


def _files_below(data: Path, name: str) -> Iterator[Path]:
    for path in sorted((data / name).rglob("*")):
        if path.is_file():
            yield path.relative_to(data)


def _is_catalog(log: OwnedLog) -> bool:
    return log.store.startswith(CATALOG_FOLDER)


def tell_damage(destination: Path, namespace: str | None = None) -> int:
    """Read every batch of a copy, or of one namespace in it, and tell what is wrong, as it is in the folder that was
    copied; returns how much.
    """
    copied = DataFolder(destination)
    logs = [log for log in copied.logs() if namespace is None or log.namespace == namespace]
    progress = ProgressReport(sum(copied.size_bytes(log) for log in logs), "verified")
    found = [finding for log in logs for finding in wrong_with(copied, log, progress.add)]
    for each in found:
        click.echo(f"copied as it is: {each.path} from byte {each.position}: {each.kind}: {each.text}", err=True)
    return len(found)
