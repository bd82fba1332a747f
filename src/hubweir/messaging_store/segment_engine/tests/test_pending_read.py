from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from hubweir.alarms import READ_FAULT, Alarms
from hubweir.counters import Counters
from hubweir.errors import CorruptStore, LogFenced, LogOffline, OutOfFiles, StoreError
from hubweir.messaging_store.disk.log_reader import SegmentGone
from hubweir.messaging_store.disk.segment import SegmentHeader
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.messaging_store.log import Durability, Pending, Refused
from hubweir.messaging_store.segment_engine.known_damage import KnownDamage
from hubweir.messaging_store.segment_engine.pending_read import read_away, refuse_soon
from hubweir.messaging_store.segment_engine.steps import Steps
from hubweir.testing.simulated_env import SimulatedEnv

SEGMENT = Segment(SegmentHeader("0f" * 16, 77, 3, 10, 0, -1, -1, 0, Durability.DURABLE), "logs", 30, 5000)


def state_of(env, counters, segments=(), closing=False):  # type: ignore[no-untyped-def]
    """What a read needs of its log."""
    alarms = Alarms(env, counters)
    return SimpleNamespace(
        env=env,
        log_id="log",
        segments=SimpleNamespace(kept=list(segments)),
        visible=SimpleNamespace(index=30),
        health=SimpleNamespace(is_closing=closing),
        about="a log",
        alarms=alarms,
        damage=KnownDamage(alarms, "a log", counters),
        steps=Steps(env, "log", counters),
    )


def ask(call, again=lambda: 0, segments=(), closing=False):  # type: ignore[no-untyped-def]
    env, answers = SimulatedEnv(1), []
    state = state_of(env, Counters(), segments, closing)
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
    asked: list[Pending] = []

    def again() -> Pending:
        asked.append(read_away(state_of(env, Counters()), lambda: 1, lambda value: value, answers.append, lambda: 0))
        return asked[-1]

    env, answers, pending = ask(gone, again=again)
    while not asked:
        env.run_for(1)
    assert answers == []
    pending.cancel()
    env.run()
    assert answers == []


def test_a_question_that_is_asked_again_of_a_log_that_was_taken_over_is_refused() -> None:
    env = SimulatedEnv(1)
    state, answers = state_of(env, Counters()), []
    fenced = LogFenced("another has it")
    read_away(state, gone, lambda value: value, answers.append, lambda: refuse_soon(state, fenced, answers.append))
    env.run()
    assert answers == [Refused(fenced)]


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
    state, answers, stopped = state_of(env, counters), [], []
    state.steps.on_fault = stopped.append
    read_away(state, faulty, lambda value: value, answers.append, lambda: 0)
    env.run()
    (answer,) = answers
    assert isinstance(answer, Refused) and type(answer.error) is LogOffline
    [alarm] = state.alarms.current()
    assert alarm.kind is READ_FAULT and alarm.about == "a log" and "ZeroDivisionError" in alarm.text
    assert counters["log.faults"] == 1 and stopped == []
    read_away(state, lambda: 21, lambda value: value, answers.append, lambda: 0)
    env.run()
    assert answers[1] == 21 and state.alarms.current() == ()  # over with the first read that ends well


def test_a_fault_in_the_completion_of_a_read_answers_it_and_stops_the_log() -> None:
    env, counters = SimulatedEnv(1), Counters()
    state, answers, stopped = state_of(env, counters), [], []
    state.steps.on_fault = stopped.append
    read_away(state, lambda: 21, lambda value: value // 0, answers.append, lambda: 0)
    env.run()
    (answer,) = answers
    assert isinstance(answer, Refused) and type(answer.error) is LogOffline
    assert counters["log.faults"] == 1 and [type(fault) for fault in stopped] == [ZeroDivisionError]
