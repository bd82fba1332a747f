"""A rule of a subscription: a filter, which says what messages it gets, and an action, which changes its copies.

Texts of SQL are kept as they were sent; what they mean, and whether they mean anything, is the topic's to say. Values
are kept with the type that the client gave them and come back with it. (Topic filters and actions)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum

import msgspec

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.names import DEFAULT_RULE, check_subscription_rule_name

SQL_LIMIT = 1_024  # characters of a filter, and of an action
VALUES_LIMIT = 256  # parameters of one text, or properties of one filter
VALUE_LIMIT = 32_768  # characters; of one property of a message, as the service has it


class ValueType(Enum):
    """Types of a parameter's or a property's value, as XML names them. Kept in the catalog: never change one."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    BOOLEAN = "boolean"
    DATE_TIME = "dateTime"
    DURATION = "duration"


@dataclass(frozen=True, slots=True)
class NamedValue:
    """A parameter of an SQL text, or a user property that a correlation filter asks for. text: as XML writes values."""

    name: str
    type: ValueType
    text: str


class TrueFilterDescription(msgspec.Struct, frozen=True, tag="true"):
    """Every message."""


class FalseFilterDescription(msgspec.Struct, frozen=True, tag="false"):
    """No message."""


class SqlFilterDescription(msgspec.Struct, frozen=True, tag="sql"):
    """The messages for which a text of SQL is true."""

    expression: str
    parameters: tuple[NamedValue, ...] = ()


class CorrelationFilterDescription(msgspec.Struct, frozen=True, tag="correlation", kw_only=True):
    """The messages that equal all of these that are not None, and have all of these properties."""

    correlation_id: str | None = None
    message_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    label: str | None = None
    session_id: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None
    properties: tuple[NamedValue, ...] = ()


RuleFilter = TrueFilterDescription | FalseFilterDescription | SqlFilterDescription | CorrelationFilterDescription


@dataclass(frozen=True, slots=True)
class SqlActionDescription:
    """Statements that change the copies of a rule."""

    expression: str
    parameters: tuple[NamedValue, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionRuleDescription:
    """One rule. action: None: copies are as the message was."""

    name: str = DEFAULT_RULE
    filter: RuleFilter = TrueFilterDescription()
    action: SqlActionDescription | None = None
    created_at_ms: int = 0

    @property
    def is_correlation(self) -> bool:
        """Which of the two quotas of a topic it counts for."""
        return isinstance(self.filter, CorrelationFilterDescription)


class KeptPart(Enum):
    """What stays as it is of a rule that is replaced. The value travels between processes."""

    NOTHING = ""
    FILTER = "filter"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class WantedRule:
    """A rule that a subscription is to have.

    keeps: what stays of the one of its name, in whose place it comes; None: there is none of its name yet.
    """

    rule: SubscriptionRuleDescription
    keeps: KeptPart | None = None


def check_subscription_rule(rule: SubscriptionRuleDescription) -> SubscriptionRuleDescription:
    """The rule, when its name is legal and nothing in it is too long. Raises ServiceError ARGUMENT_OUT_OF_RANGE.

    What its texts of SQL mean is not looked at.
    """
    check_subscription_rule_name(rule.name)
    for what, text in (("filter", rule.filter), ("action", rule.action)):
        if isinstance(text, SqlFilterDescription | SqlActionDescription):
            _check_length(rule, f"The {what}", len(text.expression), SQL_LIMIT, least=1)
            _check_values(rule, text.parameters)
    if isinstance(rule.filter, CorrelationFilterDescription):
        for name in rule.filter.__struct_fields__:
            value = getattr(rule.filter, name)
            if isinstance(value, str):
                _check_length(rule, f"The filter's {name}", len(value), VALUE_LIMIT)
        _check_values(rule, rule.filter.properties)
    return rule


def _check_values(rule: SubscriptionRuleDescription, values: tuple[NamedValue, ...]) -> None:
    if len(values) > VALUES_LIMIT:
        raise ServiceError(
            ARGUMENT_OUT_OF_RANGE, f"Rule '{rule.name}' has {len(values)} values; at most {VALUES_LIMIT} are allowed."
        )
    for value in values:
        for field in fields(value):
            text = getattr(value, field.name)
            if isinstance(text, str):
                _check_length(rule, f"A value's {field.name}", len(text), VALUE_LIMIT)


def _check_length(rule: SubscriptionRuleDescription, what: str, length: int, limit: int, *, least: int = 0) -> None:
    if not least <= length <= limit:
        text = f"{what} of rule '{rule.name}' has {length} characters; {least} to {limit} are allowed."
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, text)
