"""coordinator_node.py: the control link itself. What transactions do is in test_transactions.py."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import encode_message
from hubweir.amqp.messaging.outcome import Declared, TransactionalState
from hubweir.amqp.messaging.terminus import Coordinator
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, message_of
from hubweir.amqp.transport.events import Settled
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Described, Symbol
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.errors import SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.coordinator_node import REQUEST_LIMIT_BYTES
from hubweir.gateway.amqp.tests.controller import Controller, send_in, state_of, told
from hubweir.gateway.amqp.tests.queue_world import attaches, bodies, queue_world
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.tiers import PROFILES


@pytest.fixture
def world() -> World:
    return queue_world()


def encoded(request: Request) -> bytes:
    return encode_message(message_of(request))


def open_count(peer: Peer) -> int:
    return len(peer.host.transactions)


def test_a_control_link_is_answered_with_its_own_coordinator_and_the_limit_of_a_request(peer: Peer) -> None:
    begun = len(peer.came)
    Controller(peer)
    [attach] = attaches(peer, begun)
    assert isinstance(attach.target, Coordinator) and attach.source is not None
    assert attach.source.address == "controller"
    assert attach.max_message_size == REQUEST_LIMIT_BYTES


def test_a_basic_namespace_has_no_transactions() -> None:
    peer = World(settings=GatewaySettings(profile=PROFILES["basic"])).trusted_peer()
    assert str(peer.refusal(Controller(peer).link).condition) == "amqp:resource-limit-exceeded"


def test_what_is_no_request_is_rejected_and_the_link_stays(peer: Peer, controller: Controller) -> None:
    assert told(state_of(peer, controller.link, event(b"declare"))) == "amqp:decode-error"
    assert told(state_of(peer, controller.link, b"\x00")) == "amqp:decode-error"
    assert told(state_of(peer, controller.link, b"x" * (REQUEST_LIMIT_BYTES + 1))) == "amqp:link:message-size-exceeded"
    assert controller.declare()


def test_a_transaction_over_several_coordinators_is_refused_and_none_is_begun(
    peer: Peer, controller: Controller
) -> None:
    answer = controller.ask(Declare(global_id=Described(Symbol("another"), b"id")))
    assert told(answer) == "amqp:not-implemented" and open_count(peer) == 0


def test_a_declare_that_asks_for_no_answer_begins_nothing(peer: Peer, controller: Controller) -> None:
    controller.link.send(encoded(Declare()), settled=True)
    peer.run()
    assert open_count(peer) == 0 and controller.link.is_attached


def test_requests_of_one_read_are_done_in_order_and_each_is_answered(
    peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    kept, dropped = controller.declare(), controller.declare()
    for txn_id in (kept, dropped):
        assert send_in(peer, txn_id, sender, txn_id) == ["accepted"]
    requests = (Discharge(txn_id=kept), Discharge(txn_id=dropped, fail=True), Discharge(txn_id=dropped), Declare())
    ids = [controller.link.send(encoded(each), settled=False) for each in requests]
    peer.run()
    outcomes = {
        number: each.outcome
        for each in peer.side.events
        if isinstance(each, Settled) and each.link is controller.link
        for number in range(each.first_id, each.last_id + 1)
    }
    assert [told(outcomes[each]) for each in ids[:3]] == ["accepted", "accepted", "amqp:transaction:unknown-id"]
    assert isinstance(outcomes[ids[3]], Declared)
    assert bodies(peer) == [kept]


def test_credit_comes_again_however_many_requests_there_were(world: World, peer: Peer, controller: Controller) -> None:
    for _ in range(world.process.link_settings.request_credit + 5):
        assert controller.link.sendable
        assert controller.roll_back(controller.declare()) == "accepted"
    for _ in range(world.process.link_settings.request_credit + 5):
        assert controller.link.sendable
        assert told(state_of(peer, controller.link, bytes(REQUEST_LIMIT_BYTES + 1))).endswith("size-exceeded")


def test_a_commit_that_was_refused_is_rejected_and_one_whose_end_is_unknown_ends_the_link_without_a_word(
    world: World, peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    for refusal, answer in (
        (Refusal(SERVER_BUSY, "later"), "amqp:transaction:rollback"),
        (Refusal(TIMED_OUT, "gone", known=False), ""),
    ):
        txn_id = controller.declare()
        send_in(peer, txn_id, sender, b"a")
        world.gate.refuse[CommitTransaction] = refusal
        assert controller.commit(txn_id) == answer
    error = peer.refusal(controller.link)
    assert str(error.condition) == "amqp:link:detach-forced"
    assert "Whether a transaction was committed is not known: gone" in str(error.description)


def test_the_end_of_a_control_link_rolls_back_what_it_declared_and_nothing_of_another(
    peer: Peer, controller: Controller, sender: SenderLink
) -> None:
    another = Controller(peer)
    kept, gone = another.declare(), controller.declare()
    state_of(peer, sender, event(b"kept"), state=TransactionalState(txn_id=kept))
    controller.link.detach()
    peer.run()
    assert open_count(peer) == 1
    assert another.commit(gone) == "amqp:transaction:unknown-id"
    assert another.commit(kept) == "accepted" and bodies(peer) == [b"kept"]
