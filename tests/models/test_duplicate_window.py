"""T1: the model of duplicate detection holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.duplicate_window import DuplicateWindow
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "a repeated send waits for the first": lambda before, action, after: (
        action[0] == "send" and action[3] == "waits for the first"
    ),
    "a sync fails under a send that two wait for": lambda before, action, after: (
        action == ("sync_fails",) and before.senders[0] == before.senders[1] != 0
    ),
    "a repeated send is answered behind a crash, from the snapshot": lambda before, action, after: (
        action[0] == "send" and action[3] == "seen before" and before.faults and before.snapshot and not before.log
    ),
    "a repeated send is answered behind a crash, from the log": lambda before, action, after: (
        action[0] == "send" and action[3] == "seen before" and before.faults and not before.snapshot
    ),
    "a repeated send is answered although its message is consumed": lambda before, action, after: (
        action[0] == "send" and action[3] == "seen before" and not before.waiting[action[2]]
    ),
    "an id is stored a second time, behind its window": lambda before, action, after: (
        action[0] == "send" and action[3] == "waits" and before.stored[action[2]]
    ),
    "a send is refused because there is no room": lambda before, action, after: (
        action[0] == "send" and action[3] == "no room"
    ),
    "a generation goes and makes room": lambda before, action, after: action == ("forget",),
    "the wall clock is ahead while an id is remembered": lambda before, action, after: (
        action == ("clock_jumps",) and after.table
    ),
    "time passes in which nothing runs, and the window is longer for it": lambda before, action, after: (
        action[0] == "send" and action[3] == "seen before" and before.is_behind and before.age[action[2]] >= 2
    ),
    "a power cut keeps a part of the tail": lambda before, action, after: (
        action[0] == "power_cut" and action[1] == 1 and len(before.tail) > 1
    ),
}


def test_two_ids_keep_their_promises_through_a_fault_and_jumps_of_the_clock() -> None:
    holds(DuplicateWindow(ids=2, faults=1, span=1, log_limit=2), SITUATIONS, at_least=100_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_ids_keep_their_promises_through_two_faults() -> None:
    holds(DuplicateWindow(ids=2, faults=2, log_limit=2), SITUATIONS, at_least=390_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_ids_with_room_for_two_keep_their_promises() -> None:
    holds(
        DuplicateWindow(ids=3, faults=1, log_limit=2, jumps=False),
        SITUATIONS,
        at_least=1_400_000,
        without=("the wall clock is ahead while an id is remembered",),
    )


@pytest.mark.parametrize(
    ("mistake", "room", "promise"),
    [
        ("answer_before_original", 2, "P1"),
        ("no_refusal_of_repeats", 2, "P1"),
        ("snapshot_holds_unsynced", 3, "P11: an id is found"),
        ("snapshot_left_out", 2, "P11: an id is stored twice"),
        ("wall_clock_ages", 2, "P11: an id is stored twice"),
        ("wall_clock_at_start", 2, "P11: an id is stored twice"),
        ("oldest_decides", 2, "P11: an id is stored twice"),
        ("forget_consumed", 2, "P11: an id is stored twice"),
        ("unchecked_without_room", 1, "P11: an id is stored twice"),
        ("start_keeps_due", 2, "R17"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, room: int, promise: str) -> None:
    finds(DuplicateWindow(ids=2, room=room, **{mistake: True}), promise)
