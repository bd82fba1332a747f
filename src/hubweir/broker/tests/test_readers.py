"""Readers are opened where their position is, ended by a close or a fault, and refused afterwards."""

from collections.abc import Callable
from typing import Any

import pytest

from hubweir.broker.commands.process import AskCounters, CloseOwner, Refusal
from hubweir.broker.commands.reader import (
    CloseReader,
    EventsRead,
    OpenReader,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
)
from hubweir.broker.tests.conftest import HandPending
from hubweir.broker.tests.reader_steps import ME, append, open_reader, planted
from hubweir.errors import SERVER_BUSY, LogOffline
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.messaging_store.log import Refused


@pytest.mark.parametrize("command", [CloseReader("a", 1), CloseOwner(ME)], ids=lambda command: type(command).__name__)
def test_closing_ends_the_read_and_the_reader(bench: Any, command: Any) -> None:
    reader = open_reader(bench)
    answers = bench.ask(ReadEvents("a", reader, 100, 60_000))
    bench.ask(command)
    assert answers == [EventsRead(reader, 0, 0, b"")]
    assert bench.ask(ReadEvents("a", reader, 100, 0))[0].condition.symbol == "amqp:not-found"


def test_a_reader_that_is_closed_while_its_position_is_looked_up_never_opens(bench: Any) -> None:
    append(bench, b"abcdef")
    bench.log.complete()
    bench.log.first = 1
    answers = bench.ask(OpenReader("a", ME, "g", EventPosition(PositionKind.OFFSET, 3, True), None, None))
    assert answers == []
    bench.ask(CloseOwner(ME))
    bench.log.answer_reads()
    assert answers[0].condition.symbol == "amqp:link:detach-forced"


def test_a_position_that_is_looked_up_later_opens_there(bench: Any) -> None:
    append(bench, b"abcdef")
    bench.log.complete()
    answers = bench.ask(OpenReader("a", ME, "g", EventPosition(PositionKind.OFFSET, 3, True), None, None))
    bench.log.answer_reads()
    assert answers == [ReaderOpened(1, 3)]
    assert bench.ask(ReadEvents("a", 1, 100, 0)) == [EventsRead(1, 3, 6, b"def")]


def test_a_fault_where_a_position_was_looked_up_ends_the_reader_that_was_to_open(
    bench: Any, pushes: list[ReaderClosed]
) -> None:
    append(bench, b"abc")
    bench.log.complete()
    position = EventPosition(PositionKind.OFFSET, 1, True)
    bench.broker.submit(OpenReader("a", ME, "$Default", position, None, None), planted)
    bench.log.answer_reads()
    assert [push.condition.symbol for push in pushes] == ["amqp:internal-error"]
    (counted,) = bench.ask(AskCounters())
    assert counted.values["broker.readers"] == 0 and counted.values["broker.reader_faults"] == 1
    assert open_reader(bench, LATEST) > 0


def test_a_reader_whose_position_cannot_be_looked_up_is_refused_and_leaves_nothing(bench: Any) -> None:
    """Unanswered, its link would hang; left in the table, it would keep others out."""

    def offline(offset: int, on_done: Callable[[Refused], None]) -> HandPending:
        pending = HandPending(lambda: on_done(Refused(LogOffline("a sync failed"))))
        bench.log.waiting_reads.append(pending)
        return pending

    append(bench, b"abc")
    bench.log.complete()
    bench.log.find_offset = offline
    answers = bench.ask(OpenReader("a", ME, "g", EventPosition(PositionKind.OFFSET, 1, True), 7, None))
    bench.log.answer_reads()
    assert answers == [Refusal(SERVER_BUSY, "a sync failed", True)]
    del bench.log.find_offset
    assert bench.ask(OpenReader("a", ME, "g", EARLIEST, 0, None)) == [ReaderOpened(2, 0)]
