"""hubweir sas make | explain: shared access signatures by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import click

from hubweir.auth.shared_access_signature import SharedAccessSignature
from hubweir.cli.durations import Duration
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, print_json
from hubweir.client.connection_tokens import token_for


@click.group()
def sas() -> None:
    """Make and explain shared access signatures."""


@sas.command()
@click.argument("path", default="")
@click.option("--lifetime", type=Duration(), default="1h", show_default=True, help="How long the token is good.")
@takes_target
def make(target: NamespaceAccess, path: str, lifetime: int) -> None:
    """Print a token for PATH: a hub, HUB/publishers/NAME, HUB/consumergroups/NAME; nothing for the whole namespace.

    It is signed with the key of the connection string; a connection string that holds a token gives that one.
    """
    expires_at_s = int(time.time()) + lifetime // 1000
    resource = f"sb://{target.connection_string.host}/{path.strip('/')}"
    click.echo(token_for(target.connection_string, resource, expires_at_s))


@sas.command()
@click.argument("token")
@as_json
def explain(token: str, as_json: bool) -> None:
    """Say what TOKEN claims. Its signature is not checked: only the namespace has the key."""
    claimed = SharedAccessSignature.parse(token)
    ends = datetime.fromtimestamp(claimed.expires_at_s, UTC)
    left_s = claimed.expires_at_s - int(time.time())
    if as_json:
        uri, rule = claimed.scope.uri, claimed.rule_name
        print_json({"resource": uri, "rule": rule, "expires_at": ends.isoformat(), "expired": left_s <= 0})
        return
    click.echo(f"resource  {claimed.scope.uri}")
    click.echo(f"rule      {claimed.rule_name}")
    click.echo(f"expires   {ends.isoformat()} ({f'in {left_s} s' if left_s > 0 else f'{-left_s} s ago'})")
