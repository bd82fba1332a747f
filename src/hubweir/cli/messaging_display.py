"""Prints queues, topics, subscriptions and rules: lines and rows for people, documents for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from hubweir.cli.options import print_json
from hubweir.cli.render import table
from hubweir.client.atom_documents import EntityInfo, RulePart
from hubweir.config.authorization_documents import rights_words

_COUNTS = ("ActiveMessageCount", "DeadLetterMessageCount", "ScheduledMessageCount")


def print_entities(kind: str, entities: Sequence[EntityInfo], *, as_json: bool) -> None:
    """One row an entity. kind: as headings have it."""
    if as_json:
        print_json([entity_document(entity) for entity in entities])
    elif not entities:
        click.echo(f"no {kind}s")
    else:
        headings = (kind, "status", "active", "dead letters", "scheduled")
        table(headings, [(entity.name, entity.members.get("Status", ""), *_counts(entity)) for entity in entities])


def print_entity(kind: str, entity: EntityInfo, fragments: Sequence[EntityInfo], *, as_json: bool) -> None:
    """All that an entity is, a line a setting, then where its fragments are, a line each."""
    if as_json:
        print_json({**entity_document(entity), "Fragments": [_fragment_document(each) for each in fragments]})
        return
    click.echo(f"{kind} {entity.name}")
    table(("setting", "value"), [*entity.members.items(), *((name, str(n)) for name, n in entity.counts.items())])
    for rule in entity.rules:
        click.echo(f"authorization rule {rule.name}: {', '.join(rights_words(rule.rights))}")
    if fragments:
        print_fragments(fragments)


def print_fragments(fragments: Sequence[EntityInfo]) -> None:
    """One row a fragment. One that does not answer has no counts, and says why."""
    headings = ("fragment", "broker", "store", "state", "active", "dead letters", "scheduled", "bytes")
    table(headings, [_fragment_row(each.members, each) for each in fragments])
    for each in fragments:
        if "Reason" in each.members:
            click.echo(f"fragment {each.name}: {each.members['Reason']}")


def _fragment_row(members: Mapping[str, str], fragment: EntityInfo) -> tuple[str, ...]:
    counts = _counts(fragment) if fragment.counts else ("", "", "")
    where = members["Broker"], f"store-{members['Store']}"
    return (fragment.name, *where, members["Status"], *counts, members.get("SizeInBytes", ""))


def _fragment_document(fragment: EntityInfo) -> dict[str, Any]:
    return {**fragment.members, **({"CountDetails": dict(fragment.counts)} if fragment.counts else {})}


def print_rules(rules: Sequence[EntityInfo], *, as_json: bool) -> None:
    """One row a rule."""
    if as_json:
        print_json([rule_document(rule) for rule in rules])
    elif not rules:
        click.echo("no rules: the subscription gets no message")
    else:
        table(("rule", "filter", "action"), [(rule.name, part_text(rule.filter), _action(rule)) for rule in rules])


def entity_document(entity: EntityInfo) -> dict[str, Any]:
    """An entity for programs, in the service's words."""
    document: dict[str, Any] = {"Name": entity.name, **entity.members}
    if entity.counts:
        document["CountDetails"] = dict(entity.counts)
    if entity.rules:
        document["AuthorizationRules"] = [
            {"KeyName": rule.name, "Rights": rights_words(rule.rights)} for rule in entity.rules
        ]
    return document


def rule_document(rule: EntityInfo) -> dict[str, Any]:
    """A rule for programs."""
    found = rule.filter
    document: dict[str, Any] = {"Name": rule.name, "CreatedAt": rule.members.get("CreatedAt", "")}
    if found is not None:
        document["Filter"] = {"Type": found.kind, **found.members, "Values": dict(found.values)}
    if rule.action is not None:
        document["Action"] = {"SqlExpression": rule.action.members.get("SqlExpression", "")}
    return document


def part_text(part: RulePart | None) -> str:
    """A filter in one line."""
    if part is None:
        return ""
    if part.kind != "CorrelationFilter":
        return part.members.get("SqlExpression", "")
    return ", ".join(f"{name} = {text}" for name, text in (*part.members.items(), *part.values.items()))


def _action(rule: EntityInfo) -> str:
    return "" if rule.action is None else rule.action.members.get("SqlExpression", "")


def _counts(entity: EntityInfo) -> tuple[str, ...]:
    return tuple(str(entity.counts.get(name, 0)) for name in _COUNTS)
