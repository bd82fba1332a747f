"""A reader with an epoch is opened when those that it displaces are gone, and never waits longer than its limit."""

from typing import Any

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.broker.commands.reader import (
    CloseReader,
    ConfirmReaderClosed,
    OpenReader,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
)
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.broker.departures import DEPARTURE_LIMIT_MS, Departures
from hubweir.broker.tests.conftest import HandEnv
from hubweir.event_hub.event_position import EARLIEST, EventPosition, PositionKind

OLD, NEW, OTHER = Owner(1, 1), Owner(2, 1), Owner(3, 1)
STOLEN = "amqp:link:stolen"


def opening(
    owner: Owner, epoch: int | None, *, group: str = "g", name: str | None = None, cold: bool = False
) -> OpenReader:
    position = EventPosition(PositionKind.OFFSET, 1) if cold else EARLIEST
    return OpenReader("a", owner, group, position, epoch, name)


def test_the_winner_is_opened_when_the_losers_link_is_confirmed_detached(
    bench: Any, pushes: list[ReaderClosed]
) -> None:
    bench.ask(opening(OLD, 1, name="old"))
    read = bench.ask(ReadEvents("a", 1, 100, 60_000))
    answers = bench.ask(opening(NEW, 1, name="new"))
    assert [refusal.condition.symbol for refusal in read] == [STOLEN]
    assert [(push.reader_id, push.owner, push.condition.symbol) for push in pushes] == [(1, OLD, STOLEN)]
    assert "'new'" in pushes[0].text and "'old'" in pushes[0].text
    assert answers == []
    assert bench.ask(CloseReader("a", 1)) == [Done()]  # says nothing about the detach
    assert answers == []
    assert bench.ask(ConfirmReaderClosed("a", 1)) == [Done()]
    assert answers == [ReaderOpened(2, 0)]
    assert bench.armed == 1  # only the sweep's


def test_all_displaced_readers_have_to_be_confirmed(bench: Any, pushes: list[ReaderClosed]) -> None:
    for _ in range(3):
        bench.ask(opening(OLD, None))
    answers = bench.ask(opening(NEW, 0))
    assert [push.reader_id for push in pushes] == [1, 2, 3]
    for reader_id in (2, 1, 3):
        assert answers == []
        bench.ask(ConfirmReaderClosed("a", reader_id))
    assert answers == [ReaderOpened(4, 0)]


def test_a_gateway_that_does_not_confirm_holds_the_winner_up_for_two_seconds_only(bench: Any) -> None:
    bench.ask(opening(OLD, 1))
    answers = bench.ask(opening(NEW, 2))
    bench.env.pass_time(DEPARTURE_LIMIT_MS - 1)
    assert answers == []
    bench.env.pass_time(1)
    assert answers == [ReaderOpened(2, 0)]
    assert DEPARTURE_LIMIT_MS == 2_000


@pytest.mark.parametrize("gone", [OLD, Owner(OLD.process, -1)])
def test_the_end_of_the_losers_peer_is_as_good_as_its_word(bench: Any, gone: Owner) -> None:
    bench.ask(opening(OLD, 1))
    answers = bench.ask(opening(NEW, 2))
    bench.ask(CloseOwner(OTHER))
    assert answers == []
    bench.ask(CloseOwner(gone))
    assert answers == [ReaderOpened(2, 0)]


def test_who_waits_can_be_displaced_and_the_next_waits_for_the_first(bench: Any, pushes: list[ReaderClosed]) -> None:
    bench.ask(opening(OLD, 1))
    waiting = bench.ask(opening(NEW, 2, name="second"))
    last = bench.ask(opening(OTHER, 3))
    assert [answer.condition.symbol for answer in waiting] == [STOLEN]
    assert [push.reader_id for push in pushes] == [1]  # the second has no link yet
    assert last == []
    bench.ask(ConfirmReaderClosed("a", 1))
    assert last == [ReaderOpened(3, 0)]


