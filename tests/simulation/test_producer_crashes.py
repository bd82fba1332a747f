"""Idempotent producers and sinks that resume, with the power cut at every file call of one history. (P11, T11)

What an attach was answered must hold after the cut: no lower epoch or round comes in, the last number is of an event
that is stored, the digest is that of exactly those. `Violation` comes from the model (hubweir/broker/tests).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.broker import producer_snapshots
from hubweir.broker.tests.numbered_world import NumberedWorld, Violation
from hubweir.broker.tests.producer_defects import fences_answered_before_they_are_durable, no_fences
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.testing.memory_faults import Fault, PowerCut

SEED = 3
CALLS_MAX = 2_000


def history(world: NumberedWorld) -> None:
    """Attaches, sends, take-overs, rounds and snapshots."""
    for step in range(30):
        world.sinks[0].act(world.random)
        world.senders[0].act(world.random)
        world.env.run_for(12_000 if step % 10 == 9 else 60)


def cut_at(nth: int, *, after_starts: int) -> bool:
    """Play, cut the power at the n-th call, start again and go on; False when there are fewer calls.

    after_starts: of how many earlier processes the store has something.
    """
    world = NumberedWorld(SEED, producers=1, sinks=1)
    for _ in range(after_starts):
        history(world)
        world.crash(power_cut=False)
    world.env.files.plan(Fault.POWER_CUT, nth)
    try:
        history(world)
        return False
    except PowerCut:
        world.crash(power_cut=True)
    for _ in range(2):  # who attached before the cut, and before a start behind it
        world.senders[0].intrude()
        world.sinks[0].haunt()
        world.env.run_for(200)
        world.senders[0].act(world.random)
        world.env.run_for(200)
        world.crash(power_cut=False)
    world.finish()
    return True


def violations(*, at_least: int = CALLS_MAX) -> tuple[int, list[str]]:
    """How many cuts were tried, and what the model said to them."""
    said: list[str] = []
    cuts = 0
    for after_starts in (0, 1):
        for nth in range(1, CALLS_MAX):
            try:
                if not cut_at(nth, after_starts=after_starts):
                    break
            except Violation as violation:
                said.append(f"call {nth}: {violation}")
            cuts += 1
            if len(said) >= at_least:
                return cuts, said
    return cuts, said


@pytest.fixture(autouse=True)
def snapshots_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_snapshots, "EVENTS_PER_SNAPSHOT", 5)


def test_no_power_cut_at_any_call_lets_an_older_epoch_in_or_tells_a_wrong_number_or_digest() -> None:
    cuts, said = violations()
    assert said == [] and cuts > 100


def digest_of_the_batch_before(patch: pytest.MonkeyPatch) -> None:
    restore = ProducerSequences.restore
    patch.setattr(ProducerSequences, "restore", lambda self, kept: restore(self, replace(kept, digest=kept.digest ^ 1)))


@pytest.mark.parametrize("defect", [no_fences, fences_answered_before_they_are_durable, digest_of_the_batch_before])
def test_a_planted_defect_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    assert violations(at_least=1)[1]
