"""hubweir store renew: an empty log in the place of one that is lost and will not come back."""

from __future__ import annotations

from pathlib import Path

import click

from hubweir.cli.data_folder import DataFolder, NoSuchLog, takes_data
from hubweir.messaging_store.disk.recovery import UsedNumbers
from hubweir.service.log_renewal import renew as renew_log


@click.command()
@click.argument("log")
@click.option("--sequence-number", type=click.IntRange(min=0), default=0, help="One that the log had not reached.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="One that the log had not reached.")
@takes_data
def renew(log: str, sequence_number: int, offset: int, data: Path) -> None:
    """Make an empty log in the place of a partition's log that is lost; its events are given up.

    It begins behind every sequence number and offset that was used, as the store remembers them. Where that is lost,
    too, both must be named. No service may run on the folder.
    """
    lost = DataFolder(data).find(log)
    if lost.hub is None:
        raise NoSuchLog(f"{log} is no partition: what a catalog said cannot be made anew; put it back from a backup")
    begin = renew_log(str(data), lost.store, lost.log_id, UsedNumbers(sequence_number, offset))
    click.echo(f"{lost.entity}: an empty log was made; its next sequence number is {begin.index}")
