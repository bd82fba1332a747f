"""Message sessions: one holder at a time, messages in order, a state of their own."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.errors import (
    NOT_ALLOWED,
    RESOURCE_LIMIT,
    SESSION_CANNOT_BE_LOCKED,
    SESSION_LOCK_LOST,
    TIMED_OUT,
    Condition,
    ServiceError,
)
from hubweir.queue.message_session import MessageSession
from hubweir.queue.message_table import MessageTable
from hubweir.queue.settle_outcome import SESSION_LOCK_LOST as LOST_CODE
from hubweir.queue.settle_outcome import SETTLED, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import PEEK_LOCK, QueueBench, bodies, message, opened
from hubweir.queue.tests.session_bench import SessionBench, set_state
from hubweir.testing.memory_faults import Fault


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


def test_a_named_session_gives_its_messages_in_order_and_no_others(sessions: SessionBench) -> None:
    for body, name in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("b2", "b")):
        sessions.send(body, session=name)
    receiver = sessions.accept("b")
    assert receiver.session_id == "b" and receiver.locked_until_ms == sessions.now_ms() + 10_000 - 1
    got = sessions.receive(receiver)
    assert bodies(got) == ["b1", "b2"]
    assert {each.locked_until_ms for each in got} == {receiver.locked_until_ms}
    assert sessions.settle(got) == [SETTLED, SETTLED]


def test_an_empty_string_is_a_session_and_one_without_messages_is_granted(sessions: SessionBench) -> None:
    sessions.send("x", session="")
    assert bodies(sessions.receive(sessions.accept(""))) == ["x"]
    assert sessions.accept("nothing there").session_id == "nothing there"


def test_a_message_without_a_session_is_refused_and_so_is_a_plain_receiver(sessions: SessionBench) -> None:
    with pytest.raises(ServiceError) as refused:
        sessions.send("x")
    assert refused.value.condition is NOT_ALLOWED
    with pytest.raises(ServiceError, match="non-sessionful message receiver") as refused:
        sessions.receiver()
    assert refused.value.condition is NOT_ALLOWED
    assert sessions.receiver(SubQueue.DEAD_LETTERS).sub_queue is SubQueue.DEAD_LETTERS


def test_a_session_receiver_of_an_entity_without_sessions_is_refused(bench: QueueBench) -> None:
    with pytest.raises(ServiceError, match="sessionful message receiver cannot be created"):
        bench.fragment.accept_session(
            "a", PEEK_LOCK, bench.times(), wait_ms=0, on_done=lambda answer: None, on_lost=lambda receiver, error: None
        )


def test_a_session_that_is_held_cannot_be_locked(sessions: SessionBench) -> None:
    sessions.accept("a")
    with pytest.raises(ServiceError) as refused:
        sessions.accept("a")
    assert refused.value.condition is SESSION_CANNOT_BE_LOCKED


def test_the_next_free_session_is_the_one_whose_message_is_the_oldest(sessions: SessionBench) -> None:
    for name in ("c", "a", "b", "a"):
        sessions.send(f"{name}!", session=name)
    assert [sessions.accept().session_id for _ in range(3)] == ["c", "a", "b"]
    with pytest.raises(ServiceError) as refused:
        sessions.accept()
    assert refused.value.condition is TIMED_OUT


def test_a_session_is_waited_for_as_long_as_it_was_asked(sessions: SessionBench) -> None:
    answers: list[Any] = []
    sessions.fragment.accept_session(
        None, PEEK_LOCK, sessions.times(), wait_ms=3_000, on_done=answers.append, on_lost=sessions._lost
    )
    sessions.run_for(2_990)
    assert not answers
    sessions.run_for(20)
    assert [answer.condition for answer in answers] == [TIMED_OUT]


def test_those_who_wait_for_a_session_get_one_each_in_their_order(sessions: SessionBench) -> None:
    answers: list[tuple[str, str | None]] = []
    waits = [
        sessions.fragment.accept_session(
            None,
            PEEK_LOCK,
            sessions.times(),
            wait_ms=60_000,
            on_done=lambda answer, name=name: answers.append((name, answer.session_id)),
            on_lost=sessions._lost,
        )  # fmt: skip
        for name in "xyz"
    ]
    assert waits[1] is not None
    waits[1].cancel()
    sessions.send("1", session="s")
    sessions.send("2", session="s")
    sessions.send("3", session="t")
    assert answers == [("x", "s"), ("z", "t")]


def test_messages_keep_their_order_also_over_abandon(sessions: SessionBench) -> None:
    sessions.send("1", "2", "3", session="a")
    receiver = sessions.accept("a")
    got = sessions.receive(receiver, max_count=2)
    sessions.settle([got[1], got[0]], SettleOutcome.ABANDON)
    again = sessions.receive(receiver)
    assert [(each.body, each.deliveries) for each in again] == [(b"1", 1), (b"2", 1), (b"3", 0)]


def test_a_lost_session_gives_its_messages_to_the_next_holder_counted(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    got = sessions.receive(receiver, max_count=1)
    sessions.run_for(10_100)
    assert [(name, error.condition) for name, error in sessions.lost] == [("a", SESSION_LOCK_LOST)]
    assert not receiver.is_open
    assert sessions.settle(got) == [LOST_CODE]
    again = sessions.receive(sessions.accept())
    assert [(each.body, each.deliveries) for each in again] == [(b"1", 1), (b"2", 0)]


def test_a_receiver_that_waits_in_a_session_is_answered_empty_when_it_is_lost(sessions: SessionBench) -> None:
    receiver, answers = sessions.accept("a"), []
    sessions.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    sessions.run_for(10_100)
    (answer,) = answers
    assert len(answer.rows) == 0
    with pytest.raises(ServiceError):
        sessions.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)


def test_a_receiver_hears_that_its_session_is_lost_before_its_receive_is_answered(sessions: SessionBench) -> None:
    """A gateway that heard of the empty answer first would ask again, and tell its client of a closed receiver."""
    heard: list[str] = []
    receiver = sessions.accept("a")
    receiver.on_lost = lambda lost, error: heard.append("lost")
    sessions.fragment.receive(receiver, max_count=1, max_bytes=100, on_done=lambda answer: heard.append("answered"))
    sessions.run_for(10_001)
    assert heard == ["lost", "answered"]


def test_a_renewed_session_is_held_on_and_its_messages_with_it(sessions: SessionBench) -> None:
    sessions.send("1", session="a")
    receiver = sessions.accept("a")
    got = sessions.receive(receiver)
    for _ in range(3):
        sessions.run_for(8_000)
        assert sessions.fragment.renew_session("a", sessions.times()) == sessions.now_ms() + 10_000
    assert list(sessions.fragment.renew(got[0].token, sessions.times())) == [receiver.locked_until_ms]
    assert sessions.settle(got) == [SETTLED]
    sessions.run_for(10_100)
    with pytest.raises(ServiceError) as refused:
        sessions.fragment.renew_session("a", sessions.times())
    assert refused.value.condition is SESSION_LOCK_LOST


def test_a_closed_receiver_frees_its_session_at_once(sessions: SessionBench) -> None:
    sessions.send("1", session="a")
    receiver = sessions.accept("a")
    got = sessions.receive(receiver)
    sessions.close(receiver)
    assert sessions.lost == []
    (again,) = sessions.receive(sessions.accept("a"))
    assert again.deliveries == 1
    assert sessions.settle(got) == [LOST_CODE]


def test_a_completion_that_is_on_its_way_when_the_session_is_freed_still_counts(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    got = sessions.receive(receiver)
    answers: list[Any] = []
    sessions.fragment.settle(got[0].token, SettleOutcome.COMPLETE, sessions.times(), answers.append)
    sessions.fragment.close_receiver(receiver)
    sessions.run_for(100)
    assert answers == [bytes((SETTLED,))]
    assert bodies(sessions.receive(sessions.accept("a"))) == ["2"]


def test_no_session_is_held_after_a_restart(sessions: SessionBench) -> None:
    sessions.send("1", session="a")
    sessions.receive(sessions.accept("a"))
    sessions.restart()
    (got,) = sessions.receive(sessions.accept("a"))
    assert got.deliveries == 1


def test_a_receive_in_a_session_gives_one_message_at_least_and_no_more_bytes_than_it_may(
    sessions: SessionBench,
) -> None:
    sessions.send(*("x" * 400 for _ in range(10)), session="a")
    receiver = sessions.accept("a")
    assert len(sessions.receive(receiver, max_bytes=10)) == 1
    assert len(sessions.receive(receiver, max_bytes=1_000)) == 2


def test_the_locks_of_a_session_that_is_freed_are_over(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    tokens = b"".join(each.token for each in sessions.receive(receiver))
    sessions.close(receiver)
    assert list(sessions.fragment._core.locks.find(tokens, sessions.env.monotonic_ms())[1]) == [0, 0]


def test_a_completion_that_is_refused_after_its_session_was_freed_leaves_the_message_to_the_next_holder(
    sessions: SessionBench,
) -> None:
    sessions.send("1", session="a")
    receiver = sessions.accept("a")
    (got,) = sessions.receive(receiver)
    sessions.env.files.plan(Fault.SYNC_EIO)
    sessions.fragment.settle(got.token, SettleOutcome.COMPLETE, sessions.times(), lambda answer: None)
    sessions.fragment.close_receiver(receiver)
    sessions.run_for(3_000)
    assert bodies(sessions.receive(sessions.accept("a"))) == ["1"]


def test_a_deferred_message_that_was_locked_in_a_session_is_free_when_the_session_is(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    sessions.settle(sessions.receive(sessions.accept("a")), SettleOutcome.DEFER)
    sessions.restart()

    def take() -> Any:
        return sessions.answer(
            lambda on_done: sessions.fragment.receive_deferred(
                SubQueue.MAIN, array("q", [2]), PEEK_LOCK, sessions.times(), on_done, session_id="a"
            )
        )

    for _ in range(2):
        receiver = sessions.accept("a")
        assert len(take().rows)
        sessions.close(receiver)


@pytest.mark.parametrize(("session", "condition"), [(None, NOT_ALLOWED), ("b", SESSION_LOCK_LOST)])
def test_a_deferred_message_of_a_session_is_given_to_nobody_without_it(
    sessions: SessionBench, session: str | None, condition: Condition
) -> None:
    sessions.send("1", session="a")
    holder = sessions.accept("a")
    sessions.settle(sessions.receive(holder), SettleOutcome.DEFER)
    with pytest.raises(ServiceError) as refused:
        sessions.fragment.receive_deferred(
            SubQueue.MAIN, array("q", [1]), PEEK_LOCK, sessions.times(), pytest.fail, session_id=session
        )
    assert refused.value.condition is condition
    assert sessions.fragment.counts().deferred == 1


def test_a_message_for_later_costs_no_look_at_those_of_its_session_that_came_before(
    sessions: SessionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_ms = sessions.now_ms() + 60_000
    granted: list[Any] = []
    sessions.fragment.accept_session(
        None, PEEK_LOCK, sessions.times(), wait_ms=100_000, on_done=granted.append, on_lost=lambda receiver, error: None
    )
    for _ in range(10):
        sessions.send(*["x"] * 100, session="s", scheduled_ms=later_ms)
    looks = 0
    find = MessageTable.find

    def counted(table: MessageTable, count: int) -> Any:
        nonlocal looks
        looks += 1
        return find(table, count)

    monkeypatch.setattr(MessageTable, "find", counted)
    sessions.send("x", session="s", scheduled_ms=later_ms)
    assert looks < 20 and granted == []
    sessions.run_for(61_000)
    assert [each.session_id for each in granted] == ["s"]


def test_a_turn_looks_at_those_alone_who_may_get_something(
    sessions: SessionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred receivers wait, each in its session; what comes for one costs no look at the others."""
    receivers = {f"s{number}": sessions.accept(f"s{number}") for number in range(100)}
    answers: dict[str, list[Any]] = {name: [] for name in receivers}
    for name, receiver in receivers.items():
        sessions.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers[name].append)
    sessions.run_for(5)
    looked: list[bytes] = []
    select = MessageSession.select

    def counted(session: MessageSession, *arguments: Any) -> tuple[int, int]:
        looked.append(session.session_id)
        return select(session, *arguments)

    monkeypatch.setattr(MessageSession, "select", counted)
    sessions.send("x", session="s42")
    assert [name for name, came in answers.items() if came] == ["s42"]
    assert set(looked) == {b"s42"} and len(looked) <= 2


