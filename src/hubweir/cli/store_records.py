"""hubweir store records: the stored batches of a log, or its records one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from hubweir.cli.data_folder import DataFolder, takes_data
from hubweir.cli.options import as_json, print_json
from hubweir.cli.render import table
from hubweir.cli.stored_records import Item, batch_documents, batch_rows, record_documents, record_rows
from hubweir.messaging_store.disk.inspection import StoredBatch, batches, torn_tail


@click.command()
@click.argument("log")
@click.option("--from", "start", type=click.IntRange(min=0), default=0, help="The first sequence number.")
@click.option("--count", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many records.")
@click.option("--body", is_flag=True, help="One row a record, with its body; else one a stored batch.")
@takes_data
@as_json
def records(log: str, start: int, count: int, body: bool, data: Path, as_json: bool) -> None:
    """Show what a log holds: batches with position, sequence numbers, key or publisher, producer, sizes, checksums.

    Damaged ranges stand between the batches, with the place where they begin.
    """
    folder = DataFolder(data)
    owned = folder.find(log)
    found = folder.recovered(owned)
    items = _some(batches(folder.files, found.segments, start), start, count)
    if body:
        if as_json:
            print_json(list(record_documents(items, start, count)))
        else:
            table(*record_rows(items, start, count))
    elif as_json:
        print_json(list(batch_documents(items)))
    else:
        table(*batch_rows(items))
    torn = torn_tail(folder.files, found)
    if torn is not None and not as_json:
        click.echo(f"{torn.path} from byte {torn.position}: {torn.kind}: {torn.text}")


def _some(items: Iterator[Item], start: int, count: int) -> Iterator[Item]:
    """Batches and damaged ranges until count records from start on have come."""
    for item in items:
        yield item
        if isinstance(item, StoredBatch):
            count -= max(0, item.header.count - max(0, start - item.header.first_index))
            if count <= 0:
                return
