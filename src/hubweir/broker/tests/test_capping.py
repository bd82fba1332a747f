"""A capped partition: what it lets in and out, and what failed sends and reads give back."""

import logging
from typing import Any

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.partition import AppendEvents, CreatePartition, DeletePartition, EventsAppended
from hubweir.broker.commands.process import CapPartitions, Done, Refusal
from hubweir.broker.commands.producer import AppendNumbered, OpenProducer
from hubweir.broker.commands.reader import CancelRead, EventsRead, OpenReader, ReadEvents
from hubweir.broker.tests.numbered_world import transfer
from hubweir.broker.throttle_lines import QUIET_MS
from hubweir.errors import SERVER_BUSY, DiskFull, LogOffline
from hubweir.event_hub.event_position import EARLIEST
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.record import Producer
from hubweir.service_log import PARTITION_THROTTLED, PARTITION_THROTTLED_OVER, Line

ME = Owner(1, 7)


def send(bench: Any, events: int, *, run: bytes = b"x", size_bytes: int = 10) -> Any:
    """One append that counts for this many events; its answer."""
    answers = bench.ask(AppendEvents("a", bytearray(run), events, size_bytes))
    bench.log.complete()
    (answer,) = answers
    return answer


def test_without_caps_everything_passes(bench: Any) -> None:
    assert isinstance(send(bench, 1_000_000), EventsAppended)
    assert isinstance(send(bench, 1_000_000), EventsAppended)


def test_a_capped_partition_takes_one_unit_and_refuses_the_rest_as_known(bench: Any) -> None:
    assert bench.ask(CapPartitions(True)) == [Done()]
    assert isinstance(send(bench, 1_000), EventsAppended)
    refusal = send(bench, 1)
    assert isinstance(refusal, Refusal) and refusal.known
    assert refusal.condition.symbol == "com.microsoft:server-busy"
    assert "Partition '" in refusal.text
    bench.env.pass_time(1)
    assert isinstance(send(bench, 1), EventsAppended)
    assert isinstance(send(bench, 1), Refusal)


def test_caps_are_lifted_while_running_and_saying_it_twice_gives_nothing_away(bench: Any) -> None:
    bench.ask(CapPartitions(True))
    send(bench, 1_000)
    bench.ask(CapPartitions(True))
    assert isinstance(send(bench, 1), Refusal)
    bench.ask(CapPartitions(False))
    assert isinstance(send(bench, 5_000), EventsAppended)


def test_caps_of_one_namespace_leave_the_partitions_of_another_alone(bench: Any) -> None:
    bench.ask(CapPartitions(True, "another"))
    assert isinstance(send(bench, 5_000), EventsAppended)
    bench.ask(CapPartitions(True))
    bench.ask(CapPartitions(False, "another"))
    assert isinstance(send(bench, 1_000), EventsAppended)
    assert isinstance(send(bench, 1), Refusal)
    bench.ask(CapPartitions(True, "another"))
    assert isinstance(send(bench, 1), Refusal), "what it has used it has not back"


def test_bytes_count_as_they_came_not_as_they_are_stored(bench: Any) -> None:
    bench.ask(CapPartitions(True))
    assert isinstance(send(bench, 1, size_bytes=1_048_576), EventsAppended)
    assert isinstance(send(bench, 1), Refusal)


@pytest.mark.parametrize("is_known", [True, False, None])
def test_a_send_that_is_certainly_not_stored_takes_nothing_of_its_partitions_unit(
    bench: Any, is_known: bool | None
) -> None:
    """None: it is refused at once. What may be stored has used its part."""
    bench.ask(CapPartitions(True))
    if is_known is None:
        bench.log.fail_with = DiskFull("no space")
    answers = bench.ask(AppendEvents("a", bytearray(b"x"), 1_000, 10))
    if is_known is not None:
        bench.log.complete(Refused(LogOffline("a sync failed"), known=is_known))
    bench.log.fail_with = None
    assert isinstance(answers[0], Refusal) and answers[0].known == (is_known is not False)
    again = send(bench, 1_000)
    assert isinstance(again, Refusal if is_known is False else EventsAppended)


def test_a_numbered_send_that_is_refused_at_once_takes_nothing_of_its_partitions_unit(bench: Any) -> None:
    (opened,) = bench.ask(OpenProducer("a", ME, 7, 0, 0))
    bench.ask(CapPartitions(True))
    bench.log.fail_with = DiskFull("no space")
    run = transfer(Producer(7, 0, 1), 1)
    (refused,) = bench.ask(AppendNumbered("a", opened.opening_id, run, 1_000, 10))
    assert isinstance(refused, Refusal) and refused.known
    bench.log.fail_with = None
    assert isinstance(send(bench, 1_000), EventsAppended)


