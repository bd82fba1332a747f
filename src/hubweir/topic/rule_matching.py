"""One message and the rules of one subscription: which copies the subscription gets. The plain way, rule by rule.

1. All matching rules without an action make one copy together, the message as it came.
2. Each matching rule with an action makes a copy of its own, with what the action changed and the application property
   `RuleName`. Actions see the message as it came.
3. A rule whose filter or action cannot be evaluated makes no copy; it is told as a failure, for a subscription that
   dead-letters messages then. Other rules are not concerned.

topic_rules.py does this for all subscriptions of a topic at once, and is tested against this file. Without rules a
subscription gets nothing. ("Topic filters and actions")
"""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True)
class Copies:
    """What one subscription gets of one message. plain: a copy of the message as it came."""

    plain: bool
    changed: tuple[ChangedCopy, ...]
    failed: tuple[RuleFailure, ...]


def copies_of(rules: Iterable[Rule], message: FilteredMessage, new_id: NewUuid) -> Copies:
    """What the subscription that has these rules gets of a message, in the order of the rules."""
    plain = False
    changed: list[ChangedCopy] = []
    failed: list[RuleFailure] = []
    for rule in rules:
        try:
            if not matches(rule, message, new_id):
                continue
        except EvaluationFailed as error:
            failed.append(filter_failure(rule, error))
            continue
        if rule.action is None:
            plain = True
        else:
            made = copy_of(rule, message, new_id)
            (changed if isinstance(made, ChangedCopy) else failed).append(made)  # type: ignore[arg-type]
    return Copies(plain, tuple(changed), tuple(failed))


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
