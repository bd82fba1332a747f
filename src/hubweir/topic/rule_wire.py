"""Rules in requests of `$management`: the maps of add-rule in, the described lists of enumerate-rules out.

| described list    | descriptor           | fields                                             |
|-------------------|----------------------|----------------------------------------------------|
| rule-description  | 0x0000_0137_0000_0004 | filter, action, name, created-at                   |
| empty-rule-action | 0x0000_0137_0000_0005 |                                                    |
| sql-rule-action   | 0x0000_0137_0000_0006 | expression, compatibility-level                    |
| sql-filter        | 0x0000_0013_7000_0006 | expression, compatibility-level                    |
| true-filter       | 0x0000_0013_7000_0007 |                                                    |
| false-filter      | 0x0000_0013_7000_0008 |                                                    |
| correlation-filter | 0x0000_0013_7000_0009 | the eight texts of CorrelationFilter, properties  |

The numbers of filters have one hexadecimal zero less than those of rules and actions: clients look them up, and know no
others. Parameters of a SQL filter have no place here; they come and go with rules in XML.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hubweir.amqp.types.values import Described, Int, Symbol, Timestamp, ULong, type_name
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    RuleFilter,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    TrueFilterDescription,
)
from hubweir.topic.correlation_filter import SYSTEM_FIELDS
from hubweir.topic.named_values import amqp_of_named, named_of_amqp

RULE_DESCRIPTION: Final = ULong(0x0000_0137_0000_0004)
EMPTY_RULE_ACTION: Final = ULong(0x0000_0137_0000_0005)
SQL_RULE_ACTION: Final = ULong(0x0000_0137_0000_0006)
SQL_FILTER: Final = ULong(0x0000_0013_7000_0006)
TRUE_FILTER: Final = ULong(0x0000_0013_7000_0007)
FALSE_FILTER: Final = ULong(0x0000_0013_7000_0008)
CORRELATION_FILTER: Final = ULong(0x0000_0013_7000_0009)
# Of the language: the only one that clients know.
COMPATIBILITY_LEVEL: Final = Int(20)


def described_rule(rule: SubscriptionRuleDescription) -> Described:
    """A rule as enumerate-rules answers it."""
    action = Described(EMPTY_RULE_ACTION, [])
    if rule.action is not None:
        action = Described(SQL_RULE_ACTION, [rule.action.expression, COMPATIBILITY_LEVEL])
    return Described(
        RULE_DESCRIPTION, [_described_filter(rule.filter), action, rule.name, Timestamp(rule.created_at_ms)]
    )


def _described_filter(chosen: RuleFilter) -> Described:
    match chosen:
        case SqlFilterDescription():
            return Described(SQL_FILTER, [chosen.expression, COMPATIBILITY_LEVEL])
        case CorrelationFilterDescription():
            texts = [getattr(chosen, name) for name in SYSTEM_FIELDS]
            properties = {each.name: amqp_of_named(each) for each in chosen.properties}
            return Described(CORRELATION_FILTER, [*texts, properties])
        case TrueFilterDescription():
            return Described(TRUE_FILTER, [])
    return Described(FALSE_FILTER, [])


def read_new_rule(name: object, description: object) -> SubscriptionRuleDescription:
    """The rule that the entries rule-name and rule-description of an add-rule request ask for.

    What its texts of SQL mean is not looked at. Raises ServiceError ARGUMENT_ERROR for an entry that is missing or of
    the wrong type.
    """
    if not isinstance(name, str):
        raise _refused(f"rule-name is a {type_name(name)}; it is a string")
    entries = _map(description, "rule-description")
    given = [kind for kind in _READ_FILTER if entries.get(kind) is not None]
    if len(given) != 1:
        raise _refused(f"rule-description has {len(given)} filters; it has one of {', '.join(_READ_FILTER)}")
    chosen = _READ_FILTER[given[0]](_map(entries[given[0]], given[0]))
    action: SqlActionDescription | None = None
    if entries.get("sql-rule-action") is not None:
        inside = _map(entries["sql-rule-action"], "sql-rule-action")
        action = SqlActionDescription(_expression(inside, "sql-rule-action"))
    return SubscriptionRuleDescription(str(name), chosen, action)


def _sql(entries: Mapping[str, object]) -> RuleFilter:
    return SqlFilterDescription(_expression(entries, "sql-filter"))


def _correlation(entries: Mapping[str, object]) -> RuleFilter:
    texts: dict[str, Any] = {}
    for field in SYSTEM_FIELDS:
        name = field.replace("_", "-")
        value = entries.get(name)
        if value is not None:
            if not isinstance(value, str):
                raise _refused(f"{name} of the correlation filter is a {type_name(value)}; it is a string")
            texts[field] = str(value)
    properties = entries.get("properties")
    named = () if properties is None else _map(properties, "properties").items()
    return CorrelationFilterDescription(properties=tuple(named_of_amqp(*each) for each in named), **texts)


def _true(entries: Mapping[str, object]) -> RuleFilter:
    return TrueFilterDescription()


def _false(entries: Mapping[str, object]) -> RuleFilter:
    return FalseFilterDescription()


_READ_FILTER: Final = {
    "sql-filter": _sql,
    "correlation-filter": _correlation,
    "true-filter": _true,
    "false-filter": _false,
}


def _expression(entries: Mapping[str, object], what: str) -> str:
    expression = entries.get("expression")
    if type(expression) is not str:
        raise _refused(f"the expression of {what} is a {type_name(expression)}; it is a string")
    return expression


def _map(value: object, what: str) -> dict[str, object]:
    """An entry that is a map with strings or symbols for keys."""
    if type(value) is not dict:
        raise _refused(f"{what} is a {type_name(value)}; it is a map")
    if any(type(key) is not str and type(key) is not Symbol for key in value):
        raise _refused(f"a key of {what} is no string")
    return {str(key): entry for key, entry in value.items()}


def _refused(why: str) -> ServiceError:
    return ServiceError(ARGUMENT_ERROR, f"The rule cannot be added: {why}.")
