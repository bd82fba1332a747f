"""T1: the model of a transaction over two logs holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.transaction import COORDINATOR, DECIDED, FORGOTTEN, OPENING, PARTICIPANT, PREPARED, PREPARING, TwoLogs
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "a fragment stops between its prepare and its vote": lambda before, action, after: (
        action[0] in ("kill", "power_cut") and action[1] == PARTICIPANT and before.transactions[0].vote
    ),
    "a vote arrives behind the end of its transaction": lambda before, action, after: (
        action[0] == "vote" and action[2] == "too late"
    ),
    "the coordinator is lost with its decision in flight": lambda before, action, after: (
        action == ("power_cut", COORDINATOR, 0) and any(record.says == DECIDED for record in before.tails[COORDINATOR])
    ),
    "the coordinator's decision outlives it, unanswered": lambda before, action, after: (
        action == ("kill", COORDINATOR) and any(record.says == DECIDED for record in before.tails[COORDINATOR])
    ),
    "a participant in doubt is told of a commit": lambda before, action, after: (
        action[0] == "ask" and action[2] == "committed" and before.fragments[PARTICIPANT] == OPENING
    ),
    "a participant in doubt is told of an abort": lambda before, action, after: (
        action[0] == "ask" and action[2] == "aborted" and before.fragments[PARTICIPANT] == OPENING
    ),
    "a participant asks while the decision is in flight": lambda before, action, after: (
        action[0] == "ask" and action[2] == "wait"
    ),
    "a question ends a transaction that is being prepared": lambda before, action, after: (
        action[0] == "ask" and before.transactions[action[1]].phase == PREPARING
    ),
    "the coordinator opens and hands out its decision": lambda before, action, after: action[0] == "hand_out",
    "both have stopped": lambda before, action, after: after.fragments == (OPENING, OPENING),
    "a sync fails under a decision": lambda before, action, after: (
        action == ("sync_fails", COORDINATOR) and any(record.says == DECIDED for record in before.tails[COORDINATOR])
    ),
    "a sync fails under a prepare": lambda before, action, after: (
        action == ("sync_fails", PARTICIPANT) and any(record.says == PREPARED for record in before.tails[PARTICIPANT])
    ),
    "two transactions are in the participant's log, one in doubt": lambda before, action, after: (
        len(after.transactions) > 1 and [one.part for one in after.transactions[:2]] == [PREPARED, PREPARED]
    ),
    "a decision is forgotten": lambda before, action, after: after.transactions[0].decision == FORGOTTEN,
}


def test_two_transactions_at_once_are_whole_or_absent_through_two_faults() -> None:
    holds(TwoLogs(transactions=2, at_once=2), SITUATIONS, at_least=16_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_transactions_are_whole_or_absent_through_two_faults() -> None:
    holds(TwoLogs(transactions=3, at_once=2), SITUATIONS, at_least=730_000)


@pytest.mark.parametrize(
    ("mistake", "promise"),
    [
        ("vote_before_durable", "P12: a decided transaction is not prepared"),
        ("answer_before_durable", "P12: a transaction that was answered as committed"),
        ("abort_while_open", "P12: a decided transaction is aborted"),
        ("forget_early", "P12: a decided transaction is aborted"),
        ("ids_used_again", "P12: one log has the effects, and nothing is decided"),
        ("serve_in_doubt", "P12: one fragment shows the effects"),
        ("deadline_while_deciding", "P12: a decided transaction was answered as rolled back"),
        ("two_commits", "P12: one fragment shows the effects"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, promise: str) -> None:
    finds(TwoLogs(transactions=2, **{mistake: True}), promise)
