"""hubweir broker list | stop | start | kill | stall | away | back: broker processes, and faults to order.

Processes are those of `serve --brokers N`. `away` and `back` are of messaging stores, which one process may have, too
(`serve --stores N`).
"""

from __future__ import annotations

from collections.abc import Callable

import click

from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.cli.render import table
from hubweir.client.management import Management

_COLUMNS = ("broker", "state", "pid", "stores", "away", "connections", "starts")


@click.group()
def broker() -> None:
    """List the broker processes; stop, kill and stall them, or take stores away, for tests of your own."""


@broker.command(name="list")
@as_json
@takes_target
def list_brokers(target: NamespaceAccess, as_json: bool) -> None:
    """List the broker processes, with their stores and how they are."""
    found = target.run(lambda connection: Management(connection).brokers())
    if as_json:
        print_json(found)
        return
    rows = [{**each, **{name: ", ".join(map(str, each[name])) for name in ("stores", "away")}} for each in found]
    table(_COLUMNS, [tuple(str(row[column]) for column in _COLUMNS) for row in rows])


def _orders(name: str, text: str, said: str) -> None:
    """A command that orders one fault. text: its help; said: what is printed."""

    @takes_target
    def order(target: NamespaceAccess, number: int) -> None:
        target.run(lambda connection: Management(connection).order_fault(number, name))
        click.echo(said.format(number))

    order.__doc__ = text
    command: Callable[..., None] = click.argument("number", metavar="N", type=click.IntRange(0))(order)
    broker.command(name=name)(command)


_orders("stop", "End broker process N in order; it stays away until it is started.", "broker {} is being stopped")
_orders("start", "Start broker process N again, after a stop.", "broker {} is being started")
_orders("kill", "End broker process N at once, as a crash does; it is started again.", "broker {} was killed")
_orders("stall", "Have broker process N do nothing, until it is killed for it.", "broker {} is stalled")


def _marks(name: str, text: str, said: str, *, away: bool) -> None:
    """A command that marks one store. text: its help; said: what is printed."""

    @takes_target
    def mark(target: NamespaceAccess, store: int) -> None:
        target.run(lambda connection: Management(connection).mark_store(store, away=away))
        click.echo(said.format(store))

    mark.__doc__ = text
    command: Callable[..., None] = click.argument("store", metavar="STORE", type=click.IntRange(0))(mark)
    broker.command(name=name)(command)


_marks("away", "Take messaging store STORE away, until it is brought back.", "store {} is away", away=True)
_marks("back", "Bring messaging store STORE back.", "store {} is brought back", away=False)
