"""hubweir store move: one log goes from its messaging store to another one, whole."""

from __future__ import annotations

import re
from pathlib import Path

import click

from hubweir.cli.counted import counted
from hubweir.cli.data_folder import DataFolder, NoSuchLog, takes_data
from hubweir.cli.store_verify import ProgressReport
from hubweir.service.data_folder import STORE_PREFIX
from hubweir.service.log_move import move as move_log


class StoreNumber(click.ParamType[int]):
    """A messaging store as `store list` names it, `store-1`, or its number alone."""

    name = "store"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = re.fullmatch(rf"(?:{STORE_PREFIX})?([0-9]{{1,4}})", str(value))
        if found is None:
            self.fail(f"{value!r} is no store: name one as `hubweir store list` does, such as {STORE_PREFIX}1")
        return int(found[1])


@click.command()
@click.argument("log")
@click.option("--to", "target", type=StoreNumber(), required=True, help="The store that takes it, such as store-1.")
@takes_data
def move(log: str, target: int, data: Path) -> None:
    """Move the log of a partition, or of a fragment, to another messaging store of the data folder.

    Everything that belongs to it goes along, and the catalog says where it is. No service may run on the folder. When
    the command was interrupted, the log is served from one of the two stores, whole; the same command again finishes.
    """
    folder = DataFolder(data)
    found = folder.find(log)
    if found.hub is None:
        raise NoSuchLog(f"{log} is no log of a partition, a queue or a topic that a catalog names: it is not moved")
    progress = ProgressReport(folder.size_bytes(found), "copied")
    moved = move_log(str(data), found.log_id, target, progress.add)
    if moved.is_finished:
        click.echo(f"{found.entity}: lay in {moved.target} already; what was left in {moved.source} is removed")
    else:
        click.echo(
            f"{found.entity}: moved from {moved.source} to {moved.target}, {counted(progress.read, 'byte')} of segments"
        )
