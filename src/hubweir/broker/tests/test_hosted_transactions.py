"""Transactions at a broker: over a topic and its subscriptions, which share one log."""

from __future__ import annotations

from array import array

import pytest

from hubweir.broker.commands.fragment import MessagesReceived, OpenReceiver, ReceiveMessages
from hubweir.broker.commands.process import CloseOwner, Done
from hubweir.broker.commands.transaction import (
    ANYBODY,
    AskTransaction,
    BeginDecision,
    CommitTransaction,
    EndTransaction,
    ForgetTransaction,
    PrepareTransaction,
    ReserveNumbers,
    TransactionFate,
    TransactionOpen,
)
from hubweir.broker.hosted_transactions import LOOK_MS
from hubweir.broker.tests.test_hosted_topic import ME, TOPIC, World, subscription
from hubweir.errors import MESSAGE_LOCK_LOST, NOT_FOUND, SERVER_BUSY, TRANSACTION_ROLLED_BACK
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import MASK, message, run_of
from hubweir.queue.transaction import TransactedSettlement
from hubweir.queue.transaction_decisions import Fate
from hubweir.testing.memory_faults import Fault


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
    assert world.ask(CommitTransaction(TOPIC, settlements, b"", (), (), 2, 10, run)) == Done()
    assert [world.active("c"), world.active("d")] == [2, 2]
    again = CommitTransaction(TOPIC, settlements, b"", (), (), 1, 10, run_of(message("x")))
    assert world.refused(again).condition is MESSAGE_LOCK_LOST
    assert [world.active("c"), world.active("d")] == [2, 2]


def test_a_lock_that_is_lost_in_one_subscription_undoes_what_was_marked_in_another(world: World) -> None:
    world.put(subscription("c"), subscription("d"))
    world.send("a")
    good = TransactedSettlement("c" * 32, received(world, "c"), SettleOutcome.COMPLETE)
    bad = TransactedSettlement("d" * 32, bytes(16), SettleOutcome.COMPLETE)
    refused = world.refused(CommitTransaction(TOPIC, (good, bad), b"", (), (), 1, 10, run_of(message("x"))))
    assert refused.condition is MESSAGE_LOCK_LOST
    gone = TransactedSettlement("e" * 32, bytes(16), SettleOutcome.COMPLETE)
    assert world.refused(CommitTransaction(TOPIC, (good, gone), b"", (), (), 0, 0, bytearray())).condition is NOT_FOUND
    assert [world.active("c"), world.active("d")] == [1, 1]
    assert world.ask(CommitTransaction(TOPIC, (good,), b"", (), (), 0, 0, bytearray())) == Done()
    assert [world.active("c"), world.active("d")] == [0, 1]


# Over several logs: this one is prepared

TXN = b"t" * 16


def prepared(world: World) -> None:
    """A message of two subscriptions each is in doubt."""
    world.put(subscription("c"), subscription("d"))
    world.send("a")
    settlements = tuple(
        TransactedSettlement(name * 32, received(world, name), outcome)
        for name, outcome in (("c", SettleOutcome.COMPLETE), ("d", SettleOutcome.ABANDON))
    )
    assert (
        world.ask(PrepareTransaction(TOPIC, settlements, b"", (), (), 0, 0, bytearray(), TXN, "another log")) == Done()
    )


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_prepared_is_done_or_dropped_when_it_ends_once(
    world: World, is_committed: bool, restarts: bool
) -> None:
    prepared(world)
    if restarts:
        world.restart(subscription("c"), subscription("d"))
    for _ in range(2):
        assert world.ask(EndTransaction(TOPIC, TXN, is_committed)) == Done()
        assert [world.active("c"), world.active("d")] == [int(not is_committed), 1]
    world.restart(subscription("c"), subscription("d"))
    assert [world.active("c"), world.active("d")] == [int(not is_committed), 1]
    assert not [push for push in world.pushed if isinstance(push, TransactionOpen)]
    assert received(world, "d")


