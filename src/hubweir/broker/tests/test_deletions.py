"""Deletions of partitions: one a turn, each asker answered at its end, and what hung on a partition ended before."""

from types import SimpleNamespace
from typing import Any

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.partition import (
    AskPartitionInfo,
    CreatePartition,
    DeletePartition,
    OpenPartition,
)
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.commands.producer import AppendNumbered, OpenProducer, ProducerOpened
from hubweir.broker.commands.reader import OpenReader, ReaderClosed, ReaderOpened, ReadEvents
from hubweir.broker.tests.numbered_world import transfer
from hubweir.broker.tests.test_broker import append, reader
from hubweir.counters import Counters
from hubweir.errors import StoreError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import Producer
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.simulated_env import SimulatedEnv

ME = Owner(1, 7)


def test_creating_twice_changes_nothing_and_deleting_twice_neither(bench: Any) -> None:
    bench.ask(append(b"abc"))
    bench.log.complete()
    assert bench.ask(CreatePartition("a", "orders", "0", Durability.DURABLE, 1)) == [Done()]
    assert bench.ask(AskPartitionInfo("a"))[0].last_sequence_number == 2
    assert bench.ask(DeletePartition("a")) == [Done()]
    assert bench.ask(DeletePartition("a")) == [Done()]
    assert bench.store.logs == {}


def test_a_partition_that_was_never_opened_and_is_deleted_is_no_alarm_any_more(bench: Any) -> None:
    def fails(log_id: str, **named: Any) -> Any:
        raise OSError(28, "No space left on device")

    bench.store.create_log = fails
    bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, 1))
    assert len(bench.broker.alarms.current()) == 1
    bench.ask(DeletePartition("b"))
    assert bench.broker.alarms.current() == ()


def test_deleting_a_partition_ends_its_readers_with_a_push_and_a_refusal(bench: Any) -> None:
    pushed: list[ReaderClosed] = []
    bench.broker.on_push = pushed.append
    bench.ask(reader())
    waiting = bench.ask(ReadEvents("a", 1, 10, 60_000))
    bench.ask(DeletePartition("a"))
    assert [(push.reader_id, push.owner, push.condition.symbol) for push in pushed] == [(1, ME, "amqp:not-found")]
    assert "The messaging entity 'orders' could not be found" in pushed[0].text
    assert waiting[0].condition.symbol == "amqp:not-found"
    assert bench.armed == 1  # only the sweep's


def test_a_partition_that_is_deleted_while_a_displaced_reader_leaves_has_no_deadline_any_more(bench: Any) -> None:
    for epoch in (1, 2):
        bench.ask(OpenReader("a", ME, "g", EARLIEST, epoch, None))
    assert bench.armed == 2
    bench.ask(DeletePartition("a"))
    assert bench.armed == 1


def test_the_producers_of_a_partition_that_was_deleted_are_open_no_longer(bench: Any) -> None:
    [opened] = bench.ask(OpenProducer("a", ME, 7, 0, 0))
    bench.ask(DeletePartition("a"))
    bench.ask(CreatePartition("a", "orders", "0", Durability.DURABLE, 3_600_000))
    [refused] = bench.ask(AppendNumbered("a", opened.opening_id, transfer(Producer(7, 0, 1), 1)))
    assert refused.condition.symbol == "com.microsoft:entity-moved" and bench.log.records == b""


def test_a_deletion_that_is_asked_for_again_joins_the_one_under_way(bench: Any) -> None:
    closing: list[Any] = []
    bench.store.close_log = lambda log_id, on_done: closing.append(on_done)
    first, second = bench.ask(DeletePartition("a")), bench.ask(DeletePartition("a"))
    assert (first, second, len(closing)) == ([], [], 1)
    (meanwhile,) = bench.ask(CreatePartition("a", "orders", "0", Durability.DURABLE, 1))
    assert meanwhile.condition.symbol == "com.microsoft:server-busy" and bench.broker.alarms.current() == ()
    closing[0]()
    assert (first, second) == ([Done()], [Done()])
    assert bench.ask(DeletePartition("a")) == [] and len(closing) == 2  # over: the next one begins anew


def test_a_removal_that_failed_is_refused_and_the_next_one_that_succeeds_is_done(bench: Any) -> None:
    """Answered Done, the hub would be forgotten with the files of its partition left behind, and nobody would know."""
    plain = bench.store.delete_log

    def fails_once(log_id: str, on_done: Any) -> None:
        bench.store.delete_log = plain

        def failed() -> None:
            raise OSError(5, "Input/output error")

        on_done(SimpleNamespace(value=failed))

    bench.store.delete_log = fails_once
    [refused] = bench.ask(DeletePartition("a"))
    assert isinstance(refused, Refusal) and "Input/output error" in refused.text
    assert bench.ask(DeletePartition("a")) == [Done()]
    assert bench.store.logs == {}


