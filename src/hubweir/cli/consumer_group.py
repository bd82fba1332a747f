"""hubweir eventhub consumer-group create | list | show | delete, in the words of `az eventhubs`."""

from __future__ import annotations

import json

import click

from hubweir.cli.names import in_hub, takes_name
from hubweir.cli.render import table
from hubweir.cli.session import Target, takes_target
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.resource_path import fold

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group(name="consumer-group")
def consumer_group() -> None:
    """Create, list, show and delete the consumer groups of an event hub. Nothing about one can be changed."""


@consumer_group.command()
@takes_name("GROUP", "--consumer-group-name")
@in_hub
@takes_target
def create(target: Target, name: str, hub: str) -> None:
    """Add a consumer group to an event hub."""
    target.run(lambda connection: Management(connection).create_group(hub, name))
    click.echo(f"event hub {hub} has the consumer group {name}")


@consumer_group.command(name="list")
@in_hub
@as_json
@takes_target
def list_groups(target: Target, hub: str, as_json: bool) -> None:
    """List the consumer groups of an event hub; $Default is always one."""
    groups = target.run(lambda connection: _groups(connection, hub))
    if as_json:
        click.echo(json.dumps([{"name": group} for group in groups], indent=2))
    else:
        table(("consumer group",), [(group,) for group in groups])


@consumer_group.command()
@takes_name("GROUP", "--consumer-group-name")
@in_hub
@as_json
@takes_target
def show(target: Target, name: str, hub: str, as_json: bool) -> None:
    """Show a consumer group as it was created; exit code 1 when there is none of that name."""

    async def job(connection: Connection) -> str:
        for group in await _groups(connection, hub):
            if fold(group) == fold(name):
                return group
        raise ServiceError(NOT_FOUND, f"event hub {hub} has no consumer group {name}")

    group = target.run(job)
    click.echo(json.dumps({"name": group, "eventhub": hub}, indent=2) if as_json else f"{group} of event hub {hub}")


@consumer_group.command()
@takes_name("GROUP", "--consumer-group-name")
@in_hub
@click.option("--yes", is_flag=True, help="Do not ask.")
@takes_target
def delete(target: Target, name: str, hub: str, yes: bool) -> None:
    """Remove a consumer group; its readers are detached."""
    if not yes:
        click.confirm(f"delete consumer group {name} of event hub {hub}?", abort=True)
    target.run(lambda connection: Management(connection).delete_group(hub, name))
    click.echo(f"deleted consumer group {name} of event hub {hub}")


async def _groups(connection: Connection, hub: str) -> tuple[str, ...]:
    for each in await Management(connection).list_hubs():
        if fold(each.name) == fold(hub):
            return each.consumer_groups
    raise ServiceError(NOT_FOUND, f"there is no event hub {hub}")
