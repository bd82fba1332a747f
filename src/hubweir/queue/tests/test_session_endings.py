"""A session between two holders: what the last one did is decided before the next one sees anything."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.errors import SESSION_CANNOT_BE_LOCKED, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import Effects, FragmentReceiver, ReceivedMessages
from hubweir.queue.settle_outcome import SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import DELETE, PEEK_LOCK, bodies, opened
from hubweir.queue.tests.session_bench import SessionBench, begin_to_accept, set_state
from hubweir.queue.transaction import TransactedSettlement, commit_parts
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

BLUE = SettleDetails(properties=b"\xc1\x0f\x02\xa1\x06colour\xa1\x04blue")


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


def settle(sessions: SessionBench, token: bytes, outcome: SettleOutcome, **named: Any) -> list[Any]:
    """Begin to settle; its answer comes into the list."""
    answers: list[Any] = []
    sessions.fragment.settle(token, outcome, sessions.times(), answers.append, **named)
    return answers


def ask(sessions: SessionBench, receiver: FragmentReceiver) -> list[Any]:
    """Begin to receive."""
    answers: list[Any] = []
    sessions.fragment.receive(receiver, max_count=10, max_bytes=1 << 20, on_done=answers.append)
    return answers


@pytest.mark.parametrize("is_within_the_answer", [False, True])
def test_the_end_of_a_session_waits_for_its_counts_no_longer_than_a_round_takes(is_within_the_answer: bool) -> None:
    """Nobody waits for counts of deliveries, which go into the log some time later; but now somebody does."""
    sessions = SessionBench(env=SimulatedEnv(7, slowest_ms=0))
    sessions.send("a", session="s")
    holder = sessions.accept("s")

    def came(answer: object) -> None:
        if is_within_the_answer:
            sessions.fragment.close_receiver(holder)

    sessions.fragment.receive(holder, max_count=1, max_bytes=1 << 20, on_done=came)
    sessions.run_for(0 if is_within_the_answer else 2)
    sessions.fragment.close_receiver(holder)
    answers = begin_to_accept(sessions, "s")
    sessions.run_for(2)
    assert isinstance(answers[0], FragmentReceiver)
    assert [each.deliveries for each in sessions.receive(answers[0])] == [1]


def test_nothing_behind_a_message_is_given_while_its_abandon_is_on_its_way(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    (first,) = sessions.receive(receiver, max_count=1)
    settled = settle(sessions, first.token, SettleOutcome.ABANDON, details=BLUE)
    received = ask(sessions, receiver)
    sessions.env.turn()
    assert not settled and not received
    sessions.run_for(50)
    assert settled == [bytes((SETTLED,))]
    assert [(each.body, each.deliveries) for each in opened(received[0])] == [(b"1", 1), (b"2", 0)]


def test_messages_before_an_abandon_that_is_on_its_way_are_given(sessions: SessionBench) -> None:
    sessions.send("1", "2", "3", session="a")
    receiver = sessions.accept("a")
    got = sessions.receive(receiver, max_count=2)
    settle(sessions, got[1].token, SettleOutcome.ABANDON, details=BLUE)
    settle(sessions, got[0].token, SettleOutcome.ABANDON)
    received = ask(sessions, receiver)
    sessions.env.turn()
    assert bodies(opened(received[0])) == ["1"]
    sessions.run_for(50)
    assert bodies(sessions.receive(receiver)) == ["2", "3"]


def test_an_abandon_that_the_log_refuses_leaves_its_message_locked_and_those_behind_it_free(
    sessions: SessionBench,
) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    (first,) = sessions.receive(receiver, max_count=1)
    sessions.env.files.plan(Fault.SYNC_EIO)
    settled = settle(sessions, first.token, SettleOutcome.ABANDON, details=BLUE)
    received = ask(sessions, receiver)
    sessions.run_for(3_000)
    assert isinstance(settled[0], Refused)
    assert bodies(opened(received[0])) == ["2"]
    assert sessions.settle([first]) == [SETTLED]


def test_a_dead_letter_that_is_abandoned_holds_up_no_message_of_its_session(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    sessions.settle(sessions.receive(receiver, max_count=1), SettleOutcome.DEAD_LETTER)
    (dead,) = sessions.receive(sessions.receiver(SubQueue.DEAD_LETTERS))
    settle(sessions, dead.token, SettleOutcome.ABANDON, details=BLUE)
    received = ask(sessions, receiver)
    sessions.env.turn()
    assert bodies(opened(received[0])) == ["2"]


def test_nothing_behind_a_message_is_given_while_its_deletion_is_on_its_way(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver, deleted = sessions.accept("a"), list[Any]()
    sessions.env.files.plan(Fault.SYNC_EIO)
    sessions.fragment.delete_messages(
        receiver.sub_queue, max_count=1, before_ms=1 << 60, on_done=deleted.append, session_id="a"
    )
    received = ask(sessions, receiver)
    sessions.run_for(3_000)
    assert isinstance(deleted[0], Refused)
    assert bodies(opened(received[0])) == ["1", "2"]


def test_a_deletion_that_is_done_lets_the_next_message_go(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver, deleted = sessions.accept("a"), list[Any]()
    sessions.fragment.delete_messages(
        receiver.sub_queue, max_count=1, before_ms=1 << 60, on_done=deleted.append, session_id="a"
    )
    received = ask(sessions, receiver)
    sessions.run_for(50)
    assert deleted == [1] and bodies(opened(received[0])) == ["2"]


@pytest.mark.parametrize("session_id", ["a", None])
@pytest.mark.parametrize("turns", [0, 1])
def test_the_next_holder_gets_what_a_refused_completion_left_in_its_order(
    sessions: SessionBench, session_id: str | None, turns: int
) -> None:
    """turns: between the completion and the end of its hold, so that it is gathered, or on its way."""
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    (first,) = sessions.receive(receiver, max_count=1)
    sessions.env.files.plan(Fault.SYNC_EIO)
    settled = settle(sessions, first.token, SettleOutcome.COMPLETE)
    for _ in range(turns):
        sessions.env.turn()
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, session_id)
    sessions.env.turn()
    assert not settled and not accepted
    sessions.run_for(3_000)
    assert isinstance(settled[0], Refused)
    assert [(each.body, each.deliveries) for each in sessions.receive(accepted[0])] == [(b"1", 1), (b"2", 0)]


def test_the_next_holder_goes_on_behind_a_completion_that_was_on_its_way(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    (first,) = sessions.receive(receiver, max_count=1)
    settled = settle(sessions, first.token, SettleOutcome.COMPLETE)
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, "a")
    sessions.run_for(50)
    assert settled == [bytes((SETTLED,))]
    assert bodies(sessions.receive(accepted[0])) == ["2"]


def test_a_session_whose_time_is_over_waits_for_its_completions_too(sessions: SessionBench) -> None:
    sessions.send("1", "2", session="a")
    receiver = sessions.accept("a")
    (first,) = sessions.receive(receiver, max_count=1)
    accepted = begin_to_accept(sessions, None)
    sessions.env.run_for(receiver.session.until_ms - sessions.env.monotonic_ms() - 1)  # type: ignore[union-attr]
    sessions.env.files.plan(Fault.SYNC_EIO)
    settled = settle(sessions, first.token, SettleOutcome.COMPLETE)
    sessions.run_for(5_000)
    assert isinstance(settled[0], Refused) and len(sessions.lost) == 1
    assert bodies(sessions.receive(accepted[0])) == ["1", "2"]


@pytest.mark.parametrize("fails", [False, True])
def test_the_state_of_a_session_changes_under_no_other_holder(sessions: SessionBench, fails: bool) -> None:
    receiver = sessions.accept("a")
    set_state(sessions, "a", b"before")
    if fails:
        sessions.env.files.plan(Fault.SYNC_EIO)
    sessions.fragment.set_session_state("a", b"after", sessions.times(), lambda answer: None)
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, "a")
    sessions.env.turn()
    assert not accepted
    for _ in range(3_000):
        if not accepted:
            sessions.run_for(1)
    state = sessions.fragment.session_state("a")
    sessions.run_for(3_000)
    assert state == sessions.fragment.session_state("a") == (b"before" if fails else b"after")


def test_a_session_that_is_new_and_has_nothing_waits_for_its_first_state(sessions: SessionBench) -> None:
    receiver = sessions.accept("a")
    sessions.fragment.set_session_state("a", b"first", sessions.times(), lambda answer: None)
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, "a")
    sessions.env.turn()
    assert not accepted
    sessions.run_for(50)
    assert len(accepted) == 1 and sessions.fragment.session_state("a") == b"first"


def test_a_session_whose_last_message_is_completed_waits_for_its_state(sessions: SessionBench) -> None:
    """Nothing is left of it between the two, and it is not forgotten."""
    sessions.send("1", session="a")
    receiver = sessions.accept("a")
    settled = settle(sessions, sessions.receive(receiver)[0].token, SettleOutcome.COMPLETE)
    sessions.env.turn()
    sessions.fragment.set_session_state("a", b"done", sessions.times(), lambda answer: None)
    sessions.fragment.close_receiver(receiver)
    for _ in range(100):
        if not settled:
            sessions.run_for(1)
    accepted = begin_to_accept(sessions, "a")
    assert settled and not accepted
    sessions.run_for(50)
    assert len(accepted) == 1 and sessions.fragment.session_state("a") == b"done"


def test_of_two_who_name_an_ending_session_the_first_gets_it(sessions: SessionBench) -> None:
    receiver = sessions.accept("a")
    sessions.fragment.set_session_state("a", b"1", sessions.times(), lambda answer: None)
    sessions.fragment.close_receiver(receiver)
    first, second = begin_to_accept(sessions, "a"), begin_to_accept(sessions, "a")
    sessions.run_for(50)
    assert isinstance(first[0], FragmentReceiver)
    assert isinstance(second[0], ServiceError) and second[0].condition is SESSION_CANNOT_BE_LOCKED


def test_who_names_an_ending_session_is_refused_when_his_time_is_over(sessions: SessionBench) -> None:
    receiver = sessions.accept("a")
    sessions.fragment.set_session_state("a", b"1", sessions.times(), lambda answer: None)
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, "a", wait_ms=0)
    assert accepted[0].condition is SESSION_CANNOT_BE_LOCKED


@pytest.mark.parametrize("mode", [PEEK_LOCK, DELETE])
def test_messages_that_are_read_when_their_session_is_freed_go_to_the_next_holder_uncounted(
    sessions: SessionBench, mode: Any
) -> None:
    """What the disk gives for the last holder must not touch the locks of the next one."""
    for _ in range(40):  # more than the log's tail has in memory
        sessions.send("x" * 900, session="a")
    accepted: list[Any] = []
    sessions.fragment.accept_session(
        "a", mode, sessions.times(), wait_ms=0, on_done=accepted.append, on_lost=sessions._lost
    )
    received = ask(sessions, accepted[0])
    sessions.env.turn()
    assert accepted[0].is_reading
    sessions.fragment.close_receiver(accepted[0])
    following = begin_to_accept(sessions, "a")
    assert not following
    sessions.run_for(200)
    assert isinstance(received[0], ReceivedMessages) and not received[0].rows
    got = sessions.receive(following[0], max_count=5)
    assert [(each.number, each.deliveries) for each in got] == [(place, 0) for place in range(1, 6)]
    assert sessions.settle(got) == [SETTLED] * 5


def test_a_last_delivery_whose_settlement_is_refused_behind_the_end_of_its_session_was_the_last() -> None:
    sessions = SessionBench(max_delivery_count=2)
    sessions.send("1", "2", session="a")
    for _ in range(2):
        receiver = sessions.accept("a")
        (first,) = sessions.receive(receiver, max_count=1)
        sessions.env.files.plan(Fault.SYNC_EIO)
        settled = settle(sessions, first.token, SettleOutcome.COMPLETE)
        sessions.close(receiver)
        sessions.run_for(5_000)
        assert isinstance(settled[0], Refused)
    assert sessions.fragment.counts().dead_lettered == 1
    assert bodies(sessions.receive(sessions.accept("a"))) == ["2"]


@pytest.mark.parametrize("outcome", [SettleOutcome.COMPLETE, SettleOutcome.ABANDON])
def test_a_last_delivery_whose_transaction_is_rolled_back_behind_the_end_of_its_session_was_the_last(
    outcome: SettleOutcome,
) -> None:
    sessions = SessionBench(max_delivery_count=2)
    sessions.send("1", "2", session="a")
    for transaction in (b"t" * 16, b"u" * 16):
        receiver = sessions.accept("a")
        (first,) = sessions.receive(receiver, max_count=1)
        assert first.body == b"1"
        effects = Effects([TransactedSettlement("", first.token, outcome)])
        part = sessions.fragment.prepare(transaction, "another log", effects, sessions.times())
        commit_parts(sessions.fragment.core, [part], sessions.times(), lambda refused: None)
        sessions.run_for(50)
        sessions.close(receiver)
        sessions.fragment.end_transaction(
            transaction, is_committed=False, times=sessions.times(), on_done=lambda refused: None
        )
        sessions.run_for(50)
    assert sessions.fragment.counts().dead_lettered == 1
    assert bodies(sessions.receive(sessions.accept("a"))) == ["2"]