@pytest.mark.parametrize("outcome", [SettleOutcome.ABANDON, SettleOutcome.RELEASE])
def test_who_waits_in_a_session_gets_what_comes_back_to_it(sessions: SessionBench, outcome: SettleOutcome) -> None:
    """It asked while its message was locked, and nobody looked at it since."""
    sessions.send("x", session="s")
    receiver = sessions.accept("s")
    got, answers = sessions.receive(receiver), list[Any]()
    sessions.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, on_done=answers.append)
    sessions.run_for(100)
    assert not answers
    sessions.settle(got, outcome)
    assert [bodies(opened(each)) for each in answers] == [["x"]]


def test_states_of_sessions_count_for_the_size_of_their_queue_and_are_refused_above_it() -> None:
    bench = SessionBench(max_size_bytes=1_000)
    for name in ("a", "b", "c"):
        bench.accept(name)
    set_state(bench, "a", bytes(600))
    assert bench.fragment.counts().size_bytes == 600
    with pytest.raises(ServiceError) as refused:
        set_state(bench, "b", bytes(401))
    assert refused.value.condition is RESOURCE_LIMIT
    with pytest.raises(ServiceError):
        bench.enqueue(message("x" * 400, session="c"))
    set_state(bench, "b", bytes(400))
    set_state(bench, "a", bytes(500))  # less than before is never refused
    set_state(bench, "b", None)
    bench.restart()
    assert bench.fragment.counts().size_bytes == 500
    bench.accept("a")
    set_state(bench, "a", None)
    assert bench.fragment.counts().size_bytes == 0
