"""Transactions of a connection: what is done in one, when it shows, and every way in which one ends."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import Accepted, Modified, Rejected, Released, TransactionalState
from hubweir.amqp.transactions.requests import Declare, Discharge
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.errors import SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.tests.controller import Controller, send_in, settle_in, state_of, told
from hubweir.gateway.amqp.tests.queue_world import (
    LOCK_MS,
    PEEK_LOCK,
    bodies,
    counts,
    create_queue,
    queue_world,
    send,
)
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.gateway.amqp.transactions import OPEN_LIMIT, TRANSACTION_MS
from hubweir.namespace.delivery_settings import DeliverySettings

UNKNOWN, ROLLED_BACK = "amqp:transaction:unknown-id", "amqp:transaction:rollback"
LATE = "amqp:transaction:timeout"


@pytest.fixture
def world() -> World:
    return queue_world()


def test_ids_are_all_different_and_an_empty_transaction_ends_either_way(controller: Controller) -> None:
    ids = [controller.declare() for _ in range(4)]
    assert len(set(ids)) == 4 and all(len(each) == 16 for each in ids)
    assert [controller.commit(ids[0]), controller.roll_back(ids[1])] == ["accepted"] * 2


def test_sends_show_at_the_commit_all_together_in_their_order(
    peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    txn_id = controller.declare()
    state = state_of(peer, sender, event(b"a"), state=TransactionalState(txn_id=txn_id))
    assert state == TransactionalState(txn_id=txn_id, outcome=Accepted())
    assert send_in(peer, txn_id, sender, b"b", b"c") == ["accepted"] * 2
    send(peer, b"outside")
    assert bodies(peer) == [b"outside"]
    assert controller.commit(txn_id) == "accepted"
    assert bodies(peer) == [b"outside", b"a", b"b", b"c"]


def test_a_rollback_drops_the_sends(peer: Peer, controller: Controller, sender: SenderLink) -> None:
    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"a")
    assert controller.roll_back(txn_id) == "accepted"
    peer.run(5_000)
    assert bodies(peer) == []


def test_a_transaction_that_ended_is_known_no_more(peer: Peer, controller: Controller, sender: SenderLink) -> None:
    committed, rolled_back = controller.declare(), controller.declare()
    controller.commit(committed), controller.roll_back(rolled_back)
    for txn_id in (committed, rolled_back, b"never was one", b""):
        assert send_in(peer, txn_id, sender, b"a") == [UNKNOWN]
        assert controller.commit(txn_id) == UNKNOWN and controller.roll_back(txn_id) == UNKNOWN
    assert bodies(peer) == []


def test_an_id_means_nothing_on_another_connection(world: World, controller: Controller) -> None:
    txn_id = controller.declare()
    stranger = world.trusted_peer()
    assert send_in(stranger, txn_id, stranger.sender("orders"), b"a") == [UNKNOWN]
    assert Controller(stranger).commit(txn_id) == UNKNOWN
    assert controller.commit(txn_id) == "accepted"


@pytest.mark.parametrize(
    "outcome, active, dead, deferred",
    [
        (Accepted(), 0, 0, 0),
        (Modified(undeliverable_here=True), 0, 0, 1),
        (Modified(), 1, 0, 0),
        (Rejected(), 0, 1, 0),
    ],
)
def test_a_settlement_is_done_at_the_commit(
    world: World, peer: Peer, controller: Controller, outcome: Accepted, active: int, dead: int, deferred: int
) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    txn_id = controller.declare()
    state = settle_in(peer, txn_id, link, 0, outcome)
    assert isinstance(state, TransactionalState) and state.txn_id == txn_id and type(state.outcome) is type(outcome)
    before = counts(world)
    assert (before.active, before.dead_lettered, before.deferred) == (1, 0, 0)
    assert controller.commit(txn_id) == "accepted"
    after = counts(world)
    assert (after.active, after.dead_lettered, after.deferred) == (active, dead, deferred)
    again = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert again.unsettled_count == active  # an abandoned one comes at once


def test_a_rollback_keeps_the_lock_and_the_message_comes_again_when_it_ends(
    world: World, peer: Peer, controller: Controller
) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    txn_id = controller.declare()
    settle_in(peer, txn_id, link, 0, Accepted())
    assert controller.roll_back(txn_id) == "accepted"
    other = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert other.unsettled_count == 0 and counts(world).active == 1
    peer.run(LOCK_MS)
    assert other.unsettled_count == 1


def test_a_send_and_a_settlement_are_one_operation(
    world: World, peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    txn_id = controller.declare()
    settle_in(peer, txn_id, link, 0, Accepted())
    settle_in(peer, txn_id, link, 1, Accepted())
    send_in(peer, txn_id, sender, b"answer")
    assert controller.commit(txn_id) == "accepted"
    [command] = world.gate.sent(CommitTransaction)
    assert len(command.settlements) == 1 and command.messages == 1
    assert bodies(peer) == [b"answer"]


def test_a_lost_lock_rolls_everything_back_at_the_commit(
    peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    send(peer, b"a", b"b")
    link = peer.receiver("orders", credit=2, **PEEK_LOCK)
    txn_id = controller.declare()
    settle_in(peer, txn_id, link, 0, Accepted())
    send_in(peer, txn_id, sender, b"answer")
    peer.run(LOCK_MS + 1_000)
    state = controller.ask(Discharge(txn_id=txn_id))
    assert told(state) == ROLLED_BACK
    assert isinstance(state, Rejected) and state.error is not None
    assert "com.microsoft:message-lock-lost" in str(state.error.description)
    assert bodies(peer) == [b"a", b"b"]
    assert controller.commit(txn_id) == UNKNOWN


@pytest.mark.parametrize("outcome", [Released(), None])
def test_to_release_is_none_of_what_a_transaction_does(
    peer: Peer, controller: Controller, outcome: Released | None
) -> None:
    send(peer, b"a")
    link = peer.receiver("orders", credit=1, **PEEK_LOCK)
    assert told(settle_in(peer, controller.declare(), link, 0, outcome)) == "amqp:not-allowed"  # type: ignore[arg-type]


def test_what_is_sent_settled_is_part_of_it_too(peer: Peer, controller: Controller, sender: SenderLink) -> None:
    txn_id = controller.declare()
    sender.send(event(b"a"), settled=True, state=TransactionalState(txn_id=txn_id))
    peer.run()
    assert bodies(peer) == [] and controller.commit(txn_id) == "accepted"
    assert bodies(peer) == [b"a"]


def test_a_queue_of_sessions_takes_no_message_without_one(world: World, peer: Peer, controller: Controller) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    sender, txn_id = peer.sender("sessions"), controller.declare()
    assert send_in(peer, controller.declare(), sender, b"none") == ["amqp:not-allowed"]
    assert send_in(peer, txn_id, sender, b"one", properties=Properties(group_id="s")) == ["accepted"]
    assert controller.commit(txn_id) == "accepted"
    assert bodies(peer, "sessions") == [b"one"]


def test_two_minutes_from_the_first_operation_on_it_is_rolled_back(world: World) -> None:
    peer = world.trusted_peer(tick_ms=50)
    controller, sender = Controller(peer), peer.sender("orders")
    peer.run(500)
    waiting, used = controller.declare(), controller.declare()
    peer.run(TRANSACTION_MS)  # a declared one waits for its first operation
    assert send_in(peer, used, sender, b"a") == ["accepted"]
    peer.run(TRANSACTION_MS - 2_000)
    assert send_in(peer, used, sender, b"b") == ["accepted"]
    peer.run(4_000)
    assert send_in(peer, used, sender, b"c") == [LATE]
    assert controller.commit(used) == LATE and controller.roll_back(used) == LATE
    assert controller.commit(waiting) == "accepted"
    assert bodies(peer) == []


@pytest.mark.parametrize("end", ["detach", "end of the session", "cut"])
def test_the_end_of_the_control_link_rolls_back(world: World, peer: Peer, sender: SenderLink, end: str) -> None:
    controller = Controller(peer)
    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"a")
    transactions = peer.host.transactions
    if end == "cut":
        peer.cut()
    elif end == "detach":
        controller.link.detach()
    else:
        peer.session().end()
    world.run_for(100)
    assert len(transactions) == 0 and world.process.transactions_budget.used == 0
    assert counts(world).active == 0
    if end == "detach":
        assert send_in(peer, txn_id, sender, b"b") == [UNKNOWN]


def test_open_transactions_and_what_they_hold_have_limits(world: World, peer: Peer, controller: Controller) -> None:
    ids = [controller.declare() for _ in range(OPEN_LIMIT)]
    assert told(controller.ask(Declare())) == "amqp:resource-limit-exceeded"
    sender, limit = peer.sender("orders"), world.process.limits.connection_budget_bytes // 2
    big, taken = b"x" * 500_000, 0
    while send_in(peer, ids[taken % 4], sender, big) == ["accepted"]:
        taken += 1
    assert taken == limit // 500_000
    held = world.process.transactions_budget.used
    assert taken * 500_000 < held <= limit
    send(peer, b"outside")  # the connection is read on
    for txn_id in ids[:4]:
        assert controller.roll_back(txn_id) == "accepted"
    assert world.process.transactions_budget.used == 0


def test_all_connections_together_hold_no_more_than_their_limit(world: World, peer: Peer) -> None:
    controller, sender = Controller(peer), peer.sender("orders")
    world.process.transactions_budget.take_bytes(world.process.limits.process_budget_bytes // 4)
    assert send_in(peer, controller.declare(), sender, b"a") == ["com.microsoft:server-busy"]


def test_however_the_broker_answers_a_commit_nothing_of_it_is_held(
    world: World, peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    for refusal in (Refusal(SERVER_BUSY, "later"), Refusal(TIMED_OUT, "gone", known=False)):
        txn_id = controller.declare()
        send_in(peer, txn_id, sender, b"a")
        world.gate.refuse[CommitTransaction] = refusal
        controller.commit(txn_id)
        assert world.process.transactions_budget.used == 0


@pytest.mark.parametrize("end", ["detach", "cut"])
def test_a_commit_goes_on_when_its_link_has_ended_and_nobody_is_told(
    world: World, peer: Peer, controller: Controller, sender: SenderLink, end: str
) -> None:
    txn_id = controller.declare()
    send_in(peer, txn_id, sender, b"a")
    world.gate.hold[CommitTransaction] = []
    assert controller.commit(txn_id) == ""
    if end == "cut":
        peer.cut()
    else:
        controller.link.detach()
    world.run_for(100)
    world.gate.release(CommitTransaction)
    world.run_for(100)
    assert counts(world).active == 1 and world.process.transactions_budget.used == 0
    if end == "detach":
        assert send_in(peer, Controller(peer).declare(), sender, b"b") == ["accepted"]


def test_an_event_hub_takes_nothing_in_a_transaction(peer: Peer, controller: Controller) -> None:
    sender = peer.sender("hub")
    send_in(peer, controller.declare(), sender, b"a")
    assert str(peer.refusal(sender).condition) == "amqp:not-implemented"
