"""Idempotent producers at their owner: each event once through retries and crashes, and what would break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hubweir.broker import hosted_partitions, producers
from hubweir.broker.commands import Answer, OpenProducer, Owner, ProducerOpened
from hubweir.broker.tests.numbered_world import HOUR_MS, LOG_ID, NumberedWorld, Violation
from hubweir.broker.tests.producer_defects import fences_answered_before_they_are_durable, no_fences
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.messaging_store import write_round
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_log import SegmentLog

SEEDS = range(40)
STEPS = 150


@pytest.fixture(params=[5, 100_000], ids=["snapshots often", "snapshots seldom"], autouse=True)
def events_per_snapshot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers, "EVENTS_PER_SNAPSHOT", request.param)


def play(seed: int) -> NumberedWorld:
    world = NumberedWorld(seed, sinks=2)
    world.play(STEPS)
    world.finish()
    return world


@pytest.mark.parametrize("seed", SEEDS)
def test_every_number_is_stored_once_and_in_order_through_retries_and_crashes(seed: int) -> None:
    world = play(seed)
    assert all(sender.accepted > 0 for sender in world.senders)
    assert all(sum(sink.accepted.values()) for sink in world.sinks)


@pytest.mark.parametrize("seed", range(20))
def test_a_relaxed_hub_keeps_fences_rounds_and_numbers_when_its_process_is_killed(seed: int) -> None:
    world = NumberedWorld(seed, sinks=2, durability=Durability.RELAXED)
    world.play(STEPS)
    world.finish()
    assert all(sender.accepted > 0 for sender in world.senders)


def test_the_histories_take_producers_over_and_resume_rounds() -> None:
    """What the model claims is tried: else its silence means nothing."""
    worlds = [play(seed) for seed in range(6)]
    assert sum(sink.resumed for world in worlds for sink in world.sinks) > 3
    assert max(sink.round for world in worlds for sink in world.sinks) > 1
    assert max(sender.granted for world in worlds for sender in world.senders) > 3


def found_in(seeds: range, *, at_least: int = 1_000) -> int:
    """In how many of these histories the model finds something; stops when these are enough."""
    found = 0
    for seed in seeds:
        try:
            play(seed)
        except Violation:
            found += 1
            if found >= at_least:
                break
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


def fences_not_replayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerSequences, "restore_fence", lambda self, *given: None)


def fences_left_in_a_segment_that_is_superseded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(write_round, "carried_over", lambda files, segment: [])


def fences_behind_the_snapshots_last_record_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    found = SegmentLog.replay
    patch.setattr(SegmentLog, "replay", lambda self, index=0: found(self, index + bool(index)))


def epoch_before_is_let_in_after_two_starts() -> bool:
    """A take-over behind the last record that two snapshots hold, then a segment in which only others store."""
    world = NumberedWorld(4)
    first, second = world.senders
    first.epoch = second.epoch = 3
    sent(world, 3)
    world.env.run_for(60_000)
    hosted = world.broker._partitions.get(LOG_ID)
    assert hosted.snapshots_due == 0 and hosted.producers_saved_at == hosted.log.bounds.next_index > 0
    answers: list[Answer] = []
    world.broker.submit(OpenProducer(LOG_ID, 1, 1, 9, 0, Owner(5, 5)), answers.append)
    world.env.run_for(100)
    assert isinstance(answers[-1], ProducerOpened)
    world.env.crash()
    world.env = world.env.restart()
    world.broker, world.life = world._start(), 1
    second.attached(None)
    for _ in range(2):
        second.act(world.random)
        world.env.run_for(100)
    assert second.accepted > 0 and len(hosted.log._state.segments) >= 1
    world.env.crash()
    world.env = world.env.restart()
    world.broker = world._start()
    world.broker.submit(OpenProducer(LOG_ID, 1, 1, 8, 0, Owner(5, 5)), answers.append)
    world.env.run_for(100)
    return isinstance(answers[-1], ProducerOpened)


def test_a_fence_behind_the_last_record_of_a_snapshot_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not epoch_before_is_let_in_after_two_starts()
    fences_behind_the_snapshots_last_record_not_looked_for(monkeypatch)
    assert epoch_before_is_let_in_after_two_starts()


def digests_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerSequences, "restore", _without_digest(ProducerSequences.restore))


def _without_digest(restore: Any) -> Any:
    return lambda self, kept: restore(self, replace(kept, digest=0))


def rounds_forgotten(patch: pytest.MonkeyPatch) -> None:
    restore = ProducerSequences.restore
    patch.setattr(ProducerSequences, "restore", lambda self, kept: restore(self, replace(kept, round=0)))


@pytest.mark.parametrize(
    "defect",
    [
        no_fences,
        fences_answered_before_they_are_durable,
        fences_not_replayed,
        fences_left_in_a_segment_that_is_superseded,
        digests_not_kept,
        rounds_forgotten,
    ],
)
def test_a_planted_defect_of_fences_and_rounds_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    assert found_in(range(60), at_least=1)


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
