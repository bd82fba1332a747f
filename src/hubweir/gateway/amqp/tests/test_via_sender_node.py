"""Sends by way of another entity: at the destination with the commit, or transfer dead letters of the one between."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.errors import SERVER_BUSY
from hubweir.gateway.amqp.queue_nodes import VIA
from hubweir.gateway.amqp.tests.controller import Controller, send_in, settle_in
from hubweir.gateway.amqp.tests.queue_world import (
    PEEK_LOCK,
    ask,
    bodies,
    code_of,
    counts,
    create_queue,
    queue_world,
    send,
    switch,
)
from hubweir.gateway.amqp.tests.test_transacted_requests import scheduling
from hubweir.gateway.amqp.tests.world import HOST, Peer, World, event
from hubweir.gateway.destinations import DISABLED, GONE
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.tiers import PROFILES
from hubweir.namespace.topic_description import TopicDescription

LEFT = "orders/$Transfer/$DeadLetterQueue"
OFF, ON = Availability.DISABLED, Availability.ACTIVE
ROLLED_BACK = "amqp:transaction:rollback"


@pytest.fixture
def world() -> World:
    world = queue_world()
    create_queue(world, "answers")
    return world


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


def way(peer: Peer, destination: Any = "answers", via: str = "orders") -> SenderLink:
    return peer.sender(via, properties={VIA: destination})


def condition(peer: Peer, link: SenderLink) -> str:
    return str(peer.refusal(link).condition)


def sent(peer: Peer, link: SenderLink, *payloads: bytes) -> list[str]:
    begun = len(peer.outcomes(link))
    for each in payloads:
        link.send(each, settled=False)
    peer.run()
    return [told for _, _, told in peer.outcomes(link)[begun:]]


def remove(world: World, name: str) -> None:
    world.wait(lambda done: world.gateway.keeper.delete(name, QueueDescription, done))


def reasons(peer: Peer) -> list[tuple[bytes, object]]:
    """What the entity between could not give on: bodies, and why."""
    receiver = peer.receiver(LEFT, credit=100, **PEEK_LOCK)
    peer.run()
    said = [(each.application_properties or {})["DeadLetterReason"] for each in peer.received(receiver)]
    found = list(zip(peer.bodies(receiver), said, strict=True))
    receiver.detach()
    peer.run()
    return found


def test_what_is_received_is_answered_elsewhere_at_the_commit(world: World, peer: Peer) -> None:
    send(peer, b"request")
    receiver, controller = peer.receiver("orders", credit=1, **PEEK_LOCK), Controller(peer)
    txn_id = controller.declare()
    settle_in(peer, txn_id, receiver, 0, Accepted())
    assert send_in(peer, txn_id, way(peer), b"a", b"b") == ["accepted"] * 2
    assert counts(world, "answers").active == 0
    assert controller.commit(txn_id) == "accepted"
    assert (counts(world).active, bodies(peer, "answers")) == (0, [b"a", b"b"])


def test_a_rollback_drops_it(world: World, peer: Peer) -> None:
    controller = Controller(peer)
    txn_id = controller.declare()
    assert send_in(peer, txn_id, way(peer), b"a") == ["accepted"]
    assert controller.roll_back(txn_id) == "accepted"
    assert (counts(world).active, counts(world, "answers").active) == (0, 0)
    assert world.process.transactions_budget.used == 0


def test_outside_a_transaction_it_goes_straight_to_its_destination(world: World, peer: Peer) -> None:
    assert sent(peer, way(peer), event(b"a"), event(b"b")) == ["accepted"]
    assert bodies(peer, "answers") == [b"a", b"b"] and counts(world).active == 0


@pytest.mark.parametrize("availability", [OFF, Availability.SEND_DISABLED])
def test_a_destination_that_takes_nothing_at_the_commit_leaves_transfer_dead_letters(
    world: World, peer: Peer, availability: Availability
) -> None:
    send(peer, b"request")
    receiver, controller = peer.receiver("orders", credit=1, **PEEK_LOCK), Controller(peer)
    txn_id = controller.declare()
    settle_in(peer, txn_id, receiver, 0, Accepted())
    assert send_in(peer, txn_id, way(peer), b"a", b"b") == ["accepted"] * 2
    assert send_in(peer, txn_id, peer.sender("orders"), b"own") == ["accepted"]
    switch(world, "answers", availability)
    assert controller.commit(txn_id) == "accepted"
    found = counts(world)
    assert (found.active, found.transfer_dead_lettered, counts(world, "answers").active) == (1, 2, 0)
    assert world.gate.sent(CommitTransaction)[-1].messages == 3
    assert reasons(peer) == [(b"a", DISABLED), (b"b", DISABLED)]
    switch(world, "answers", ON)
    assert bodies(peer) == [b"own"] and counts(world, "answers").active == 0


def test_what_is_left_and_what_is_scheduled_in_one_queue_do_not_change_places(world: World, peer: Peer) -> None:
    controller = Controller(peer)
    txn_id = controller.declare()
    assert send_in(peer, txn_id, way(peer), b"left") == ["accepted"]
    answer = ask(peer, "schedule-message", scheduling(world, b"later"), txn_id=txn_id)
    assert code_of(answer) == 200
    switch(world, "answers", OFF)
    assert controller.commit(txn_id) == "accepted"
    assert reasons(peer) == [(b"left", DISABLED)] and counts(world).scheduled == 1 and bodies(peer) == [b"later"]


def test_a_destination_that_is_deleted_before_the_commit_leaves_transfer_dead_letters(world: World, peer: Peer) -> None:
    controller, link = Controller(peer), way(peer)
    txn_id = controller.declare()
    assert send_in(peer, txn_id, link, b"a") == ["accepted"]
    remove(world, "answers")
    peer.run()
    assert condition(peer, link) == "amqp:not-found"
    create_queue(world, "answers")  # another one of that name
    assert controller.commit(txn_id) == "accepted"
    assert reasons(peer) == [(b"a", GONE)] and counts(world, "answers").active == 0


def test_some_may_arrive_and_others_be_left(world: World, peer: Peer) -> None:
    """Both come by way of one entity; what is left lies in a log that the other one's only prepares."""
    create_queue(world, "bills")
    controller = Controller(peer)
    txn_id = controller.declare()
    assert send_in(peer, txn_id, way(peer, "bills"), b"bill") == ["accepted"]
    assert send_in(peer, txn_id, way(peer), b"answer") == ["accepted"]
    switch(world, "answers", OFF)
    assert controller.commit(txn_id) in ("", "accepted")
    world.run_for(200)
    assert bodies(peer, "bills") == [b"bill"] and reasons(peer) == [(b"answer", DISABLED)]


