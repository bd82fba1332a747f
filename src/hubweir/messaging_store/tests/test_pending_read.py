from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from hubweir.counters import Counters
from hubweir.errors import CorruptStore, LogOffline, OutOfFiles, StoreError
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.log_reader import SegmentGone
from hubweir.messaging_store.pending_read import PendingRead, read_away
from hubweir.messaging_store.segment import SegmentHeader
from hubweir.messaging_store.segment_files import Segment
from hubweir.messaging_store.steps import Steps
from hubweir.testing.simulated_env import SimulatedEnv

SEGMENT = Segment(SegmentHeader("0f" * 16, 77, 3, 10, 0, -1, -1, 0, Durability.DURABLE), "logs", 30, 5000)


def ask(call, again=lambda: 0, segments=(), closing=False):  # type: ignore[no-untyped-def]
    env, answers, alarms = SimulatedEnv(1), [], []
    steps = Steps(env, "log", Counters())
    state = SimpleNamespace(
        env=env, log_id="log", segments=list(segments), closing=closing, alarm=alarms.append, steps=steps
    )
    pending = read_away(state, call, lambda value: value * 2, answers.append, again)
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


def gone() -> int:
    raise SegmentGone(SEGMENT)


def test_a_file_that_retention_took_is_asked_for_again() -> None:
    env, answers, _ = ask(gone, again=lambda: 7)
    env.run()
    assert answers == [7]


def test_a_cancelled_question_that_was_asked_again_has_no_answer() -> None:
    asked_again = PendingRead()
    env, answers, pending = ask(gone, again=lambda: asked_again)
    env.run()
    pending.cancel()
    assert asked_again.cancelled and answers == []


def test_a_file_that_is_lost_is_refused_once_and_alarmed() -> None:
    env, answers, _ = ask(gone, again=lambda: pytest.fail("asked again"), segments=[SEGMENT])
    env.run()
    (refused,) = answers
    assert isinstance(refused.error, CorruptStore) and "read on from 30" in str(refused.error)


def test_a_closed_log_refuses_without_talk_of_damage() -> None:
    env, answers, _ = ask(gone, segments=[SEGMENT], closing=True)
    env.run()
    (refused,) = answers
    assert isinstance(refused.error, LogOffline)


def test_without_a_file_descriptor_the_limit_is_named() -> None:
    def refuse() -> int:
        raise OSError(errno.EMFILE, "no more files")

    env, answers, _ = ask(refuse)
    env.run()
    assert isinstance(answers[0].error, OutOfFiles)


def test_errors_become_refusals() -> None:
    def broken() -> int:
        raise OSError(5, "broken disk")

    env, answers, _ = ask(broken)
    env.run()
    (refused,) = answers
    assert isinstance(refused, Refused) and isinstance(refused.error, StoreError)
    assert "broken disk" in str(refused.error)


def faulty() -> int:
    raise ZeroDivisionError("planted")


def test_a_read_that_ends_in_a_fault_of_ours_is_refused_retriably_and_the_log_goes_on() -> None:
    env, counters = SimulatedEnv(1), Counters()
    steps, answers, alarms, stopped = Steps(env, "log", counters), [], [], []
    steps.on_fault = stopped.append
    state = SimpleNamespace(env=env, log_id="log", segments=[], closing=False, alarm=alarms.append, steps=steps)
    read_away(state, faulty, lambda value: value, answers.append, lambda: 0)
    env.run()
    (answer,) = answers
    assert isinstance(answer, Refused) and type(answer.error) is LogOffline and "ZeroDivisionError" in alarms[0]
    assert counters.get("log.faults") == 1 and stopped == []


def test_a_fault_in_the_completion_of_a_read_answers_it_and_stops_the_log() -> None:
    env, counters = SimulatedEnv(1), Counters()
    steps, answers, stopped = Steps(env, "log", counters), [], []
    steps.on_fault = stopped.append
    state = SimpleNamespace(env=env, log_id="log", segments=[], closing=False, alarm=None, steps=steps)
    read_away(state, lambda: 21, lambda value: value // 0, answers.append, lambda: 0)
    env.run()
    (answer,) = answers
    assert isinstance(answer, Refused) and type(answer.error) is LogOffline
    assert counters.get("log.faults") == 1 and [type(fault) for fault in stopped] == [ZeroDivisionError]
