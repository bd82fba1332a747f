"""T1: the model of a topic's fan-out holds at every state, and each planted mistake breaks a promise."""

from __future__ import annotations

import pytest

from tests.models.fan_out import CHAIN, LEFT, FanOut
from tests.models.verdicts import finds, holds

# Each has to come up in an exploration, or its bounds are too small to mean anything.
SITUATIONS = {
    "two messages are copied by one chain": lambda before, action, after: action[0] == "copy" and len(action) > 3,
    "a message is copied partly": lambda before, action, after: action[0] == "copy" and action[-1] != LEFT,
    "a part ends within a subscription": lambda before, action, after: action[0] == "copy" and action[-1] % 2 == 1,
    "a copy is consumed while others are to come": lambda before, action, after: (
        action[0] == "consume" and max(before.places) > 0
    ),
    "a subscription ends that has a part of a message": lambda before, action, after: (
        action[0] == "remove" and max(before.places) > 0 and len(before.copies[action[1]]) == 1
    ),
    "a subscription begins between two parts": lambda before, action, after: (
        action[0] == "add" and max(before.places) > 0
    ),
    "a subscription ends while a part of a message for it is on its way": lambda before, action, after: (
        action[0] == "remove" and before.is_under_way
    ),
    "a start goes on behind a part": lambda before, action, after: (
        action[0] in ("kill", "power_cut") and max(after.places) > 0
    ),
    "a power cut takes a chain back": lambda before, action, after: (
        action[0] == "power_cut" and any(each.kind == CHAIN for each in before.tail[action[1] :])
    ),
    "a chain that failed is made again": lambda before, action, after: action[0] == "copy" and before.faults,
}


def test_a_message_in_parts_keeps_its_promises_through_a_fault() -> None:
    holds(FanOut(messages=1), SITUATIONS, at_least=12_000, without=("two messages are copied by one chain",))


def test_two_messages_in_parts_keep_their_promises_through_a_fault() -> None:
    without = ("a subscription begins between two parts",)
    holds(FanOut(numbers=2), SITUATIONS, at_least=7_000, without=without)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_in_parts_keep_their_promises_while_subscriptions_come_and_go() -> None:
    holds(FanOut(), SITUATIONS, at_least=210_000)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_messages_in_parts_keep_their_promises_through_two_faults() -> None:
    holds(FanOut(faults=2), SITUATIONS, at_least=410_000)


@pytest.mark.parametrize(
    ("mistake", "promise"),
    [
        ("removed_with_first_part", "P13: a message has left the topic"),
        ("place_left_out_of_snapshot", "P13: a copy is there twice"),
        ("place_counts_before_sync", "P13: a message has left the topic"),
        ("place_counts_those_there", "P13: a message has left the topic"),
        ("numbers_used_again", "P13: a subscription has a part"),
        ("two_chains_unchecked", "P13: a copy is there twice"),
    ],
)
def test_a_planted_mistake_is_found(mistake: str, promise: str) -> None:
    finds(FanOut(**{mistake: True}), promise)
