"""T1: the model of peek-lock holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.peek_lock import (
    COMPLETE,
    DEAD,
    DEFERRED,
    LOCK,
    OVER,
    RELEASE,
    TAKE,
    PeekLock,
    State,
    is_decided,
)
from tests.models.verdicts import finds, holds


def in_flight(state: State) -> list[int]:
    """The kinds of all operations that are not synced."""
    return [operation.kind for run in state.tail for operation in run]


# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "the time of a lock is over while a settlement is in flight": lambda before, action, after: (
        action[0] == "time_over" and is_decided(before, action[1])
    ),
    "a settlement is synced behind the end of its lock's time": lambda before, action, after: (
        action == ("sync",)
        and before.tail[0][0].kind == COMPLETE
        and before.locks[before.tail[0][0].message].is_over == 1
    ),
    "the broker is killed while a settlement is in flight": lambda before, action, after: (
        action == ("kill",) and COMPLETE in in_flight(before)
    ),
    "a power cut forgets a lock": lambda before, action, after: (
        action == ("power_cut", 0) and LOCK in in_flight(before)
    ),
    "a power cut keeps a lock and forgets its release": lambda before, action, after: (
        action == ("power_cut", 1) and in_flight(before) == [LOCK, RELEASE]
    ),
    "a power cut keeps a part of the tail": lambda before, action, after: (
        action == ("power_cut", 1) and len(before.tail) > 1
    ),
    "a token is refused while another receiver has the lock": lambda before, action, after: (
        action[0] == "settle"
        and action[3] == "lost"
        and any(receiver.token and not receiver.is_stale for receiver in after.receivers)
    ),
    "a token of the last start is refused": lambda before, action, after: (
        action[0] == "settle" and action[3] == "lost" and before.faults > 0
    ),
    "a token is refused before the timer of its lock comes": lambda before, action, after: (
        action[0] == "settle" and action[3] == "lost" and any(lock.is_over for lock in before.locks)
    ),
    "a restart dead-letters a message": lambda before, action, after: (
        action == ("kill",) and OVER in in_flight(after) and OVER not in in_flight(before)
    ),
    "a dead-lettered message is abandoned": lambda before, action, after: (
        action[0] == "settle"
        and action[2:] == ("abandon", "done")
        and before.stored[before.receivers[action[1]].message].place == DEAD
    ),
    "a deferred message is abandoned for the last time, and is to be dead-lettered": lambda before, action, after: (
        action[0] == "settle"
        and action[2:] == ("abandon", "done")
        and any(op.kind == OVER and after.stored[op.message].place == DEFERRED for run in after.tail for op in run)
    ),
    "a released message is locked again while its release is in flight": lambda before, action, after: (
        action[0] == "lock" and RELEASE in in_flight(before) and before.tail[-1][0].message == action[2]
    ),
    "a failed sync gives a settlement back to its lock": lambda before, action, after: (
        action == ("sync_fails",)
        and any(receiver.waits_for == COMPLETE and not receiver.is_stale for receiver in before.receivers)
    ),
    "a failed sync gives a settlement back, and the lock's time is over": lambda before, action, after: (
        action == ("sync_fails",) and any(lock.is_over for lock in before.locks)
    ),
    "a failed sync has a lock noted again": lambda before, action, after: (
        action == ("sync_fails",) and LOCK in in_flight(after)
    ),
    "a failed sync has a message dead-lettered again": lambda before, action, after: (
        action == ("sync_fails",) and OVER in in_flight(before) and OVER in in_flight(after)
    ),
    "a taken message is in flight when the power is cut": lambda before, action, after: (
        action[0] == "power_cut" and TAKE in in_flight(before)
    ),
}

# With one receiver nobody else has the lock meanwhile.
TWO_RECEIVERS = ("a token is refused while another receiver has the lock",)


def test_one_message_of_two_receivers_keeps_its_promises_through_two_faults() -> None:
    holds(PeekLock(messages=1, faults=2, tail_limit=3, count_limit=3, scheduled=(0,)), SITUATIONS, at_least=30_000)


def test_two_messages_of_one_receiver_keep_their_promises() -> None:
    holds(PeekLock(messages=2, receivers=1), SITUATIONS, at_least=55_000, without=TWO_RECEIVERS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_of_two_receivers_keep_their_promises() -> None:
    holds(
        PeekLock(messages=2, takes=False, count_limit=1, tail_limit=1),
        SITUATIONS,
        at_least=130_000,
        without=(
            "a power cut keeps a lock and forgets its release",
            "a released message is locked again while its release is in flight",
            "a taken message is in flight when the power is cut",
        ),
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_keep_their_promises_through_two_faults() -> None:
    holds(PeekLock(messages=2, receivers=1, faults=2), SITUATIONS, at_least=140_000, without=TWO_RECEIVERS)


@pytest.mark.parametrize(
    ("mistake", "promise"),
    [
        ("settle_after_expiry", "P7: a token that is over"),
        ("tokens_without_start", "P7: two receivers"),
        ("run_out_while_settling", "P8"),
        ("answer_before_durable", "P1, P7, P9"),
        ("deliver_unsynced", "P1, P7, P9"),
        ("take_before_durable", "P1, P7, P9"),
        ("locks_not_written", "P8"),
        ("locks_not_noted_again", "P8"),
        ("over_not_noted_again", "P8: the limit is reached"),
        ("release_counts", "P8"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, promise: str) -> None:
    finds(PeekLock(messages=1, **{mistake: True}), promise)


def test_a_message_says_what_a_peek_shows() -> None:
    model = PeekLock()
    assert model.view(model.start()) == [("not sent", 0), ("not sent", 0)]
