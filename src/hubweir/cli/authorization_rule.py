"""hubweir authorization-rule create | list | show | update | delete | keys list | keys renew.

The same commands stand below `hubweir eventhub`, `queue`, `topic` and `namespace`, as `az` has them: there the level is
told by the place.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import click

from hubweir.cli.names import takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, print_json, without_asking
from hubweir.cli.render import table
from hubweir.client.authorization_rules import AuthorizationRules, RuleInfo, RuleKeys
from hubweir.namespace.secret import Secret

takes_rule = takes_name("RULE", "--authorization-rule-name")


@dataclass(frozen=True, slots=True)
class RuleScope:
    """Where rules are: of an entity of that noun and name, or with "" of the namespace."""

    noun: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        return f"{self.noun} {self.name}" if self.name else "the namespace"


def _scope_of(noun: str) -> Callable[[click.Context, click.Parameter, str], RuleScope]:
    return lambda context, parameter, name: RuleScope(noun, name)


on_hub = click.option(
    *("--eventhub", "--eventhub-name"),
    "level",
    default="",
    metavar="HUB",
    callback=_scope_of("event hub"),
    help="Of this event hub, not of the namespace.",
)
RIGHTS = ("Listen", "Manage", "Send")
_KEYS = {"primary": "primary", "secondary": "secondary", "primarykey": "primary", "secondarykey": "secondary"}


def _rights(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """`--rights Send --rights Listen`, or `--rights send,listen`, in the spelling of RIGHTS."""
    names = [name for text in given for name in text.replace(",", " ").split()]
    for name in names:
        if name.capitalize() not in RIGHTS:
            raise click.BadParameter(f"{name!r} is no right; use {', '.join(RIGHTS)}")
    return tuple(dict.fromkeys(name.capitalize() for name in names))


def takes_rights(command: Callable[..., None]) -> Callable[..., None]:
    text = "Listen, Send, or all three with Manage; separated by commas or spaces, or repeated."
    return click.option("--rights", multiple=True, required=True, callback=_rights, help=text)(command)


class TakesManyRights(click.Command):
    """A command that also takes `--rights Listen Send`, several words behind one option, as az does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spelt: list[str] = []
        behind = False
        for word in args:
            if behind and word.capitalize() in RIGHTS and spelt[-1] != "--rights":
                spelt.append("--rights")
            spelt.append(word)
            behind = word == "--rights" or (behind and word.capitalize() in RIGHTS)
        return super().parse_args(ctx, spelt)


@click.group(name="authorization-rule")
def authorization_rule() -> None:
    """Rules of the namespace or, with --eventhub, of one event hub: named pairs of keys, and what they allow."""


@authorization_rule.command(cls=TakesManyRights)
@takes_rule
@takes_rights
@on_hub
@takes_target
def create(target: NamespaceAccess, name: str, rights: tuple[str, ...], level: RuleScope) -> None:
    """Make a rule; the service makes its keys (`keys list` shows them)."""
    made = target.run(lambda connection: AuthorizationRules(connection).create_rule(name, rights, level.name))
    click.echo(f"created authorization rule {made.name} of {level.text} with {', '.join(made.rights)}")


@authorization_rule.command(name="list")
@on_hub
@as_json
@takes_target
def list_rules(target: NamespaceAccess, level: RuleScope, as_json: bool) -> None:
    """List the rules, without their keys."""
    rules = target.run(lambda connection: AuthorizationRules(connection).list_rules(level.name))
    if as_json:
        print_json([_document(rule) for rule in rules])
    elif not rules:
        click.echo(f"{level.text} has no authorization rules")
    else:
        table(("authorization rule", "rights"), [(rule.name, ", ".join(rule.rights)) for rule in rules])


@authorization_rule.command()
@takes_rule
@on_hub
@as_json
@takes_target
def show(target: NamespaceAccess, name: str, level: RuleScope, as_json: bool) -> None:
    """Show what a rule allows, without its keys."""
    rule = target.run(lambda connection: AuthorizationRules(connection).rule(name, level.name))
    if as_json:
        print_json(_document(rule))
    else:
        click.echo(f"{rule.name}: {', '.join(rule.rights)}")


@authorization_rule.command(cls=TakesManyRights)
@takes_rule
@takes_rights
@on_hub
@takes_target
def update(target: NamespaceAccess, name: str, rights: tuple[str, ...], level: RuleScope) -> None:
    """Give a rule other rights; its keys stay. Links that need one it lost end within 5 seconds."""
    rule = target.run(lambda connection: AuthorizationRules(connection).change_rule(name, rights, level.name))
    click.echo(f"authorization rule {rule.name} of {level.text} has {', '.join(rule.rights)}")


