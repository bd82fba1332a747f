from __future__ import annotations

from hubweir.errors import StoreError
from hubweir.messaging_store.log import Refused
from hubweir.messaging_store.pending_read import read_away
from hubweir.testing.simulated_env import SimulatedEnv


def ask(call, again=lambda: 0):  # type: ignore[no-untyped-def]
    env, answers = SimulatedEnv(1), []
    pending = read_away(env, "log", call, lambda value: value * 2, answers.append, again)
    return env, answers, pending


def test_the_answer_comes_later() -> None:
    env, answers, _ = ask(lambda: 21)
    assert answers == []
    env.run()
    assert answers == [42]


def test_a_cancelled_question_has_no_answer() -> None:
    env, answers, pending = ask(lambda: 21)
    pending.cancel()
    pending.cancel()
    env.run()
    assert answers == []


def test_a_file_that_retention_took_is_asked_for_again() -> None:
    def gone() -> int:
        raise FileNotFoundError

    env, answers, _ = ask(gone, again=lambda: 7)
    env.run()
    assert answers == [7]


def test_errors_become_refusals() -> None:
    def broken() -> int:
        raise OSError(5, "broken disk")

    env, answers, _ = ask(broken)
    env.run()
    (refused,) = answers
    assert isinstance(refused, Refused) and isinstance(refused.error, StoreError)
    assert "broken disk" in str(refused.error)
