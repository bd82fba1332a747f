"""Runs without a key go to the fragments in turn, past those that are away, and nothing is stored twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import EnqueueMessages, MessagesEnqueued
from hubweir.broker.commands.process import Refusal
from hubweir.env import Env
from hubweir.errors import CONDITIONS, SERVER_BUSY, STORE_OFFLINE, TIMED_OUT, Condition
from hubweir.gateway.fragment_turn import AWAY_MS, SLOW_MS, FragmentTurn
from hubweir.gateway.fragments import FragmentPlace, Fragments

STORED = MessagesEnqueued(1, 2)


class BrokerOfMany:
    """Answers for each log as a test says, else that all is stored; notes where runs went."""

    def __init__(self) -> None:
        self.is_up = True
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []

    def submit(self, command: Any, on_answer: Any) -> None:
        self.asked.append(command.log_id)
        assert (command.run, command.messages, command.size_bytes) == (bytearray(b"run"), 3, 30)
        on_answer(self.answers.get(command.log_id, STORED))

    def listen(self, on_push: Any) -> None:
        """Nothing is pushed."""


class World:
    """Four fragments: the even ones at the first of two brokers, the odd ones at the other. lot: what is drawn."""

    def __init__(self, lot: int = 0) -> None:
        self.now_ms = 5_000
        self.brokers = [BrokerOfMany(), BrokerOfMany()]
        places = [
            FragmentPlace("orders", f"log-{number}", self.brokers[number % 2], f"log-{number}", None, number)
            for number in range(4)
        ]
        env = SimpleNamespace(
            monotonic_ms=lambda: self.now_ms, random_bytes=lambda count: lot.to_bytes(count, "big")
        )  # fmt: skip
        self.turn = FragmentTurn(cast(Env, env), Fragments(tuple(places)))

    def send(self) -> Answer:
        answers: list[Answer] = []
        command = self.turn.store(bytearray(b"run"), 3, 30)
        assert isinstance(command, EnqueueMessages)
        self.turn.broker.submit(command, answers.append)
        [answer] = answers
        return answer

    def asked(self) -> list[str]:
        """Where runs went since this was asked last: the numbers of logs, of each broker."""
        found = [each.removeprefix("log-") for broker in self.brokers for each in broker.asked]
        for broker in self.brokers:
            broker.asked.clear()
        return sorted(found)


@pytest.fixture
def world() -> World:
    return World()


def test_each_run_goes_to_the_next_fragment(world: World) -> None:
    for expected in ("0", "1", "2", "3", "0"):
        assert world.send() is STORED
        assert world.asked() == [expected]


@pytest.mark.parametrize("lot", [0, 1, 3, 4, 0x102, 0xFFFF])
def test_a_lot_says_where_the_turn_begins(lot: int) -> None:
    world = World(lot)
    for step in range(5):
        assert world.send() is STORED
        assert world.asked() == [str((lot + step) % 4)]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.symbol)
def test_a_refusal_that_another_fragment_need_not_give_is_tried_there(world: World, condition: Condition) -> None:
    refusal = world.brokers[0].answers["log-0"] = Refusal(condition, "why")
    answer = world.send()
    if condition.retriable:
        assert answer is STORED and world.asked() == ["0", "1"]
    else:
        assert answer is refusal and world.asked() == ["0"]


def test_what_is_not_known_is_told_and_tried_nowhere(world: World) -> None:
    unknown = world.brokers[0].answers["log-0"] = Refusal(TIMED_OUT, "why", known=False)
    assert world.send() is unknown
    assert world.asked() == ["0"]
    assert world.send() is STORED
    assert world.asked() == ["1"]


def test_a_fragment_is_away_for_a_while_behind_its_refusal(world: World) -> None:
    world.brokers[0].answers["log-2"] = Refusal(SERVER_BUSY, "offline")
    for _ in range(8):
        assert world.send() is STORED
    assert world.asked() == ["0", "0", "0", "1", "1", "1", "2", "3", "3"]
    world.now_ms += AWAY_MS - 1
    for _ in range(4):
        world.send()
    assert "2" not in world.asked()
    world.now_ms += 1
    world.brokers[0].answers.clear()
    for _ in range(4):
        world.send()
    assert world.asked() == ["0", "1", "2", "3"]


def test_fragments_of_a_broker_that_is_away_are_not_asked(world: World) -> None:
    world.brokers[1].is_up = False
    for _ in range(4):
        assert world.send() is STORED
    assert world.asked() == ["0", "0", "2", "2"]


def test_when_none_takes_it_the_last_refusal_is_told_as_busy(world: World) -> None:
    for number in range(4):
        world.brokers[number % 2].answers[f"log-{number}"] = Refusal(STORE_OFFLINE, f"away {number}")
    answer = world.send()
    assert isinstance(answer, Refusal) and answer.known and answer.condition is SERVER_BUSY
    assert "No fragment of 'orders' takes messages now: away 3" in answer.text
    assert world.asked() == ["0", "1", "2", "3"]
    for broker in world.brokers:
        broker.is_up = False
        broker.answers.clear()
    assert world.send() is STORED, "one is asked all the same: it may be back"
    assert len(world.asked()) == 1


def test_each_is_asked_once_however_long_their_refusals_take(world: World) -> None:
    for broker in world.brokers:
        submit = broker.submit

        def late(command: Any, on_answer: Any, submit: Any = submit) -> None:
            world.now_ms += 2 * AWAY_MS  # whoever refused first might be back by now
            submit(command, on_answer)

        broker.submit = late  # type: ignore[method-assign]
    for number in range(4):
        world.brokers[number % 2].answers[f"log-{number}"] = Refusal(SERVER_BUSY, "offline")
    assert isinstance(world.send(), Refusal)
    assert world.asked() == ["0", "1", "2", "3"]


def test_a_broker_that_answers_nothing_for_a_while_gets_no_more_until_it_answers(world: World) -> None:
    stalled = world.brokers[1]
    held: list[Any] = []

    def hold(command: Any, on_answer: Any) -> None:
        stalled.asked.append(command.log_id)
        held.append(on_answer)

    submit, stalled.submit = stalled.submit, hold  # type: ignore[method-assign]
    begin(world, 4)
    world.now_ms += SLOW_MS - 1
    begin(world, 2)
    assert world.asked() == ["0", "0", "1", "1", "2", "3"]
    world.now_ms += 1
    begin(world, 4)
    assert world.asked() == ["0", "0", "2", "2"], "what it was asked for goes nowhere else"
    world.brokers[0].is_up = False
    begin(world, 1)
    assert world.asked() in (["1"], ["3"]), "there is no other"
    world.brokers[0].is_up = True
    held.pop()(STORED)
    world.now_ms += SLOW_MS - 1
    begin(world, 4)
    assert world.asked() == ["0", "1", "2", "3"], "it answers"
    world.now_ms += 1
    begin(world, 2)
    assert world.asked() == ["0", "2"]
    while held:
        held.pop()(STORED)
    stalled.submit = submit  # type: ignore[method-assign]
    world.now_ms += 10 * SLOW_MS
    begin(world, 4)
    assert world.asked() == ["0", "1", "2", "3"], "nothing is to come of it"


def begin(world: World, runs: int) -> None:
    """Hand over so many runs, whose answers may come later."""
    for _ in range(runs):
        world.turn.broker.submit(world.turn.store(bytearray(b"run"), 3, 30), lambda _: None)


def test_a_turn_is_no_log(world: World) -> None:
    assert world.turn.log_id not in {f"log-{number}" for number in range(4)} and world.turn.entity == "orders"
