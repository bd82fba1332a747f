"""hubweir readers: who reads which partition of which event hub, for which group, from where, and how far behind."""

from __future__ import annotations

from typing import Any

import click

from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.cli.render import table
from hubweir.namespace.resource_path import fold


@click.command()
@click.argument("hub", required=False)
@click.option("--group", help="Show the readers of this consumer group alone.")
@as_json
@takes_target
def readers(target: NamespaceAccess, hub: str | None, group: str | None, as_json: bool) -> None:
    """Show who reads event hubs: all of the namespace, or HUB.

    A reader that was given an event may not have handled it yet: how far it has come is known to its own checkpoints.
    Needs Manage.
    """
    found = target.administration().readers()
    wanted = [
        each
        for each in found["readers"]
        if (hub is None or fold(each["event_hub"]) == fold(hub))
        and (group is None or fold(each["consumer_group"]) == fold(group))
    ]
    if as_json:
        print_json({**found, "readers": wanted})
        return
    if wanted:
        heads = ("event hub", "partition", "consumer group", "reader", "from", "level", "next", "behind")
        table(heads, [_row(each) for each in wanted])
    else:
        click.echo("nobody reads now")
    for store in found["stores_without_answer"]:
        click.echo(f"store {store} did not answer: its readers are not shown", err=True)


def _row(reader: dict[str, Any]) -> tuple[str, ...]:
    level = reader["owner_level"]
    return (
        reader["event_hub"],
        reader["partition"],
        reader["consumer_group"],
        reader["name"] or reader["client"],
        reader["peer"],
        "" if level is None else str(level),
        str(reader["next_sequence_number"]),
        str(reader["behind_events"]),
    )
