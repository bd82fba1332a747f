"""Transactions at a broker: over a topic and its subscriptions, which share one log."""

from __future__ import annotations

from array import array

import pytest

from hubweir.broker.commands.fragment import MessagesReceived, ReceiveMessages
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.broker.tests.test_hosted_topic import TOPIC, World, subscription
from hubweir.errors import MESSAGE_LOCK_LOST, NOT_FOUND
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.tests.conftest import MASK, message, run_of
from hubweir.queue.transaction import TransactedSettlement


@pytest.fixture
def world() -> World:
    return World()


def received(world: World, name: str) -> bytes:
    """The token of the one message that a subscription gives out."""
    answer = world.ask(ReceiveMessages(name * 32, world.opened(name), 1, 1 << 20))
    assert isinstance(answer, MessagesReceived)
    [lock] = array("q", answer.rows)[Q_LOCK::MESSAGE_WIDTH]
    [check] = array("q", answer.rows)[Q_LOCK_CHECK::MESSAGE_WIDTH]
    return (lock & MASK).to_bytes(8, "big") + (check & MASK).to_bytes(8, "big")


def test_a_transaction_settles_in_two_subscriptions_and_sends_to_their_topic_in_one_step(world: World) -> None:
    world.put(subscription("c"), subscription("d"))
    world.send("a")
    settlements = tuple(
        TransactedSettlement(name * 32, received(world, name), SettleOutcome.COMPLETE) for name in ("c", "d")
    )
    run = run_of(message("b"), message("c"))
    assert world.ask(CommitTransaction(TOPIC, settlements, b"", 2, 10, run)) == Done()
    assert [world.active("c"), world.active("d")] == [2, 2]
    again = CommitTransaction(TOPIC, settlements, b"", 1, 10, run_of(message("x")))
    assert world.refused(again).condition is MESSAGE_LOCK_LOST
    assert [world.active("c"), world.active("d")] == [2, 2]


def test_a_lock_that_is_lost_in_one_subscription_undoes_what_was_marked_in_another(world: World) -> None:
    world.put(subscription("c"), subscription("d"))
    world.send("a")
    good = TransactedSettlement("c" * 32, received(world, "c"), SettleOutcome.COMPLETE)
    bad = TransactedSettlement("d" * 32, bytes(16), SettleOutcome.COMPLETE)
    refused = world.refused(CommitTransaction(TOPIC, (good, bad), b"", 1, 10, run_of(message("x"))))
    assert refused.condition is MESSAGE_LOCK_LOST
    gone = TransactedSettlement("e" * 32, bytes(16), SettleOutcome.COMPLETE)
    assert world.refused(CommitTransaction(TOPIC, (good, gone), b"", 0, 0, bytearray())).condition is NOT_FOUND
    assert [world.active("c"), world.active("d")] == [1, 1]
    assert world.ask(CommitTransaction(TOPIC, (good,), b"", 0, 0, bytearray())) == Done()
    assert [world.active("c"), world.active("d")] == [0, 1]
