"""Random walks of each model; the players (play_*.py) have the code that is modelled do the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.models.duplicate_window import DuplicateWindow
from tests.models.entity_transfer import EntityTransfer
from tests.models.explorer import random_walk
from tests.models.fan_out import FanOut
from tests.models.peek_lock import PeekLock
from tests.models.session_lock import SessionLock
from tests.models.transaction import TwoLogs

STEPS = 60

# With more than an exploration can visit.
MODELS = [
    PeekLock(messages=3, receivers=3, tail_limit=4, faults=4, scheduled=(1,)),
    SessionLock(messages=4, receivers=3, keepers=3, values=3, tail_limit=4, faults=4),
    DuplicateWindow(ids=4, room=5, tail_limit=3, units=12, jumps=6, faults=4),
    TwoLogs(transactions=4, at_once=2, tail_limit=3, faults=4),
    EntityTransfer(messages=3, tail_limit=3, faults=4, refusals=2),
    EntityTransfer(messages=2, is_ring=True, hop_limit=4, tail_limit=3, faults=4),
    FanOut(messages=5, begun=3, numbers=6, room=5, tail_limit=4, faults=4),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_walks_keep_the_promises_and_show_something_that_the_code_can_be_asked_for(
    model: Any, measure: Callable[[int], int]
) -> None:
    shown = set()
    for seed in range(measure(2_000)):
        for taken in random_walk(model, seed, STEPS):
            assert model.broken(taken.state) is None, f"seed {seed}"
            shown.add(repr(model.view(taken.state)))
    assert len(shown) > 10


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_an_action_and_the_state_before_it_say_what_comes(model: Any) -> None:
    """No two steps from one state have the same action: so a walk can be told by its actions alone."""
    for seed in range(20):
        state = model.start()
        for taken in random_walk(model, seed, STEPS):
            actions = [action for action, _ in model.steps(state)]
            assert len(actions) == len(set(actions)), f"seed {seed}"
            state = taken.state
