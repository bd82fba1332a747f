"""Receivers in several sessions that are given messages in one turn: each its own, under locks and ends of its own."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.amqp.types.encode import encode
from hubweir.queue.message_reads import MessageReads
from hubweir.queue.operation import LOCKED
from hubweir.queue.settle_outcome import SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.tests.conftest import bodies, logged, message
from hubweir.queue.tests.session_bench import NAMES, SessionBench, enqueue_in_turn, got_by, waiting


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


def test_each_gets_its_own_messages_under_locks_that_end_with_its_session(sessions: SessionBench) -> None:
    receivers = []
    for name in NAMES:
        receivers.append(sessions.accept(name))
        sessions.run_for(700)
    answers = waiting(sessions, *receivers)
    operations = logged(sessions, LOCKED)
    enqueue_in_turn(sessions, "1", "2")
    got = [got_by(its) for its in answers]
    assert [bodies(its) for its in got] == [[f"{name}1", f"{name}2"] for name in NAMES]
    ends = [receiver.locked_until_ms for receiver in receivers]
    assert len(set(ends)) == 3
    assert [{each.locked_until_ms for each in its} for its in got] == [{end} for end in ends]
    assert [operation.ranges for operation in operations] == [array("q", [1, 6])], "one operation for all of them"
    assert [sessions.settle(its) for its in reversed(got)] == [[SETTLED] * 2] * 3
    assert sessions.fragment.counts().active == 0


def test_who_waits_in_a_session_that_has_nothing_more_costs_no_turn(
    sessions: SessionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receivers ask again behind each answer: most of them for what has not come yet."""
    receiver = sessions.accept("a")
    sessions.send("1", session="a")
    assert bodies(sessions.receive(receiver)) == ["1"]
    sessions.run_for(100)
    turns: list[int] = []
    monkeypatch.setattr(sessions.fragment.core, "wake", lambda: turns.append(1))
    [came] = waiting(sessions, receiver)
    monkeypatch.undo()
    assert turns == []
    sessions.send("2", session="a")
    assert bodies(got_by(came)) == ["2"]
    sessions.send("3", session="a")
    [came] = waiting(sessions, receiver)
    sessions.run_for(1)
    assert bodies(got_by(came)) == ["3"], "what came before it asked"


def test_messages_in_two_runs_of_the_log_are_read_for_one_session_and_taken_for_the_next(
    sessions: SessionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first session has a message in the first run alone; the second one's needs the second run to be read."""
    receivers = [sessions.accept(name) for name in NAMES]
    enqueue_in_turn(sessions, "1")
    sessions.enqueue(message("b2", session="b"), message("c2", session="c"))
    begun: list[list[int]] = []
    begin = MessageReads.begin

    def watched(reads: MessageReads, indexes: array[int], *given: Any) -> None:
        begun.append(indexes.tolist())
        begin(reads, indexes, *given)

    monkeypatch.setattr(MessageReads, "begin", watched)
    answers = waiting(sessions, *receivers)
    sessions.run_for(50)
    assert [bodies(got_by(its)) for its in answers] == [["a1"], ["b1", "b2"], ["c1", "c2"]]
    assert len(begun) == 2 and [len(each) for each in begun] == [1, 2], "nothing is read for the third"


def test_what_was_changed_of_a_message_comes_with_it_and_with_no_other(sessions: SessionBench) -> None:
    receivers = [sessions.accept(name) for name in NAMES]
    answers = waiting(sessions, *receivers)
    enqueue_in_turn(sessions, "1")
    first = [got_by(its) for its in answers]
    details = SettleDetails(properties=encode({"k": "v"}))
    assert sessions.settle(first[1], SettleOutcome.ABANDON, details=details) == [SETTLED]
    for its in (first[0], first[2]):
        assert sessions.settle(its, SettleOutcome.ABANDON) == [SETTLED]
    answers = waiting(sessions, *receivers)
    sessions.run_for(50)
    again = [each for its in answers for each in got_by(its)]
    assert [(each.body, each.deliveries, each.properties) for each in again] == [
        (b"a1", 1, None), (b"b1", 1, {"k": "v"}), (b"c1", 1, None),
    ]  # fmt: skip
