"""Transactions over several logs, through every crash: all logs have the effects, or none, and nothing in between.

A world has three queues in one process, `requests`, `answers` and `notices`, whose logs are separate files. A
transaction completes a message of the first and sends to the second, or to both others. Crashes come at every moment
of it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubweir.amqp.messaging.message import encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transactions.requests import Discharge, message_of
from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.commands.transaction import (
    BeginDecision,
    CommitTransaction,
    EndTransaction,
    ForgetTransaction,
    PrepareTransaction,
)
from hubweir.broker.hosted_fragment import HostedFragment
from hubweir.broker.hosted_transactions import LOOK_MS
from hubweir.errors import ENTITY_MOVED, SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.tests.controller import Controller, send_in, settle_in
from hubweir.gateway.amqp.tests.queue_world import LOCK_MS, PEEK_LOCK, bodies, counts, create_queue, send
from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.transaction_endings import TransactionEndings
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.queue_description import QueueDescription
from hubweir.testing.simulated_env import SimulatedEnv

NOTHING, EVERYTHING = (1, 0), (0, 1)  # active messages of the first two queues
ROLLED_BACK = "amqp:transaction:rollback"


def world_of(env: SimulatedEnv | None = None) -> World:
    world = World(env=env)
    if world.namespace.find("requests", QueueDescription) is None:
        delivery = DeliverySettings(lock_duration=WrittenDuration(LOCK_MS, "PT10S"))
        for name in ("requests", "answers", "notices"):
            create_queue(world, name, delivery=delivery)
    return world


class Exchange:
    """A request is completed and answered in one transaction, up to its discharge. notices: others hear of it, too."""

    def __init__(self, world: World, *, notices: bool = False) -> None:
        self.world, self.peer = world, world.trusted_peer()
        send(self.peer, b"request", queue="requests")
        self.receiver = self.peer.receiver("requests", credit=1, **PEEK_LOCK)
        self.controller = Controller(self.peer)
        self.txn_id = self.controller.declare()
        settle_in(self.peer, self.txn_id, self.receiver, 0, Accepted())
        assert send_in(self.peer, self.txn_id, self.peer.sender("answers"), b"answer") == ["accepted"]
        if notices:
            assert send_in(self.peer, self.txn_id, self.peer.sender("notices"), b"1", b"2") == ["accepted"] * 2


def active(world: World) -> tuple[int, int]:
    return counts(world, "requests").active, counts(world, "answers").active


def open_ones(world: World) -> int:
    """How many transactions some log has not ended."""
    found = 0
    for resident in world.broker._residents:
        for fragment in resident.fragments() if isinstance(resident, HostedFragment) else ():
            logged = fragment.core.state.transactions
            found += len(logged.prepared) + len(logged.decided)
    return found


@pytest.fixture
def world() -> World:
    return world_of()


def test_a_transaction_over_two_queues_shows_in_both_at_its_commit(world: World) -> None:
    exchange = Exchange(world)
    assert active(world) == NOTHING
    assert exchange.controller.commit(exchange.txn_id) == "accepted"
    assert active(world) == EVERYTHING
    [commit], [prepare] = world.gate.sent(CommitTransaction), world.gate.sent(PrepareTransaction)
    assert commit.messages == 1 and prepare.messages == 0  # what is sent to decides
    world.run_for(100)
    assert open_ones(world) == 0 and len(world.gate.sent(ForgetTransaction)) == 1


def test_a_rollback_asks_no_log(world: World) -> None:
    exchange = Exchange(world)
    assert exchange.controller.roll_back(exchange.txn_id) == "accepted"
    assert active(world) == NOTHING and not world.gate.sent(PrepareTransaction)


@pytest.mark.parametrize("kind", [BeginDecision, PrepareTransaction, CommitTransaction])
def test_a_refusal_of_any_step_rolls_all_of_it_back(world: World, kind: type) -> None:
    exchange = Exchange(world)
    world.gate.refuse[kind] = Refusal(SERVER_BUSY, "later")
    assert exchange.controller.commit(exchange.txn_id) == ROLLED_BACK
    del world.gate.refuse[kind]
    assert active(world) == NOTHING and open_ones(world) == 0
    txn_id = exchange.controller.declare()  # the lock is as it was
    send(exchange.peer, b"b", queue="requests")
    assert exchange.controller.commit(txn_id) == "accepted"
    world.run_for(LOCK_MS + 100)
    assert exchange.peer.receiver("requests", credit=5, **PEEK_LOCK).unsettled_count == 2


def test_a_lost_lock_rolls_the_other_queue_back_too(world: World) -> None:
    exchange = Exchange(world)
    world.run_for(LOCK_MS + 100)
    assert exchange.controller.commit(exchange.txn_id) == ROLLED_BACK
    assert active(world) == NOTHING and open_ones(world) == 0


def test_who_never_hears_of_the_decision_asks_for_it(world: World) -> None:
    exchange = Exchange(world)
    world.gate.hold[EndTransaction] = []
    assert exchange.controller.commit(exchange.txn_id) == "accepted"
    assert active(world) == (1, 1)  # held in front of the broker, which stands for one that is far away
    assert exchange.peer.receiver("requests", credit=5, **PEEK_LOCK).unsettled_count == 0
    del world.gate.hold[EndTransaction]  # that one is lost
    world.run_for(3_000)
    assert active(world) == EVERYTHING and open_ones(world) == 0


def test_an_unknown_commit_ends_the_link_and_the_logs_find_out_by_themselves(world: World) -> None:
    exchange = Exchange(world)
    world.gate.refuse[CommitTransaction] = Refusal(TIMED_OUT, "gone", known=False)
    assert exchange.controller.commit(exchange.txn_id) == ""
    assert str(exchange.peer.refusal(exchange.controller.link).condition) == "amqp:link:detach-forced"
    assert open_ones(world) == 1
    world.run_for(3_000)
    assert active(world) == NOTHING and open_ones(world) == 0


def test_a_decision_that_comes_after_somebody_asked_is_refused(world: World) -> None:
    exchange = Exchange(world)
    world.gate.hold[CommitTransaction] = []
    assert exchange.controller.commit(exchange.txn_id) == ""
    world.run_for(3_000)  # what is prepared asks, and the coordinator's log gives it up
    world.gate.release(CommitTransaction)
    world.run_for(100)
    assert active(world) == NOTHING and open_ones(world) == 0


def test_a_decision_that_takes_a_second_is_given_up_by_nobody(world: World) -> None:
    exchange = Exchange(world)
    world.gate.hold[CommitTransaction] = []
    assert exchange.controller.commit(exchange.txn_id) == ""
    world.run_for(LOOK_MS + LOOK_MS // 2)
    world.gate.release(CommitTransaction)
    world.run_for(100)
    assert active(world) == EVERYTHING and open_ones(world) == 0


class Says:
    """A broker that gives one answer to everything."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.asked = answer, 0

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.asked += 1
        on_answer(self.answer)

    def listen(self, on_push: object) -> None:
        raise AssertionError("nobody listens to it")


