"""hubweir subscription create | list | show | update | delete, as `az servicebus topic subscription` has it."""

from __future__ import annotations

from collections.abc import Callable

import click

from hubweir.cli.messaging_commands import check_changes
from hubweir.cli.messaging_display import print_entities, print_entity
from hubweir.cli.messaging_options import SUBSCRIPTION, takes_members
from hubweir.cli.names import takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, without_asking
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.subscription_description import subscription_path

KIND = EntityType.SUBSCRIPTION


def in_topic(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --topic-name, which must be given; it gets `topic`."""
    text = "The topic that it belongs to."
    return click.option("--topic-name", "--topic", "topic", required=True, metavar="TOPIC", help=text)(command)


@click.group()
def subscription() -> None:
    """Create, list, show, change and delete subscriptions of topics."""


@subscription.command()
@takes_name("SUBSCRIPTION")
@in_topic
@takes_members(SUBSCRIPTION)
@takes_target
def create(target: NamespaceAccess, name: str, topic: str, members: dict[str, str]) -> None:
    """Create a subscription; it gets every message until it has rules of its own."""
    made = target.administration().create(KIND, subscription_path(topic, name), members)
    click.echo(f"created subscription {made.name} of topic {topic}")


@subscription.command(name="list")
@in_topic
@as_json
@takes_target
def list_all(target: NamespaceAccess, topic: str, as_json: bool) -> None:
    """List the subscriptions of a topic."""
    print_entities("subscription", list(target.administration().list(KIND, topic)), as_json=as_json)


@subscription.command()
@takes_name("SUBSCRIPTION")
@in_topic
@as_json
@takes_target
def show(target: NamespaceAccess, name: str, topic: str, as_json: bool) -> None:
    """Show a subscription: its settings, how many messages it holds, and where its fragments are."""
    administration, path = target.administration(), subscription_path(topic, name)
    print_entity("subscription", administration.get(path), administration.fragments(path), as_json=as_json)


@subscription.command()
@takes_name("SUBSCRIPTION")
@in_topic
@takes_members(SUBSCRIPTION)
@takes_target
def update(target: NamespaceAccess, name: str, topic: str, members: dict[str, str]) -> None:
    """Change settings of a subscription; what is not given stays."""
    check_changes(members)
    changed = target.administration().update(KIND, subscription_path(topic, name), members)
    click.echo(f"changed subscription {changed.name} of topic {topic}")


@subscription.command()
@takes_name("SUBSCRIPTION")
@in_topic
@without_asking
@takes_target
def delete(target: NamespaceAccess, name: str, topic: str, yes: bool) -> None:
    """Delete a subscription, its rules and every message in it."""
    ask_before(f"delete subscription {name} of topic {topic} with everything in it", yes=yes)
    target.administration().delete(subscription_path(topic, name))
    click.echo(f"deleted subscription {name} of topic {topic}")
