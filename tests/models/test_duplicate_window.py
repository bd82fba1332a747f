"""T1: the model of duplicate detection holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.duplicate_window import DuplicateWindow
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "a send is dropped whose first one was in flight with it": lambda before, action, after: (
        action == ("sync",) and after.waiting == before.waiting and before.age[before.tail[0].id] == 0
    ),
    "a send is dropped although its first message is consumed": lambda before, action, after: (
        action == ("sync",) and after.waiting == before.waiting and not before.waiting[before.tail[0].id]
    ),
    "an id is stored a second time, behind its window": lambda before, action, after: (
        action == ("sync",) and before.waiting[before.tail[0].id] and after.waiting != before.waiting
    ),
    "a send is dropped behind a crash": lambda before, action, after: (
        action == ("sync",) and after.waiting == before.waiting and before.faults
    ),
    "a send is refused because there is no room": lambda before, action, after: action[2:] == ("no room",),
    "a send takes the room of ids that are older than the window": lambda before, action, after: (
        action[2:] == ("waits",) and sum(map(len, before.table)) == 2 and not before.tail
    ),
    "a send says what a jump of the clock skipped": lambda before, action, after: (
        action[0] == "send" and after.tail[-1:] != before.tail[-1:] and after.tail[-1].skipped
    ),
    "a send says what a clock skipped that was set back and is right again": lambda before, action, after: (
        action[0] == "send"
        and after.tail[-1:] != before.tail[-1:]
        and after.tail[-1].skipped
        and not before.offset
        and not before.faults
    ),
    "a send is stamped as an earlier one that was ahead": lambda before, action, after: (
        action[0] == "send" and not before.offset and after.tail and after.tail[-1].time > 0
    ),
    "a sync fails under a send that said what was skipped": lambda before, action, after: (
        action == ("sync_fails",) and any(each.skipped for each in before.tail)
    ),
    "a start counts nothing of what passed since the newest id": lambda before, action, after: (
        action[0] == "kill" and after.on_time < 0
    ),
    "a power cut keeps a part of the tail": lambda before, action, after: (
        action[:2] == ("power_cut", 1) and len(before.tail) > 1
    ),
}


def test_two_ids_keep_their_promises_through_a_fault_and_a_jump_of_the_clock() -> None:
    holds(DuplicateWindow(jumps=1, units=2), SITUATIONS, at_least=30_000)


def test_the_window_is_over_when_its_time_has_passed() -> None:
    """Longer, without faults and jumps: what makes a window longer is all told."""
    holds(
        DuplicateWindow(jumps=0, faults=0, units=8),
        SITUATIONS,
        at_least=30_000,
        without=tuple(name for name in sorted(SITUATIONS) if "skipped" in name or "crash" in name or "power" in name)
        + ("a send is stamped as an earlier one that was ahead",)
        + ("a start counts nothing of what passed since the newest id",),
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_ids_keep_their_promises_through_two_jumps_of_the_clock() -> None:
    holds(DuplicateWindow(jumps=2, units=3), SITUATIONS, at_least=79_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_ids_keep_their_promises_through_two_faults() -> None:
    holds(DuplicateWindow(jumps=2, units=2, faults=2), SITUATIONS, at_least=79_000)


SMALL = {"units": 2, "jumps": 1}


@pytest.mark.parametrize(
    ("mistake", "bounds", "promise"),
    [
        ("answer_before_original", {}, "P1"),
        ("wall_clock_counts", {}, "P11: an id is stored twice"),
        ("start_believes_clock", {}, "P11: an id is stored twice"),
        ("refused_skip_is_lost", {}, "P11: an id is stored twice"),
        ("refused_stamp_is_on_time", {}, "P11: an id is stored twice"),
        ("set_back_is_not_skipped", {}, "P11: an id is stored twice"),
        ("oldest_decides", {}, "P11: an id is stored twice"),
        ("forget_for_room", {"generation": 1, "room": 1}, "P11: a start decides otherwise"),
        ("unchecked_without_room", {"room": 1}, "P11: an id is stored twice"),
        ("snapshot_left_out", {}, "P11: an id is stored twice"),
        ("forget_consumed", {}, "P11: an id is stored twice"),
        (
            "dropped_begins_anew",
            {"units": 4, "jumps": 0, "faults": 0, "room": 3},
            "P11: an id is found behind its window",
        ),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, bounds: dict[str, Any], promise: str) -> None:
    finds(DuplicateWindow(**(SMALL | bounds), **{mistake: True}), promise)


def test_a_window_shows_what_waits_and_how_many_ids_it_has() -> None:
    model = DuplicateWindow()
    assert model.view(model.start()) == ([], 0)
