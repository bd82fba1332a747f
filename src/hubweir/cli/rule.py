"""hubweir rule create | list | show | update | delete, with the options of `az servicebus topic subscription rule`."""

from __future__ import annotations

from collections.abc import Callable
from xml.sax.saxutils import escape

import click

from hubweir.cli.messaging_display import part_text, print_rules, rule_document
from hubweir.cli.names import takes_name
from hubweir.cli.namespace_access import NamespaceAccess, takes_target
from hubweir.cli.options import as_json, ask_before, print_json, without_asking
from hubweir.cli.subscription import in_topic
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.subscription_description import subscription_path

Command = Callable[..., None]

KIND = EntityType.RULE
SCHEMA = "http://www.w3.org/2001/XMLSchema"
# Options of a correlation filter, in the order of its elements, and what those are called.
CORRELATION = {
    "correlation_id": "CorrelationId",
    "message_id": "MessageId",
    "to": "To",
    "reply_to": "ReplyTo",
    "label": "Label",
    "session_id": "SessionId",
    "reply_to_session_id": "ReplyToSessionId",
    "content_type": "ContentType",
}


def of_subscription(command: Command) -> Command:
    """Give a command --topic-name and --subscription-name, which must be given; it gets one `parent`, a path."""

    def with_parent(topic: str, subscription: str, **rest: object) -> None:
        command(parent=subscription_path(topic, subscription), **rest)

    with_parent.__name__, with_parent.__doc__ = command.__name__, command.__doc__
    with_parent.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # click's
    text = "The subscription that it belongs to."
    option = click.option(
        "--subscription-name", "--subscription", "subscription", required=True, metavar="SUBSCRIPTION", help=text
    )
    return in_topic(option(with_parent))


def takes_filter(command: Command) -> Command:
    """Give a command the options of a filter and an action; it gets `chosen` and `action`, the XML of each, or ""."""

    def with_filter(sql: str | None, action: str | None, properties: tuple[str, ...], **rest: object) -> None:
        texts = {name: rest.pop(name) for name in CORRELATION}
        correlation = {name: str(text) for name, text in texts.items() if text is not None}
        command(chosen=_filter(sql, properties, correlation), action=_action(action), **rest)

    with_filter.__name__, with_filter.__doc__ = command.__name__, command.__doc__
    with_filter.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]  # click's
    given: Command = with_filter
    for name in reversed(CORRELATION):
        flag = f"--{name.replace('_', '-')}"
        given = click.option(flag, name, help=f"Messages whose {CORRELATION[name]} equals this.")(given)
    text = "Messages whose user property NAME equals VALUE; may be repeated."
    given = click.option("--correlation-filter-property", "properties", multiple=True, metavar="NAME=VALUE", help=text)(
        given
    )
    given = click.option("--action-sql-expression", "action", help="Changes the copies of this rule.")(given)
    return click.option("--filter-sql-expression", "sql", help="Messages for which this is true.")(given)


@click.group()
def rule() -> None:
    """Create, list, show, change and delete rules of subscriptions."""


@rule.command()
@takes_name("RULE")
@of_subscription
@takes_filter
@takes_target
def create(target: NamespaceAccess, name: str, parent: str, chosen: str, action: str) -> None:
    """Create a rule: an SQL filter or a correlation filter, and perhaps an action."""
    if not chosen:
        raise click.UsageError("give --filter-sql-expression, or options of a correlation filter")
    made = target.administration().create(KIND, f"{parent}/Rules/{name}", {}, chosen + action)
    click.echo(f"created rule {made.name}: {part_text(made.filter)}")


@rule.command(name="list")
@of_subscription
@as_json
@takes_target
def list_all(target: NamespaceAccess, parent: str, as_json: bool) -> None:
    """List the rules of a subscription, `$Default` first, then as they were made."""
    print_rules(list(target.administration().list(KIND, parent)), as_json=as_json)


@rule.command()
@takes_name("RULE")
@of_subscription
@as_json
@takes_target
def show(target: NamespaceAccess, name: str, parent: str, as_json: bool) -> None:
    """Show a rule."""
    found = target.administration().get(f"{parent}/Rules/{name}")
    if as_json:
        print_json(rule_document(found))
    else:
        print_rules([found], as_json=False)


@rule.command()
@takes_name("RULE")
@of_subscription
@takes_filter
@takes_target
def update(target: NamespaceAccess, name: str, parent: str, chosen: str, action: str) -> None:
    """Replace a rule's filter, its action, or both; what is not given stays.

    Options of a correlation filter say all of the new filter. An empty --action-sql-expression takes the action away.
    """
    if not chosen + action:
        raise click.UsageError("nothing to change: give options of a filter, or --action-sql-expression")
    changed = target.administration().update(KIND, f"{parent}/Rules/{name}", {}, chosen + action)
    click.echo(f"changed rule {changed.name}: {part_text(changed.filter)}")


@rule.command()
@takes_name("RULE")
@of_subscription
@without_asking
@takes_target
def delete(target: NamespaceAccess, name: str, parent: str, yes: bool) -> None:
    """Delete a rule; a subscription without rules gets no message."""
    ask_before(f"delete rule {name}", yes=yes)
    target.administration().delete(f"{parent}/Rules/{name}")
    click.echo(f"deleted rule {name}")


def _filter(sql: str | None, properties: tuple[str, ...], correlation: dict[str, str]) -> str:
    """The XML of a filter; "" where none is given. UsageError for one of each sort."""
    if sql is not None and (correlation or properties):
        raise click.UsageError("give --filter-sql-expression, or options of a correlation filter, not both")
    if sql is not None:
        return f'<Filter i:type="SqlFilter"><SqlExpression>{escape(sql)}</SqlExpression></Filter>'
    if not (correlation or properties):
        return ""
    texts = "".join(
        f"<{element}>{escape(correlation[name])}</{element}>"
        for name, element in CORRELATION.items()
        if name in correlation
    )
    pairs = "".join(_pair(text) for text in properties)
    return f'<Filter i:type="CorrelationFilter">{texts}<Properties>{pairs}</Properties></Filter>'


def _action(sql: str | None) -> str:
    """The XML of an action, which an empty text takes away; "" where none is given."""
    if sql is None:
        return ""
    if not sql:
        return '<Action i:type="EmptyRuleAction"/>'
    return f'<Action i:type="SqlRuleAction"><SqlExpression>{escape(sql)}</SqlExpression></Action>'


def _pair(text: str) -> str:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"--correlation-filter-property is {text!r}; write NAME=VALUE")
    return (
        f"<KeyValueOfstringanyType><Key>{escape(name)}</Key>"
        f'<Value i:type="d6p1:string" xmlns:d6p1="{SCHEMA}">{escape(value)}</Value></KeyValueOfstringanyType>'
    )
