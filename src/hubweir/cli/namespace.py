"""hubweir namespace create | list | show | update | usage | restore | delete, in the words of `az eventhubs namespace`.

Commands that name a namespace ask the service, and need a key of its default namespace; the others are for the
namespace of the connection string.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import click

from hubweir.cli.authorization_rule import rules_of_namespaces
from hubweir.cli.counted import counted
from hubweir.cli.names import takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, print_json, without_asking
from hubweir.cli.price_list import BillLine, PriceList
from hubweir.cli.render import table
from hubweir.cli.store_verify import ProgressReport
from hubweir.client.connection import Connection
from hubweir.client.entity_info import NamespaceInfo
from hubweir.client.management import Management
from hubweir.namespace.secret import Secret

RESTORE_LOOK_S = 0.3
_COLUMNS = ("units", "bytes_in", "events_in", "bytes_out", "events_out", "refusals", "delays", "inflations")


@click.group()
def namespace() -> None:
    """Make, list, restore and delete namespaces; show one, change its throughput units, read what it used."""


namespace.add_command(rules_of_namespaces())


@namespace.command()
@takes_name("NAME")
@click.option(
    "--hostname", "hostnames", multiple=True, metavar="HOST", help="A host name that leads to it; repeatable."
)
@click.option("--profile", default="", help="Whose quotas hold; else those of the default namespace.")
@click.option("--key", default="", help="Primary key of its root rule; else one is drawn.")
@click.option("--throughput-units", "--capacity", "units", type=int, default=0, help="Units to hold; 0: off.")
@click.option("--maximum-throughput-units", "maximum", type=int, default=0, help="Auto-inflate adds up to this.")
@as_json
@takes_target
def create(
    target: NamespaceAccess,
    name: str,
    hostnames: tuple[str, ...],
    profile: str,
    key: str,
    units: int,
    maximum: int,
    as_json: bool,
) -> None:
    """Make a namespace while the service runs, and print the connection string of its root rule."""
    made = target.administration().create_namespace(
        name,
        hostnames=list(hostnames),
        profile=profile,
        key=key,
        throughput_units=units,
        maximum_throughput_units=maximum,
    )
    own = replace(target.connection_string, key_name=made["key_name"], key=Secret(made["key"]), entity_path=None)
    if as_json:
        print_json(made | {"connection_string": own.format()})
        return
    click.echo(f"created namespace {made['name']}, profile {made['profile']}")
    click.echo(own.format())


@namespace.command("list")
@as_json
@takes_target
def list_all(target: NamespaceAccess, as_json: bool) -> None:
    """List the namespaces of the service, the default one first."""
    found = target.administration().namespaces()
    if as_json:
        print_json(found)
        return
    table(
        ("name", "profile", "units", "event hubs", "queues", "topics", "hosts"),
        [
            (
                each["name"],
                each["profile"],
                str(each["throughput_units"] or "off"),
                *(str(each[kind]) for kind in ("event_hubs", "queues", "topics")),
                ", ".join(each["host_names"]),
            )
            for each in found
        ],
    )


@namespace.command()
@click.argument("name", required=False)
@as_json
@takes_target
def show(target: NamespaceAccess, name: str | None, as_json: bool) -> None:
    """Show the namespace, or the one of that NAME: its throughput units, its profile, the hosts that lead to it."""
    if name is None:
        _print(target.run(lambda connection: Management(connection).namespace()), as_json)
        return
    found = target.administration().find_namespace(name)
    if as_json:
        print_json(found)
        return
    counts = (f"{found[kind]} {kind.replace('_', ' ')}" for kind in ("event_hubs", "queues", "topics"))
    units = _units(found["throughput_units"], found["maximum_throughput_units"])
    click.echo(f"namespace {found['name']}: throughput units {units}, {', '.join(counts)}")
    click.echo(f"quotas of profile {found['profile']}; hosts: {', '.join(found['host_names'])}")


@namespace.command()
@takes_name("NAME")
@without_asking
@takes_target
def delete(target: NamespaceAccess, name: str, yes: bool) -> None:
    """Delete a namespace with all that it holds, while the service runs."""
    ask_before(f"delete the namespace {name} with all that it holds", yes=yes)
    target.administration().delete_namespace(name)
    click.echo(f"deleted namespace {name}")


@namespace.command()
@takes_name("NAME")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="BACKUP",
    type=click.Path(path_type=Path),
    help="A folder that `hubweir store backup` made, on the machine of the service.",
)
@takes_target
def restore(target: NamespaceAccess, name: str, source: Path) -> None:
    """Restore the namespace NAME of a backup, with all that it holds, while the service runs.

    The service copies it into its data folder, and goes on with that when this command is interrupted. It may have
    nothing of that name and its host names: delete a namespace first that is to become what it was. A restore that the
    end of the service interrupts leaves nothing that is served; the same command again finishes.
    """
    administration = target.administration()
    state = administration.restore_namespace(name, str(source.absolute()))
    progress = ProgressReport(state["size_bytes"], "copied")
    while not state["is_over"]:
        time.sleep(RESTORE_LOOK_S)
        state = administration.restore_state(name)
        progress.add(state["copied_bytes"] - progress.read)
    if state["problem"]:
        raise click.ClickException(state["problem"])
    click.echo(f"restored namespace {name}: it is served")


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
@click.option("--month", metavar="YYYY-MM", help="The hours of this month (UTC), in place of the last ones.")
@click.option(
    "--prices",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML file of prices: what these hours cost, in place of a table of them.",
)
@as_json
@takes_target
def usage(target: NamespaceAccess, hours: int, month: str | None, prices: Path | None, as_json: bool) -> None:
    """Show what was used in each hour of the clock (UTC), or what it costs; units are billed by the hour."""
    known = None if prices is None else PriceList.read(prices)
    rows = target.run(lambda connection: Management(connection).namespace_usage())
    rows = rows[-hours:] if month is None else _in_month(rows, month)
    unit_hours = sum(row["units"] for row in rows)
    bill = [] if known is None else known.bill(rows)
    if as_json:
        document: dict[str, object] = {"unit_hours": unit_hours, "hours": rows}
        if known is not None:
            document["bill"] = [{name: str(value) for name, value in asdict(line).items()} for line in bill]
            document |= {"currency": known.currency, "total": str(_total(bill))}
        print_json(document)
        return
    if known is not None:
        _print_bill(bill, known.currency)
        return
    table(
        ("hour", *(column.replace("_", " ") for column in _COLUMNS)),
        [(_hour(row["hour_ms"]), *(str(row[column]) for column in _COLUMNS)) for row in rows],
    )
    click.echo(f"{unit_hours} unit-hours")


def _in_month(rows: Sequence[dict[str, int]], month: str) -> list[dict[str, int]]:
    try:
        datetime.strptime(month, "%Y-%m")
    except ValueError:
        raise click.UsageError(f"--month is {month!r}; write a year and a month, such as 2026-11") from None
    return [row for row in rows if _hour(row["hour_ms"]).startswith(month)]


def _print_bill(bill: Sequence[BillLine], currency: str) -> None:
    table(
        ("what", "quantity", "price", "amount"),
        [(line.what, f"{line.quantity:f}", f"{line.price:f}", f"{line.amount:f}") for line in bill],
    )
    click.echo(f"total {_total(bill):f} {currency}".rstrip())


def _total(bill: Sequence[BillLine]) -> Decimal:
    return sum((line.amount for line in bill), Decimal("0.00"))


def _print(info: NamespaceInfo, as_json: bool) -> None:
    if as_json:
        print_json(asdict(info))
        return
    units = _units(info.throughput_units, info.maximum_throughput_units)
    click.echo(f"namespace {info.name}: throughput units {units}, {counted(info.partition_count, 'partition')}")
    click.echo(f"quotas of profile {info.profile}; hosts: {', '.join(info.host_names)}")
    if info.warning:
        click.echo(f"warning: {info.warning}", err=True)


def _units(held: int | None, maximum: int | None) -> str:
    return f"{held or 'off'}" + (f", auto-inflate to {maximum}" if maximum else "")


def _hour(hour_ms: int) -> str:
    return datetime.fromtimestamp(hour_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
