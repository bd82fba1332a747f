"""hubweir eventhub create | list | show | update | delete, its groups, rules and publishers.

Options have the names that `az eventhubs eventhub` gives them, beside shorter ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import click

from hubweir.cli.authorization_rule import rules_of_hubs
from hubweir.cli.capture_options import capture_row, capture_text, given_capture, takes_capture
from hubweir.cli.consumer_group import consumer_group
from hubweir.cli.durations import Duration, duration_text
from hubweir.cli.names import takes_name
from hubweir.cli.render import table
from hubweir.cli.session import Target, takes_target
from hubweir.client.connection import Connection
from hubweir.client.management import HubInfo, Management, PartitionState
from hubweir.namespace.descriptions import HOUR_MS, RETENTION_DEFAULT_MS, Availability

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")

STATUSES = [each.text for each in Availability]


def takes_settings_of_a_hub(command: Callable[..., None]) -> Callable[..., None]:
    """What create and update both take, as az names it."""
    metadata = click.option("--user-metadata", help="A text of yours, at most 1,024 characters.")
    status = click.option("--status", type=click.Choice(STATUSES, case_sensitive=False), help="What it takes part in.")
    policy = click.option(
        "--cleanup-policy",
        type=click.Choice(["Delete"], case_sensitive=False),
        expose_value=False,
        help="Events go by age; there is no other policy here.",
    )
    text = "The same as --retention, in hours."
    hours = click.option("--retention-time", "--retention-time-in-hours", "hours", type=click.IntRange(1), help=text)
    return hours(policy(status(metadata(command))))


def _retention(retention_ms: int | None, hours: int | None) -> int | None:
    """Milliseconds, from the one of the two options that was given."""
    if retention_ms is not None and hours is not None and retention_ms != hours * HOUR_MS:
        raise click.UsageError("--retention and --retention-time disagree: give one of them")
    return retention_ms if hours is None else hours * HOUR_MS


@click.group(name="eventhub")
def event_hub() -> None:
    """Create, list, show and delete event hubs."""


event_hub.add_command(consumer_group)
event_hub.add_command(rules_of_hubs())


@event_hub.command()
@takes_name("HUB")
@click.option(
    "--partitions",
    "--partition-count",
    "partitions",
    default=4,
    show_default=True,
    help="1 to 32; for ever.",
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
    target: Target,
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
    retention_ms = _retention(retention, hours) or RETENTION_DEFAULT_MS

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
    click.echo(f"created event hub {hub.name} with {len(hub.partition_ids)} partitions")


@event_hub.command(name="list")
@as_json
@takes_target
def list_hubs(target: Target, as_json: bool) -> None:
    """List the event hubs of the namespace."""
    hubs = target.run(lambda connection: Management(connection).list_hubs())
    if as_json:
        click.echo(json.dumps([_document(hub) for hub in hubs], indent=2))
    elif not hubs:
        click.echo("no event hubs; create one with: hubweir eventhub create NAME")
    else:
        table(
            ("event hub", "partitions", "retention", "durability", "status", "consumer groups"),
            [
                (
                    hub.name,
                    str(len(hub.partition_ids)),
                    "" if hub.retention_ms is None else duration_text(hub.retention_ms),
                    hub.durability or "",
                    hub.status or "",
                    ", ".join(hub.consumer_groups),
                )
                for hub in hubs
            ],
        )


@event_hub.command()
@takes_name("HUB")
@as_json
@takes_target
def show(target: Target, name: str, as_json: bool) -> None:
    """Show an event hub and what its partitions hold."""

    async def job(connection: Connection) -> tuple[HubInfo, list[PartitionState], list[dict[str, Any]]]:
        management = Management(connection)
        listed = [hub for hub in await management.list_hubs() if hub.name.casefold() == name.casefold()]
        hub = listed[0] if listed else await management.hub(name)
        is_captured = hub.capture is not None and hub.capture["enabled"]
        captured = [await management.capture_state(name, each) for each in hub.partition_ids if is_captured]
        return hub, [await management.partition(name, each) for each in hub.partition_ids], captured

    hub, partitions, captured = target.run(job)
    if as_json:
        rows = [
            {
                "partition_id": partition.partition_id,
                "begin_sequence_number": partition.begin_sequence_number,
                "last_sequence_number": partition.last_sequence_number,
                "last_offset": partition.last_offset,
                "last_enqueued_time_ms": partition.last_enqueued_time_ms,
                "is_empty": partition.is_empty,
            }
            for partition in partitions
        ]
        click.echo(json.dumps({**_document(hub), "partitions": rows, "capture_states": captured}, indent=2))
        return
    kept = "" if hub.retention_ms is None else f", kept for {duration_text(hub.retention_ms)}, {hub.durability}"
    click.echo(f"event hub {hub.name}: {len(hub.partition_ids)} partitions{kept}{_unless_active(hub)}")
    click.echo(f"consumer groups: {', '.join(hub.consumer_groups) or '$Default'}")
    if hub.user_metadata:
        click.echo(f"user metadata: {hub.user_metadata}")
    if hub.revoked_publishers:
        click.echo(f"revoked publishers: {', '.join(hub.revoked_publishers)}")
    if hub.capture is not None:
        click.echo(capture_text(hub.capture))
    table(
        ("partition", "first", "last", "last offset", "last enqueued"),
        [
            (
                partition.partition_id,
                "" if partition.is_empty else str(partition.begin_sequence_number),
                "" if partition.last_sequence_number < 0 else str(partition.last_sequence_number),
                "" if partition.last_sequence_number < 0 else partition.last_offset,
                "" if partition.last_sequence_number < 0 else _time_text(partition.last_enqueued_time_ms),
            )
            for partition in partitions
        ],
    )
    if captured:
        click.echo("")
        table(
            ("captured", "files", "events behind", "bytes behind", "uncaptured", "last file", "failure"),
            [capture_row(state) for state in captured],
        )


@event_hub.command()
@takes_name("HUB")
@click.option("--retention", type=Duration(), help="How long events are kept.")
@takes_settings_of_a_hub
@click.option("--durability", type=click.Choice(["durable", "relaxed"]), help="What accepted means.")
@click.option("--partition-count", "partitions", type=int, help="As it is: the number never changes.")
@takes_capture
@takes_target
def update(
    target: Target,
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
    retention_ms, wanted = _retention(retention, hours), given_capture(capture)
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
    click.echo(f"event hub {hub.name} keeps events for {kept}, {hub.durability}{_unless_active(hub)}")
    if hub.capture is not None:
        click.echo(capture_text(hub.capture))


@event_hub.command()
@takes_name("HUB")
@click.option("--yes", is_flag=True, help="Do not ask.")
@takes_target
def delete(target: Target, name: str, yes: bool) -> None:
    """Delete an event hub and every event in it."""
    if not yes:
        click.confirm(f"delete event hub {name} with everything in it?", abort=True)
    target.run(lambda connection: Management(connection).delete_hub(name))
    click.echo(f"deleted event hub {name}")


@event_hub.command(name="add-group")
@click.argument("name")
@click.argument("group")
@takes_target
def add_group(target: Target, name: str, group: str) -> None:
    """Add a consumer group to an event hub."""
    target.run(lambda connection: Management(connection).create_group(name, group))
    click.echo(f"event hub {name} has the consumer group {group}")


@event_hub.command(name="remove-group")
@click.argument("name")
@click.argument("group")
@takes_target
def remove_group(target: Target, name: str, group: str) -> None:
    """Remove a consumer group; its readers are detached."""
    target.run(lambda connection: Management(connection).delete_group(name, group))
    click.echo(f"event hub {name} has no consumer group {group} any more")


@event_hub.command(name="revoke-publisher")
@click.argument("name")
@click.argument("publisher")
@takes_target
def revoke_publisher(target: Target, name: str, publisher: str) -> None:
    """End a publisher's links and take no more events from it until it is restored."""
    target.run(lambda connection: Management(connection).revoke_publisher(name, publisher))
    click.echo(f"event hub {name} takes nothing from the publisher {publisher} any more")


@event_hub.command(name="restore-publisher")
@click.argument("name")
@click.argument("publisher")
@takes_target
def restore_publisher(target: Target, name: str, publisher: str) -> None:
    """Let a revoked publisher send again."""
    target.run(lambda connection: Management(connection).restore_publisher(name, publisher))
    click.echo(f"event hub {name} takes events from the publisher {publisher} again")


def _unless_active(hub: HubInfo) -> str:
    return "" if hub.status in (None, Availability.ACTIVE.text) else f", {hub.status}"


def _document(hub: HubInfo) -> dict[str, object]:
    return {
        "name": hub.name,
        "created_at_ms": hub.created_at_ms,
        "partition_ids": list(hub.partition_ids),
        "consumer_groups": list(hub.consumer_groups),
        "retention_ms": hub.retention_ms,
        "durability": hub.durability,
        "revoked_publishers": list(hub.revoked_publishers),
        "status": hub.status,
        "user_metadata": hub.user_metadata,
        "updated_at_ms": hub.updated_at_ms,
        "capture": hub.capture,
    }


def _time_text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
