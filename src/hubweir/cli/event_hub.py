"""hubweir eventhub create | list | show | update | delete, its groups, rules and publishers.

Options have the names that `az eventhubs eventhub` gives them, beside shorter ones.
"""

from __future__ import annotations

from typing import Any

import click

from hubweir.cli.authorization_rule import rules_of
from hubweir.cli.capture_options import capture_text, given_capture, takes_capture
from hubweir.cli.consumer_group import add_group, consumer_group, remove_group
from hubweir.cli.counted import counted
from hubweir.cli.durations import Duration, duration_text
from hubweir.cli.hub_display import ShownHub, hub_document, print_hubs, unless_active
from hubweir.cli.hub_settings import retention_of, takes_settings_of_a_hub
from hubweir.cli.names import HUB_FLAGS, takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, print_json, without_asking
from hubweir.cli.publisher import restore_publisher, revoke_publisher
from hubweir.client.connection import Connection
from hubweir.client.entity_info import HubInfo
from hubweir.client.management import Management
from hubweir.namespace.event_hub_description import RETENTION_DEFAULT_MS
from hubweir.namespace.resource_path import fold


@click.group(name="eventhub")
def event_hub() -> None:
    """Create, list, show, change and delete event hubs."""


for command in (
    consumer_group,
    rules_of("event hub", *HUB_FLAGS),
    add_group,
    remove_group,
    revoke_publisher,
    restore_publisher,
):
    event_hub.add_command(command)


@event_hub.command()
@takes_name("HUB")
@click.option(
    "--partitions",
    "--partition-count",
    "partitions",
    default=4,
    show_default=True,
    help="1 to 32, to 1,024 of a service with --allow-more-partitions; for ever.",
)
@click.option("--retention", type=Duration(), help="How long events are kept, such as 2d.  [default: 24h]")
@takes_settings_of_a_hub
@click.option(
    "--durability",
    type=click.Choice(["durable", "relaxed"]),
    default="durable",
    show_default=True,
    help="durable: accepted means synced to disk. relaxed: written; a power cut may take the last 50 ms.",
)
@click.option("--consumer-group", "groups", multiple=True, help="A group besides $Default; may be repeated.")
@takes_capture
@takes_target
def create(
    target: NamespaceAccess,
    name: str,
    partitions: int,
    retention: int | None,
    hours: int | None,
    durability: str,
    groups: tuple[str, ...],
    status: str | None,
    user_metadata: str | None,
    **capture: Any,
) -> None:
    """Create an event hub."""
    asked_ms = retention_of(retention, hours)
    retention_ms = RETENTION_DEFAULT_MS if asked_ms is None else asked_ms

    async def job(connection: Connection) -> HubInfo:
        return await Management(connection).create_hub(
            name,
            partition_count=partitions,
            retention_ms=retention_ms,
            durability=durability,
            consumer_groups=groups,
            status=status,
            user_metadata=user_metadata,
            capture=given_capture(capture),
        )

    hub = target.run(job)
    click.echo(f"created event hub {hub.name} with {counted(len(hub.partition_ids), 'partition')}")


@event_hub.command(name="list")
@as_json
@takes_target
def list_hubs(target: NamespaceAccess, as_json: bool) -> None:
    """List the event hubs of the namespace."""
    hubs = target.run(lambda connection: Management(connection).list_hubs())
    if as_json:
        print_json([hub_document(hub) for hub in hubs])
    elif not hubs:
        click.echo("no event hubs; create one with: hubweir eventhub create NAME")
    else:
        print_hubs(hubs)


@event_hub.command()
@takes_name("HUB")
@as_json
@takes_target
def show(target: NamespaceAccess, name: str, as_json: bool) -> None:
    """Show an event hub and what its partitions hold."""

    async def job(connection: Connection) -> ShownHub:
        management = Management(connection)
        listed = [hub for hub in await management.list_hubs() if fold(hub.name) == fold(name)]
        hub = listed[0] if listed else await management.hub(name)
        is_captured = hub.capture is not None and hub.capture["enabled"]
        captured = [await management.capture_state(name, each) for each in hub.partition_ids if is_captured]
        return ShownHub(hub, await management.partitions(name, hub.partition_ids), captured)

    shown = target.run(job)
    if as_json:
        print_json(shown.document())
    else:
        shown.print()


@event_hub.command()
@takes_name("HUB")
@click.option("--retention", type=Duration(), help="How long events are kept.")
@takes_settings_of_a_hub
@click.option("--durability", type=click.Choice(["durable", "relaxed"]), help="What accepted means.")
@click.option("--partition-count", "partitions", type=int, help="As it is: the number never changes.")
@takes_capture
@takes_target
def update(
    target: NamespaceAccess,
    name: str,
    retention: int | None,
    hours: int | None,
    durability: str | None,
    partitions: int | None,
    status: str | None,
    user_metadata: str | None,
    **capture: Any,
) -> None:
    """Change the settings of an event hub; another partition count is refused."""
    retention_ms, wanted = retention_of(retention, hours), given_capture(capture)
    if (retention_ms, durability, status, user_metadata, partitions) == (None,) * 5 and not wanted:
        raise click.UsageError(
            "nothing to change: give --retention, --durability, --status, --user-metadata or an option of capture"
        )

    async def job(connection: Connection) -> HubInfo:
        return await Management(connection).change_hub(
            name,
            retention_ms=retention_ms,
            durability=durability,
            status=status,
            user_metadata=user_metadata,
            partition_count=partitions,
            capture=wanted,
        )

    hub = target.run(job)
    kept = duration_text(hub.retention_ms or 0)
    click.echo(f"event hub {hub.name} keeps events for {kept}, {hub.durability}{unless_active(hub)}")
    if hub.capture is not None:
        click.echo(capture_text(hub.capture))


@event_hub.command()
@takes_name("HUB")
@without_asking
@takes_target
def delete(target: NamespaceAccess, name: str, yes: bool) -> None:
    """Delete an event hub and every event in it."""
    ask_before(f"delete event hub {name} with everything in it", yes=yes)
    target.run(lambda connection: Management(connection).delete_hub(name))
    click.echo(f"deleted event hub {name}")


@event_hub.command()
@takes_name("HUB")
@without_asking
@takes_target
def purge(target: NamespaceAccess, name: str, yes: bool) -> None:
    """Remove all events of an event hub; their numbers are not used again, and its readers are told."""
    ask_before(f"remove all events of event hub {name}", yes=yes)
    partitions = target.administration().purge_event_hub(name)["partitions"]
    count = sum(each["purged"] for each in partitions)
    click.echo(f"{count} event{'s' * (count != 1)} removed from {name}")
