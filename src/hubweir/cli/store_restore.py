"""hubweir store restore: makes a data folder of a backup, for a service that is stopped, or for a new one.

The backup is only read. After a crash: the folder lies under a name that ends in .partial, which no start is meant for;
it gets its own when all of it is durable.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from hubweir.cli.chosen_namespace import chosen_namespace, takes_namespace
from hubweir.cli.data_folder import takes_data
from hubweir.cli.store_backup import PARTIAL, NoBackup, copy_folder
from hubweir.service.data_folder import FORMAT_NAME


@click.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@takes_namespace("Restore")
@takes_data
def restore(source: Path, data: Path, namespace: str | None, connection_string: str | None) -> None:
    """Make the data folder --data of the backup SOURCE, where no folder is yet or an empty one.

    A service that is to go on with it is stopped first, and its folder moved away. Every batch is verified; exit code 1
    when something is damaged: then the folder is there all the same, and what is damaged in it is told.

    Of a backup of several namespaces one alone may be taken, with what `store backup` says that it has; a start on the
    folder serves it as its default namespace.
    """
    source, data = source.resolve(), data.resolve()
    if source.name.endswith(PARTIAL):
        raise NoBackup(f"{source} is a backup that did not end: take one that did")
    if not (source / FORMAT_NAME).exists():
        raise NoBackup(f"{source} is no backup: it has no file {FORMAT_NAME}")
    if source in data.parents:
        raise NoBackup(f"{data} lies in the backup {source}, which is only read: name a folder outside of it")
    # The copy is made beside the folder and gets its name at the end, which no file system does to a mount.
    if os.path.ismount(data):
        raise NoBackup(f"{data} is a mounted file system, which cannot be made anew: name a folder in it")
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise NoBackup(f"{data} is there already: stop its service and move the folder away, or name another one")
    if copy_folder(source, data, lambda folder: chosen_namespace(folder, namespace, connection_string)):
        sys.exit(1)
    click.echo(f"a start on it goes on from there: hubweir serve --data {data}")