MOVED, BUSY = Refusal(ENTITY_MOVED, "not here"), Refusal(SERVER_BUSY, "later")
LOST = Refusal(TIMED_OUT, "gone", known=False)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ((MOVED, Done()), Done()),
        ((BUSY, Done()), Done()),  # a broker that is away says nothing of where the log is
        ((LOST, MOVED, Done()), Done()),
        ((MOVED, BUSY, MOVED), BUSY),  # so the log is not taken for a deleted one
        ((LOST, MOVED), LOST),
        ((LOST, BUSY), LOST),
        ((MOVED, MOVED), MOVED),
    ],
)
def test_a_log_is_looked_for_at_every_broker_and_is_elsewhere_when_all_say_so(
    said: tuple[Answer, ...], answer: Answer
) -> None:
    brokers, answers = [Says(each) for each in said], list[Answer]()
    endings = TransactionEndings(Brokers(brokers), 1, lambda log_id: False)
    endings.submit("a log", ForgetTransaction("a log", b"t" * 16), answers.append)
    assert answers == [answer] and [each.asked for each in brokers] == [1] * len(brokers)


def test_nobody_behind_the_broker_that_has_the_log_is_asked() -> None:
    has, behind = Says(Done()), Says(MOVED)
    endings, answers = TransactionEndings(Brokers([has, behind]), 1, lambda log_id: False), list[Answer]()
    endings.submit("a log", ForgetTransaction("a log", b"t" * 16), answers.append)
    assert answers == [Done()] and not behind.asked


# Sent to several queues


def noticed(world: World) -> int:
    return counts(world, "notices").active


def committed(exchange: Exchange) -> str:
    """What the commit is answered with, which takes a sync more than one that sends to one queue."""
    answer = exchange.controller.commit(exchange.txn_id)
    exchange.world.run_for(100)
    return answer or exchange.peer.outcomes(exchange.controller.link)[-1][2]