@pytest.mark.parametrize("is_committed", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_sent_to_a_topic_is_copied_when_the_transaction_ends(
    world: World, is_committed: bool, restarts: bool
) -> None:
    world.put(subscription("c"), subscription("d"))
    world.send("a")
    settlement = TransactedSettlement("c" * 32, received(world, "c"), SettleOutcome.COMPLETE)
    prepare = PrepareTransaction(
        TOPIC,
        (settlement,),
        b"",
        (),
        (),
        3,
        30,
        run_of(*(message(f"{n}") for n in range(3)), size=2),
        TXN,
        "another log",
    )
    assert world.ask(prepare) == Done()
    if restarts:
        world.restart(subscription("c"), subscription("d"))
        assert world.refused(ReserveNumbers(TOPIC, 1)).condition is SERVER_BUSY
    assert [world.active("c"), world.active("d")] == [1, 1]
    stored = world.counters["broker.messages_enqueued"]
    for _ in range(2):
        assert world.ask(EndTransaction(TOPIC, TXN, is_committed)) == Done()
        world.env.run_for(100)
        assert [world.active("c"), world.active("d")] == ([3, 4] if is_committed else [1, 1])
    assert world.counters["broker.messages_enqueued"] - stored == 3 * is_committed
    world.restart(subscription("c"), subscription("d"))
    assert [world.active("c"), world.active("d")] == ([3, 4] if is_committed else [1, 1])


def test_a_subscription_that_starts_in_doubt_serves_nobody_and_asks_until_it_knows(world: World) -> None:
    prepared(world)
    world.restart(subscription("c"), subscription("d"), subscription("e"))
    for name in ("c", "d"):
        refused = world.refused(OpenReceiver(name * 32, ME, SubQueue.MAIN, ReceiveMode.PEEK_LOCK))
        assert refused.condition is SERVER_BUSY and refused.known
    assert world.opened("e")  # nothing of it is in doubt
    world.env.run_for(2_500)
    pushed = [push for push in world.pushed if isinstance(push, TransactionOpen)]
    assert len(pushed) >= 3 and set(pushed) == {TransactionOpen(ANYBODY, TOPIC, TXN, "another log", ())}
    assert world.ask(EndTransaction(TOPIC, TXN, False)) == Done()
    assert world.opened("c") and world.opened("d")


def test_what_came_since_the_last_look_is_not_told_yet(world: World) -> None:
    """To ask for it would give up a transaction that is about to be decided."""
    prepared(world)
    world.env.run_for(LOOK_MS)
    assert not world.pushed
    world.env.run_for(LOOK_MS)
    assert world.pushed == [TransactionOpen(ANYBODY, TOPIC, TXN, "another log", ())]
    world.pushed.clear()
    world.restart(subscription("c"), subscription("d"))
    assert world.pushed  # who began it may be gone


def test_what_is_in_doubt_is_settled_by_nobody_and_its_lock_outlives_its_time(world: World) -> None:
    prepared(world)
    world.env.run_for(120_000)
    receiver = world.opened("c")
    assert not world.begin(ReceiveMessages("c" * 32, receiver, 1, 1 << 20))
    world.env.run_for(1_000)
    assert world.ask(EndTransaction(TOPIC, TXN, True)) == Done()
    assert world.active("c") == 0


def test_what_is_in_doubt_over_a_start_does_not_expire_before_it_has_ended(world: World) -> None:
    world.put(subscription("c", default_ttl_ms=30_000))
    world.send("a")
    settled = (TransactedSettlement("c" * 32, received(world, "c"), SettleOutcome.COMPLETE),)
    assert world.ask(PrepareTransaction(TOPIC, settled, b"", (), (), 0, 0, bytearray(), TXN, "another log")) == Done()
    world.restart(subscription("c", default_ttl_ms=30_000))
    world.env.run_for(60_000)
    assert world.active("c") == 1
    assert world.ask(EndTransaction(TOPIC, TXN, False)) == Done()
    world.env.run_for(1_000)
    assert world.active("c") == 0


def test_a_coordinator_gives_up_what_somebody_asks_for_and_keeps_what_it_decided(world: World) -> None:
    run = run_of(message("a"))
    undecided = CommitTransaction(TOPIC, (), b"", (), (), 1, 10, run[:], TXN, ("another log",))
    assert world.refused(undecided).condition is TRANSACTION_ROLLED_BACK  # never begun
    assert world.ask(BeginDecision(TOPIC, ME, TXN)) == Done()
    assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.ROLLED_BACK)
    assert world.refused(undecided).condition is TRANSACTION_ROLLED_BACK
    assert world.ask(BeginDecision(TOPIC, ME, TXN)) == Done()
    assert world.ask(CloseOwner(ME)) == Done()
    assert world.refused(undecided).condition is TRANSACTION_ROLLED_BACK
    assert world.ask(BeginDecision(TOPIC, ME, TXN)) == Done()
    [fate] = [*world.begin(CommitTransaction(TOPIC, (), b"", (), (), 1, 10, run, TXN, ("another log",)))] or [None]
    assert fate is None and world.begin(AskTransaction(TOPIC, TXN)) == [TransactionFate(Fate.OPEN)]
    world.env.run_for(500)
    for _ in range(2):
        assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.COMMITTED)
        world.restart()
        assert TransactionOpen(ANYBODY, TOPIC, TXN, "", ("another log",)) in world.pushed
    assert world.ask(ForgetTransaction(TOPIC, TXN)) == Done()
    world.restart()
    assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.ROLLED_BACK)


@pytest.mark.parametrize("asks_too_early", [False, True])
def test_a_decision_that_ended_unknown_is_rolled_back_when_the_log_takes_something_again(
    world: World, asks_too_early: bool
) -> None:
    """A failed sync, and a repair that fails: nobody knows. When the log heals it drops what was not durable."""
    assert world.ask(BeginDecision(TOPIC, ME, TXN)) == Done()
    world.env.files.plan(Fault.SYNC_EIO, forever=True)
    refused = world.refused(
        CommitTransaction(TOPIC, (), b"", (), (), 1, 10, run_of(message("a")), TXN, ("another log",))
    )
    assert not refused.known
    if asks_too_early:
        for _ in range(2):
            assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.OPEN)
    world.env.files.heal()
    world.env.run_for(10_000)
    assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.OPEN)  # it is found out now
    assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.ROLLED_BACK)
    world.restart()
    assert world.ask(AskTransaction(TOPIC, TXN)) == TransactionFate(Fate.ROLLED_BACK)
    assert not [push for push in world.pushed if isinstance(push, TransactionOpen)]


def test_an_append_that_is_answered_behind_the_stop_makes_nobody_look_again(world: World) -> None:
    assert world.ask(BeginDecision(TOPIC, ME, TXN)) == Done()
    answers = world.begin(CommitTransaction(TOPIC, (), b"", (), (), 1, 10, run_of(message("a")), TXN, ("another log",)))
    assert answers == []
    world.broker.stop(lambda: None)
    world.env.run_for(10_000)
    assert answers == [Done()]
    assert len(world.broker._deadlines) == 0
    assert not [push for push in world.pushed if isinstance(push, TransactionOpen)]