@authorization_rule.command()
@takes_rule
@on_hub
@without_asking
@takes_target
def delete(target: NamespaceAccess, name: str, level: RuleScope, yes: bool) -> None:
    """Delete a rule; whoever uses its keys is cut off within 5 seconds."""
    ask_before(f"delete authorization rule {name} of {level.text}", yes=yes)
    target.run(lambda connection: AuthorizationRules(connection).delete_rule(name, level.name))
    click.echo(f"deleted authorization rule {name} of {level.text}")


@authorization_rule.group()
def keys() -> None:
    """Show and renew the two keys of a rule."""


@keys.command(name="list")
@takes_rule
@on_hub
@as_json
@takes_target
def list_keys(target: NamespaceAccess, name: str, level: RuleScope, as_json: bool) -> None:
    """Print both keys of a rule and what to connect with: they are as good as the rights of the rule."""
    _print_keys(
        target, target.run(lambda connection: AuthorizationRules(connection).keys(name, level.name)), level, as_json
    )


@keys.command()
@takes_rule
@click.option(
    "--key", "which", type=click.Choice(list(_KEYS), case_sensitive=False), required=True, help="Which to replace."
)
@click.option("--key-value", "value", default="", envvar="HUBWEIR_KEY_VALUE", help="The new key; one is made if not.")
@on_hub
@as_json
@takes_target
def renew(target: NamespaceAccess, name: str, which: str, value: str, level: RuleScope, as_json: bool) -> None:
    """Replace one key of a rule and print both; links that stand on the old one end within 5 seconds."""
    renewed = target.run(
        lambda connection: AuthorizationRules(connection).renew_key(name, _KEYS[which.lower()], level.name, value=value)
    )
    _print_keys(target, renewed, level, as_json)


def rules_of(noun: str, *flags: str) -> click.Group:
    """The group for `hubweir eventhub`, `queue` or `topic`: every command wants the entity's name, behind a flag."""
    article = "an" if noun[0] in "aeiou" else "a"
    text = f"Rules of {article} {noun}: named pairs of keys, and what they allow."
    return _at_level(authorization_rule, text, partial(_wants_name, noun, flags))


def rules_of_namespaces() -> click.Group:
    """The group for `hubweir namespace`: no command takes a hub."""
    text = "Rules of the namespace: named pairs of keys, and what they allow."
    return _at_level(authorization_rule, text, _takes_no_hub)


def _at_level(group: click.Group, text: str | None, change: Callable[[click.Command], click.Command]) -> click.Group:
    made = click.Group(group.name, help=text)
    for command in group.commands.values():
        if isinstance(command, click.Group):
            made.add_command(_at_level(command, command.help, change))
        else:
            made.add_command(change(command))
    return made


def _wants_name(noun: str, flags: Sequence[str], command: click.Command) -> click.Command:
    made = copy.copy(command)
    metavar, text = ("HUB" if noun == "event hub" else noun.upper()), f"The {noun} that it belongs to."
    option = click.Option([*flags, "level"], required=True, metavar=metavar, callback=_scope_of(noun), help=text)
    made.params = [option if parameter.name == "level" else parameter for parameter in command.params]
    return made


def _takes_no_hub(command: click.Command) -> click.Command:
    made = copy.copy(command)
    made.params = [parameter for parameter in command.params if parameter.name != "level"]
    assert command.callback is not None
    made.callback = partial(command.callback, level=RuleScope())
    return made


def _print_keys(target: NamespaceAccess, rule: RuleKeys, level: RuleScope, as_json: bool) -> None:
    keys = {"primary": rule.primary, "secondary": rule.secondary}
    if as_json:
        document = {"keyName": rule.name}
        for label, key in keys.items():
            document |= {
                f"{label}Key": key.reveal(),
                f"{label}ConnectionString": _connection_string(target, rule.name, key, level),
            }
        print_json(document)
        return
    for label, key in keys.items():
        click.echo(f"{label:<10} {key.reveal() or 'none'}")
        if key:
            click.echo(f"{'':<10} {_connection_string(target, rule.name, key, level)}")


def _connection_string(target: NamespaceAccess, rule: str, key: Secret, level: RuleScope) -> str:
    """What a client pastes to use this key where target is; empty when there is no key."""
    if not key:
        return ""
    return replace(
        target.connection_string, key_name=rule, key=key, signature=None, entity_path=level.name or None
    ).format()


def _document(rule: RuleInfo) -> dict[str, object]:
    return {"name": rule.name, "rights": list(rule.rights)}
