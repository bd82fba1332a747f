"""Idempotent producers at their owner: each event once through retries and crashes, and what would break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from hubweir.broker import producer_snapshots
from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.process import CapPartitions, Refusal
from hubweir.broker.commands.producer import AppendNumbered, CloseProducer, OpenProducer, ProducerOpened
from hubweir.broker.producer_snapshots import SNAPSHOT_EVERY_MS, ProducerSnapshots
from hubweir.broker.tests.numbered_world import HOUR_MS, LOG_ID, NumberedWorld, Sender, Violation, transfer
from hubweir.broker.tests.producer_defects import (
    fences_answered_before_they_are_durable,
    fences_at_the_snapshots_index_taken_for_those_before_it,
    no_fences,
)
from hubweir.env import Lane
from hubweir.event_hub.producer_log import ProducerReplay, note_key
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.messaging_store.disk.notes import FoundNotes
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import Producer
from hubweir.messaging_store.segment_engine import open_log
from hubweir.testing.answers import opened_log
from hubweir.testing.memory_faults import Fault

SEEDS = range(40)
STEPS = 150


@pytest.fixture(params=[5, 100_000], ids=["snapshots often", "snapshots seldom"], autouse=True)
def events_per_snapshot(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_snapshots, "EVENTS_PER_SNAPSHOT", request.param)


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
    worlds = [play(seed) for seed in range(20)]
    assert sum(sink.resumed for world in worlds for sink in world.sinks) > 3
    assert max(sink.round for world in worlds for sink in world.sinks) > 1
    assert max(sender.granted for world in worlds for sender in world.senders) > 3
    plans = [plan for world in worlds for plan in world.env.files.plans]
    assert len(plans) > 10 and sum(plan.fired > 0 for plan in plans) > len(plans) / 2


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
    monkeypatch.setattr(ProducerSnapshots, "load", lambda self, on_done: on_done(None))
    assert found_in(SEEDS) > 0


def test_a_log_that_is_not_replayed_behind_its_snapshot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerReplay, "visit", lambda self, run: None)
    monkeypatch.setattr(ProducerReplay, "end", lambda self: None)
    assert found_in(SEEDS) > 0


def fences_not_replayed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerSequences, "restore_fence", lambda self, *given, **told: None)


def notes_lost_at_a_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(open_log, "load_notes", lambda files, folder: FoundNotes())


def epoch_before_is_let_in_after_two_starts(*, is_behind_a_record: bool = True) -> bool:
    """A take-over behind the last record that two snapshots hold, or before the first record; then a segment in which
    only others store."""
    world = NumberedWorld(4)
    first, second = world.senders
    first.epoch = second.epoch = 3
    if is_behind_a_record:
        sent(world, 3)
        world.env.run_for(60_000)
    hosted = world.hosted
    if is_behind_a_record:
        world.env.run_for(SNAPSHOT_EVERY_MS)
        assert hosted.producers.snapshots.saved_at == hosted.log.bounds.next_index > 0
    answers: list[Answer] = []
    world.broker.submit(OpenProducer(LOG_ID, Owner(5, 5), 1, 9, 0), answers.append)
    world.env.run_for(400)
    assert isinstance(answers[-1], ProducerOpened)
    world.env.crash()
    world.env = world.env.restart()
    world.broker, world.life = world._start(), 1
    second.attached(None)
    for _ in range(2):
        second.act(world.random)
        world.env.run_for(100)
    assert second.accepted > 0
    world.env.crash()
    world.env = world.env.restart()
    world.broker = world._start()
    world.broker.submit(OpenProducer(LOG_ID, Owner(5, 5), 1, 8, 0), answers.append)
    world.env.run_for(100)
    return isinstance(answers[-1], ProducerOpened)


def test_a_fence_behind_the_last_record_of_a_snapshot_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not epoch_before_is_let_in_after_two_starts()
    fences_at_the_snapshots_index_taken_for_those_before_it(monkeypatch)
    assert epoch_before_is_let_in_after_two_starts()


def test_a_fence_before_the_first_record_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not epoch_before_is_let_in_after_two_starts(is_behind_a_record=False)
    notes_lost_at_a_start(monkeypatch)
    assert epoch_before_is_let_in_after_two_starts(is_behind_a_record=False)


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
        digests_not_kept,
        rounds_forgotten,
    ],
)
def test_a_planted_defect_of_fences_and_rounds_is_found(
    defect: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defect(monkeypatch)
    assert found_in(range(240), at_least=1)


def sent(world: NumberedWorld, transfers: int) -> None:
    sender = world.senders[0]
    for _ in range(transfers + 1):  # the first step attaches
        sender.act(world.random)
        world.env.run_for(100)


def test_a_silent_producer_is_expired_by_the_sweep_and_stays_so_after_a_crash() -> None:
    world = NumberedWorld(1, producers=1)
    sent(world, 3)
    hosted = world.hosted
    hosted.producers.sequences._lifetime_ms = 60_000
    world.env.run_for(120_000)
    assert len(hosted.producers.sequences) == 1  # its link holds it
    world.broker.submit(CloseProducer(LOG_ID, world.senders[0].opening or 0), lambda answer: None)
    world.env.run_for(11_000)
    assert len(hosted.producers.sequences) == 0
    world.env.run_for(1_000)
    world.crash(power_cut=True)
    assert len(world.hosted.producers.sequences) == 0


def test_retention_goes_on_in_a_partition_that_has_producers_and_fell_silent() -> None:
    world = NumberedWorld(2, producers=1)
    sent(world, 3)
    world.env.run_for(3 * HOUR_MS)  # events are kept for one
    assert opened_log(world.env, world.store, LOG_ID).bounds.first_index > 0
    accepted = world.senders[0].accepted
    world.env.crash()
    world.life += 1
    world.env = world.env.restart()
    world.broker = world._start()
    assert [kept.last for kept in world.hosted.producers.sequences.kept()] == [accepted]


def test_the_ids_it_gives_are_integers_that_a_double_holds() -> None:
    world = NumberedWorld(3)
    given: list[int] = []
    for connection in range(100, 140):
        command = OpenProducer(LOG_ID, Owner(1, connection), None, None, None)
        world.broker.submit(
            command, lambda answer: given.append(answer.producer_id) if isinstance(answer, ProducerOpened) else None
        )
        world.env.run_for(10)
    assert len(set(given)) == 40
    assert all(0 <= producer_id < 2**53 for producer_id in given)


def opened_behind(world: NumberedWorld, epoch: int) -> Answer:
    """The answer to somebody who takes the first producer over."""
    answers: list[Answer] = []
    world.broker.submit(OpenProducer(LOG_ID, Owner(5, 5), 1, epoch, 0), answers.append)
    world.env.run_for(500)
    (answer,) = answers
    return answer


@pytest.mark.parametrize("forever", [False, True], ids=["refused", "unknown"])
def test_a_take_over_whose_fence_was_not_stored_is_refused(forever: bool) -> None:
    world = NumberedWorld(1, producers=1)
    sent(world, 3)
    world.env.run_for(1_000)  # the idle mark is written
    world.env.files.plan(Fault.SYNC_EIO, forever=forever)
    assert isinstance(opened_behind(world, 9), Refusal)
    world.env.files.heal()
    world.env.run_for(60_000)
    assert isinstance(opened_behind(world, 9), ProducerOpened)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_numbered_send_says_whether_its_outcome_is_known_and_gives_back_what_was_not_stored(is_known: bool) -> None:
    world = NumberedWorld(1, producers=1)
    sent(world, 1)
    sender = world.senders[0]
    world.env.run_for(1_000)
    world.broker.submit(CapPartitions(True), lambda answer: None)
    world.env.files.plan(Fault.SYNC_EIO, forever=not is_known)
    first = Producer(1, sender.epoch, sender.accepted + 1)
    answers: list[Answer] = []
    assert sender.opening is not None
    world.broker.submit(AppendNumbered(LOG_ID, sender.opening, transfer(first, 1), 1_000, 100), answers.append)
    while not answers:
        world.env.run_for(5)
    (answer,) = answers
    assert isinstance(answer, Refusal) and answer.known == is_known
    cap = world.hosted.capping.cap
    assert cap is not None
    has_room = cap.admit(1, 1_000, world.env.monotonic_ms()) is None
    assert has_room == is_known


def test_who_was_expired_is_forgotten_for_good_when_both_snapshots_were_made_since() -> None:
    world = NumberedWorld(1, producers=1)
    sent(world, 3)
    hosted = world.hosted
    hosted.producers.sequences._lifetime_ms = 60_000
    hosted.producers.sequences.close(world.senders[0].opening or 0)
    world.env.run_for(120_000)
    assert len(hosted.producers.sequences) == 0 and note_key(1) in hosted.log.notes
    sender = Sender(world, 2)
    for _ in range(4):
        for _ in range(3):
            sender.act(world.random)
            world.env.run_for(50)
        world.env.run_for(2 * SNAPSHOT_EVERY_MS)
    assert note_key(1) not in hosted.log.notes
    world.env.crash(power_cut=True)
    world.life += 1
    world.env = world.env.restart()
    world.broker = world._start()
    assert [kept.producer_id for kept in world.hosted.producers.sequences.kept()] == [2]


def test_fences_outlive_both_snapshots() -> None:
    world = NumberedWorld(1, producers=1)
    world.senders[0].epoch = 3
    sent(world, 3)
    world.env.run_for(60_000)
    world.env.crash()
    for path in list(world.env.files.paths()):
        if "/snapshot" in path:
            world.env.files.bytes_of(path)[-1] ^= 1
    world.life += 1
    world.env = world.env.restart()
    world.broker = world._start()
    assert isinstance(opened_behind(world, 2), Refusal)
    assert isinstance(opened_behind(world, 9), ProducerOpened)


def test_events_that_come_while_a_snapshot_is_saved_are_held_for_the_next_one() -> None:
    world = NumberedWorld(1, producers=1)
    sent(world, 3)
    world.env.run_for(1_000)
    world.env.stall(Lane.MAINTENANCE)
    while not world.env.stalled_calls(Lane.MAINTENANCE):
        world.env.run_for(1_000)
    covered = opened_log(world.env, world.store, LOG_ID).bounds.next_index
    world.senders[0].act(Random(1))
    world.env.run_for(200)
    assert opened_log(world.env, world.store, LOG_ID).bounds.next_index > covered
    world.env.go_on(Lane.MAINTENANCE)
    world.env.run_for(3 * HOUR_MS)  # events are kept for one; both snapshots must hold all of them by then
    bounds = opened_log(world.env, world.store, LOG_ID).bounds
    assert bounds.first_index == bounds.next_index


def test_a_clock_that_was_ahead_for_hours_and_set_right_expires_no_producer() -> None:
    """The time of retention stays ahead then, and the stamps of events do not."""
    world = NumberedWorld(1, producers=1)
    sent(world, 1)
    world.env.jump(30 * 24 * HOUR_MS)
    world.env.run_for(7 * HOUR_MS)
    world.env.jump(-30 * 24 * HOUR_MS)
    world.env.run_for(HOUR_MS)
    hosted = world.hosted
    sender = Sender(world, 2)
    for _ in range(4):
        sender.act(world.random)
        world.env.run_for(100)
    assert sender.accepted > 0
    hosted.producers.sequences.close(sender.opening or 0)
    world.env.run_for(60_000)
    assert 2 in [kept.producer_id for kept in hosted.producers.sequences.kept()]
