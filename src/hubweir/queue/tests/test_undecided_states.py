"""A state whose setting ended unknown: nobody is told it or given its session before the log has decided."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.errors import SESSION_CANNOT_BE_LOCKED, STORE_OFFLINE, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.tests.conftest import message, run_of
from hubweir.queue.tests.session_bench import SessionBench, begin_to_accept, set_state
from hubweir.queue.transaction import Effects, commit_parts
from hubweir.testing.memory_faults import Fault


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


def end_a_setting_unknown(sessions: SessionBench, state: bytes | None) -> None:
    """The state of session a is being set; its sync fails, and so does the new epoch. Its record is on the disk."""
    sessions.env.files.plan(Fault.SYNC_EIO, then=(Fault.SYNC_EIO, 1))
    answers: list[Any] = []
    sessions.fragment.set_session_state("a", state, sessions.times(), answers.append)
    for _ in range(500):
        if not answers:
            sessions.run_for(1)
    assert isinstance(answers[0], Refused) and not answers[0].known


def state_or_offline(sessions: SessionBench) -> bytes | str | None:
    try:
        return sessions.fragment.session_state("a")
    except ServiceError as error:
        assert error.condition is STORE_OFFLINE
        return "offline"


@pytest.mark.parametrize("after", [b"after", None])
def test_a_state_that_ended_unknown_is_told_to_nobody_before_it_is_decided(
    sessions: SessionBench, after: bytes | None
) -> None:
    """Its holder asks, and nothing else is logged meanwhile."""
    sessions.accept("a")
    sessions.accept("b")
    set_state(sessions, "a", b"before")
    end_a_setting_unknown(sessions, after)
    assert state_or_offline(sessions) == "offline"
    assert sessions.fragment.session_state("b") is None
    sessions.run_for(4_000)
    assert state_or_offline(sessions) == b"before"
    sessions.restart()
    sessions.accept("a")
    assert state_or_offline(sessions) == b"before"


def test_a_state_that_ended_unknown_is_decided_while_a_transaction_is_prepared(sessions: SessionBench) -> None:
    """One may be in doubt for minutes, and has nothing to do with the session."""
    sessions.accept("a")
    effects = Effects([], array("q"), run_of(message("held", session="b")), 1)
    part = sessions.fragment.prepare(b"t" * 16, "another log", effects, sessions.times())
    prepared: list[Any] = []
    commit_parts(sessions.fragment.core, [part], sessions.times(), prepared.append)
    sessions.run_for(50)
    assert prepared == [None]
    end_a_setting_unknown(sessions, b"after")
    sessions.run_for(4_000)
    assert state_or_offline(sessions) is None


def test_a_state_that_ended_unknown_stays_untold_while_the_log_refuses(sessions: SessionBench) -> None:
    """A refusal decides nothing: what ended unknown may still be there after a crash."""
    receiver = sessions.accept("a")
    end_a_setting_unknown(sessions, b"after")
    sessions.env.files.plan(Fault.EIO, forever=True)
    sessions.run_for(3_500)
    assert state_or_offline(sessions) == "offline"
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, "a")
    sessions.run_for(3_500)
    assert not accepted
    sessions.env.files.heal()
    for _ in range(100):
        if not accepted:
            sessions.run_for(400)
    assert accepted and state_or_offline(sessions) is None


@pytest.mark.parametrize("is_set_before", [False, True])
def test_a_session_whose_state_ended_unknown_is_given_to_nobody_before_it_is_decided(
    sessions: SessionBench, is_set_before: bool
) -> None:
    """Whether its holder ends before or behind the answer, and though the session has nothing else."""
    receiver, before = sessions.accept("a"), b"before" if is_set_before else None
    set_state(sessions, "a", before)
    end_a_setting_unknown(sessions, b"after")
    sessions.fragment.close_receiver(receiver)
    accepted, refused = begin_to_accept(sessions, "a"), begin_to_accept(sessions, "a", wait_ms=10)
    sessions.run_for(300)
    assert not accepted
    assert refused[0].condition is SESSION_CANNOT_BE_LOCKED and "not free yet" in str(refused[0])
    sessions.run_for(4_000)
    assert len(accepted) == 1 and state_or_offline(sessions) == before
    sessions.restart()
    sessions.accept("a")
    assert state_or_offline(sessions) == before


def test_a_crash_before_a_state_is_decided_leaves_either_one_and_nobody_was_told_another(
    sessions: SessionBench,
) -> None:
    receiver = sessions.accept("a")
    end_a_setting_unknown(sessions, b"after")
    sessions.fragment.close_receiver(receiver)
    accepted = begin_to_accept(sessions, "a")
    sessions.run_for(100)
    assert not accepted
    sessions.restart(power_cut=False)
    sessions.accept("a")
    assert state_or_offline(sessions) == b"after"


def test_what_is_logged_behind_a_state_that_ended_unknown_decides_it(sessions: SessionBench) -> None:
    """Here another state: it is not put back to the one before."""
    sessions.accept("a")
    end_a_setting_unknown(sessions, b"1")
    answers: list[Any] = []
    for _ in range(400):
        if None not in answers:
            sessions.fragment.set_session_state("a", b"2", sessions.times(), answers.append)
            sessions.run_for(10)
    assert isinstance(answers[0], Refused) and state_or_offline(sessions) == b"2"
    sessions.run_for(4_000)
    sessions.restart()
    sessions.accept("a")
    assert state_or_offline(sessions) == b"2"
