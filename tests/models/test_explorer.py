"""The explorer itself, on models of a few states: its visits, its findings, and the way that it tells."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.models.explorer import Action, explore, put, random_walk
from tests.models.verdicts import finds, holds

ROOT = Path(__file__).resolve().parents[2]
SITUATIONS = {
    "both counters are at three": lambda before, action, after: after[:2] == (3, 3),
    "a counter falls from two": lambda before, action, after: action[0] == "fall" and before[action[1]] == 2,
}


@dataclass(frozen=True)
class Counters:
    """Two counters, each from 0 to a limit. They go up by one, down to nothing at once, or break."""

    limit: int = 4
    forbidden: tuple[int, int] | None = None
    trap: tuple[int, int] | None = None  # nothing but a break leads out of here
    breaks: int = 0

    FAULTS = ("break",)

    def start(self) -> tuple[int, ...]:
        return (0, 0, 0)

    def steps(self, state: tuple[int, ...]) -> Iterator[tuple[Action, tuple[int, ...]]]:
        if state[2] < self.breaks:
            yield ("break",), (0, 0, state[2] + 1)
        for place in (0, 1):
            if state[:2] == self.trap:
                continue
            if state[place] < self.limit:
                yield ("rise", place), put(state, place, state[place] + 1)
            if state[place]:
                yield ("fall", place), put(state, place, 0)

    def broken(self, state: tuple[int, ...]) -> str | None:
        return "P0: forbidden" if state[:2] == self.forbidden else None

    def is_quiet(self, state: tuple[int, ...]) -> bool:
        return state[:2] == (0, 0)


def test_every_state_is_visited_once_and_every_step_is_taken() -> None:
    explored = explore(Counters(), SITUATIONS)
    assert (explored.states, explored.depth) == (25, 8)
    assert explored.steps == 2 * 5 * (4 + 4)  # of a counter's five values four rise, four fall
    assert explored.is_whole
    assert explored.wrong is None
    assert explored.unmet == []


def test_a_broken_state_is_told_with_the_shortest_way_there() -> None:
    wrong = explore(Counters(forbidden=(1, 2))).wrong
    assert wrong is not None
    assert wrong.text == "P0: forbidden"
    assert sorted(taken.action for taken in wrong.way) == [("rise", 0), ("rise", 1), ("rise", 1)]
    assert wrong.way[-1].state == (1, 2, 0)
    assert "('rise', 0)" in str(wrong) and "(1, 2, 0)" in str(wrong)


def test_a_start_that_is_broken_is_told_without_a_way() -> None:
    wrong = explore(Counters(forbidden=(0, 0))).wrong
    assert wrong is not None
    assert wrong.way == ()
    assert str(wrong).startswith("P0: forbidden")


def test_a_state_without_a_way_to_quiet_is_told() -> None:
    wrong = explore(Counters(trap=(2, 1))).wrong
    assert wrong is not None
    assert "nothing but a fault" in wrong.text
    assert wrong.way[-1].state == (2, 1, 0)


def test_a_fault_is_no_way_out() -> None:
    assert explore(Counters(trap=(2, 1), breaks=1)).wrong is not None
    assert explore(Counters(breaks=1)).wrong is None


def test_a_situation_that_never_comes_up_is_named() -> None:
    explored = explore(Counters(limit=2), SITUATIONS)
    assert explored.unmet == ["both counters are at three"]


def test_an_exploration_ends_at_its_limit_and_says_that_it_is_not_whole() -> None:
    explored = explore(Counters(), states_limit=10)
    assert not explored.is_whole
    assert 10 <= explored.states < 25


def test_verdicts_fail_where_they_have_to() -> None:
    holds(Counters(), SITUATIONS, at_least=25)
    holds(Counters(limit=2), SITUATIONS, at_least=9, without=("both counters are at three",))
    finds(Counters(forbidden=(1, 2)), "P0")
    for model, at_least in ((Counters(), 26), (Counters(limit=2), 9), (Counters(trap=(2, 1)), 1)):
        with pytest.raises(AssertionError):
            holds(model, SITUATIONS, at_least=at_least)
    for model, text in ((Counters(), "P0"), (Counters(forbidden=(1, 2)), "P1")):
        with pytest.raises(AssertionError):
            finds(model, text)


def test_a_walk_is_the_same_for_the_same_seed_and_takes_steps_of_the_model() -> None:
    model = Counters(breaks=2)
    walk = random_walk(model, 7, 50)
    assert walk == random_walk(model, 7, 50)
    assert walk != random_walk(model, 8, 50)
    assert len(walk) == 50
    state = model.start()
    for taken in walk:
        assert tuple(taken) in list(model.steps(state))
        state = taken.state


def test_a_walk_ends_where_no_step_is_left() -> None:
    ends = {random_walk(Counters(trap=(1, 0)), seed, 40)[-1].state for seed in range(20)}
    assert (1, 0, 0) in ends


SAME = """
from tests.models.explorer import explore, random_walk
from tests.models.peek_lock import PeekLock
explored = explore(PeekLock(messages=1))
print(explored.states, explored.steps, explored.depth, hash(random_walk(PeekLock(), 5, 40)[-1].state[:-1]))
"""


def test_another_process_with_another_hash_seed_visits_the_same_states_in_the_same_order() -> None:
    seen = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(
            [sys.executable, "-c", SAME], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
        )
        seen.add(ran.stdout)
    assert len(seen) == 1
