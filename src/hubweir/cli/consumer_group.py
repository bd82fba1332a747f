"""hubweir eventhub consumer-group create | list | show | update | delete, in the words of `az eventhubs`.

Beside them `eventhub add-group` and `remove-group`, which do the same with two arguments and never ask.
"""

from __future__ import annotations

from dataclasses import asdict

import click

from hubweir.cli.names import in_hub, of_hub, takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, print_json, user_metadata, without_asking
from hubweir.cli.render import table
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.resource_path import fold

takes_group = takes_name("GROUP", "--consumer-group-name")


@click.group(name="consumer-group")
def consumer_group() -> None:
    """Create, list, show, change and delete the consumer groups of an event hub."""


@consumer_group.command()
@takes_group
@in_hub
@user_metadata
@takes_target
def create(target: NamespaceAccess, name: str, hub: str, user_metadata: str | None) -> None:
    """Add a consumer group to an event hub."""
    _create(target, hub, name, user_metadata)


@consumer_group.command(name="list")
@in_hub
@as_json
@takes_target
def list_groups(target: NamespaceAccess, hub: str, as_json: bool) -> None:
    """List the consumer groups of an event hub; $Default is always one."""
    groups = target.run(lambda connection: _groups(connection, hub))
    if as_json:
        print_json([{"name": group} for group in groups])
    else:
        table(("consumer group",), [(group,) for group in groups])


@consumer_group.command()
@takes_group
@in_hub
@as_json
@takes_target
def show(target: NamespaceAccess, name: str, hub: str, as_json: bool) -> None:
    """Show a consumer group; exit code 1 when there is none of that name."""
    group = target.run(lambda connection: Management(connection).group(hub, name))
    if as_json:
        print_json(asdict(group))
    else:
        metadata = f": {group.user_metadata}" if group.user_metadata else ""
        click.echo(f"{group.name} of event hub {group.event_hub}{metadata}")


@consumer_group.command()
@takes_group
@in_hub
@click.option("--user-metadata", required=True, help="A text of yours, at most 1,024 characters; empty: none.")
@takes_target
def update(target: NamespaceAccess, name: str, hub: str, user_metadata: str) -> None:
    """Give a consumer group another text; its readers are left alone."""
    target.run(lambda connection: Management(connection).change_group(hub, name, user_metadata=user_metadata))
    click.echo(f"consumer group {name} of event hub {hub} is changed")


@consumer_group.command()
@takes_group
@in_hub
@without_asking
@takes_target
def delete(target: NamespaceAccess, name: str, hub: str, yes: bool) -> None:
    """Remove a consumer group; its readers are detached."""
    ask_before(f"delete consumer group {name} of event hub {hub}", yes=yes)
    target.run(lambda connection: Management(connection).delete_group(hub, name))
    click.echo(f"deleted consumer group {name} of event hub {hub}")


@click.command(name="add-group")
@of_hub("group")
@takes_target
def add_group(target: NamespaceAccess, hub: str, group: str) -> None:
    """Add a consumer group to an event hub."""
    _create(target, hub, group)


@click.command(name="remove-group")
@of_hub("group")
@takes_target
def remove_group(target: NamespaceAccess, hub: str, group: str) -> None:
    """Remove a consumer group; its readers are detached."""
    target.run(lambda connection: Management(connection).delete_group(hub, group))
    click.echo(f"event hub {hub} has no consumer group {group} any more")


def _create(target: NamespaceAccess, hub: str, group: str, user_metadata: str | None = None) -> None:
    target.run(lambda connection: Management(connection).create_group(hub, group, user_metadata=user_metadata))
    click.echo(f"event hub {hub} has the consumer group {group}")


async def _groups(connection: Connection, hub: str) -> tuple[str, ...]:
    for each in await Management(connection).list_hubs():
        if fold(each.name) == fold(hub):
            return each.consumer_groups
    raise ServiceError(NOT_FOUND, f"there is no event hub {hub}")
