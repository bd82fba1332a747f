"""answer_deadline.py: an answer in the client's time, or word that the outcome is not known; never both."""

from __future__ import annotations

import gc
import weakref

import pytest

from hubweir.amqp.messaging.message import Message, decode_message
from hubweir.amqp.messaging.outcome import Modified
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Symbol, UInt, ULong
from hubweir.broker.commands.fragment import PeekMessages, ReceiveDeferred
from hubweir.gateway.amqp.answer_deadline import AnswerDeadline, server_timeout_ms
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, ask, body_of, code_of, counts, queue_world, send, settle
from hubweir.limits import TIME_LIMIT_MS
from hubweir.testing.simulated_env import SimulatedEnv


@pytest.mark.parametrize("name", ["com.microsoft:server-timeout", "server-timeout"])
@pytest.mark.parametrize(
    ("value", "limit_ms"),
    [
        (UInt(500), 500), (ULong(500), 500), (Int(500), 500), (Long(1), 1), (ULong(2**64 - 1), TIME_LIMIT_MS),
        (UInt(0), None), (Int(-5), None), (True, None), ("500", None), (None, None),
    ],
)  # fmt: skip
def test_a_time_is_a_whole_number_under_either_name(name: str, value: object, limit_ms: int | None) -> None:
    assert server_timeout_ms(Message(application_properties={name: value})) == limit_ms


def test_a_request_that_says_no_time_has_none() -> None:
    assert server_timeout_ms(Message()) is None


@pytest.mark.parametrize(("limit_ms", "answer_ms"), [(None, 10**9), (500, 0), (500, 499)])
def test_an_answer_in_time_is_the_clients(limit_ms: int | None, answer_ms: int) -> None:
    env, over = SimulatedEnv(), list[bool]()
    deadline = AnswerDeadline(limit_ms, lambda: over.append(True))
    deadline.begin(env)
    env.run_for(answer_ms)
    assert deadline.answered()
    env.run_for(1_000)
    assert not over


def test_an_answer_before_the_time_begins_starts_no_timer() -> None:
    env, over = SimulatedEnv(), list[bool]()
    deadline = AnswerDeadline(500, lambda: over.append(True))
    assert deadline.answered()
    deadline.begin(env)
    env.run_for(1_000)
    assert not over


def test_a_late_answer_is_nobodys() -> None:
    env, over = SimulatedEnv(), list[bool]()
    deadline = AnswerDeadline(500, lambda: over.append(True))
    deadline.begin(env)
    env.run_for(500)
    assert over == [True]
    assert not deadline.answered()
    env.run_for(1_000)
    assert over == [True]


DEFERRED = {"sequence-numbers": Array(AmqpType.LONG, (Long(1),)), "receiver-settle-mode": UInt(1)}
TIMEOUT = {"com.microsoft:server-timeout": UInt(100)}


def test_a_request_whose_broker_is_silent_is_told_that_its_outcome_is_not_known_and_the_link_goes_on() -> None:
    world = queue_world()
    peer = world.trusted_peer()
    wanted = {"from-sequence-number": Long(1), "message-count": Int(1)}
    world.gate.hold[PeekMessages] = []
    answer = ask(peer, "peek-message", wanted, **TIMEOUT)
    said = answer.application_properties or {}
    assert (code_of(answer), said["errorCondition"]) == (408, Symbol("com.microsoft:timeout"))
    assert "peek-message at 'orders' was not answered within 100 ms" in str(said["statusDescription"])
    world.gate.release(PeekMessages)
    assert code_of(ask(peer, "peek-message", wanted, **TIMEOUT)) == 204


def test_what_was_locked_for_a_client_that_was_told_too_early_is_free_at_once_and_not_counted() -> None:
    world = queue_world()
    peer = world.trusted_peer()
    send(peer, b"x")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    settle(peer, link, 0, 0, Modified(undeliverable_here=True))
    world.gate.hold[ReceiveDeferred] = []
    assert code_of(ask(peer, "receive-by-sequence-number", DEFERRED, **TIMEOUT)) == 408
    world.gate.release(ReceiveDeferred)
    peer.run()
    assert counts(world).deferred == 1
    again = ask(peer, "receive-by-sequence-number", DEFERRED, **TIMEOUT)
    assert code_of(again) == 200
    [entry] = body_of(again)["messages"]
    got = decode_message(entry["message"])
    assert got.header is not None
    assert got.header.delivery_count == 0


@pytest.mark.parametrize("wait_ms", [0, 500])
def test_who_was_answered_or_told_is_freed_without_a_collection(wait_ms: int) -> None:
    class Asker:
        def __init__(self) -> None:
            self.deadline = AnswerDeadline(500, self.over)

        def over(self) -> None: ...

    env, asker = SimulatedEnv(), Asker()
    asker.deadline.begin(env)
    env.run_for(wait_ms)
    known = weakref.ref(asker)
    gc.disable()
    try:
        asker.deadline.answered()
        del asker
        assert known() is None
    finally:
        gc.enable()
