"""hubweir eventhub revoke-publisher | restore-publisher: who may send under a name of its own, and who not any more."""

from __future__ import annotations

import click

from hubweir.cli.session import Target, takes_target
from hubweir.client.management import Management


@click.command(name="revoke-publisher")
@click.argument("name")
@click.argument("publisher")
@takes_target
def revoke_publisher(target: Target, name: str, publisher: str) -> None:
    """End a publisher's links and take no more events from it until it is restored."""
    target.run(lambda connection: Management(connection).revoke_publisher(name, publisher))
    click.echo(f"event hub {name} takes nothing from the publisher {publisher} any more")


@click.command(name="restore-publisher")
@click.argument("name")
@click.argument("publisher")
@takes_target
def restore_publisher(target: Target, name: str, publisher: str) -> None:
    """Let a revoked publisher send again."""
    target.run(lambda connection: Management(connection).restore_publisher(name, publisher))
    click.echo(f"event hub {name} takes events from the publisher {publisher} again")
