"""loop_turn.py: what waits for the end of a turn is called once, in order, behind what asked for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest

from hubweir.drivers.loop_turn import ROUNDS_A_TURN, LoopTurn


class HandLoop:
    """A loop that turns when the test says so."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


@pytest.fixture
def loop() -> HandLoop:
    return HandLoop()


@pytest.fixture
def turn(loop: HandLoop) -> LoopTurn:
    return LoopTurn(cast(Any, loop))


def test_all_that_waits_is_called_in_order_by_one_callback_of_the_loop(loop: HandLoop, turn: LoopTurn) -> None:
    seen: list[int] = []
    for number in range(3):
        turn.at_end(lambda number=number: seen.append(number))  # type: ignore[misc]
    assert seen == [] and len(loop.soon) == 1
    loop.turn()
    assert seen == [0, 1, 2] and loop.soon == []
    turn.at_end(lambda: seen.append(3))
    loop.turn()
    assert seen == [0, 1, 2, 3]


def test_what_is_added_at_the_end_belongs_to_the_turn_behind_all_that_waited_before(
    loop: HandLoop, turn: LoopTurn
) -> None:
    seen: list[str] = []
    turn.at_end(lambda: (seen.append("first"), turn.at_end(lambda: seen.append("added")))[0])
    turn.at_end(lambda: seen.append("second"))
    loop.turn()
    assert seen == ["first", "second", "added"] and loop.soon == []


def test_what_goes_on_and_on_lets_the_loop_turn(loop: HandLoop, turn: LoopTurn) -> None:
    seen: list[int] = []

    def again() -> None:
        seen.append(1)
        turn.at_end(again)

    turn.at_end(again)
    for turns in range(1, 4):
        loop.turn()
        assert len(seen) == turns * ROUNDS_A_TURN and len(loop.soon) == 1


def test_a_turn_that_was_ended_early_is_not_ended_twice(loop: HandLoop, turn: LoopTurn) -> None:
    seen: list[int] = []
    turn.at_end(lambda: seen.append(1))
    turn.end()
    assert seen == [1]
    turn.at_end(lambda: seen.append(2))
    loop.turn()
    loop.turn()
    assert seen == [1, 2] and loop.soon == []


def test_who_handles_many_things_ends_the_turn_and_the_loop_does_not(loop: HandLoop, turn: LoopTurn) -> None:
    seen: list[int] = []
    turn.begin()
    turn.at_end(lambda: seen.append(1))
    assert loop.soon == [] and seen == []
    turn.end()
    assert loop.soon == [] and seen == [1]
    turn.at_end(lambda: seen.append(2))
    loop.turn()
    assert seen == [1, 2]


def test_a_fault_of_one_is_logged_and_the_others_are_called(
    loop: HandLoop, turn: LoopTurn, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[int] = []
    turn.at_end(lambda: [][0])
    turn.at_end(lambda: seen.append(1))
    with caplog.at_level(logging.ERROR):
        loop.turn()
    assert seen == [1] and "end of a turn" in caplog.text and "IndexError" in caplog.text
    turn.at_end(lambda: seen.append(2))
    loop.turn()
    assert seen == [1, 2]


def test_one_that_ends_as_a_cancelled_task_does_holds_up_no_other(loop: HandLoop, turn: LoopTurn) -> None:
    """A loop goes on behind anything that a callback raises but an end of the process, and so must the turn."""
    seen: list[int] = []

    def cancelled() -> None:
        turn.at_end(lambda: seen.append(2))
        raise asyncio.CancelledError

    turn.at_end(cancelled)
    turn.at_end(lambda: seen.append(1))
    with pytest.raises(asyncio.CancelledError):
        loop.turn()
    loop.turn()
    assert seen == [1, 2] and loop.soon == []
    turn.at_end(lambda: seen.append(3))
    loop.turn()
    assert seen == [1, 2, 3]
