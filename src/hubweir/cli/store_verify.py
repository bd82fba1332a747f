"""hubweir store verify: every checksum of every log, and the place of what does not fit."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from hubweir.cli.capture_mark import mark_finding
from hubweir.cli.counted import counted
from hubweir.cli.data_folder import LEFT_OVER, DataFolder, OwnedLog, takes_data
from hubweir.cli.options import as_json
from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.disk.inspection import Finding, findings, torn_tail
from hubweir.messaging_store.disk.read_only_files import read_again
from hubweir.messaging_store.disk.recovery import Recovered
from hubweir.service.data_folder import CATALOG_FOLDER

# Between two looks at a log, to tell what is torn or missing from what is being written.
SECOND_LOOK_S = 0.3
PROGRESS_EVERY_S = 1.0


@click.command()
@click.argument("log", required=False)
@takes_data
@as_json
def verify(log: str | None, data: Path, as_json: bool) -> None:
    """Check every checksum of one log, or of all, and the marks of capture beside them.

    Exit code 1 when something is damaged or missing, with its place.
    """
    folder = DataFolder(data)
    logs = [folder.find(log)] if log is not None else folder.logs()
    found: list[tuple[OwnedLog, Finding]] = []
    progress = ProgressReport(sum(folder.size_bytes(each) for each in logs), "verified")
    for each in logs:
        for finding in wrong_with(folder, each, progress.add):
            found.append((each, finding))
            if not as_json:
                click.echo(
                    f"{finding.path} from byte {finding.position}: {finding.kind}: {finding.text} ({each.entity})"
                )
    if as_json:
        wrong = [
            {
                "store": each.store,
                "log": each.log_id,
                "entity": each.entity,
                "kind": finding.kind,
                "path": finding.path,
                "position": finding.position,
                "text": finding.text,
            }
            for each, finding in found
        ]
        click.echo(json.dumps({"logs": len(logs), "verified_bytes": progress.read, "findings": wrong}, indent=2))
    else:
        sound = "everything is sound" if not found else counted(len(found), "finding")
        click.echo(f"{counted(len(logs), 'log')}, {counted(progress.read, 'byte')} of batches verified: {sound}")
    if found:
        sys.exit(1)


def wrong_with(folder: DataFolder, log: OwnedLog, on_bytes: Callable[[int], None]) -> Iterator[Finding]:
    """Everything that is wrong with one log and its mark of capture. on_bytes: called with what was read."""
    if log.state == "missing":
        why = "it was made" if log.hub is None else "the catalog names it"
        yield Finding("missing", log.folder, 0, f"{why}, and its folder is not there, or holds no segment")
        return
    if log.state == LEFT_OVER:
        yield Finding("left over", log.folder, 0, "an interrupted move left it: `hubweir store move` again removes it")
        return
    if log.entity == "unknown":
        yield Finding("missing", CATALOG_FOLDER, 0, f"no catalog names log {log.log_id}: the one that did is lost")
    try:
        found = read_again(lambda: _all_wrong_with(folder, log, on_bytes))
    except (CorruptStore, NewerFormat) as error:
        yield Finding("unreadable", log.folder, 0, str(error))
        return
    yield from found
    mark = read_again(lambda: _wrong_with_mark(folder, log))
    if mark is not None:
        yield mark


def _all_wrong_with(folder: DataFolder, log: OwnedLog, on_bytes: Callable[[int], None]) -> list[Finding]:
    recovered = folder.recovered(log)
    wrong = list(findings(folder.files, log.folder, recovered, on_bytes))
    if any(finding.kind == "torn tail" for finding in wrong) and _is_being_written(folder, log, recovered):
        return [finding for finding in wrong if finding.kind != "torn tail"]
    return wrong


def _is_being_written(folder: DataFolder, log: OwnedLog, before: Recovered) -> bool:
    """Whether the end of the log moves, or is whole at a second look: then its tail was not torn."""
    time.sleep(SECOND_LOOK_S)
    now = folder.recovered(log)
    moved = (now.segments[-1].path, now.end.position) != (before.segments[-1].path, before.end.position)
    return moved or torn_tail(folder.files, now) is None


def _wrong_with_mark(folder: DataFolder, log: OwnedLog) -> Finding | None:
    """What is wrong with the mark of capture at a second look too: capture may be switched, or begin, just now."""
    if mark_finding(folder.files, log.folder, is_captured=log.is_captured and not log.state) is None:
        return None
    time.sleep(SECOND_LOOK_S)
    now = next((each for each in folder.logs() if (each.store, each.log_id) == (log.store, log.log_id)), None)
    if now is None:
        return None
    return mark_finding(folder.files, now.folder, is_captured=now.is_captured and not now.state)


class ProgressReport:
    """How much was done of what, told on standard error while that takes long."""

    def __init__(self, total_bytes: int, done: str) -> None:
        """done: the word for it, such as `verified`."""
        self.read = 0
        self._total = total_bytes
        self._done = done
        self._told_s = time.monotonic()

    def add(self, count: int) -> None:
        self.read += count
        now_s = time.monotonic()
        if now_s - self._told_s >= PROGRESS_EVERY_S:
            self._told_s = now_s
            click.echo(f"{self.read / 2**20:.0f} of at most {self._total / 2**20:.0f} MiB {self._done}", err=True)
