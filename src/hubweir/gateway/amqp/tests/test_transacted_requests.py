"""Requests in transactions: what `$management` does at a commit and what it refuses; nodes that know no transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, encode_message
from hubweir.amqp.messaging.outcome import Accepted, Rejected, TransactionalState
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Long, Symbol, Timestamp
from hubweir.gateway.amqp.tests.controller import Controller, send_in, settle_in, state_of
from hubweir.gateway.amqp.tests.queue_world import (
    LOCK_MS,
    PEEK_LOCK,
    ask,
    body_of,
    code_of,
    counts,
    queue_world,
    send,
)
from hubweir.gateway.amqp.tests.world import Peer, World, event, put_token, status_of
from hubweir.gateway.amqp.transactions import SETTLED_LIMIT, TRANSACTION_MS

ROLLED_BACK = "amqp:transaction:rollback"
DUE_MS = 60_000


@pytest.fixture
def world() -> World:
    return queue_world()


def condition_of(answer: Message) -> str:
    return str((answer.application_properties or {}).get("errorCondition"))


def text_of(answer: Message) -> str:
    return str((answer.application_properties or {})["statusDescription"])


def locked(peer: Peer, many: int) -> list[object]:
    """The tokens of messages that come locked."""
    link = peer.receiver("orders", credit=many, **PEEK_LOCK)
    return [(message.delivery_annotations or {})["x-opt-lock-token"] for message in peer.received(link)]


def disposing(tokens: Sequence[object], status: str = "completed", **more: object) -> dict[str, object]:
    return {"disposition-status": status, "lock-tokens": Array(AmqpType.UUID, tuple(tokens)), **more}


def cancelling(*numbers: int) -> dict[str, object]:
    return {"sequence-numbers": Array(AmqpType.LONG, tuple(Long(number) for number in numbers))}


def scheduling(world: World, *bodies: bytes) -> dict[str, object]:
    due = {Symbol("x-opt-scheduled-enqueue-time"): Timestamp(world.env.now_ms() + DUE_MS)}
    return {"messages": [{"message": event(body, message_annotations=due)} for body in bodies]}


def scheduled(world: World, peer: Peer, *bodies: bytes) -> list[int]:
    """Messages of a minute from now; their numbers."""
    found: Any = body_of(ask(peer, "schedule-message", scheduling(world, *bodies)))["sequence-numbers"]
    return list(found.items)


@pytest.mark.parametrize("status, active, dead, deferred", [
    ("completed", 0, 0, 0), ("abandoned", 1, 0, 0), ("suspended", 0, 1, 0), ("defered", 0, 0, 1),
])  # fmt: skip
def test_a_settlement_by_tokens_is_done_at_the_commit(
    world: World, peer: Peer, controller: Controller, status: str, active: int, dead: int, deferred: int
) -> None:
    send(peer, b"a")
    tokens, txn_id = locked(peer, 1), controller.declare()
    assert code_of(ask(peer, "update-disposition", disposing(tokens, status), txn_id=txn_id)) == 200
    before = counts(world)
    assert (before.active, before.dead_lettered, before.deferred) == (1, 0, 0)
    assert controller.commit(txn_id) == "accepted"
    after = counts(world)
    assert (after.active, after.dead_lettered, after.deferred) == (active, dead, deferred)


def test_a_rollback_keeps_the_locks_of_what_was_settled_by_tokens(
    world: World, peer: Peer, controller: Controller
) -> None:
    send(peer, b"a", b"b")
    tokens, txn_id = locked(peer, 2), controller.declare()
    ask(peer, "update-disposition", disposing(tokens), txn_id=txn_id)
    assert controller.roll_back(txn_id) == "accepted"
    assert counts(world).active == 2
    assert code_of(ask(peer, "update-disposition", disposing(tokens))) == 200
    assert counts(world).active == 0


def test_a_token_whose_lock_is_lost_is_found_at_the_commit(world: World, peer: Peer, controller: Controller) -> None:
    send(peer, b"a")
    tokens, txn_id = locked(peer, 1), controller.declare()
    assert code_of(ask(peer, "update-disposition", disposing(tokens), txn_id=txn_id)) == 200
    peer.run(LOCK_MS + 1_000)
    assert controller.commit(txn_id) == ROLLED_BACK
    assert counts(world).active == 1


def test_scheduled_messages_are_cancelled_at_the_commit_together_with_a_send(
    world: World, peer: Peer, controller: Controller
) -> None:
    first, second, third = scheduled(world, peer, b"a", b"b", b"c")
    txn_id = controller.declare()
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(first), txn_id=txn_id)) == 200
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(third, first), txn_id=txn_id)) == 200
    assert send_in(peer, txn_id, peer.sender("orders"), b"instead") == ["accepted"]
    assert (counts(world).scheduled, counts(world).active) == (3, 0)
    assert controller.commit(txn_id) == "accepted"
    assert (counts(world).scheduled, counts(world).active) == (1, 1)
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(second))) == 200


def test_a_rollback_leaves_scheduled_messages_where_they_are(world: World, peer: Peer, controller: Controller) -> None:
    numbers, txn_id = scheduled(world, peer, b"a"), controller.declare()
    ask(peer, "cancel-scheduled-message", cancelling(*numbers), txn_id=txn_id)
    assert controller.roll_back(txn_id) == "accepted"
    assert counts(world).scheduled == 1
    peer.run(DUE_MS)
    assert (counts(world).scheduled, counts(world).active) == (0, 1)


def test_a_message_that_is_not_scheduled_any_more_rolls_everything_back_at_the_commit(
    world: World, peer: Peer, controller: Controller
) -> None:
    kept, gone = scheduled(world, peer, b"a", b"b")
    txn_id = controller.declare()
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(kept, gone), txn_id=txn_id)) == 200
    assert code_of(ask(peer, "cancel-scheduled-message", cancelling(gone))) == 200
    assert controller.commit(txn_id) == ROLLED_BACK
    assert counts(world).scheduled == 1


def test_cancelled_messages_count_among_those_that_a_transaction_settles(
    world: World, peer: Peer, controller: Controller
) -> None:
    send(peer, b"a")
    link, txn_id = peer.receiver("orders", credit=1, **PEEK_LOCK), controller.declare()
    most = cancelling(*range(1, SETTLED_LIMIT + 1))
    assert code_of(ask(peer, "cancel-scheduled-message", most, txn_id=txn_id)) == 200
    held = world.process.transactions_budget.used
    assert held == SETTLED_LIMIT * 8
    for refused in (
        ask(peer, "cancel-scheduled-message", cancelling(1), txn_id=txn_id),
        ask(peer, "update-disposition", disposing([peer_token(peer, link)]), txn_id=txn_id),
    ):
        assert condition_of(refused) == "amqp:resource-limit-exceeded"
    assert isinstance(settle_in(peer, txn_id, link, 0, Accepted()), Rejected)
    assert world.process.transactions_budget.used == held


@pytest.mark.parametrize("operation", ["cancel-scheduled-message", "update-disposition"])
def test_the_time_of_a_transaction_runs_from_its_first_request_on(world: World, operation: str) -> None:
    helper, peer = world.trusted_peer(), world.trusted_peer(tick_ms=50)
    send(helper, b"a")
    of_operation = {
        "cancel-scheduled-message": cancelling(*scheduled(world, helper, b"b")),
        "update-disposition": disposing(locked(helper, 1)),
    }
    controller, asked = Controller(peer), of_operation[operation]
    peer.run(500)
    used, unused = controller.declare(), controller.declare()
    assert code_of(ask(peer, operation, asked, txn_id=used)) == 200
    peer.run(TRANSACTION_MS + 1_000)
    assert controller.commit(used) == "amqp:transaction:timeout"
    assert controller.commit(unused) == "accepted"


def test_requests_that_are_no_messages_use_no_credit_up(peer: Peer, controller: Controller) -> None:
    link, state = peer.sender("orders/$management"), TransactionalState(txn_id=controller.declare())
    for _ in range(2 * peer.host.link_settings.request_credit):
        assert isinstance(state_of(peer, link, b"\x00", state=state), Rejected)


def peer_token(peer: Peer, link: Any) -> object:
    [message] = peer.received(link)
    return (message.delivery_annotations or {})["x-opt-lock-token"]


@pytest.mark.parametrize("operation, words", [
    ("peek-message", "peek-message at 'orders' cannot be part"),
    ("renew-lock", "renew-lock at 'orders' cannot be part"),
])  # fmt: skip
def test_what_is_none_of_a_transaction_is_refused_with_a_text_and_leaves_it_as_it_was(
    world: World, peer: Peer, controller: Controller, operation: str, words: str
) -> None:
    txn_id = controller.declare()
    answer = ask(peer, operation, scheduling(world, b"a"), txn_id=txn_id)
    assert (code_of(answer), condition_of(answer)) == (501, "amqp:not-implemented")
    assert words in text_of(answer)
    assert send_in(peer, txn_id, peer.sender("orders"), b"b") == ["accepted"]
    assert controller.commit(txn_id) == "accepted"
    assert (counts(world).scheduled, counts(world).active) == (0, 1)


def test_the_link_goes_on_behind_a_refused_request_whose_delivery_is_accepted_in_its_transaction(
    world: World, peer: Peer, controller: Controller
) -> None:
    link, replies = peer.sender("orders/$management"), peer.receiver("orders/$management", credit=10)
    asked = Message(
        properties=Properties(message_id="1"),
        application_properties={"operation": "com.microsoft:peek-message"},
        body=ValueBody({"from-sequence-number": 0, "message-count": 1}),
    )
    state = TransactionalState(txn_id=controller.declare())
    for number in range(1, 3):
        answer = state_of(peer, link, encode_message(asked), state=state)
        assert answer == TransactionalState(txn_id=state.txn_id, outcome=Accepted())
        assert len(peer.received(replies)) == number
    assert isinstance(state_of(peer, link, encode_message(asked)), Accepted)
    assert code_of(peer.received(replies)[-1]) == 204
    assert isinstance(state_of(peer, link, b"\x00", state=state), Rejected)


def test_a_request_in_a_transaction_that_nobody_knows_is_refused(peer: Peer) -> None:
    send(peer, b"a")
    tokens = locked(peer, 1)
    for answer in (
        ask(peer, "update-disposition", disposing(tokens), txn_id=b"never"),
        ask(peer, "cancel-scheduled-message", cancelling(1), txn_id=b"never"),
    ):
        assert condition_of(answer) == "amqp:transaction:unknown-id"
    assert code_of(ask(peer, "update-disposition", disposing(tokens))) == 200


def test_a_request_in_a_transaction_needs_the_right_that_it_needs_outside(
    world: World, peer: Peer, controller: Controller
) -> None:
    send(peer, b"a")
    tokens, stranger = locked(peer, 1), world.peer()
    stranger_controls = Controller(stranger)
    answer = ask(stranger, "update-disposition", disposing(tokens), txn_id=stranger_controls.declare())
    assert code_of(answer) == 401


def test_other_nodes_of_requests_know_no_transaction_and_say_so(peer: Peer, controller: Controller) -> None:
    state = TransactionalState(txn_id=controller.declare())
    code, text = status_of(peer.request("$cbs", put_token("orders", "token"), state))
    assert code == 501 and "cannot be part of a transaction" in text
