"""Reads that wait: woken in the turn in which events become visible, or ended by time, cancel or close."""

from typing import Any

import pytest

from hubweir.broker.commands.partition import AppendEvents, EventsAppended
from hubweir.broker.commands.process import AskCounters, Done, Refusal
from hubweir.broker.commands.reader import (
    CancelRead,
    CloseReader,
    EventsRead,
    ReaderClosed,
    ReadEvents,
)
from hubweir.broker.tests.reader_steps import ME, append, open_reader, planted
from hubweir.event_hub.event_position import LATEST


def test_a_waiting_read_is_answered_inside_the_call_that_makes_events_visible(bench: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents("a", reader, 100, 60_000))
    append(bench, b"abc")
    assert answers == []
    bench.log.complete()
    assert answers == [EventsRead(reader, 0, 3, b"abc")]
    bench.env.pass_time(60_000)  # the timer of its deadline finds nothing to answer
    assert len(answers) == 1 and bench.armed == 1  # only the sweep's


@pytest.mark.parametrize(("before_ms", "wait_ms"), [(60_000, 250), (250, 400)], ids=["longer", "shorter"])
def test_a_read_behind_one_that_waited_otherwise_is_answered_in_its_own_time(
    bench: Any, before_ms: int, wait_ms: int
) -> None:
    reader = open_reader(bench)
    bench.ask(ReadEvents("a", reader, 100, before_ms))
    append(bench, b"abc")
    bench.log.complete()
    answers = bench.ask(ReadEvents("a", reader, 100, wait_ms))
    bench.env.pass_time(wait_ms - 1)
    assert answers == []
    bench.env.pass_time(1)
    assert answers == [EventsRead(reader, 3, 3, b"")]


def test_a_closed_reader_leaves_no_deadline(bench: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents("a", reader, 100, 60_000))
    append(bench, b"abc")
    bench.log.complete()
    assert bench.ask(CloseReader("a", reader)) == [Done()]
    assert len(answers) == 1 and bench.armed == 1  # only the sweep's


def test_all_waiting_readers_are_woken_by_one_append(bench: Any) -> None:
    waiting = [bench.ask(ReadEvents("a", open_reader(bench), 100, 60_000)) for _ in range(5)]
    append(bench, b"x")
    bench.log.complete()
    assert [len(answers) for answers in waiting] == [1] * 5


def test_a_read_is_answered_empty_when_its_time_is_over(bench: Any) -> None:
    reader = open_reader(bench, LATEST)
    answers = bench.ask(ReadEvents("a", reader, 100, 250))
    bench.env.pass_time(249)
    assert answers == []
    bench.env.pass_time(1)
    assert answers == [EventsRead(reader, 0, 0, b"")]
    append(bench, b"x")
    bench.log.complete()
    assert len(answers) == 1


def test_a_cancelled_read_is_answered_empty_and_the_reader_reads_on(bench: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents("a", reader, 100, 60_000))
    assert bench.ask(CancelRead("a", reader)) == [Done()]
    assert answers == [EventsRead(reader, 0, 0, b"")]
    append(bench, b"x")
    bench.log.complete()
    assert bench.ask(ReadEvents("a", reader, 100, 0)) == [EventsRead(reader, 0, 1, b"x")]


def test_a_cancelled_cold_read_loses_nothing(bench: Any) -> None:
    append(bench, b"abc")
    bench.log.complete()
    reader = open_reader(bench)
    bench.log.cold = True
    answers = bench.ask(ReadEvents("a", reader, 100, 60_000))
    bench.ask(CancelRead("a", reader))
    bench.log.answer_reads()
    assert answers == [EventsRead(reader, 0, 0, b"")]
    bench.log.cold = False
    assert bench.ask(ReadEvents("a", reader, 100, 0)) == [EventsRead(reader, 0, 3, b"abc")]


def test_a_second_read_is_refused_while_one_is_outstanding(bench: Any) -> None:
    reader = open_reader(bench)
    first = bench.ask(ReadEvents("a", reader, 100, 60_000))
    (second,) = bench.ask(ReadEvents("a", reader, 100, 0))
    assert second.condition.symbol == "amqp:illegal-state"
    assert first == []


def test_what_retention_removed_shows_as_a_jump(bench: Any) -> None:
    append(bench, b"abcdef")
    bench.log.complete()
    reader = open_reader(bench)
    bench.log.first = 4
    assert bench.ask(ReadEvents("a", reader, 100, 0)) == [EventsRead(reader, 4, 6, b"ef")]


def test_a_read_with_no_room_still_gets_one_step(bench: Any) -> None:
    append(bench, b"ab")
    bench.log.complete()
    reader = open_reader(bench)
    assert bench.ask(ReadEvents("a", reader, 0, 0)) == [EventsRead(reader, 0, 1, b"a")]


def test_a_reader_goes_back_to_what_was_not_used_and_never_forward(bench: Any) -> None:
    reader = open_reader(bench)
    append(bench, b"abc")
    bench.log.complete()
    assert bench.ask(ReadEvents("a", reader, 100, 0)) == [EventsRead(reader, 0, 3, b"abc")]
    (again,) = bench.ask(ReadEvents("a", reader, 100, 0, 1))
    assert (again.sequence_number, again.next_sequence_number) == (1, 3)
    assert bench.ask(ReadEvents("a", reader, 100, 0, 50)) == [EventsRead(reader, 3, 3, b"")]


@pytest.mark.parametrize("way", ["woken", "from the disk", "in the end"])
def test_a_fault_in_what_a_reader_is_answered_ends_that_reader_and_nothing_else(
    bench: Any, pushes: list[ReaderClosed], way: str, caplog: pytest.LogCaptureFixture
) -> None:
    faulty, other = open_reader(bench), open_reader(bench)
    bench.log.cold = way == "from the disk"
    bench.broker.submit(ReadEvents("a", faulty, 100, 1_000), planted)
    answers = bench.ask(ReadEvents("a", other, 100, 60_000))
    if way == "from the disk":
        bench.log.answer_reads()  # there is nothing yet: both wait
    if way == "in the end":
        bench.env.pass_time(1_000)
    appended = bench.ask(AppendEvents("a", bytearray(b"abc")))
    bench.log.complete()
    bench.log.answer_reads()
    assert appended == [EventsAppended(0, 3)] and answers == [EventsRead(other, 0, 3, b"abc")]
    [push] = pushes
    assert (push.reader_id, push.owner, push.condition.symbol) == (faulty, ME, "amqp:internal-error")
    (counted,) = bench.ask(AskCounters())
    assert "planted" in caplog.text and counted.values["broker.reader_faults"] == 1
    (refusal,) = bench.ask(ReadEvents("a", faulty, 100, 60_000))
    assert isinstance(refusal, Refusal) and refusal.condition.symbol == "amqp:not-found"


def test_a_read_that_waits_for_the_disk_is_answered_empty_at_its_deadline(bench: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents("a", reader, 100, 250))
    bench.log.cold = True
    append(bench, b"abc")
    bench.log.complete()  # the reader is woken, and what it reads lies on disk
    bench.env.pass_time(249)
    assert answers == []
    bench.env.pass_time(1)
    assert answers == [EventsRead(reader, 0, 0, b"")]
