"""A capped partition: what it lets in and out, and what failed sends and reads give back."""

from typing import Any

from hubweir.broker.commands import (
    AppendEvents,
    CancelRead,
    CapPartitions,
    Done,
    EventsAppended,
    EventsRead,
    OpenReader,
    Owner,
    ReadEvents,
    Refusal,
)
from hubweir.event_hub.event_position import EARLIEST

ME = Owner(1, 7)


def send(bench: Any, events: int, *, run: bytes = b"x", size_bytes: int = 10) -> Any:
    """One append that counts for this many events; its answer."""
    answers = bench.ask(AppendEvents("a", 1, bytearray(run), events, size_bytes))
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
    assert refusal.symbol == "com.microsoft:server-busy"
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


def test_bytes_count_as_they_came_not_as_they_are_stored(bench: Any) -> None:
    bench.ask(CapPartitions(True))
    assert isinstance(send(bench, 1, size_bytes=1_048_576), EventsAppended)
    assert isinstance(send(bench, 1), Refusal)


def test_reads_over_the_cap_are_answered_when_they_are_due(bench: Any) -> None:
    (opened,) = bench.ask(OpenReader("a", 1, "$Default", EARLIEST, None, None, ME))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 5_120)
    (first,) = bench.ask(ReadEvents(opened.reader_id, 4_096, 60_000))
    assert first.next_sequence_number == 4_096
    answers = bench.ask(ReadEvents(opened.reader_id, 4_096, 60_000))
    bench.env.pass_time(249)
    assert answers == []
    bench.env.pass_time(1)  # 1,024 events are a quarter of a second
    assert answers == [EventsRead(opened.reader_id, 4_096, 5_120, b"e" * 1_024)]


def test_a_read_that_is_given_up_while_it_waits_gives_its_part_back_and_loses_nothing(bench: Any) -> None:
    (opened,) = bench.ask(OpenReader("a", 1, "$Default", EARLIEST, None, None, ME))
    bench.ask(CapPartitions(True))
    send(bench, 1, run=b"e" * 8_192)
    bench.ask(ReadEvents(opened.reader_id, 4_096, 60_000))
    answers = bench.ask(ReadEvents(opened.reader_id, 4_096, 60_000))
    bench.ask(CancelRead(opened.reader_id))
    assert answers == [EventsRead(opened.reader_id, 4_096, 4_096, b"")]
    again = bench.ask(ReadEvents(opened.reader_id, 4_096, 60_000))
    bench.env.pass_time(999)
    assert again == []
    bench.env.pass_time(1)
    assert again[0].sequence_number == 4_096
