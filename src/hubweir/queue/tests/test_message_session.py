"""What a message session has: its state, its place in lists, its deferred, scheduled and dead-lettered messages."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import pytest

from hubweir.errors import (
    MESSAGE_NOT_FOUND,
    SESSION_LOCK_LOST,
    ServiceError,
)
from hubweir.kernels.queue_contract import I_LENGTH, I_ORDINAL, INCOMING_WIDTH
from hubweir.queue.message_session import MessageSessions
from hubweir.queue.message_table import MessageTable
from hubweir.queue.settle_outcome import SETTLED, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import PEEK_LOCK, bodies
from hubweir.queue.tests.session_bench import SessionBench, set_state


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


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
        return sessions.fragment.list_sessions(updated_after_ms=None, skip=skip, top=100).session_ids

    assert len(listed(0)) == 100 and listed(0)[:2] == ("s000", "s001")
    assert listed(100)[-1] == "only state" and len(listed(100)) == 22
    assert listed(122) == ()
    passed = [
        sessions.fragment.list_sessions(updated_after_ms=None, skip=skip, top=9).passed for skip in (0, 7, 122, 500)
    ]
    assert passed == [0, 7, 122, 122]


def test_sessions_are_listed_by_when_their_state_changed(sessions: SessionBench) -> None:
    sessions.send("x", session="no state")
    for name in ("old", "new"):
        sessions.accept(name)
        sessions.run_for(1_000)
        set_state(sessions, name, b"1")
        if name == "old":
            between = sessions.now_ms()
    assert sessions.fragment.list_sessions(updated_after_ms=between, skip=0, top=10).session_ids == ("new",)
    assert sessions.fragment.list_sessions(updated_after_ms=0, skip=0, top=10).session_ids == ("old", "new")
    assert sessions.fragment.list_sessions(updated_after_ms=sessions.now_ms() + 5, skip=0, top=10).session_ids == ()


def test_a_receive_in_a_session_that_does_not_wait_is_answered_empty_where_others_have_messages(
    sessions: SessionBench,
) -> None:
    sessions.send("1", session="b")
    receiver, answers = sessions.accept("a"), []
    sessions.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, waits=False, on_done=answers.append)
    sessions.run_for(1)
    (answer,) = answers
    assert len(answer.rows) == 0 and receiver.is_open


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


def test_numbers_of_messages_that_are_gone_are_forgotten_and_the_next_ones_come_in_order(
    sessions: SessionBench,
) -> None:
    receiver = sessions.accept("a")
    sessions.send(*map(str, range(700)), session="a")
    session = sessions.fragment.core.state.sessions.by_id[b"a"]
    for first in range(0, 700, 100):
        got = sessions.receive(receiver)
        assert bodies(got) == [str(number) for number in range(first, first + 100)]
        sessions.complete(got)
        assert len(session.counts) <= 256 + 2 * (session.live + len(got))


def test_a_batch_delete_in_a_session_takes_its_messages_alone(sessions: SessionBench) -> None:
    for body, name in (("a1", "a"), ("b1", "b"), ("a2", "a")):
        sessions.send(body, session=name)

    def deleted(session_id: str) -> Any:
        return sessions.answer(
            lambda done: sessions.fragment.delete_messages(
                SubQueue.MAIN, max_count=9, before_ms=sessions.now_ms(), on_done=done, session_id=session_id
            )
        )

    assert [deleted(name) for name in ("a", "nobody")] == [2, 0]
    assert bodies(sessions.peek()) == ["b1"]


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


def test_the_lock_of_a_dead_letter_is_renewed_by_itself_though_its_session_is_held(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    sessions.settle(sessions.receive(sessions.accept("a"), max_count=1), SettleOutcome.DEAD_LETTER)
    (dead,) = sessions.receive(sessions.receiver(SubQueue.DEAD_LETTERS))
    sessions.run_for(5_000)
    assert list(sessions.fragment.renew(dead.token, sessions.times())) == [sessions.now_ms() + 10_000]


def test_settling_a_long_session_looks_at_each_message_a_few_times(
    sessions: SessionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are settled at once, and those that go one after the other, the state of the session being kept."""
    receiver = sessions.accept("s")
    set_state(sessions, "s", b"kept")
    for _ in range(3):
        sessions.send(*(f"{number}" for number in range(1_000)), session="s")
    looks = 0
    find = MessageTable.find

    def counted(messages: MessageTable, count: int) -> Any:
        nonlocal looks
        looks += 1
        return find(messages, count)

    monkeypatch.setattr(MessageTable, "find", counted)
    assert sessions.settle(sessions.receive(receiver, max_count=2_500, wait_ms=500)) == [SETTLED] * 2_500
    assert looks < 20 * 2_500
    looks = 0
    for each in sessions.receive(receiver, max_count=150, wait_ms=500):
        sessions.complete([each])
    assert looks < 30 * 150
    monkeypatch.undo()
    assert bodies(sessions.receive(receiver, max_count=2_000, wait_ms=500)) == [
        f"{number}" for number in range(650, 1_000)
    ]


