"""hubweir eventhub create | list | show | update | delete, and its consumer groups."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from hubweir.cli.capture_options import capture_row, capture_text, given_capture, takes_capture
from hubweir.cli.durations import Duration, duration_text
from hubweir.cli.render import table
from hubweir.cli.session import Target, takes_target
from hubweir.client.connection import Connection
from hubweir.client.management import HubInfo, Management, PartitionState

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


@click.group(name="eventhub")
def event_hub() -> None:
    """Create, list, show and delete event hubs."""


@event_hub.command()
@click.argument("name")
@click.option("--partitions", default=4, show_default=True, help="1 to 32; cannot be changed later.")
@click.option("--retention", type=Duration(), default="24h", show_default=True, help="How long events are kept.")
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
    retention: int,
    durability: str,
    groups: tuple[str, ...],
    **capture: Any,
) -> None:
    """Create an event hub."""

    async def job(connection: Connection) -> HubInfo:
        return await Management(connection).create_hub(
            name,
            partition_count=partitions,
            retention_ms=retention,
            durability=durability,
            consumer_groups=groups,
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
            ("event hub", "partitions", "retention", "durability", "consumer groups"),
            [
                (
                    hub.name,
                    str(len(hub.partition_ids)),
                    "" if hub.retention_ms is None else duration_text(hub.retention_ms),
                    hub.durability or "",
                    ", ".join(hub.consumer_groups),
                )
                for hub in hubs
            ],
        )


@event_hub.command()
@click.argument("name")
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
    click.echo(f"event hub {hub.name}: {len(hub.partition_ids)} partitions{kept}")
    click.echo(f"consumer groups: {', '.join(hub.consumer_groups) or '$Default'}")
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
@click.argument("name")
@click.option("--retention", type=Duration(), help="How long events are kept.")
@click.option("--durability", type=click.Choice(["durable", "relaxed"]), help="What accepted means.")
@takes_capture
@takes_target
def update(target: Target, name: str, retention: int | None, durability: str | None, **capture: Any) -> None:
    """Change retention, durability or capture of an event hub; its partition count cannot be changed."""
    wanted = given_capture(capture)
    if retention is None and durability is None and not wanted:
        raise click.UsageError("nothing to change: give --retention, --durability or an option of capture")
    hub = target.run(
        lambda connection: Management(connection).change_hub(
            name, retention_ms=retention, durability=durability, capture=wanted
        )
    )
    click.echo(f"event hub {hub.name} keeps events for {duration_text(hub.retention_ms or 0)}, {hub.durability}")
    if hub.capture is not None:
        click.echo(capture_text(hub.capture))


@event_hub.command()
@click.argument("name")
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


def _document(hub: HubInfo) -> dict[str, object]:
    return {
        "name": hub.name,
        "created_at_ms": hub.created_at_ms,
        "partition_ids": list(hub.partition_ids),
        "consumer_groups": list(hub.consumer_groups),
        "retention_ms": hub.retention_ms,
        "durability": hub.durability,
        "revoked_publishers": list(hub.revoked_publishers),
        "capture": hub.capture,
    }


def _time_text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
