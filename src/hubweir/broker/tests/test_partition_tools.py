"""What the partitions of a broker share: ids that are given once in its life, and nothing with another broker."""

from __future__ import annotations

from typing import Any

from hubweir.alarms import Alarms
from hubweir.broker.capture.captures import Captures
from hubweir.broker.commands.partition import CreatePartition, DeletePartition
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AppendNumbered, CloseProducer, OpenProducer, ProducerOpened
from hubweir.broker.commands.reader import CloseReader, EventsRead, OpenReader, ReaderOpened, ReadEvents
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.tests.reader_steps import ME
from hubweir.counters import Counters
from hubweir.event_hub.event_position import EARLIEST
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.testing.simulated_env import SimulatedEnv


def create(bench: Any, log_id: str) -> None:
    bench.ask(CreatePartition(log_id, "orders", "0", Durability.DURABLE, 3_600_000))


def new_reader(bench: Any, log_id: str) -> int:
    (answer,) = bench.ask(OpenReader(log_id, ME, "$Default", EARLIEST, None, None))
    assert isinstance(answer, ReaderOpened)
    return answer.reader_id


def new_producer(bench: Any, log_id: str) -> int:
    answers = bench.ask(OpenProducer(log_id, ME, 7, 1, 0))
    bench.store.logs[log_id].complete()
    (answer,) = answers
    assert isinstance(answer, ProducerOpened)
    return answer.opening_id


def test_a_reader_of_a_partition_that_is_gone_holds_nothing_of_another(bench: Any) -> None:
    create(bench, "b")
    gone = [new_reader(bench, "a"), new_reader(bench, "b")]
    for log_id in ("a", "b"):
        bench.ask(DeletePartition(log_id))
        create(bench, log_id)
    new = [new_reader(bench, "b"), new_reader(bench, "a")]
    assert len({*gone, *new}) == 4
    for reader_id in gone:
        bench.ask(CloseReader("a", reader_id))
        [refused] = bench.ask(ReadEvents("a", reader_id, 100, 0))
        assert isinstance(refused, Refusal)
    assert bench.ask(ReadEvents("a", new[1], 100, 0)) == [EventsRead(new[1], 0, 0, b"")]


def test_a_producer_of_a_partition_that_is_gone_closes_none_of_another(bench: Any) -> None:
    create(bench, "b")
    gone = [new_producer(bench, "a"), new_producer(bench, "b")]
    for log_id in ("a", "b"):
        bench.ask(DeletePartition(log_id))
        create(bench, log_id)
    new = [new_producer(bench, "b"), new_producer(bench, "a")]
    assert len({*gone, *new}) == 4
    for opening_id in gone:
        bench.ask(CloseProducer("a", opening_id))
        [refused] = bench.ask(AppendNumbered("a", opening_id, bytearray()))
        assert isinstance(refused, Refusal) and "not open here any more" in refused.text
    [refused] = bench.ask(AppendNumbered("a", new[1], bytearray()))
    assert isinstance(refused, Refusal) and "is empty" in refused.text, "it is open"


def test_two_brokers_of_one_process_share_neither_caps_nor_ids() -> None:
    env = SimulatedEnv()
    clock, deadlines = TrustedClock(env), BrokerDeadlines(env)

    def tools() -> PartitionTools:
        counters = Counters()
        captures = Captures(env, deadlines, clock, counters, Alarms(env, counters), None)
        return PartitionTools(env, deadlines, clock, counters, lambda push: None, captures)

    one, other = tools(), tools()
    assert one.capped.set("ns", is_on=True, now_ms=0)
    assert one.capped.new_cap("ns") is not None and other.capped.new_cap("ns") is None
    # Histories are repeated by their seed: what one broker gives must not show in another.
    assert [next(one.reader_ids), next(one.reader_ids), next(other.reader_ids)] == [1, 2, 1]
    assert [next(one.opening_ids), next(one.opening_ids), next(other.opening_ids)] == [1, 2, 1]
