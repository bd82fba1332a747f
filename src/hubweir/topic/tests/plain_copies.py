"""Which copies one subscription gets of a message: the plain way, rule by rule.

1. All matching rules without an action make one copy together, the message as it came.
2. Each matching rule with an action makes a copy of its own (rule_matching.py). Actions see the message as it came.
3. A rule whose filter or action cannot be evaluated makes no copy, and is told as a failure. Other rules are not
   concerned.

topic_rules.py does this for all subscriptions of a topic at once, and is tested against this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hubweir.topic.filtered_message import FilteredMessage
from hubweir.topic.rule import Rule
from hubweir.topic.rule_matching import ChangedCopy, RuleFailure, copy_of, filter_failure, matches
from hubweir.topic.sql_evaluate import NewUuid
from hubweir.topic.sql_values import EvaluationFailed


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
