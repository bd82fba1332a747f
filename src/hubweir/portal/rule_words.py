"""A rule of a subscription, as people read it."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
)

_SYSTEM = (
    "correlation_id",
    "message_id",
    "to",
    "reply_to",
    "label",
    "session_id",
    "reply_to_session_id",
    "content_type",
)


@dataclass(frozen=True, slots=True)
class RuleWords:
    """kind: of its filter. action: "" for none."""

    kind: str
    filter: str
    action: str


def rule_words(rule: SubscriptionRuleDescription) -> RuleWords:
    """What a rule says."""
    action = rule.action.expression if rule.action is not None else ""
    match rule.filter:
        case SqlFilterDescription(expression=expression):
            return RuleWords("SQL", expression, action)
        case CorrelationFilterDescription() as correlation:
            return RuleWords("Correlation", _equalities(correlation), action)
        case FalseFilterDescription():
            return RuleWords("Boolean", "no message", action)
    return RuleWords("Boolean", "every message", action)


def _equalities(correlation: CorrelationFilterDescription) -> str:
    asked = [(name, getattr(correlation, name)) for name in _SYSTEM]
    told = [f"{name} = '{value}'" for name, value in asked if value is not None]
    return " and ".join([*told, *(f"{each.name} = '{each.text}'" for each in correlation.properties)])
