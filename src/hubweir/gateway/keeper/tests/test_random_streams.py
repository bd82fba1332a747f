"""Whatever streams do, in any order: who is answered finds the change wherever the keeper was followed, and in the end
all copies are the keeper's. Each seed is another history of holds, cuts, silences and changes.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

import pytest

from hubweir.errors import ServiceError
from hubweir.gateway.keeper.tests.keeper_world import Follower, KeeperWorld
from hubweir.namespace.catalog_followers import APPLY_LIMIT_MS
from hubweir.namespace.event_hub_description import EventHubDescription

STEPS = 60


class History:
    """asked, answered: changes by their number. problems: what may never be seen."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = KeeperWorld(hubs={"hub": 1})
        self.followers = [self.world.follower(process) for process in (101, 202, 303)]
        self.asked = 0
        self.answered: dict[int, int] = {}
        self.problems: list[str] = []

    def change(self) -> None:
        """Make or remove a hub, at the keeper or through any process."""
        number, self.asked = self.asked, self.asked + 1
        keeper = self.random.choice([self.world, *self.followers]).gateway.keeper
        name = f"hub-{self.random.randrange(4)}"
        answered = partial(self._answered, number, name)
        if self.random.random() < 0.5:
            keeper.create(EventHubDescription(name, 1), partial(answered, True))
        else:
            keeper.delete(name, EventHubDescription, partial(answered, False))

    def _answered(self, number: int, name: str, is_there: bool, result: Any) -> None:
        self.answered[number] = self.answered.get(number, 0) + 1
        if isinstance(result, ServiceError):
            return
        kept = self.world.namespace
        for process in kept_by(self.world):
            copy = self.world.followers[process].namespace
            # A later change of the same name may have come since: the copy is then as the keeper has it.
            known = copy.find_any(name), kept.find_any(name)
            if (known[0] is not None) != is_there and (known[0] is None) != (known[1] is None):
                self.problems.append(f"change {number} of {name} was answered and {process} does not have it")

    def disturb(self) -> None:
        follower = self.random.choice(self.followers)
        stream = follower.stream
        match self.random.randrange(6):
            case 0:
                stream.is_held = True
            case 1:
                stream.is_deaf = True
            case 2:
                stream.release()
            case 3 if stream.is_up:
                follower.went()
            case _ if not stream.is_up:
                follower.came()

    def heal(self) -> None:
        for follower in self.followers:
            follower.stream.release()
            if not follower.stream.is_up:
                follower.came()
        self.world.run_for(3 * APPLY_LIMIT_MS)


def kept_by(world: KeeperWorld) -> tuple[int, ...]:
    """The processes that the keeper takes for followers."""
    processes: tuple[int, ...] = world.gateway.keeper.followers.processes  # type: ignore[attr-defined]
    return processes


@pytest.mark.parametrize("seed", range(12))
def test_a_history_of_changes_and_disturbed_streams(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.random.choice([history.change, history.change, history.disturb])()
        history.world.run_for(history.random.choice([0, 1, 5, 50, 400]))
    history.heal()
    assert history.problems == []
    assert history.answered == dict.fromkeys(range(history.asked), 1)
    copies: set[bytes] = {follower.snapshot() for follower in history.followers}
    assert copies == {history.world.namespace._catalog.snapshot()}
    assert set(kept_by(history.world)) == {101, 202, 303}
    answers: list[Any] = []
    last: Follower = history.followers[-1]
    last.gateway.keeper.create(EventHubDescription("last", 1), answers.append)
    history.world.run_for(500)
    assert answers[0].name == "last"
