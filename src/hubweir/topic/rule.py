"""A rule of a subscription as topics use it: read once, asked for many messages. Start here.

The catalog keeps rules as descriptions (namespace/subscription_rule.py); read_rule makes a Rule of one, or says what is
wrong with its texts. A Rule is a value: what changes a rule puts another in its place.

| filter            | matches                                          |
|-------------------|--------------------------------------------------|
| TrueFilter        | every message                                    |
| FalseFilter       | no message                                       |
| SqlFilter         | messages of which its condition is true          |
| CorrelationFilter | messages that have all its fields                |

("Topic filters and actions")
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    RuleFilter,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
)
from hubweir.topic.correlation_filter import SYSTEM_FIELDS, CorrelationFilter
from hubweir.topic.named_values import values_by_name
from hubweir.topic.rule_action import SqlAction, parse_action
from hubweir.topic.sql_parser import parse_filter
from hubweir.topic.sql_syntax import Predicate


@dataclass(frozen=True, slots=True)
class TrueFilter:
    """Every message."""


@dataclass(frozen=True, slots=True)
class FalseFilter:
    """No message."""


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """A condition in the language of sql_parser.py, with its parameters put in."""

    predicate: Predicate


Filter = TrueFilter | FalseFilter | SqlFilter | CorrelationFilter


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. action: None for copies that are as the message came."""

    name: str
    filter: Filter
    action: SqlAction | None = None


def read_rule(description: SubscriptionRuleDescription) -> Rule:
    """The rule that a description says.

    Raises SqlError for a text of SQL that is none, ServiceError ARGUMENT_ERROR for a value that is none of its type.
    """
    action = description.action
    return Rule(
        description.name,
        _read_filter(description.filter),
        None if action is None else _read_action(action),
    )


def _read_filter(chosen: RuleFilter) -> Filter:
    if isinstance(chosen, SqlFilterDescription):
        return SqlFilter(parse_filter(chosen.expression, values_by_name(chosen.parameters)))
    if isinstance(chosen, CorrelationFilterDescription):
        texts = {name: getattr(chosen, name) for name in SYSTEM_FIELDS}
        return CorrelationFilter(**texts, properties=values_by_name(chosen.properties))
    return FalseFilter() if isinstance(chosen, FalseFilterDescription) else TrueFilter()


def _read_action(action: SqlActionDescription) -> SqlAction:
    return parse_action(action.expression, values_by_name(action.parameters))
