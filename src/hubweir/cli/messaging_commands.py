"""The commands that queues and topics have alike: create, list, show, update, delete."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hubweir.cli.authorization_rule import rules_of
from hubweir.cli.messaging_display import print_entities, print_entity
from hubweir.cli.messaging_options import EntityOption, takes_members
from hubweir.cli.names import takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, without_asking
from hubweir.client.atom_documents import EntityType


def entity_group(noun: str, kind: EntityType, members: Sequence[EntityOption]) -> click.Group:
    """`hubweir queue` or `hubweir topic`. members: what one may be given."""
    metavar = noun.upper()
    group = click.Group(noun, help=f"Create, list, show, change and delete {noun}s.")

    @group.command(help=f"Create a {noun}.")
    @takes_name(metavar)
    @takes_members(members)
    @click.option(
        "--partitioning/--no-partitioning",
        "partitioning",
        default=True,
        show_default=True,
        help="It lies in several fragments, over all messaging stores; for ever.",
    )
    @takes_target
    def create(target: NamespaceAccess, name: str, members: dict[str, str], partitioning: bool) -> None:
        members.setdefault("EnablePartitioning", "true" if partitioning else "false")
        made = target.administration().create(kind, name, members)
        click.echo(f"created {noun} {made.name}")

    @group.command(name="list", help=f"List the {noun}s of the namespace.")
    @as_json
    @takes_target
    def list_all(target: NamespaceAccess, as_json: bool) -> None:
        print_entities(noun, list(target.administration().list(kind)), as_json=as_json)

    @group.command(help=f"Show a {noun}: its settings, how many messages it holds, and where its fragments are.")
    @takes_name(metavar)
    @as_json
    @takes_target
    def show(target: NamespaceAccess, name: str, as_json: bool) -> None:
        administration = target.administration()
        print_entity(noun, administration.get(name), administration.fragments(name), as_json=as_json)

    @group.command(help=f"Change settings of a {noun}; what is not given stays.")
    @takes_name(metavar)
    @takes_members(members)
    @takes_target
    def update(target: NamespaceAccess, name: str, members: dict[str, str]) -> None:
        check_changes(members)
        changed = target.administration().update(kind, name, members)
        click.echo(f"changed {noun} {changed.name}")

    @group.command(help=f"Delete a {noun} and every message in it.")
    @takes_name(metavar)
    @without_asking
    @takes_target
    def delete(target: NamespaceAccess, name: str, yes: bool) -> None:
        ask_before(f"delete {noun} {name} with everything in it", yes=yes)
        target.administration().delete(name)
        click.echo(f"deleted {noun} {name}")

    group.add_command(rules_of(noun, f"--{noun}-name", f"--{noun}"))
    return group


def check_changes(members: dict[str, str]) -> None:
    """UsageError when an update changes nothing."""
    if not members:
        raise click.UsageError("nothing to change: give at least one option of a setting")
