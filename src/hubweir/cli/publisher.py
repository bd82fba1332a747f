"""hubweir eventhub revoke-publisher | restore-publisher: who may send under a name of its own, and who not any more."""

from __future__ import annotations

import click

from hubweir.cli.names import of_hub
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.client.management import Management


@click.command(name="revoke-publisher")
@of_hub("publisher")
@takes_target
def revoke_publisher(target: NamespaceAccess, hub: str, publisher: str) -> None:
    """End a publisher's links and take no more events from it until it is restored."""
    target.run(lambda connection: Management(connection).revoke_publisher(hub, publisher))
    click.echo(f"event hub {hub} takes nothing from the publisher {publisher} any more")


@click.command(name="restore-publisher")
@of_hub("publisher")
@takes_target
def restore_publisher(target: NamespaceAccess, hub: str, publisher: str) -> None:
    """Let a revoked publisher send again."""
    target.run(lambda connection: Management(connection).restore_publisher(hub, publisher))
    click.echo(f"event hub {hub} takes events from the publisher {publisher} again")