def limit_size(world: World, queue: str, max_size_bytes: int) -> None:
    """A queue takes no more than this."""
    hosted = [each.fragment.core for each in world.broker._residents if isinstance(each, HostedFragment)]
    [core] = [each for each in hosted if each.entity == queue]
    core.settings = replace(core.settings, max_size_bytes=max_size_bytes)


def test_messages_to_two_queues_are_there_in_both_when_the_commit_is_answered(world: World) -> None:
    exchange = Exchange(world, notices=True)
    assert (active(world), noticed(world)) == (NOTHING, 0)
    assert committed(exchange) == "accepted"
    assert (active(world), noticed(world)) == (EVERYTHING, 2)
    assert bodies(exchange.peer, "answers") + bodies(exchange.peer, "notices") == [b"answer", b"1", b"2"]
    [commit] = world.gate.sent(CommitTransaction)
    assert commit.messages == 1 and sorted(each.messages for each in world.gate.sent(PrepareTransaction)) == [0, 2]
    world.run_for(100)
    assert open_ones(world) == 0 and len(world.gate.sent(ForgetTransaction)) == 1
    assert world.counters["broker.messages_enqueued"] == 4


def test_messages_that_are_decided_and_not_told_yet_are_not_answered(world: World) -> None:
    exchange = Exchange(world, notices=True)
    world.gate.hold[EndTransaction] = []
    assert committed(exchange) == "declared"  # the answer before
    world.gate.release(EndTransaction)
    exchange.peer.run()
    assert exchange.peer.outcomes(exchange.controller.link)[-1][2] == "accepted"
    assert (active(world), noticed(world)) == (EVERYTHING, 2)


def test_a_commit_is_answered_as_done_though_a_log_cannot_store_its_messages_yet(world: World) -> None:
    exchange = Exchange(world, notices=True)
    world.gate.refuse[EndTransaction] = Refusal(SERVER_BUSY, "later")
    assert committed(exchange) == "accepted"
    assert noticed(world) == 0
    del world.gate.refuse[EndTransaction]
    world.run_for(3_000)
    assert (active(world), noticed(world)) == (EVERYTHING, 2) and open_ones(world) == 0


@pytest.mark.parametrize("full", ["answers", "notices"])
def test_a_queue_that_is_full_rolls_the_others_back(world: World, full: str) -> None:
    exchange = Exchange(world, notices=True)
    limit_size(world, full, 10)
    assert committed(exchange) == ROLLED_BACK
    assert (active(world), noticed(world), open_ones(world)) == (NOTHING, 0, 0)


def _after_a_crash(seed: int, at_ms: int, *, power_cut: bool, notices: bool = False) -> tuple[int, int]:
    """What the first two queues have after a crash so many milliseconds behind the discharge; the third goes along."""
    world = world_of(SimulatedEnv(seed, interleaved=0.2))
    exchange = Exchange(world, notices=notices)
    exchange.controller.link.send(encode_message(message_of(Discharge(txn_id=exchange.txn_id))), settled=False)
    world.run_for(at_ms)
    outcomes = exchange.peer.outcomes(exchange.controller.link)
    was_done = len(outcomes) == 2 and outcomes[-1][2] == "accepted"
    world.env.crash(power_cut=power_cut)
    after = world_of(world.env.restart())
    after.run_for(3_000)
    assert open_ones(after) == 0, f"seed {seed}, {at_ms} ms: a transaction never ends"
    found = active(after)
    assert noticed(after) == 2 * notices * found[1], f"seed {seed}, {at_ms} ms: {found} and {noticed(after)}"
    assert found in (NOTHING, EVERYTHING), f"seed {seed}, {at_ms} ms: {found}"
    assert found == EVERYTHING or not was_done, f"seed {seed}, {at_ms} ms: answered, and gone"
    return found


@pytest.mark.parametrize("notices", [False, True])
@pytest.mark.parametrize("power_cut", [False, True])
def test_a_crash_at_any_point_leaves_all_or_none(power_cut: bool, notices: bool) -> None:
    times = [(seed, at_ms) for seed in range(3) for at_ms in range(power_cut, 66, 3)]
    seen = {_after_a_crash(seed, at_ms, power_cut=power_cut, notices=notices) for seed, at_ms in times}
    assert seen == {NOTHING, EVERYTHING}
