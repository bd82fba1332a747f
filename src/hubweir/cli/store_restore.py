"""hubweir store restore: makes a data folder of a backup, for a service that is stopped, or for a new one.

One namespace may also be brought into a folder that has others (service/namespace_restore.py). The backup is only read.
After a crash: a folder that is new lies under a name that ends in .partial, which no start is meant for; it gets its
own when all of it is durable.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from hubweir.cli.chosen_namespace import chosen_namespace, takes_namespace
from hubweir.cli.data_folder import DataFolder, takes_data
from hubweir.cli.store_backup import copy_folder, tell_damage
from hubweir.cli.store_verify import ProgressReport
from hubweir.service.backup import Backup, NoBackup
from hubweir.service.data_folder import FORMAT_NAME
from hubweir.service.namespace_restore import restore_namespace


@click.command()
@click.argument("source", type=click.Path(exists=True, file_okay=False, path_type=Path))
@takes_namespace("Restore")
@takes_data
def restore(source: Path, data: Path, namespace: str | None, connection_string: str | None) -> None:
    """Make the data folder --data of the backup SOURCE, where no folder is yet or an empty one.

    A service that is to go on with it is stopped first, and its folder moved away. Every batch is verified; exit code 1
    when something is damaged: then the folder is there all the same, and what is damaged in it is told.

    Of a backup of several namespaces one alone may be taken, with what `store backup` says that it has: into a folder
    of its own, where it is the default namespace, or into one that has others and is stopped. That folder may have
    nothing of its name and host names; its other namespaces stay as they are. When the command was interrupted, the
    same command again finishes.
    """
    source, data = source.resolve(), data.resolve()
    backup = Backup(source)
    if source in data.parents:
        raise NoBackup(f"{data} lies in the backup {source}, which is only read: name a folder outside of it")
    if (namespace is not None or connection_string is not None) and (data / FORMAT_NAME).exists():
        _add(backup, data, chosen_namespace(DataFolder(source), namespace, connection_string) or "")
        return
    # The copy is made beside the folder and gets its name at the end, which no file system does to a mount.
    if os.path.ismount(data):
        raise NoBackup(f"{data} is a mounted file system, which cannot be made anew: name a folder in it")
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise NoBackup(f"{data} is there already: stop its service and move the folder away, or name another one")
    if copy_folder(source, data, lambda folder: chosen_namespace(folder, namespace, connection_string)):
        sys.exit(1)
    click.echo(f"a start on it goes on from there: hubweir serve --data {data}")


def _add(backup: Backup, data: Path, namespace: str) -> None:
    """Restore a namespace into a data folder that has others."""
    found = backup.find(namespace)
    progress = ProgressReport(backup.size_bytes(found), "copied")
    restore_namespace(str(backup.path), str(data), found, progress.add, lambda: backup.copy_captured(data, namespace))
    if tell_damage(data, namespace):
        sys.exit(1)
    click.echo(f"namespace {namespace} is in {data} now, every batch verified: start its service again")
