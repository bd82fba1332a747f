"""hubweir namespace show | update | usage: throughput units, in the words of `az eventhubs namespace`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

import click

from hubweir.cli.authorization_rule import rules_of_namespaces
from hubweir.cli.hub_display import partitions_text
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.cli.render import table
from hubweir.client.connection import Connection
from hubweir.client.entity_info import NamespaceInfo
from hubweir.client.management import Management

_COLUMNS = ("units", "bytes_in", "events_in", "bytes_out", "events_out", "refusals", "delays", "inflations")


@click.group()
def namespace() -> None:
    """Show the namespace, change its throughput units, read what it used."""


namespace.add_command(rules_of_namespaces())


@namespace.command()
@as_json
@takes_target
def show(target: NamespaceAccess, as_json: bool) -> None:
    """Show the namespace: its throughput units, its profile, the hosts that lead to it."""
    _print(target.run(lambda connection: Management(connection).namespace()), as_json)


@namespace.command()
@click.option("--throughput-units", "--capacity", "units", type=int, help="Units to hold; 0: off, nothing is limited.")
@click.option("--maximum-throughput-units", "maximum", type=int, help="Auto-inflate adds units up to this; 0: none.")
@click.option("--enable-auto-inflate", "inflates", type=bool, help="false: as a maximum of 0. true needs a maximum.")
@as_json
@takes_target
def update(
    target: NamespaceAccess, units: int | None, maximum: int | None, inflates: bool | None, as_json: bool
) -> None:
    """Change the throughput units of the namespace, while it runs."""
    if inflates is False:
        if maximum:
            raise click.UsageError("--enable-auto-inflate false and a --maximum-throughput-units contradict each other")
        maximum = 0
    if inflates and maximum == 0:
        raise click.UsageError("--enable-auto-inflate true needs a --maximum-throughput-units above 0")
    if units is None and maximum is None and inflates is None:
        raise click.UsageError("nothing to change: give --throughput-units or --maximum-throughput-units")

    async def job(connection: Connection) -> NamespaceInfo:
        management = Management(connection)
        if inflates and maximum is None and not (await management.namespace()).maximum_throughput_units:
            raise click.UsageError("--enable-auto-inflate true needs a --maximum-throughput-units")
        return await management.change_namespace(throughput_units=units, maximum_throughput_units=maximum)

    _print(target.run(job), as_json)


@namespace.command()
@click.option("--hours", default=24, show_default=True, type=click.IntRange(1, 768), help="How many of the last hours.")
@as_json
@takes_target
def usage(target: NamespaceAccess, hours: int, as_json: bool) -> None:
    """Show what was used in each hour of the clock (UTC); units are billed by the hour."""
    rows = target.run(lambda connection: Management(connection).namespace_usage())[-hours:]
    unit_hours = sum(row["units"] for row in rows)
    if as_json:
        print_json({"unit_hours": unit_hours, "hours": rows})
        return
    table(
        ("hour", *(column.replace("_", " ") for column in _COLUMNS)),
        [(_hour(row["hour_ms"]), *(str(row[column]) for column in _COLUMNS)) for row in rows],
    )
    click.echo(f"{unit_hours} unit-hours")


def _print(info: NamespaceInfo, as_json: bool) -> None:
    if as_json:
        print_json(asdict(info))
        return
    units = "off" if not info.throughput_units else str(info.throughput_units)
    inflate = f", auto-inflate to {info.maximum_throughput_units}" if info.maximum_throughput_units else ""
    click.echo(f"namespace {info.name}: throughput units {units}{inflate}, {partitions_text(info.partition_count)}")
    click.echo(f"quotas of profile {info.profile}; hosts: {', '.join(info.host_names)}")
    if info.warning:
        click.echo(f"warning: {info.warning}", err=True)


def _hour(hour_ms: int) -> str:
    return datetime.fromtimestamp(hour_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
