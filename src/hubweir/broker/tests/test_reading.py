"""Reads that wait: woken in the turn in which events become visible, or ended by time, cancel or close."""

from typing import Any

import pytest

from hubweir.broker.commands import (
    AppendEvents,
    CancelRead,
    CloseOwner,
    CloseReader,
    Done,
    EventsRead,
    OpenReader,
    Owner,
    ReaderOpened,
    ReadEvents,
)
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind

ME = Owner(1, 7)


def open_reader(bench: Any, position: EventPosition = EARLIEST) -> int:
    (answer,) = bench.ask(OpenReader("a", 1, "$Default", position, None, None, ME))
    assert isinstance(answer, ReaderOpened)
    return answer.reader_id


def append(bench: Any, run: bytes) -> None:
    bench.ask(AppendEvents("a", 1, bytearray(run)))


def test_a_waiting_read_is_answered_inside_the_call_that_makes_events_visible(bench: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents(reader, 100, 60_000))
    append(bench, b"abc")
    assert answers == []
    bench.log.complete()
    assert answers == [EventsRead(reader, 0, 3, b"abc")]
    assert bench.env.timers == 1  # only the sweep's


def test_all_waiting_readers_are_woken_by_one_append(bench: Any) -> None:
    waiting = [bench.ask(ReadEvents(open_reader(bench), 100, 60_000)) for _ in range(5)]
    append(bench, b"x")
    bench.log.complete()
    assert [len(answers) for answers in waiting] == [1] * 5


def test_a_read_is_answered_empty_when_its_time_is_over(bench: Any) -> None:
    reader = open_reader(bench, LATEST)
    answers = bench.ask(ReadEvents(reader, 100, 250))
    bench.env.pass_time(249)
    assert answers == []
    bench.env.pass_time(1)
    assert answers == [EventsRead(reader, 0, 0, b"")]
    append(bench, b"x")
    bench.log.complete()
    assert len(answers) == 1


def test_a_cancelled_read_is_answered_empty_and_the_reader_reads_on(bench: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents(reader, 100, 60_000))
    assert bench.ask(CancelRead(reader)) == [Done()]
    assert answers == [EventsRead(reader, 0, 0, b"")]
    append(bench, b"x")
    bench.log.complete()
    assert bench.ask(ReadEvents(reader, 100, 0)) == [EventsRead(reader, 0, 1, b"x")]


def test_a_cancelled_cold_read_loses_nothing(bench: Any) -> None:
    append(bench, b"abc")
    bench.log.complete()
    reader = open_reader(bench)
    bench.log.cold = True
    answers = bench.ask(ReadEvents(reader, 100, 60_000))
    bench.ask(CancelRead(reader))
    bench.log.answer_reads()
    assert answers == [EventsRead(reader, 0, 0, b"")]
    bench.log.cold = False
    assert bench.ask(ReadEvents(reader, 100, 0)) == [EventsRead(reader, 0, 3, b"abc")]


def test_a_second_read_is_refused_while_one_is_outstanding(bench: Any) -> None:
    reader = open_reader(bench)
    first = bench.ask(ReadEvents(reader, 100, 60_000))
    (second,) = bench.ask(ReadEvents(reader, 100, 0))
    assert second.symbol == "amqp:illegal-state"
    assert first == []


@pytest.mark.parametrize("command", [CloseReader(1), CloseOwner(ME)], ids=lambda command: type(command).__name__)
def test_closing_ends_the_read_and_the_reader(bench: Any, command: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents(reader, 100, 60_000))
    bench.ask(command)
    assert answers == [EventsRead(reader, 0, 0, b"")]
    assert bench.ask(ReadEvents(reader, 100, 0))[0].symbol == "amqp:not-found"


def test_a_reader_that_is_closed_while_its_position_is_looked_up_never_opens(bench: Any) -> None:
    append(bench, b"abcdef")
    bench.log.complete()
    bench.log.first = 1
    answers = bench.ask(OpenReader("a", 1, "g", EventPosition(PositionKind.OFFSET, 3, True), None, None, ME))
    assert answers == []
    bench.ask(CloseOwner(ME))
    bench.log.answer_reads()
    assert answers[0].symbol == "amqp:link:detach-forced"


def test_a_position_that_is_looked_up_later_opens_there(bench: Any) -> None:
    append(bench, b"abcdef")
    bench.log.complete()
    answers = bench.ask(OpenReader("a", 1, "g", EventPosition(PositionKind.OFFSET, 3, True), None, None, ME))
    bench.log.answer_reads()
    assert answers == [ReaderOpened(1, 3)]
    assert bench.ask(ReadEvents(1, 100, 0)) == [EventsRead(1, 3, 6, b"def")]


def test_what_retention_removed_shows_as_a_jump(bench: Any) -> None:
    append(bench, b"abcdef")
    bench.log.complete()
    reader = open_reader(bench)
    bench.log.first = 4
    assert bench.ask(ReadEvents(reader, 100, 0)) == [EventsRead(reader, 4, 6, b"ef")]


def test_a_read_with_no_room_still_gets_one_step(bench: Any) -> None:
    append(bench, b"ab")
    bench.log.complete()
    reader = open_reader(bench)
    assert bench.ask(ReadEvents(reader, 0, 0)) == [EventsRead(reader, 0, 1, b"a")]


def test_a_reader_goes_back_to_what_was_not_used_and_never_forward(bench: Any) -> None:
    reader = open_reader(bench)
    append(bench, b"abc")
    bench.log.complete()
    assert bench.ask(ReadEvents(reader, 100, 0)) == [EventsRead(reader, 0, 3, b"abc")]
    (again,) = bench.ask(ReadEvents(reader, 100, 0, 1))
    assert (again.sequence_number, again.next_sequence_number) == (1, 3)
    assert bench.ask(ReadEvents(reader, 100, 0, 50)) == [EventsRead(reader, 3, 3, b"")]
