"""Idempotent producers at their owner: each event once through retries and crashes, and what would break it."""

from __future__ import annotations

import pytest

from hubweir.broker import hosted_partitions, producers
from hubweir.broker.commands import OpenProducer, Owner, ProducerOpened
from hubweir.broker.tests.numbered_world import HOUR_MS, LOG_ID, NumberedWorld, Violation
from hubweir.event_hub.producer_sequence import ProducerSequences

SEEDS = range(40)
STEPS = 150


@pytest.fixture(params=[5, 100_000], ids=["snapshots often", "snapshots seldom"], autouse=True)
def events_per_snapshot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "EVENTS_PER_SNAPSHOT", request.param)


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
    assert found_in(SEEDS) > 0


def test_a_log_that_is_not_replayed_behind_its_snapshot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosted_partitions, "replay", lambda sequences, runs, index: None)
    assert found_in(SEEDS) > 0


def sent(world: NumberedWorld, transfers: int) -> None:
    sender = world.senders[0]
    for _ in range(transfers + 1):  # the first step attaches
        sender.act(world.random)
        world.env.run_for(100)


def test_a_silent_producer_is_expired_by_the_sweep_and_stays_so_after_a_crash() -> None:
    world = NumberedWorld(1, producers=1)
    sent(world, 3)
    hosted = world.broker._partitions.get(LOG_ID)
    hosted.producers._lifetime_ms = 60_000
    world.env.run_for(120_000)
    assert len(hosted.producers) == 1  # its link holds it
    hosted.producers.close(world.senders[0].opening or 0)
    world.env.run_for(11_000)
    assert len(hosted.producers) == 0
    world.env.run_for(1_000)
    world.crash(power_cut=True)
    assert len(world.broker._partitions.get(LOG_ID).producers) == 0


def test_retention_goes_on_in_a_partition_that_has_producers_and_fell_silent() -> None:
    world = NumberedWorld(2, producers=1)
    sent(world, 3)
    world.env.run_for(3 * HOUR_MS)  # events are kept for one
    assert world.store.open_log(LOG_ID).bounds.first_index > 0
    accepted = world.senders[0].accepted
    world.env.crash()
    world.life += 1
    world.env = world.env.restart()
    world.broker = world._start()
    assert [kept.last for kept in world.broker._partitions.get(LOG_ID).producers.kept()] == [accepted]


def test_the_ids_it_gives_are_integers_that_a_double_holds() -> None:
    world = NumberedWorld(3)
    given: list[int] = []
    for connection in range(100, 140):
        command = OpenProducer(LOG_ID, 1, None, None, None, Owner(1, connection))
        world.broker.submit(
            command, lambda answer: given.append(answer.producer_id) if isinstance(answer, ProducerOpened) else None
        )
        world.env.run_for(10)
    assert len(set(given)) == 40
    assert all(0 <= producer_id < 2**53 for producer_id in given)
