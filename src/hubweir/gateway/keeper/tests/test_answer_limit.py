"""The limit of a wait for the keeper: whatever comes first is heard, and nothing else."""

from __future__ import annotations

import pytest

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.process import Done, Refusal
from hubweir.errors import TIMED_OUT
from hubweir.gateway.keeper.answer_limit import answered_within
from hubweir.testing.simulated_env import SimulatedEnv


def test_an_answer_in_time_is_heard_and_no_silence_behind_it() -> None:
    env, heard = SimulatedEnv(), list[Answer]()
    answered = answered_within(1_000, env, heard.append)
    env.run_for(999)
    answered(Done())
    env.run_for(60_000)
    assert heard == [Done()]


def test_a_keeper_that_says_nothing_may_have_done_it_and_is_not_heard_later() -> None:
    env, heard = SimulatedEnv(), list[Answer]()
    answered = answered_within(1_500, env, heard.append)
    env.run_for(1_499)
    assert heard == []
    env.run_for(1)
    answered(Done())
    assert heard == [Refusal(TIMED_OUT, "the keeper said nothing for 1.5 s", known=False)]


def test_the_limit_goes_by_the_machine_and_not_by_a_clock_that_tests_set(monkeypatch: pytest.MonkeyPatch) -> None:
    env, machine, heard = SimulatedEnv(1), SimulatedEnv(2), list[Answer]()
    monkeypatch.setattr(SimulatedEnv, "machine", machine)
    answered_within(1_000, env, heard.append)
    env.run_for(60_000)
    assert heard == []
    machine.run_for(1_000)
    assert len(heard) == 1
