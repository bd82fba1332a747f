"""Messages that are scheduled by requests in transactions: told their numbers at once, there at the commit."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, encode_message
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.transaction import ReserveNumbers
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.amqp.open_transaction import SENT_LIMIT
from hubweir.gateway.amqp.tests.controller import Controller, send_in, state_of
from hubweir.gateway.amqp.tests.queue_world import (
    ask,
    bodies,
    body_of,
    code_of,
    counts,
    create_queue,
    queue_world,
    send,
)
from hubweir.gateway.amqp.tests.test_transacted_requests import (
    cancelling,
    condition_of,
    scheduled,
    scheduling,
    text_of,
)
from hubweir.gateway.amqp.tests.world import Peer, World


@pytest.fixture
def world() -> World:
    return queue_world()


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


@pytest.fixture
def controller(peer: Peer) -> Controller:
    return Controller(peer)


def numbers_of(answer: Message) -> list[int]:
    assert code_of(answer) == 200, text_of(answer)
    return [int(each) for each in body_of(answer)["sequence-numbers"].items]


def test_messages_are_scheduled_at_the_commit_with_the_numbers_that_were_told(
    world: World, peer: Peer, controller: Controller
) -> None:
    txn_id = controller.declare()
    first = numbers_of(ask(peer, "schedule-message", scheduling(world, b"a", b"b"), txn_id=txn_id))
    send(peer, b"meanwhile")
    assert send_in(peer, txn_id, peer.sender("orders"), b"sent") == ["accepted"]
    second = numbers_of(ask(peer, "schedule-message", scheduling(world, b"c"), txn_id=txn_id))
    assert (first, second) == ([1, 2], [4])
    assert (counts(world).scheduled, counts(world).active) == (0, 1)
    assert controller.commit(txn_id) == "accepted"
    assert (counts(world).scheduled, counts(world).active) == (3, 2)
    assert bodies(peer) == [b"a", b"b", b"meanwhile", b"c", b"sent"]
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(2, 4))) == 200
    assert bodies(peer) == [b"a", b"meanwhile", b"sent"]


def test_messages_that_are_scheduled_are_dropped_with_a_rollback(
    world: World, peer: Peer, controller: Controller
) -> None:
    txn_id = controller.declare()
    [number] = numbers_of(ask(peer, "schedule-message", scheduling(world, b"a"), txn_id=txn_id))
    assert controller.roll_back(txn_id) == "accepted"
    assert counts(world).scheduled == 0 and world.process.transactions_budget.used == 0
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(number))) == 404
    assert scheduled(world, peer, b"b") == [number + 1]


def test_messages_are_scheduled_in_two_queues_in_one_transaction(
    world: World, peer: Peer, controller: Controller
) -> None:
    create_queue(world, "answers")
    txn_id = controller.declare()
    for queue in ("orders", "answers"):
        node = f"{queue}/$management"
        numbers_of(ask(peer, "schedule-message", scheduling(world, b"a"), node=node, txn_id=txn_id))
    assert controller.commit(txn_id) in ("", "accepted")
    world.run_for(200)
    assert (counts(world).scheduled, counts(world, "answers").scheduled) == (1, 1)


def test_scheduled_messages_count_among_those_that_a_transaction_sends(
    world: World, peer: Peer, controller: Controller
) -> None:
    txn_id = controller.declare()
    numbers_of(ask(peer, "schedule-message", scheduling(world, *[b"a"] * SENT_LIMIT), txn_id=txn_id))
    held = world.process.transactions_budget.used
    answer = ask(peer, "schedule-message", scheduling(world, b"b"), txn_id=txn_id)
    assert condition_of(answer) == "amqp:resource-limit-exceeded"
    assert not world.gate.sent(ReserveNumbers)[1:] and world.process.transactions_budget.used == held > 0
    assert controller.commit(txn_id) == "accepted"
    assert counts(world).scheduled == SENT_LIMIT


def test_numbers_that_come_behind_the_end_of_their_transaction_schedule_nothing(
    world: World, peer: Peer, controller: Controller
) -> None:
    txn_id, link = controller.declare(), peer.sender("orders/$management")
    replies = peer.receiver("orders/$management", credit=10)
    world.gate.hold[ReserveNumbers] = []
    asked = Message(
        properties=Properties(message_id="1"),
        application_properties={"operation": "com.microsoft:schedule-message"},
        body=ValueBody(scheduling(world, b"a")),
    )
    state_of(peer, link, encode_message(asked), state=TransactionalState(txn_id=txn_id))
    assert controller.commit(txn_id) == "accepted"
    world.gate.release(ReserveNumbers)
    peer.run()
    [answer] = peer.received(replies)
    assert condition_of(answer) == "amqp:transaction:unknown-id" and counts(world).scheduled == 0


def test_a_refusal_of_numbers_is_told(world: World, peer: Peer, controller: Controller) -> None:
    txn_id = controller.declare()
    world.gate.refuse[ReserveNumbers] = Refusal(SERVER_BUSY, "later")
    answer = ask(peer, "schedule-message", scheduling(world, b"a"), txn_id=txn_id)
    assert condition_of(answer) == "com.microsoft:server-busy"
    assert controller.commit(txn_id) == "accepted"