def test_outside_a_transaction_a_destination_that_takes_nothing_leaves_them_too(world: World, peer: Peer) -> None:
    link = way(peer)
    switch(world, "answers", OFF)
    assert sent(peer, link, event(b"a"), event(b"b")) == ["accepted"]
    assert reasons(peer) == [(b"a", DISABLED), (b"b", DISABLED)]
    switch(world, "answers", ON)
    assert sent(peer, link, event(b"c")) == ["accepted"]
    assert bodies(peer, "answers") == [b"c"]
    assert counts(world).transfer_dead_lettered == 2


def test_what_cannot_be_left_there_is_rejected(world: World, peer: Peer) -> None:
    link = way(peer)
    switch(world, "answers", OFF)
    world.gate.refuse[CommitTransaction] = Refusal(SERVER_BUSY, "later")
    assert sent(peer, link, event(b"a")) == ["com.microsoft:server-busy"]
    assert not world.gate.sent(EnqueueMessages)


def test_what_is_left_in_an_entity_with_sessions_and_duplicates_needs_neither(world: World, peer: Peer) -> None:
    delivery = DeliverySettings(requires_session=True)
    create_queue(world, "sessions", delivery=delivery)
    link = way(peer, via="sessions")
    switch(world, "answers", OFF)
    assert sent(peer, link, event(b"a")) == ["accepted"]
    assert counts(world, "sessions").transfer_dead_lettered == 1


def test_a_topic_keeps_nothing_that_its_destination_does_not_take(world: World, peer: Peer) -> None:
    made = world.wait(lambda done: world.gateway.keeper.create(TopicDescription("news"), done))
    assert isinstance(made, TopicDescription)
    link, controller = way(peer, via="news"), Controller(peer)
    assert sent(peer, link, event(b"a")) == ["accepted"]
    txn_id = controller.declare()
    assert send_in(peer, txn_id, link, b"b") == ["accepted"]
    switch(world, "answers", OFF)
    assert sent(peer, link, event(b"c")) == ["com.microsoft:entity-disabled"]
    assert controller.commit(txn_id) == ROLLED_BACK
    switch(world, "answers", ON)
    assert bodies(peer, "answers") == [b"a"]


