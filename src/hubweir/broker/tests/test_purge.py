"""A purge of a partition on real segment files, and what its readers are told."""

from typing import Any

import pytest

from hubweir.broker.commands.command import Answer, Command, Owner
from hubweir.broker.commands.partition import AppendEvents, EventsAppended, PartitionPurged, PurgePartition
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered, OpenProducer, ProducerOpened
from hubweir.broker.commands.reader import ReaderClosed, ReadEvents
from hubweir.broker.purge import LOOK_MS, LOOKS
from hubweir.broker.tests.numbered_world import LOG_ID, NumberedWorld, transfer
from hubweir.broker.tests.reader_steps import append, open_reader
from hubweir.errors import DETACH_FORCED, SERVER_BUSY
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import Producer

ONE = Producer(1, 0, 1)


def asked(world: NumberedWorld, command: Command, *, within_ms: int = 2_000) -> Answer:
    answers: list[Answer] = []
    world.broker.submit(command, answers.append)
    world.env.run_for(within_ms)
    (answer,) = answers
    return answer


def plain(count: int) -> bytearray:
    return transfer(ONE, count)


def opened(world: NumberedWorld, producer_id: int = 1) -> int:
    answer = asked(world, OpenProducer(LOG_ID, Owner(1, producer_id), producer_id, 0, 0))
    assert isinstance(answer, ProducerOpened)
    return answer.opening_id


@pytest.mark.parametrize("durability", Durability)
def test_all_events_go_and_stay_gone_over_a_crash(durability: Durability) -> None:
    world = NumberedWorld(1, producers=0, durability=durability)
    assert asked(world, AppendEvents(LOG_ID, plain(5))) == EventsAppended(0, 5)
    assert asked(world, PurgePartition(LOG_ID)) == PartitionPurged(5, 5)
    assert world.hosted.log.bounds.first_index == 5
    world.crash(power_cut=True)
    bounds = world.hosted.log.bounds
    start = bounds.next_index  # a relaxed log skips numbers that a power cut may have taken
    assert bounds.first_index == 5 and (start == 5 if durability is Durability.DURABLE else start > 5)
    assert asked(world, AppendEvents(LOG_ID, plain(1))) == EventsAppended(start, start + 1)
    assert asked(world, PurgePartition(LOG_ID)) == PartitionPurged(start + 1 - 5, start + 1)
    assert asked(world, PurgePartition(LOG_ID)) == PartitionPurged(0, start + 1)


def test_an_empty_partition_is_purged_at_once() -> None:
    world = NumberedWorld(2, producers=0)
    answers: list[Answer] = []
    world.broker.submit(PurgePartition(LOG_ID), answers.append)
    assert answers == [PartitionPurged(0, 0)]


def test_an_idempotent_producer_is_remembered_though_its_events_went() -> None:
    world = NumberedWorld(3, producers=0)
    opening = opened(world)
    assert asked(world, AppendNumbered(LOG_ID, opening, plain(5))) == EventsAppended(0, 5)
    assert asked(world, PurgePartition(LOG_ID)) == PartitionPurged(5, 5)
    assert asked(world, AppendNumbered(LOG_ID, opening, plain(5))) == AlreadyAppended()
    world.crash(power_cut=True)
    assert world.hosted.log.bounds.first_index == 5
    assert asked(world, AppendNumbered(LOG_ID, opened(world), plain(5))) == AlreadyAppended()


def test_it_ends_while_events_come_and_takes_at_least_what_was_there() -> None:
    world = NumberedWorld(4, producers=0)
    for _ in range(10):
        asked(world, AppendEvents(LOG_ID, plain(5)), within_ms=200)
    purged: list[Answer] = []
    world.broker.submit(PurgePartition(LOG_ID), purged.append)
    for _ in range(100):
        world.broker.submit(AppendEvents(LOG_ID, plain(5)), lambda _: None)
        world.env.run_for(7)
    (answer,) = purged
    assert isinstance(answer, PartitionPurged)
    assert answer.purged == answer.first_sequence_number and 50 <= answer.purged <= 550


def test_what_is_on_its_way_as_it_begins_holds_nothing_back() -> None:
    """It lies in the same segment as what was there, so it goes with it."""
    world = NumberedWorld(5, producers=0)
    asked(world, AppendEvents(LOG_ID, plain(5)))
    purged: list[Answer] = []
    world.broker.submit(AppendEvents(LOG_ID, plain(3)), lambda _: None)
    world.env.turn()  # its round has begun
    world.broker.submit(PurgePartition(LOG_ID), purged.append)
    world.env.run_for(2_000)
    assert purged == [PartitionPurged(8, 8)]


def test_readers_that_are_behind_are_told_and_others_are_not(bench: Any, pushes: list[ReaderClosed]) -> None:
    append(bench, b"abc")
    bench.log.complete()
    behind, ahead = open_reader(bench), open_reader(bench)
    bench.ask(ReadEvents("a", ahead, 100, 0))
    append(bench, b"")
    answers = bench.ask(PurgePartition("a"))
    (told,) = pushes
    assert (told.reader_id, told.condition) == (behind, DETACH_FORCED)
    assert "before 3 were purged" in told.text
    assert bench.ask(ReadEvents("a", behind, 100, 0))[0].condition.symbol == "amqp:not-found"
    assert bench.ask(ReadEvents("a", ahead, 100, 0))[0].next_sequence_number == 3
    bench.log.first = 3
    bench.env.pass_time(LOOK_MS)
    assert answers == [PartitionPurged(3, 3)]
    assert bench.log.trimmed == [3]


def test_a_log_that_keeps_its_events_is_told_as_busy_in_the_end(bench: Any) -> None:
    append(bench, b"abc")
    bench.log.complete()
    answers = bench.ask(PurgePartition("a"))
    bench.env.pass_time(LOOK_MS * (LOOKS - 1))
    assert answers == []
    bench.env.pass_time(LOOK_MS * 2)
    (refusal,) = answers
    assert isinstance(refusal, Refusal) and refusal.condition is SERVER_BUSY and "from 0 on" in refusal.text
    before = len(bench.log.trimmed)
    bench.env.pass_time(LOOK_MS * 10)
    assert len(bench.log.trimmed) == before, "it is over"
