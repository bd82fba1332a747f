"""A second process opens a store whose LOCK was lost, while the first one goes on: nothing accepted is lost (R14).

Both append in turns, with calls of both interleaved; then both end. What either of them accepted is there afterwards,
no index names two things, and what was refused is not stored. Of a relaxed log that does not hold for what the first
one accepts behind the take-over and before its next sync. Reads of the superseded one are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from hubweir.errors import StoreError
from hubweir.kernels import which
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog
from hubweir.messaging_store.segment_engine.writer_epochs import WriterEpochs
from hubweir.testing.simulated_env import SimulatedEnv
from tests.simulation.histories import named
from tests.simulation.log_model import Model
from tests.simulation.log_world import INTERLEAVED, LogWorld, Violation

CONTROL_SEEDS = 60
Owner = tuple[SimulatedEnv, MessagingStore, SegmentLog]


class TwoOwners(LogWorld):
    """One log, and two processes on it."""

    def __init__(self, seed: int, durability: Durability) -> None:
        super().__init__(seed)
        self.durability = durability
        self.switches_modes = self.has_fences = self.has_bad_clocks = False
        self.chance = Random(f"owners {seed}")
        self.accepted_by_second = 0

    def play(self) -> None:
        self.open()
        for _ in range(self.chance.randrange(5)):
            self.append()
            self.env.run_for(self.chance.randrange(200))
        for _ in range(self.chance.randrange(3)):
            self.append()  # under way when the second one comes
        first = self.owner()
        is_relaxed = self.durability is Durability.RELAXED
        first[0].run_for(1_000 if is_relaxed else self.chance.randrange(60))
        second = self.taken_over()
        promised, before = self.model, len(self.model.records)
        for _ in range(self.chance.randrange(1, 16)):
            self.env, self.store, self.log = owner = self.chance.choice([first, second])
            self.model = Model() if is_relaxed and owner is first else promised
            if self.chance.random() < 0.8:
                self.append()
            self.env.run_for(self.chance.randrange(80))
        self.model = promised
        self.accepted_by_second = len(self.model.records) - before
        self.end_both(first, second)
        self.open()

    def owner(self) -> Owner:
        assert self.store is not None and self.log is not None
        return self.env, self.store, self.log

    def taken_over(self) -> Owner:
        """The lock is lost, and a second process opens the store: all that was accepted by now is there."""
        self.files.locks.clear()
        self.env = SimulatedEnv(
            f"second {self.chance.random()}", files=self.files, start_ms=self.env.now_ms(),
            interleaved=self.chance.choice(INTERLEAVED),
        )  # fmt: skip
        self.open()
        return self.owner()

    def end_both(self, first: Owner, second: Owner) -> None:
        power_cut = self.chance.random() < 0.5
        self.model.ended(second[0].monotonic_ms(), power_cut=power_cut, is_sick=False)
        first[0].crash()
        second[0].crash(power_cut=power_cut)
        self.env = second[0].restart()


def play(seed: int, durability: Durability) -> int:
    world = TwoOwners(seed, durability)
    with named(seed):
        world.play()
    return world.accepted_by_second


@pytest.mark.parametrize("durability", Durability)
def test_nothing_accepted_is_lost_when_a_second_process_takes_the_store_over(
    first_seed: int, measure: Callable[[int], int], durability: Durability
) -> None:
    count = measure(2_000) // (10 if which() == "pure" else 1)
    accepted = sum(play(seed, durability) > 0 for seed in range(first_seed, first_seed + count))
    assert accepted > count / 3, "the second process hardly accepted anything"


def test_control_without_a_look_at_the_epoch_accepted_events_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WriterEpochs, "check", lambda self: None)
    found = 0
    for seed in range(CONTROL_SEEDS):
        try:
            play(seed, Durability.DURABLE)
        except (Violation, StoreError):
            found += 1
    assert found > CONTROL_SEEDS / 10