def test_a_removal_that_the_store_does_not_begin_is_refused(bench: Any) -> None:
    def busy(log_id: str, on_done: Any) -> None:
        raise StoreError("log a is being deleted; wait for the end of it")

    bench.store.delete_log = busy
    [refused] = bench.ask(DeletePartition("a"))
    assert isinstance(refused, Refusal) and "is being deleted" in refused.text
    del bench.store.delete_log
    assert bench.ask(DeletePartition("a")) == [Done()]


def test_deletions_at_once_end_well_on_a_store() -> None:
    env = SimulatedEnv(5)
    store = MessagingStore.open(env, "store-0")
    broker = Broker(env, store, Counters())
    answers: list[Answer] = []
    broker.submit(CreatePartition("ab" * 16, "orders", "0", Durability.DURABLE, 3_600_000), answers.append)
    env.run_for(100)
    for _ in range(3):
        broker.submit(DeletePartition("ab" * 16), answers.append)
        env.run_for(3)
    env.run_for(500)
    assert answers == [Done()] * 4 and store.log_ids() == []


def test_a_hub_of_many_partitions_is_deleted_one_a_turn_of_the_loop(bench: Any) -> None:
    names = [f"p{number}" for number in range(5)]
    for number, name in enumerate(names):
        bench.ask(CreatePartition(name, "large", str(number), Durability.DURABLE, 3_600_000))
    answers: list[Answer] = []
    for name in names:
        bench.broker.submit(DeletePartition(name), answers.append)
    for gone in range(1, 6):
        bench.env.turn()
        assert len(bench.store.logs) == 6 - gone and answers == [Done()] * gone


def test_deletions_that_have_not_begun_when_the_broker_stops_are_refused(bench: Any) -> None:
    for name in ("p0", "p1"):
        bench.ask(CreatePartition(name, "large", name[1:], Durability.DURABLE, 3_600_000))
    answers: list[Answer] = []
    for name in ("p0", "p1"):
        bench.broker.submit(DeletePartition(name), answers.append)
    bench.env.turn()
    bench.broker.stop(lambda: None)
    bench.env.turn()
    assert answers[0] == Done() and isinstance(answers[1], Refusal) and "p1" in bench.store.logs


def test_a_stop_waits_for_what_lives_on_a_log_that_is_being_deleted(bench: Any) -> None:
    """Its capture may read the log, and write a file: the store must not close below it."""
    ending: list[Any] = []
    bench.broker._residents.by_log_id["a"].capture.end = ending.append
    answers, stopped = bench.ask(DeletePartition("a")), list[bool]()
    bench.broker.stop(lambda: stopped.append(True))
    bench.env.turn()
    assert (answers, stopped, bench.store.closed) == ([], [], False)

    def close_log(log_id: str, on_done: Any) -> None:
        assert not bench.store.closed, "a store that is closed closes no log"
        on_done()

    bench.store.close_log = close_log
    (idle,) = ending
    idle()
    assert (answers, stopped, bench.store.closed) == ([Done()], [True], True)


def test_what_waits_for_a_producer_of_a_partition_that_is_deleted_is_refused(bench: Any) -> None:
    saving: list[Any] = []
    bench.log.save_snapshot = lambda state, on_done: saving.append(on_done)
    answers = bench.ask(OpenProducer("a", ME, 7, 0, 0))
    assert answers == []
    bench.ask(DeletePartition("a"))
    [refused] = answers
    assert isinstance(refused, Refusal) and "The messaging entity 'orders' could not be found" in refused.text
    saving[0](None)
    assert len(answers) == 1


def test_a_reader_whose_position_is_looked_up_when_its_partition_is_deleted_never_opens(bench: Any) -> None:
    bench.ask(append(b"abcdef"))
    bench.log.complete()
    log, answers = bench.log, bench.ask(reader(EventPosition(PositionKind.OFFSET, 3)))
    bench.ask(DeletePartition("a"))
    assert answers == []
    log.answer_reads()
    [refused] = answers
    assert isinstance(refused, Refusal) and refused.condition.symbol == "amqp:link:detach-forced"


def test_ids_are_given_once_over_all_partitions_and_over_their_deletion(bench: Any) -> None:
    """Whoever still holds one of a partition that is gone must not end, or send by, one of another."""
    bench.ask(CreatePartition("b", "orders", "1", Durability.DURABLE, 3_600_000))
    given: list[Answer] = []
    for log_id in ("a", "b", "a"):
        given += bench.ask(OpenReader(log_id, ME, "g", EARLIEST, None, None))
        given += bench.ask(OpenProducer(log_id, ME, 7, None, None))
        bench.ask(DeletePartition(log_id))
        bench.ask(CreatePartition(log_id, "orders", "0", Durability.DURABLE, 3_600_000))
    assert [answer.reader_id for answer in given if isinstance(answer, ReaderOpened)] == [1, 2, 3]
    assert [answer.opening_id for answer in given if isinstance(answer, ProducerOpened)] == [1, 2, 3]
