"""Visits every state that a model can come to, shortest ways first, and tells the way to one that breaks a promise.

A model is a specification that runs: its states are tuples of numbers, and its steps are all that may happen next, a
crash too. Nothing is drawn at random: the explorer takes every step of every state. So a fault that it does not find
does not exist within the model's bounds.

It tells three things. A state in which a promise does not hold, with the actions that lead there. A state from which
nothing but a fault leads to the end of the work, in the same way. The situations of a list that never came up: then
the bounds are too small to mean anything.

States are told apart by their 64-bit hash. Two of three million share one with odds of 1 to 4,000,000, and then one
of them is left out. Python's hashes of numbers and of tuples of numbers are the same in every process.
"""

from __future__ import annotations

import gc
import logging
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any, NamedTuple, Protocol, TypeVar

S = TypeVar("S")
T = TypeVar("T")

# Its name, then its arguments: ("settle", 0, "complete", "lost") tells that receiver 0 was answered: the lock is lost.
Action = tuple[str | int, ...]

STATES_LIMIT = 3_000_000
STATES_BETWEEN_REPORTS = 100_000

log = logging.getLogger(__name__)


# Situations by their names, each a question about a state, the action that is taken in it, and the next state.
Situations = Mapping[str, Callable[[Any, Action, Any], bool]]


class Model(Protocol[S]):
    """The explorer's questions to a model. A state is a tuple of numbers from 0 on, tuples of them, and texts."""

    FAULTS: Collection[str]
    """Names of the actions that nobody may count on: the work must come to an end without them."""

    def start(self) -> S:
        """The first state."""

    def steps(self, state: S) -> Iterable[tuple[Action, S]]:
        """Everything that may happen next, always in the same order. None behind a broken state."""

    def broken(self, state: S) -> str | None:
        """The promise that does not hold in this state, with its number; None: all hold."""

    def is_quiet(self, state: S) -> bool:
        """Nothing is under way, and nothing is left to do. Each state must have a way to such a one, without faults."""


class Taken(NamedTuple):
    """One step of a way through a model: the action, and the state behind it."""

    action: Action
    state: Any


@dataclass(frozen=True, slots=True)
class Wrong:
    """A promise that does not hold, and the shortest way there."""

    text: str
    way: tuple[Taken, ...]

    def __str__(self) -> str:
        lines = [f"{number:3}  {taken.action}" for number, taken in enumerate(self.way, 1)]
        return "\n".join([self.text, *lines, f"     {self.way[-1].state if self.way else 'at the start'}"])


@dataclass(slots=True)
class Explored:
    """The result of an exploration. is_whole: every state was visited. depth: steps to the state farthest away."""

    states: int = 0
    steps: int = 0
    depth: int = 0
    is_whole: bool = False
    wrong: Wrong | None = None
    unmet: list[str] = field(default_factory=list)


def explore(model: Model[S], situations: Situations | None = None, *, states_limit: int = STATES_LIMIT) -> Explored:
    """Visit states until all are visited, one is wrong, or states_limit of them are known.

    situations: those that have to come up; Explored.unmet names the others.
    Reports to the log (INFO) while it goes on: --log-cli-level=INFO shows that.
    """
    with _collections_off():
        return _Exploration(model, situations or {}).run(states_limit)


