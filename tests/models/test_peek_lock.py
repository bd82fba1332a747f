"""T1: the model of peek-lock holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.peek_lock import ABANDON, COMPLETE, DEAD, DEFERRED, LOCK, TAKE, PeekLock, is_decided
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "the time of a lock is over while a settlement is in flight": lambda before, action, after: (
        action[0] == "time_over" and is_decided(before, action[1])
    ),
    "a settlement is synced behind the end of its lock's time": lambda before, action, after: (
        action == ("sync",) and before.tail[0].kind == COMPLETE and before.locks[before.tail[0].message].is_over == 1
    ),
    "the broker is killed while a settlement is in flight": lambda before, action, after: (
        action == ("kill",) and any(operation.kind == COMPLETE for operation in before.tail)
    ),
    "a power cut forgets a lock": lambda before, action, after: (
        action == ("power_cut", 0) and any(operation.kind == LOCK for operation in before.tail)
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
    "a restart dead-letters a message": lambda before, action, after: (
        action == ("kill",) and before.stored != after.stored and after.stored[0].place == DEAD
    ),
    "a dead-lettered message is abandoned": lambda before, action, after: (
        action == ("sync",) and before.tail[0].kind == ABANDON and before.stored[before.tail[0].message].place == DEAD
    ),
    "a deferred message is abandoned": lambda before, action, after: (
        action == ("sync",)
        and before.tail[0].kind == ABANDON
        and after.stored[before.tail[0].message].place == DEFERRED
    ),
    "a failed sync gives a settlement back to its lock": lambda before, action, after: (
        action == ("sync_fails",)
        and any(receiver.waits_for == COMPLETE and not receiver.is_stale for receiver in before.receivers)
    ),
    "a failed sync has a lock noted again": lambda before, action, after: action == ("sync_fails",) and after.tail,
    "a taken message is in flight when the power is cut": lambda before, action, after: (
        action[0] == "power_cut" and any(operation.kind == TAKE for operation in before.tail)
    ),
}

# With one receiver nobody else has the lock meanwhile.
TWO_RECEIVERS = ("a token is refused while another receiver has the lock",)


def test_one_message_of_two_receivers_keeps_its_promises_through_two_faults() -> None:
    holds(PeekLock(messages=1, faults=2, tail_limit=3, count_limit=3, scheduled=(0,)), SITUATIONS, at_least=10_000)


def test_two_messages_of_one_receiver_keep_their_promises() -> None:
    holds(PeekLock(messages=2, receivers=1), SITUATIONS, at_least=90_000, without=TWO_RECEIVERS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_of_two_receivers_keep_their_promises() -> None:
    holds(
        PeekLock(messages=2, takes=False),
        SITUATIONS,
        at_least=2_400_000,
        without=("a taken message is in flight when the power is cut",),
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_keep_their_promises_through_two_faults_with_more_in_flight() -> None:
    holds(
        PeekLock(messages=2, receivers=1, faults=2, tail_limit=3), SITUATIONS, at_least=240_000, without=TWO_RECEIVERS
    )


@pytest.mark.parametrize(
    ("mistake", "promise"),
    [
        ("settle_after_expiry", "P7: a token that is over"),
        ("tokens_without_start", "P7: a token that is over"),
        ("run_out_while_settling", "P7: an operation in the log does not fit"),
        ("answer_before_durable", "P1, P7, P9"),
        ("deliver_unsynced", "P1, P7, P9"),
        ("take_before_durable", "P1, P7, P9"),
        ("locks_not_written", "P8"),
        ("locks_not_noted_again", "P7: an operation in the log does not fit"),
        ("release_counts", "P8"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, promise: str) -> None:
    finds(PeekLock(messages=1, **{mistake: True}), promise)


def test_a_message_says_what_a_peek_shows() -> None:
    model = PeekLock()
    assert model.view(model.start()) == [("not sent", 0), ("not sent", 0)]
