"""The two verdicts of a test: a model holds at every state, or its planted mistake is found."""

from __future__ import annotations

from typing import Any

from tests.models.explorer import Model, Situations, Wrong, explore


def holds(model: Model[Any], situations: Situations, *, at_least: int, without: tuple[str, ...] = ()) -> None:
    """Fail unless every state of the model was visited, so many at least, and keeps all promises.

    without: situations that these bounds leave out; every other one has to come up.
    """
    explored = explore(model, situations)
    assert explored.wrong is None, str(explored.wrong)
    assert explored.is_whole, f"{explored.states} states are not all"
    assert sorted(explored.unmet) == sorted(without)
    assert explored.states >= at_least, f"only {explored.states} states: the model lost some of what it can do"


def finds(planted: Model[Any], text: str) -> Wrong:
    """Return the broken promise of a model that has a planted mistake; fail unless it begins with text."""
    wrong = explore(planted, states_limit=200_000).wrong
    assert wrong is not None, "the exploration does not see the planted mistake"
    assert wrong.text.startswith(text), str(wrong)
    return wrong