class _Exploration:
    """States have numbers in the order in which they are found; arrays keep a few numbers of each."""

    def __init__(self, model: Model[Any], situations: Situations) -> None:
        self._model = model
        self._situations = situations
        self._numbers: dict[int, int] = {}  # hash -> number
        self._parents = array("I")  # the state from which it was found
        self._ordinals = array("I")  # and which of that state's steps it was
        self._quiet = bytearray()
        self._targets = array("I")  # where each state's steps lead, faults left out, state after state
        self._ends = array("L")  # the end of each state's part of them
        self._found = Explored(unmet=list(situations))

    def run(self, states_limit: int) -> Explored:
        model, found, numbers, faults = self._model, self._found, self._numbers, frozenset(self._model.FAULTS)
        first = model.start()
        waiting: deque[Any] = deque()
        self._enter(first, 0, 0)
        waiting.append(first)
        here, end_of_depth = 0, 1
        while waiting and found.wrong is None:
            if here == end_of_depth:
                found.depth += 1
                end_of_depth = len(numbers)
            state = waiting.popleft()
            for ordinal, (action, after) in enumerate(model.steps(state)):
                found.steps += 1
                there = numbers.get(hash(after))
                if there is None:
                    there = self._enter(after, here, ordinal)
                    waiting.append(after)
                if action[0] not in faults:
                    self._targets.append(there)
                if found.unmet:
                    self._meet(state, action, after)
            self._ends.append(len(self._targets))
            here += 1
            if len(numbers) >= states_limit:
                break
        found.states = len(numbers)
        found.is_whole = not waiting
        if found.is_whole and found.wrong is None:
            self._find_stuck()
        return found

    def _enter(self, state: Any, parent: int, ordinal: int) -> int:
        number = len(self._numbers)
        self._numbers[hash(state)] = number
        self._parents.append(parent)
        self._ordinals.append(ordinal)
        self._quiet.append(self._model.is_quiet(state))
        text = self._model.broken(state)
        if text is not None and self._found.wrong is None:
            self._found.wrong = Wrong(text, self._way(number))
        if number % STATES_BETWEEN_REPORTS == STATES_BETWEEN_REPORTS - 1:
            log.info("%s: %d states, depth %d", type(self._model).__name__, number + 1, self._found.depth)
        return number

    def _meet(self, before: Any, action: Action, after: Any) -> None:
        unmet = self._found.unmet
        self._found.unmet = [name for name in unmet if not self._situations[name](before, action, after)]

    def _way(self, number: int) -> tuple[Taken, ...]:
        """The steps to a state, taken again from the first: the states themselves are not kept."""
        ordinals = []
        while number:
            ordinals.append(self._ordinals[number])
            number = self._parents[number]
        way: list[Taken] = []
        state = self._model.start()
        for ordinal in reversed(ordinals):
            action, state = next(islice(self._model.steps(state), ordinal, None))
            way.append(Taken(action, state))
        return tuple(way)

    def _find_stuck(self) -> None:
        """Look for the first state from which no steps but faults lead to a quiet one.

        Later states mostly lead to an end by still later ones, so a few turns backwards settle all that can be.
        """
        ends, targets, settled = self._ends, self._targets, self._quiet
        open_states = [number for number in range(len(ends) - 1, -1, -1) if not settled[number]]
        while open_states:
            left = []
            for number in open_states:
                for there in targets[ends[number - 1] if number else 0 : ends[number]]:
                    if settled[there]:
                        settled[number] = 1
                        break
                else:
                    left.append(number)
            if len(left) == len(open_states):
                self._found.wrong = Wrong("nothing but a fault brings this to an end", self._way(left[-1]))
                return
            open_states = left


@contextmanager
def _collections_off() -> Iterator[None]:
    """Millions of tuples without a circle among them: looking for circles would take most of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def random_walk(model: Model[S], seed: int, steps: int) -> list[Taken]:
    """So many steps from the start, or fewer where none is left: to be played to the code that is modelled.

    The seed decides. A fault is taken a tenth as often as other steps: else every walk spends its faults at once.
    """
    generator = Random(seed)
    state: Any = model.start()
    walk: list[Taken] = []
    while len(walk) < steps:
        choices = [Taken(action, after) for action, after in model.steps(state)]
        if not choices:
            break
        weights = [1 if taken.action[0] in model.FAULTS else 10 for taken in choices]
        walk += generator.choices(choices, weights)
        state = walk[-1].state
    return walk


def put(values: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """values with another value in one place."""
    return (*values[:place], value, *values[place + 1 :])