def test_a_send_that_fails_without_a_cap_is_refused_as_any_other(bench: Any) -> None:
    bench.log.fail_with = DiskFull("no space")
    [refused] = bench.ask(AppendEvents("a", bytearray(b"x"), 1_000, 10))
    assert refused == Refusal(SERVER_BUSY, "no space", True)


def test_reads_over_the_cap_are_answered_when_they_are_due(bench: Any) -> None:
    (opened,) = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, None, None))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 5_120)
    (first,) = bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    assert first.next_sequence_number == 4_096
    answers = bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    bench.env.pass_time(249)
    assert answers == []
    bench.env.pass_time(1)  # 1,024 events are a quarter of a second
    assert answers == [EventsRead(opened.reader_id, 4_096, 5_120, b"e" * 1_024)]


def test_what_a_read_got_after_it_waited_for_the_cap_is_not_given_back(bench: Any) -> None:
    """Given back, it would let the reader have every event twice as fast as a unit allows, for as long as it waits."""
    (opened,) = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, None, None))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 16_384)
    bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    waited: list[int] = []
    for _ in range(3):
        answers = bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
        began_ms = bench.env.elapsed_ms
        while not answers:
            bench.env.pass_time(10)
        waited.append(bench.env.elapsed_ms - began_ms)
    assert waited == [1_000] * 3


def test_a_read_that_is_given_up_while_it_waits_gives_its_part_back_and_loses_nothing(bench: Any) -> None:
    (opened,) = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, None, None))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 8_192)
    bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    answers = bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    bench.ask(CancelRead("a", opened.reader_id))
    assert answers == [EventsRead(opened.reader_id, 4_096, 4_096, b"")]
    again = bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    bench.env.pass_time(999)
    assert again == []
    bench.env.pass_time(1)
    assert again[0].sequence_number == 4_096


def test_events_that_the_cap_held_back_for_a_read_that_was_given_up_are_read_by_the_next(bench: Any) -> None:
    (opened,) = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, None, None))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 8_192)
    bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    bench.ask(CancelRead("a", opened.reader_id))
    bench.env.pass_time(5_000)
    (answer,) = bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    assert (answer.sequence_number, answer.next_sequence_number) == (4_096, 8_192)


def test_a_partition_that_comes_later_is_capped_as_those_before(bench: Any) -> None:
    bench.ask(CapPartitions(True))
    assert bench.ask(CreatePartition("b", "hub", "1", Durability.DURABLE, 3_600_000)) == [Done()]
    assert bench.ask(AppendEvents("b", bytearray(b"x"), 1_000, 10)) == []
    (refusal,) = bench.ask(AppendEvents("b", bytearray(b"x"), 1, 10))
    assert isinstance(refusal, Refusal) and refusal.condition.symbol == "com.microsoft:server-busy"


def lines(caplog: pytest.LogCaptureFixture) -> list[Line]:
    return [record.msg for record in caplog.records if isinstance(record.msg, Line)]


def test_the_log_is_told_when_a_partition_is_over_its_unit_and_when_that_is_over(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.ask(CapPartitions(True))
    send(bench, 1_000)
    assert lines(caplog) == []
    refusal = send(bench, 1)
    send(bench, 1)
    [began] = lines(caplog)
    assert began.kind is PARTITION_THROTTLED
    assert str(began) == f"partition 0 of event hub 'orders' in namespace  is throttled: {refusal.text}"
    bench.env.pass_time(QUIET_MS)
    over = lines(caplog)[-1]
    assert over.kind is PARTITION_THROTTLED_OVER
    assert over.fields == {
        "namespace": "", "hub": "orders", "partition": "0", "seconds": 0, "refused": 2, "waited": 0,
    }  # fmt: skip


def test_the_log_is_told_of_reads_that_wait_for_a_partition_s_unit(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (opened,) = bench.ask(OpenReader("a", ME, "$Default", EARLIEST, None, None))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 5_120)
    bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    assert lines(caplog) == []
    bench.ask(ReadEvents("a", opened.reader_id, 4_096, 60_000))
    [began] = lines(caplog)
    assert "readers wait: 1 throughput unit lets 2097152 bytes or 4096 events a second out" in str(began)
    bench.env.pass_time(QUIET_MS)
    assert lines(caplog)[-1].fields["waited"] == 1


@pytest.mark.parametrize("is_deleted", [True, False])
def test_no_line_comes_of_a_partition_that_is_gone_or_given_up(
    bench: Any, caplog: pytest.LogCaptureFixture, is_deleted: bool
) -> None:
    caplog.set_level(logging.INFO)
    bench.ask(CapPartitions(True))
    send(bench, 1_000)
    send(bench, 1)
    if is_deleted:
        bench.ask(DeletePartition("a"))
    else:
        bench.broker.stop(lambda: None)
    bench.env.pass_time(2 * QUIET_MS)
    assert [line.kind for line in lines(caplog)] == [PARTITION_THROTTLED]