def test_the_entity_between_must_take_messages_too(world: World, peer: Peer) -> None:
    link = way(peer)
    switch(world, "orders", Availability.SEND_DISABLED)
    peer.run()
    assert condition(peer, link) == "com.microsoft:entity-disabled"
    assert condition(peer, way(peer)) == "com.microsoft:entity-disabled"


def test_the_end_of_the_entity_between_ends_the_link(world: World, peer: Peer) -> None:
    link = way(peer)
    remove(world, "orders")
    peer.run()
    assert condition(peer, link) == "amqp:not-found"


@pytest.mark.parametrize(
    ("destination", "refusal"),
    [
        ("nowhere", "amqp:not-found"),
        ("hub", "amqp:not-found"),
        ("answers/$DeadLetterQueue", "amqp:not-found"),
        ("answers/$management", "amqp:not-found"),
        (Symbol("answers"), None),
        (17, "amqp:invalid-field"),
    ],
)
def test_only_a_queue_or_a_topic_is_a_destination(peer: Peer, destination: Any, refusal: str | None) -> None:
    link = way(peer, destination)
    assert refusal is None or condition(peer, link) == refusal


@pytest.mark.parametrize("missing", ["orders", "answers"])
def test_the_right_to_send_is_needed_for_both(world: World, missing: str) -> None:
    for queue in ("orders", "answers"):
        world.set_rule("send", Rights.LISTEN if queue == missing else Rights.SEND, hub=queue)
    peer = world.peer()
    for queue in ("orders", "answers"):
        assert peer.put_token(f"sb://{HOST}/{queue}", rule="send")[0] == 202
    assert condition(peer, way(peer)) == "amqp:unauthorized-access"


@pytest.mark.parametrize("first", ["orders", "answers"])
def test_the_link_ends_with_the_first_of_both_claims(world: World, first: str) -> None:
    peer = world.peer(tick_ms=50)
    for queue in ("orders", "answers"):
        lifetime_ms = 60_000 if queue == first else 3_600_000
        assert peer.put_token(f"sb://{HOST}/{queue}", lifetime_ms=lifetime_ms)[0] == 202
    link = way(peer)
    sent(peer, link, event(b"a"))
    peer.run(1_000)
    assert [told for _, _, told in peer.outcomes(link)] == ["accepted"]
    peer.run(1_000_000)
    assert condition(peer, link) == "amqp:unauthorized-access"


def test_a_link_is_a_use_of_both_while_it_stands(world: World, peer: Peer) -> None:
    entities = [world.namespace.find(name, QueueDescription) for name in ("orders", "answers")]
    ids = [entity.placements[0].log_id for entity in entities if entity is not None]
    link = way(peer)
    peer.run(5_000)
    assert [world.gateway.uses.unused_ms(each) for each in ids] == [0, 0]
    link.detach()
    peer.run(1_000)
    assert [world.gateway.uses.unused_ms(each) != 0 for each in ids] == [True, True]


@pytest.mark.parametrize("large", ["orders", "answers"])
def test_the_smaller_of_both_limits_of_a_message_holds(large: str) -> None:
    world = World(settings=GatewaySettings(profile=PROFILES["premium"]))
    for name in ("orders", "answers"):
        create_queue(world, name, storage=StorageSettings(max_message_kilobytes=2_048 if name == large else 1_024))
    peer = world.trusted_peer()
    attached = way(peer).attach
    assert attached is not None and attached.max_message_size == 1_024 * 1_024


def test_a_transaction_is_given_back_whole(world: World, peer: Peer) -> None:
    """Its memory, too, by whatever way its messages went."""
    controller = Controller(peer)
    txn_id = controller.declare()
    assert send_in(peer, txn_id, way(peer), b"a") == ["accepted"]
    transaction = peer.host.transactions.get(txn_id)
    assert controller.commit(txn_id) == "accepted"
    assert not transaction.works and not transaction.ways and world.process.transactions_budget.used == 0


def test_the_destination_says_which_messages_it_takes(world: World, peer: Peer) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    assert sent(peer, way(peer, "sessions"), event(b"a")) == ["amqp:not-allowed"]
