"""A process that says nothing for long is stalled; one that is slow, or was not asked, is not."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from hubweir.broker.commands.broker_process import AskProcess, ProcessState, StandingAlarm
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Refusal
from hubweir.errors import STORE_OFFLINE
from hubweir.service.heartbeat import BEAT_MS, STALLED_BEATS, START_BEATS, UNFOLLOWED_BEATS, Heartbeat
from hubweir.testing.simulated_env import SimulatedEnv

STATE = ProcessState(1, 0, "", (), 0, is_serving=True, follows=True, away=())
BEHIND = replace(STATE, follows=False)


class Door:
    """Keeps questions, and answers those that it is told to."""

    def __init__(self) -> None:
        self.questions: list[Callable[[Answer], None]] = []
        self.answers: Answer | None = None

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        assert command == AskProcess()
        self.questions.append(on_answer)
        if self.answers is not None:
            on_answer(self.answers)


def started() -> tuple[SimulatedEnv, Any, Heartbeat, list[int]]:
    env, door, stalled = SimulatedEnv(1), Door(), []
    heart = Heartbeat(env, door, lambda why: stalled.append(env.monotonic_ms()))  # type: ignore[arg-type]
    heart.start()
    return env, door, heart, stalled


def test_a_process_that_answers_lives_for_ever() -> None:
    env, door, heart, stalled = started()
    door.answers = STATE
    env.run_for(3 * START_BEATS * BEAT_MS)
    assert (stalled, heart.state) == ([], STATE)
    assert len(door.questions) >= 2 * START_BEATS


def test_each_question_tells_how_the_others_are_then() -> None:
    env, told, asked = SimulatedEnv(1), list[StandingAlarm](), list[Command]()

    class Answering:
        def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
            asked.append(command)
            on_answer(STATE)

    heart = Heartbeat(env, Answering(), print, question=lambda: AskProcess(tuple(told)))  # type: ignore[arg-type]
    heart.start()
    env.run_for(BEAT_MS)
    told.append(StandingAlarm("disk-full", "store-2"))
    env.run_for(BEAT_MS)
    assert asked == [AskProcess(), AskProcess(tuple(told))]


def test_silence_of_ten_seconds_is_a_stall_and_is_told_once() -> None:
    env, door, heart, stalled = started()
    door.answers = STATE
    env.run_for(5 * BEAT_MS)
    door.answers, begun = None, env.monotonic_ms()
    env.run_for(10_000 - BEAT_MS)
    assert stalled == []
    env.run_for(60_000)
    assert len(stalled) == 1
    assert 10_000 <= stalled[0] - begun <= 10_000 + 2 * BEAT_MS
    assert heart.state == STATE


def test_one_that_answered_is_silent_after_two_seconds_and_not_when_it_answers_again() -> None:
    env, door, heart, _ = started()
    door.answers = STATE
    env.run_for(BEAT_MS)
    door.answers = None
    env.run_for(3 * BEAT_MS)
    assert not heart.is_silent
    env.run_for(BEAT_MS)
    assert heart.is_silent
    door.questions[-1](STATE)
    assert not heart.is_silent


def test_one_question_is_asked_at_a_time_and_its_late_answer_counts() -> None:
    env, door, heart, stalled = started()
    env.run_for(STALLED_BEATS * BEAT_MS)
    assert len(door.questions) == 1
    door.questions[0](STATE)
    env.run_for(BEAT_MS)
    assert (len(door.questions), heart.state, stalled) == (2, STATE, [])


def test_a_process_that_starts_has_longer_and_is_not_silent_meanwhile() -> None:
    env, _, heart, stalled = started()
    env.run_for(START_BEATS * BEAT_MS)
    assert stalled == [] and not heart.is_silent
    env.run_for(2 * BEAT_MS)
    assert len(stalled) == 1


def test_a_refusal_is_no_answer_and_it_is_asked_again() -> None:
    env, door, _, stalled = started()
    door.answers = Refusal(STORE_OFFLINE, "away")
    env.run_for((START_BEATS + 2) * BEAT_MS)
    assert len(stalled) == 1
    assert len(door.questions) == START_BEATS


def test_who_was_stopped_itself_for_long_finds_nobody_stalled() -> None:
    """The timer of a process that was stopped rings once, however long that was."""
    env, door, heart, stalled = started()
    door.answers = STATE
    env.run_for(BEAT_MS)
    heart._beat()  # an hour late
    assert stalled == []


def test_when_it_is_stopped_nobody_is_asked() -> None:
    env, door, heart, stalled = started()
    heart.stop()
    env.run_for(2 * START_BEATS * BEAT_MS)
    assert (door.questions, stalled) == ([], [])


def told_lost(state: ProcessState, *, is_kept: bool = True) -> tuple[SimulatedEnv, Any, list[str]]:
    env, door, lost = SimulatedEnv(1), Door(), []
    door.answers = state
    Heartbeat(env, door, lost.append, is_kept=lambda: is_kept).start()  # type: ignore[arg-type]
    return env, door, lost


def test_a_process_that_answers_and_does_not_follow_the_keeper_is_lost_after_five_seconds() -> None:
    env, _, lost = told_lost(BEHIND)
    env.run_for(5_000)
    assert lost == []
    env.run_for(60_000)
    assert lost == ["does not follow the keeper"]


def test_one_that_is_behind_now_and_then_follows() -> None:
    env, door, lost = told_lost(BEHIND)
    for _ in range(5):
        door.answers = BEHIND
        env.run_for(UNFOLLOWED_BEATS * BEAT_MS)
        door.answers = STATE
        env.run_for(BEAT_MS)
    assert lost == []


def test_before_it_takes_clients_and_while_there_is_no_keeper_nobody_need_follow() -> None:
    for state, is_kept in ((replace(BEHIND, is_serving=False), True), (BEHIND, False)):
        env, _, lost = told_lost(state, is_kept=is_kept)
        env.run_for(60_000)
        assert lost == []


@pytest.mark.parametrize(("follows", "why"), [(False, "does not follow the keeper"), (True, "does not take clients")])
def test_a_process_that_was_asked_to_take_clients_and_does_not_is_lost_after_a_minute(follows: bool, why: str) -> None:
    env, door, lost, asked = SimulatedEnv(1), Door(), list[str](), list[bool]()
    door.answers = replace(STATE, is_serving=False, follows=follows)
    heart = Heartbeat(env, door, lost.append, is_asked=lambda: bool(asked))  # type: ignore[arg-type]
    heart.start()
    env.run_for(200_000)
    assert lost == [], "its logs are being opened"
    asked.append(True)
    env.run_for(60_000)
    assert (lost, heart.is_unserved) == ([], False)
    env.run_for(60_000)
    assert (lost, heart.lost, heart.is_unserved) == ([why], why, True)


def test_a_process_that_took_clients_has_another_minute_when_it_is_asked_again() -> None:
    env, door, lost, asked = SimulatedEnv(1), Door(), list[str](), [True]
    door.answers = replace(STATE, is_serving=False)
    Heartbeat(env, door, lost.append, is_asked=lambda: bool(asked)).start()  # type: ignore[arg-type]
    env.run_for(50_000)
    asked.clear()
    env.run_for(BEAT_MS)
    asked.append(True)
    env.run_for(50_000)
    assert lost == []


def test_each_answer_is_told() -> None:
    env, door, told = SimulatedEnv(1), Door(), []
    heart = Heartbeat(env, door, lambda why: None, on_state=lambda: told.append(heart.state))  # type: ignore[arg-type]
    heart.start()
    env.run_for(2 * BEAT_MS)
    assert told == []
    door.questions[0](STATE)
    assert told == [STATE]


def test_a_clock_that_a_test_sets_forward_again_and_again_stalls_nobody() -> None:
    class SetForward(SimulatedEnv):
        own_machine = SimulatedEnv(2)

        @property
        def machine(self) -> SimulatedEnv:
            return self.own_machine

    env, door, stalled = SetForward(1), Door(), list[str]()
    heart = Heartbeat(env, door, stalled.append)  # type: ignore[arg-type]
    heart.start()
    env.run_for(10 * START_BEATS * BEAT_MS)
    assert (stalled, door.questions) == ([], [])
    env.machine.run_for((START_BEATS + 1) * BEAT_MS)
    assert stalled == ["answers no more"], "control: time passed for the machine"