def enter(sessions: MessageSessions, messages: MessageTable, counts: Sequence[int]) -> None:
    """These messages are of session "s"."""
    sessions.enter(messages, [b"s"] * len(counts), counts)


@pytest.mark.parametrize("holder", [None, "somebody"])
def test_messages_whose_counts_were_reserved_stand_between_those_that_came_behind_them(holder: str | None) -> None:
    """A transaction reserves counts: its messages may come when others of their session were given already."""
    messages, sessions = MessageTable(), MessageSessions()
    messages.add(incoming(4), 4, first_index=0, enqueued_ms=100, default_ttl_ms=-1)
    enter(sessions, messages, (1, 4))
    session = sessions.by_id[b"s"]
    session.holder = holder
    assert session.select(messages, 200, 10, 1 << 20)[0].tolist() == [1, 4]
    enter(sessions, messages, (2, 3))
    assert session.counts.tolist() == [1, 2, 3, 4] and session.live == 4
    picked = session.select(messages, 200, 10, 1 << 20)[0].tolist()
    assert picked == [2, 3, 4], "none of them is locked, and it looks from the second on"


def test_a_session_gives_no_more_than_it_may_and_nothing_that_has_expired() -> None:
    messages, sessions = MessageTable(), MessageSessions()
    for ttl_ms in (-1, 50, 200):  # enqueued at 100
        messages.add(incoming(2), 2, first_index=0, enqueued_ms=100, default_ttl_ms=ttl_ms)
    enter(sessions, messages, range(1, 7))
    session = sessions.by_id[b"s"]

    def selected(most: int, max_bytes: int) -> tuple[list[int], int]:
        counts, size = session.select(messages, 150, most, max_bytes)
        return counts.tolist(), size

    assert [selected(1, 1 << 20), session.ready_from] == [([1], 10), 1]
    assert [selected(10, 19), session.ready_from] == [([2], 10), 4]
    assert selected(10, 20) == ([5, 6], 20)


def incoming(messages: int) -> array[int]:
    """Incoming rows of messages of 10 bytes each."""
    fields = array("q", [-1] * INCOMING_WIDTH * messages)
    fields[I_ORDINAL::INCOMING_WIDTH] = array("q", range(messages))
    fields[I_LENGTH::INCOMING_WIDTH] = array("q", [10]) * messages
    return fields


def test_a_session_counts_each_message_that_leaves_it_once() -> None:
    """Ranges that hold messages of several sessions, some that are gone, and dead letters, which left before."""
    bench = SessionBench()
    for body, session in (("1", "a"), ("2", "b"), ("3", "a"), ("4", "a"), ("5", "a")):
        bench.send(body, session=session)
    a, b = bench.accept("a"), bench.accept("b")
    one, three, four = bench.receive(a, 3)
    bench.settle([three], SettleOutcome.DEAD_LETTER)
    bench.complete([one, *bench.receive(b, 1)])
    sessions, messages = bench.fragment.core.state.sessions, bench.fragment.core.state.messages
    assert sessions.by_id[b"a"].live == 2
    bench.complete(bench.receive(bench.receiver(SubQueue.DEAD_LETTERS)))
    sessions.leave(messages, [(1, 3)])
    assert sessions.by_id[b"a"].live == 2, "all of them had left before"
    bench.complete([four, *bench.receive(a, 1)])
    bench.close(a)
    bench.close(b)
    assert not sessions.by_id and not sessions.by_number
