"""T1: the model of a message session holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.session_lock import ABANDON, COMPLETE, LOSE, SET, STALE, SessionLock, kinds_of
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "the time is over while a completion is in flight": lambda before, action, after: (
        action == ("time_over",) and kinds_of(before, COMPLETE)
    ),
    "the session is lost while a completion is in flight": lambda before, action, after: (
        action == ("lose",) and kinds_of(before, COMPLETE)
    ),
    "the session is lost while its state is being set": lambda before, action, after: (
        action == ("lose",) and kinds_of(before, SET)
    ),
    "a sync fails under a completion behind the end of the time": lambda before, action, after: (
        action == ("sync_fails",) and before.is_over and kinds_of(before, COMPLETE)
    ),
    "a sync fails under a loss": lambda before, action, after: action == ("sync_fails",) and kinds_of(before, LOSE),
    "a message waits for an abandon in flight": lambda before, action, after: (
        action == ("sync",) and before.tail[0].kind == ABANDON and sum(after.stored) + 1 < len(after.stored)
    ),
    "an abandoned message leaves again while a later one is held": lambda before, action, after: (
        action == ("deliver", 0) and any(before.held)
    ),
    "a message of an earlier grant is refused to the holder": lambda before, action, after: (
        action[0] == "settle" and action[4:] == ("stale", "lost") and before.held[action[2]]
    ),
    "the session is granted to another receiver that reads its state": lambda before, action, after: (
        action[0] == "accept" and after.value and any(receiver.session == STALE for receiver in after.receivers)
    ),
    "the session is refused while it is held": lambda before, action, after: (
        action[0] == "accept" and action[2] == "refused"
    ),
    "a power cut forgets an unanswered state": lambda before, action, after: (
        action[0] == "power_cut" and kinds_of(before, SET) and after.value == before.value
    ),
}

WITHOUT_STATE = (
    "the session is lost while its state is being set",
    "the session is granted to another receiver that reads its state",
    "a power cut forgets an unanswered state",
)


def test_a_session_of_two_messages_keeps_its_promises() -> None:
    holds(SessionLock(messages=2), SITUATIONS, at_least=90_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_session_of_three_messages_keeps_its_promises() -> None:
    holds(SessionLock(messages=3), SITUATIONS, at_least=1_900_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_session_keeps_its_promises_through_two_faults_with_more_in_flight() -> None:
    holds(SessionLock(messages=2, faults=2, tail_limit=3, values=2), SITUATIONS, at_least=670_000)


@pytest.mark.parametrize(
    ("mistake", "bounds", "promise"),
    [
        ("free_before_loss_is_synced", {}, "P10: the session's state changed under another holder"),
        ("free_before_loss_is_synced", {"values": 0, "tail_limit": 3}, "P10: a message left behind a later one"),
        ("deliver_past_abandon", {"values": 0}, "P10: a message left behind a later one"),
        ("loss_forgets_locks", {"values": 0}, "P10: a message left behind a later one"),
        ("answer_state_before_durable", {}, "P10: an answered state of the session is gone"),
        ("receiver_is_enough", {"values": 0}, "P7: a message of a grant that is over was settled"),
        ("timer_alone_ends", {}, "P10: a receiver that has lost the session set its state"),
        ("timer_alone_ends", {"values": 0}, "P7: a message of a grant that is over was settled"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, bounds: dict[str, int], promise: str) -> None:
    finds(SessionLock(messages=2, **bounds, **{mistake: True}), promise)


def test_the_order_of_a_session_without_state_is_kept() -> None:
    """The bounds of the planted mistakes that concern order alone."""
    holds(SessionLock(messages=2, values=0), SITUATIONS, at_least=14_000, without=WITHOUT_STATE)
