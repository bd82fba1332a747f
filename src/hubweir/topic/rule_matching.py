"""One message and one rule: whether it matches, the copy that it makes with an action, and why it makes none.

1. Matching rules of a subscription that have no action make one copy together, the message as it came.
2. Each matching rule with an action makes a copy of its own, with what the action changed and the application property
   `RuleName`. Actions see the message as it came.
3. A rule whose filter or action cannot be evaluated makes no copy; it is told as a failure, for a subscription that
   dead-letters messages then. Other rules are not concerned.

topic_rules.py goes by this for all subscriptions of a topic at once; tests/plain_copies.py does so rule by rule, and is
what it is tested against. Without rules a subscription gets nothing. ("Topic filters and actions")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hubweir.topic.correlation_filter import CorrelationFilter
from hubweir.topic.filtered_message import FilteredMessage
from hubweir.topic.rule import Rule, SqlFilter, TrueFilter
from hubweir.topic.rule_action import MessageChanges, run_action
from hubweir.topic.sql_evaluate import Evaluation, NewUuid
from hubweir.topic.sql_values import EvaluationFailed

RULE_NAME_PROPERTY: Final = "RuleName"
# Reasons of a dead letter, as receivers see them.
FILTER_FAILED: Final = "FilterException"
ACTION_FAILED: Final = "RuleActionException"


@dataclass(frozen=True, slots=True)
class ChangedCopy:
    """The copy of a rule with an action. changes: with the property RuleName."""

    rule_name: str
    changes: MessageChanges


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A rule that could not be evaluated. reason, description: of the dead letter that the message may become."""

    rule_name: str
    reason: str
    description: str


def matches(rule: Rule, message: FilteredMessage, new_id: NewUuid) -> bool:
    """Whether the rule's filter is true of the message, not false and not unknown. Raises EvaluationFailed."""
    chosen = rule.filter
    if isinstance(chosen, SqlFilter):
        return Evaluation(message, new_id).truth(chosen.predicate) is True
    if isinstance(chosen, CorrelationFilter):
        return chosen.matches(message)
    return isinstance(chosen, TrueFilter)


def filter_failure(rule: Rule, error: EvaluationFailed) -> RuleFailure:
    """What is told of a rule whose filter cannot be evaluated."""
    return RuleFailure(rule.name, FILTER_FAILED, f"The filter of the rule '{rule.name}' failed: {error}.")


def action_failure(rule_name: str, error: Exception) -> RuleFailure:
    """What is told of a rule whose action cannot be done on a message."""
    return RuleFailure(rule_name, ACTION_FAILED, f"The action of the rule '{rule_name}' failed: {error}.")


def copy_of(rule: Rule, message: FilteredMessage, new_id: NewUuid) -> ChangedCopy | RuleFailure:
    """The copy that a matching rule makes with its action, or why it makes none."""
    assert rule.action is not None  # callers look
    try:
        changes = run_action(rule.action, message, new_id)
    except EvaluationFailed as error:
        return action_failure(rule.name, error)
    named = {**changes.application_properties, RULE_NAME_PROPERTY: rule.name}
    return ChangedCopy(rule.name, MessageChanges(named, changes.system_properties))
