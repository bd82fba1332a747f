"""T1: the model of a message session holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.session_lock import (
    COMPLETE,
    MODIFY,
    OVER,
    SET,
    STALE,
    UNLOCKED,
    SessionLock,
    State,
)
from tests.models.verdicts import finds, holds


def kinds(state: State) -> list[int]:
    """Of all operations that are not synced."""
    return [operation.kind for run in state.tail for operation in run]


# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "a hold ends while a completion is in flight": lambda before, action, after: (
        action[0] in ("lose", "close") and COMPLETE in kinds(before) and after.ending
    ),
    "a hold ends while an abandon is in flight": lambda before, action, after: (
        action[0] in ("lose", "close") and MODIFY in kinds(before) and after.ending
    ),
    "a hold ends while the session's state is being set": lambda before, action, after: (
        action[0] in ("lose", "close") and SET in kinds(before) and after.ending
    ),
    "the end of a hold dead-letters a message": lambda before, action, after: (
        action[0] in ("lose", "close") and OVER not in kinds(before) and OVER in kinds(after)
    ),
    "a failed sync undoes a completion behind the end of its hold": lambda before, action, after: (
        action == ("sync_fails",) and UNLOCKED in before.locks and COMPLETE in kinds(before)
    ),
    "a failed sync dead-letters what was being settled": lambda before, action, after: (
        action == ("sync_fails",) and UNLOCKED in before.locks and OVER in kinds(after) and OVER not in kinds(before)
    ),
    "a failed sync finds a hold whose time is over": lambda before, action, after: (
        action == ("sync_fails",) and before.is_over and COMPLETE in kinds(before)
    ),
    "who asks by name waits for a session that is ending": lambda before, action, after: (
        action[0] == "accept" and action[2] == "waits"
    ),
    "a sync gives the session to who waits for it": lambda before, action, after: (
        action == ("sync",) and after.holder and not before.holder
    ),
    "who asks ends the hold of another one, and has the session": lambda before, action, after: (
        action[0] == "accept" and action[2] == "granted" and before.is_over and before.holder != action[1] + 1
    ),
    "the next session is waited for while nothing is ready": lambda before, action, after: (
        action[0] == "accept_next" and action[2] == "waits" and not before.holder and not before.ending
    ),
    "a message is behind one that is about to come back": lambda before, action, after: (
        MODIFY in kinds(after) and after.holder and not after.stored[-1].place and not after.locks[-1]
    ),
    "an abandoned message leaves again while a later one is held": lambda before, action, after: (
        action[0] == "receive" and any(before.locks[action[2] + 1 :])
    ),
    "a token of an earlier hold is refused while its message is held again": lambda before, action, after: (
        action[0] == "settle" and action[4:] == ("stale", "lost") and before.locks[action[2]] and before.holder
    ),
    "the session is given to another receiver that reads its state": lambda before, action, after: (
        action[0] == "accept" and after.holder and after.value and after.receivers[0].session == STALE
    ),
    "a power cut forgets an unanswered state": lambda before, action, after: (
        action[0] == "power_cut" and SET in kinds(before) and after.value == before.value
    ),
}

# With one message there is none behind it; without a state it is not set.
ONE_MESSAGE = (
    "a message is behind one that is about to come back",
    "an abandoned message leaves again while a later one is held",
)
WITHOUT_STATE = (
    "a hold ends while the session's state is being set",
    "a power cut forgets an unanswered state",
    "the session is given to another receiver that reads its state",
)


def test_a_session_of_one_message_keeps_its_promises() -> None:
    holds(SessionLock(messages=1, keepers=2), SITUATIONS, at_least=30_000, without=ONE_MESSAGE)


def test_a_session_of_two_messages_keeps_their_order() -> None:
    holds(SessionLock(values=0), SITUATIONS, at_least=90_000, without=WITHOUT_STATE)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_session_of_two_messages_keeps_its_promises() -> None:
    holds(SessionLock(), SITUATIONS, at_least=380_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_session_of_three_messages_keeps_their_order() -> None:
    holds(
        SessionLock(messages=3, receivers=1, values=0),
        SITUATIONS,
        at_least=300_000,
        without=(*WITHOUT_STATE, "who asks ends the hold of another one, and has the session"),
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_session_keeps_its_promises_through_two_faults_with_more_in_flight() -> None:
    holds(
        SessionLock(messages=1, keepers=2, faults=2, tail_limit=3, values=2),
        SITUATIONS,
        at_least=300_000,
        without=ONE_MESSAGE,
    )


@pytest.mark.parametrize(
    ("mistake", "bounds", "promise"),
    [
        ("free_before_decided", {}, "P10: something was decided under another hold"),
        ("deliver_past_abandon", {"values": 0}, "P10: a message left behind a later one"),
        ("next_holder_goes_on", {"values": 0}, "nothing but a fault"),
        ("answer_state_before_durable", {}, "P10: an answered state of the session is gone"),
        ("receiver_is_enough", {"values": 0}, "P7: a token of a hold that is over"),
        ("timer_alone_ends", {}, "P10: the state was set under a hold that is over"),
        ("timer_alone_ends", {"values": 0}, "P7: a token of a hold that is over"),
        ("locks_not_noted_again", {}, "P8: the count"),
        ("undone_stays", {}, "P8: the limit is reached"),
        ("name_is_enough", {}, "P10: two receivers hold the session"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, bounds: dict[str, int], promise: str) -> None:
    finds(SessionLock(**bounds, **{mistake: True}), promise)


def test_a_session_shows_its_messages_and_its_state() -> None:
    model = SessionLock()
    assert model.view(model.start()) == ([("active", 0), ("active", 0)], 0)
