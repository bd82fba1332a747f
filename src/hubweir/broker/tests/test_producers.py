"""Idempotent producers at their owner: each event once through retries and crashes, and what would break it."""

from __future__ import annotations

import pytest

from hubweir.broker import hosted_partitions
from hubweir.broker.tests.numbered_world import NumberedWorld, Violation
from hubweir.event_hub.producer_sequence import ProducerSequences

SEEDS = range(40)
STEPS = 150


def play(seed: int) -> NumberedWorld:
    world = NumberedWorld(seed)
    world.play(STEPS)
    world.finish()
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_is_stored_once_and_in_order_through_retries_and_crashes(seed: int) -> None:
    world = play(seed)
    assert all(sender.accepted > 0 for sender in world.senders)


def found_in(seeds: range) -> int:
    """In how many of these histories the model finds something."""
    found = 0
    for seed in seeds:
        try:
            play(seed)
        except Violation:
            found += 1
    return found


def test_a_duplicate_answered_before_its_original_is_durable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerSequences, "_answer_duplicate", lambda self, producer, last, on_done: on_done(None))
    assert found_in(SEEDS) > 0


def test_producers_that_are_not_rebuilt_after_a_crash_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_partitions, "_load_producers", lambda hosted: None)
    assert found_in(range(20)) > 0


def test_a_log_that_is_not_replayed_behind_its_snapshot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_partitions, "replay", lambda sequences, runs, index: None)
    assert found_in(range(20)) > 0
