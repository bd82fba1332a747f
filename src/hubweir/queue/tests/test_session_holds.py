"""Message sessions: one holder at a time, messages in order, a state of their own."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.errors import (
    MESSAGE_NOT_FOUND,
    NOT_ALLOWED,
    SESSION_CANNOT_BE_LOCKED,
    SESSION_LOCK_LOST,
    TIMED_OUT,
    ServiceError,
)
from hubweir.queue.fragment import FragmentReceiver
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SESSION_LOCK_LOST as LOST_CODE
from hubweir.queue.settle_outcome import SETTLED, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import PEEK_LOCK, QueueBench, bodies
from hubweir.testing.memory_faults import Fault


class SessionBench(QueueBench):
    """A bench whose entity requires sessions."""

    lost: list[tuple[str | None, ServiceError]]

    def __init__(self, **settings: Any) -> None:
        self.lost = []
        super().__init__(FragmentSettings(requires_session=True, lock_duration_ms=10_000, **settings))

    def accept(self, session_id: str | None = None, *, wait_ms: int = 0) -> FragmentReceiver:
        answers: list[Any] = []
        self.fragment.accept_session(
            session_id, PEEK_LOCK, self.times(), wait_ms=wait_ms, on_done=answers.append, on_lost=self._lost
        )
        self.run_for(wait_ms + 1)
        (answer,) = answers
        if isinstance(answer, ServiceError):
            raise answer
        assert isinstance(answer, FragmentReceiver)
        return answer

    def _lost(self, receiver: FragmentReceiver, error: ServiceError) -> None:
        self.lost.append((receiver.session_id, error))

    def close(self, receiver: FragmentReceiver) -> None:
        self.fragment.close_receiver(receiver)
        self.run_for(1)


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


def set_state(bench: SessionBench, session_id: str, state: bytes | None) -> None:
    answer = bench.answer(lambda on_done: bench.fragment.set_session_state(session_id, state, bench.times(), on_done))
    assert answer is None


def test_a_state_is_read_back_cleared_and_kept_without_messages_over_a_restart(sessions: SessionBench) -> None:
    receiver = sessions.accept("a")
    assert sessions.fragment.session_state("a") is None
    set_state(sessions, "a", b"half done")
    assert sessions.fragment.session_state("a") == b"half done"
    sessions.close(receiver)
    with pytest.raises(ServiceError) as refused:
        sessions.fragment.session_state("a")
    assert refused.value.condition is SESSION_LOCK_LOST
    sessions.restart()
    sessions.accept("a")
    assert sessions.fragment.session_state("a") == b"half done"
    set_state(sessions, "a", b"")
    assert sessions.fragment.session_state("a") == b""
    set_state(sessions, "a", None)
    sessions.restart()
    sessions.accept("a")
    assert sessions.fragment.session_state("a") is None


def test_sessions_with_messages_or_state_are_listed_in_pages(sessions: SessionBench) -> None:
    for place in range(121):
        sessions.send("x", session=f"s{place:03}")
    sessions.accept("only state")
    set_state(sessions, "only state", b"1")
    sessions.accept("neither")

    def listed(skip: int) -> tuple[str, ...]:
        return sessions.fragment.list_sessions(updated_after_ms=None, skip=skip, top=100)

    assert len(listed(0)) == 100 and listed(0)[:2] == ("s000", "s001")
    assert listed(100)[-1] == "only state" and len(listed(100)) == 22
    assert listed(122) == ()


def test_sessions_are_listed_by_when_their_state_changed(sessions: SessionBench) -> None:
    sessions.send("x", session="no state")
    for name in ("old", "new"):
        sessions.accept(name)
        sessions.run_for(1_000)
        set_state(sessions, name, b"1")
        if name == "old":
            between = sessions.now_ms()
    assert sessions.fragment.list_sessions(updated_after_ms=between, skip=0, top=10) == ("new",)
    assert sessions.fragment.list_sessions(updated_after_ms=0, skip=0, top=10) == ("old", "new")
    assert sessions.fragment.list_sessions(updated_after_ms=sessions.now_ms() + 5, skip=0, top=10) == ()


def test_deferred_messages_of_a_session_are_received_by_its_holder(sessions: SessionBench) -> None:
    sessions.send("1", session="a")
    sessions.send("2", session="b")
    sessions.settle(sessions.receive(sessions.accept("a")), SettleOutcome.DEFER)
    sessions.accept("b")

    def deferred(session_id: str) -> Any:
        return sessions.answer(
            lambda on_done: sessions.fragment.receive_deferred(
                SubQueue.MAIN, array("q", [1]), PEEK_LOCK, sessions.times(), on_done, session_id=session_id
            )
        )

    with pytest.raises(ServiceError) as refused:
        deferred("b")
    assert refused.value.condition is MESSAGE_NOT_FOUND
    with pytest.raises(ServiceError) as refused:
        deferred("nobody")
    assert refused.value.condition is SESSION_LOCK_LOST
    assert len(deferred("a").rows)


def test_peeking_at_a_session_shows_its_messages_alone(sessions: SessionBench) -> None:
    for body, name in (("a1", "a"), ("b1", "b"), ("a2", "a")):
        sessions.send(body, session=name)
    assert bodies(sessions.peek(session="a")) == ["a1", "a2"]
    assert bodies(sessions.peek(2, session="a")) == ["a2"]
    assert sessions.peek(session="c") == []


def test_a_scheduled_message_joins_its_session_when_it_is_due(sessions: SessionBench) -> None:
    sessions.send("2", session="a", scheduled_ms=sessions.now_ms() + 5_000)
    with pytest.raises(ServiceError):
        sessions.accept()
    receiver = sessions.accept(wait_ms=6_000)
    assert receiver.session_id == "a"
    sessions.restart()
    assert bodies(sessions.receive(sessions.accept("a"))) == ["2"]


def test_dead_letters_of_a_session_are_received_plainly(sessions: SessionBench) -> None:
    sessions.send("1", session="a")
    sessions.settle(sessions.receive(sessions.accept("a")), SettleOutcome.DEAD_LETTER)
    (dead,) = sessions.receive(sessions.receiver(SubQueue.DEAD_LETTERS))
    assert sessions.settle([dead]) == [SETTLED]
    assert sessions.fragment.counts().dead_lettered == 0


def test_a_session_without_anything_is_forgotten(sessions: SessionBench) -> None:
    for place in range(50):
        sessions.send("1", session=f"s{place}")
        receiver = sessions.accept(f"s{place}")
        sessions.complete(sessions.receive(receiver))
        sessions.close(receiver)
    assert not sessions.fragment._core.state.sessions.by_id


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


def test_the_lock_of_a_dead_letter_is_renewed_by_itself_though_its_session_is_held(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    sessions.settle(sessions.receive(sessions.accept("a"), max_count=1), SettleOutcome.DEAD_LETTER)
    (dead,) = sessions.receive(sessions.receiver(SubQueue.DEAD_LETTERS))
    sessions.run_for(5_000)
    assert list(sessions.fragment.renew(dead.token, sessions.times())) == [sessions.now_ms() + 10_000]
