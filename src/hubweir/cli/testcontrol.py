"""hubweir test-control show | forward | faults: the clock of a development service, and faults to order."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from hubweir.cli.durations import Duration, duration_text
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.client.namespace_control import NamespaceControl

_RATES = ("server_busy", "delay", "detach", "drop")
_RATE = click.FloatRange(0, 1)


@click.group(name="test-control")
def test_control() -> None:
    """Set the clock forward and order faults, in a namespace of the development profile."""


@test_control.command()
@as_json
@takes_target
def show(target: NamespaceAccess, as_json: bool) -> None:
    """Show the service's clock, and the faults that strike now."""
    _print(_control(target).state(), as_json=as_json)


@test_control.command()
@click.argument("duration", type=Duration())
@click.option("--end-tokens", is_flag=True, help="End the tokens of clients that end by then, too.")
@as_json
@takes_target
def forward(target: NamespaceAccess, duration: int, end_tokens: bool, as_json: bool) -> None:
    """Set the clock forward, by 90s, 15m, 24h or 7d: what is due by then happens now."""
    _print(_control(target).forward_clock(duration, ends_tokens=end_tokens), as_json=as_json)


@test_control.command()
@click.option("--server-busy", type=_RATE, default=0.0, help="Refuse so many sends as server-busy, from 0 to 1.")
@click.option("--delay", type=_RATE, default=0.0, help="Hold back so many answers to sends and settlements.")
@click.option("--delay-by", type=Duration(), default="1s", show_default=True, help="How long they are held back.")
@click.option("--detach", type=_RATE, default=0.0, help="Detach a link at so many of its steps.")
@click.option("--drop", type=_RATE, default=0.0, help="Drop a connection at so many steps of its links.")
@click.option("--seed", type=click.IntRange(0), help="Draw as another run did.  [default: a new one]")
@as_json
@takes_target
def faults(target: NamespaceAccess, delay_by: int, seed: int | None, as_json: bool, **rates: float) -> None:
    """Let faults strike by their rates, in the place of those before; without any option none strikes."""
    control = _control(target)
    is_any = any(rates.values())
    state = control.order_faults(**rates, delay_ms=delay_by, seed=seed) if is_any else control.end_faults()
    _print(state, as_json=as_json)


def _control(target: NamespaceAccess) -> NamespaceControl:
    return NamespaceControl(target.administration())


def _print(state: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(state)
        return
    clock, faults = state["clock"], state["faults"]
    now = datetime.fromtimestamp(clock["now_ms"] / 1000, UTC)
    click.echo(f"clock: {now:%Y-%m-%d %H:%M:%S} UTC, {duration_text(clock['ahead_ms'])} ahead")
    if faults is None:
        click.echo("faults: none")
        return
    for name in _RATES:
        if faults[name]:
            by = f", by {duration_text(faults['delay_ms'])}" if name == "delay" else ""
            struck = faults["struck"].get(name, 0)
            click.echo(f"fault {name.replace('_', '-')}: rate {faults[name]:g}{by}, struck {struck}")
    click.echo(f"seed: {faults['seed']}")