def test_who_waits_counts_for_those_who_come(bench: Any) -> None:
    bench.ask(opening(OLD, 1))
    bench.ask(opening(NEW, 5, name="waiting"))
    (lower,) = bench.ask(opening(OTHER, 4))
    assert isinstance(lower, Refusal) and "'waiting' with a higher epoch '5' already exists" in lower.text
    (without,) = bench.ask(opening(OTHER, None))
    assert isinstance(without, Refusal) and without.condition.symbol == STOLEN


def test_the_end_of_the_waiting_readers_peer_frees_its_place(bench: Any) -> None:
    bench.ask(opening(OLD, 1))
    answers = bench.ask(opening(NEW, 2))
    bench.ask(CloseOwner(NEW))
    assert [answer.condition.symbol for answer in answers] == ["amqp:link:detach-forced"]
    bench.ask(ConfirmReaderClosed("a", 1))
    assert len(answers) == 1
    assert bench.ask(opening(OTHER, None)) == [ReaderOpened(3, 0)]


def test_other_groups_and_the_same_group_in_another_case(bench: Any) -> None:
    bench.ask(opening(OLD, 1, group="Reports"))
    assert bench.ask(opening(NEW, 1, group="other")) == [ReaderOpened(2, 0)]
    assert bench.ask(opening(NEW, 1, group="REPORTS")) == []


def test_a_reader_with_an_impossible_position_displaces_nobody(bench: Any, pushes: list[ReaderClosed]) -> None:
    bench.ask(opening(OLD, 1))
    beyond = EventPosition(PositionKind.SEQUENCE_NUMBER, 99)
    (answer,) = bench.ask(OpenReader("a", NEW, "g", beyond, 9, None))
    assert answer.condition.symbol == "com.microsoft:argument-error"
    assert pushes == []


def test_the_sixth_reader_comes_in_when_one_of_five_has_left(bench: Any) -> None:
    for number in range(5):
        bench.ask(opening(Owner(1, number), None, name=f"r{number}" if number else None))
    (refused,) = bench.ask(opening(NEW, None))
    assert refused.condition.symbol == "amqp:resource-limit-exceeded" and "nil, r1, r2, r3, r4" in refused.text
    bench.ask(CloseReader("a", 3))
    assert bench.ask(opening(NEW, None)) == [ReaderOpened(7, 0)]


def test_when_an_epoch_reader_leaves_its_epoch_is_forgotten(bench: Any) -> None:
    bench.ask(opening(OLD, 9))
    bench.ask(CloseReader("a", 1))
    assert bench.ask(opening(NEW, 0)) == [ReaderOpened(2, 0)]


def test_stopping_refuses_who_waits(bench: Any) -> None:
    bench.ask(opening(OLD, 1))
    answers = bench.ask(opening(NEW, 2))
    bench.broker.stop(lambda: None)
    assert [answer.condition.symbol for answer in answers] == ["amqp:link:detach-forced"]
    bench.env.pass_time(DEPARTURE_LIMIT_MS)
    assert len(answers) == 1
    assert bench.env.timers == 0


def test_who_waits_in_another_group_is_not_opened_by_the_end_of_a_reader_here(bench: Any) -> None:
    """It would read beside the reader that it displaced. (Promise P6)"""
    for group in ("one", "another"):
        bench.ask(opening(OLD, 1, group=group))
    here, there = (bench.ask(opening(NEW, 2, group=group)) for group in ("one", "another"))
    bench.ask(ConfirmReaderClosed("a", 1))
    assert here == [ReaderOpened(3, 0)] and there == []
    bench.ask(ConfirmReaderClosed("a", 2))
    assert there == [ReaderOpened(4, 0)]


def test_behind_the_end_nobody_leaves_and_nobody_is_called() -> None:
    env, went = HandEnv(), list[str]()
    departures = Departures(BrokerDeadlines(env))  # type: ignore[arg-type]
    departures.begin(1, "here", OLD)
    departures.wait(2, "here", lambda: went.append("waited"))
    departures.close()
    assert env.timers == 0
    departures.wait(3, "here", lambda: went.append("came behind the end"))
    departures.end(1)
    assert went == ["came behind the end"]
