"""Links that send to a queue: what is taken, what is rejected alone, and what a batch is."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.types.values import Symbol
from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.broker.commands.process import Refusal
from hubweir.errors import SERVER_BUSY, TIMED_OUT
from hubweir.gateway.amqp.tests.queue_world import attaches, counts, create_queue, queue_world, switch
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription

KEY = Symbol("x-opt-partition-key")


@pytest.fixture
def world() -> World:
    return queue_world()


def rejections(peer: Peer, link: Any) -> list[tuple[int, int, str]]:
    return [each for each in peer.outcomes(link) if each[2] != "accepted"]


def test_a_message_is_accepted_when_it_is_stored_and_not_before(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    world.gate.hold[EnqueueMessages] = []
    link.send(event(b"one"), settled=False)
    peer.run(1_000)
    assert (peer.outcomes(link), counts(world).active) == ([], 0)
    world.gate.release(EnqueueMessages)
    peer.run()
    assert (peer.outcomes(link), counts(world).active) == ([(0, 0, "accepted")], 1)


def test_the_attach_tells_the_largest_message_and_grants_credit(peer: Peer) -> None:
    begun = len(peer.came)
    link = peer.sender("orders")
    assert (link.credit, link.remote_max_message_size) == (1_000, 1_048_576)
    [attach] = attaches(peer, begun)
    assert attach.source is not None and attach.target is not None


def test_all_of_a_turn_is_one_run_and_one_disposition(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    for number in range(100):
        link.send(event(b"%d" % number), settled=False)
    peer.run()
    assert [command.messages for command in world.gate.sent(EnqueueMessages)] == [100]
    assert peer.outcomes(link) == [(0, 99, "accepted")]


def test_a_batch_is_as_many_messages_and_its_envelope_none(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    batch = pack_batch(event(b"%d" % number, message_annotations={KEY: f"k{number}"}) for number in range(3))
    link.send(batch, message_format=BATCH_FORMAT, settled=False)
    peer.run()
    assert (peer.outcomes(link), counts(world).active) == ([(0, 0, "accepted")], 3)


def test_what_is_not_taken_is_rejected_alone(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    link.send(event(b"good"), settled=False)
    link.send(event(b"long", properties=Properties(message_id="x" * 129)), settled=False)
    link.send(b"\x00\x53\x75no message", settled=False)
    link.send(event(b"key", properties=Properties(group_id="s"), message_annotations={KEY: "k"}), settled=False)
    link.send(event(b"good, too"), settled=False)
    peer.run()
    assert rejections(peer, link) == [
        (1, 1, "com.microsoft:argument-error"),
        (2, 2, "amqp:decode-error"),
        (3, 3, "amqp:not-allowed"),
    ]
    assert counts(world).active == 2


def test_a_batch_with_one_bad_message_stores_nothing(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    batch = pack_batch([event(b"good"), event(b"long", properties=Properties(group_id="x" * 129))])
    link.send(batch, message_format=BATCH_FORMAT, settled=False)
    peer.run()
    assert peer.outcomes(link) == [(0, 0, "com.microsoft:argument-error")]
    assert counts(world).active == 0


def test_properties_over_their_limit_are_refused(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    link.send(event(b"x", application_properties={"large": "x" * 33_000}), settled=False)
    peer.run()
    assert [condition for _, _, condition in rejections(peer, link)] != []
    assert counts(world).active == 0


def test_a_settled_delivery_is_stored_and_gets_no_answer(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    link.send(event(b"quiet"), settled=True)
    peer.run()
    assert (peer.outcomes(link), counts(world).active) == ([], 1)


def test_a_session_is_demanded_where_the_queue_requires_one(peer: Peer, world: World) -> None:
    create_queue(world, "sessions", delivery=DeliverySettings(requires_session=True))
    link = peer.sender("sessions")
    link.send(event(b"none"), settled=False)
    link.send(event(b"empty", properties=Properties(group_id="")), settled=False)
    peer.run()
    assert sorted(peer.outcomes(link)) == [(0, 0, "amqp:not-allowed"), (1, 1, "accepted")]


def test_a_refusal_of_the_broker_is_told_and_an_unknown_outcome_ends_the_link(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    world.gate.refuse[EnqueueMessages] = Refusal(SERVER_BUSY, "later")
    link.send(event(b"one"), settled=False)
    peer.run()
    assert peer.outcomes(link) == [(0, 0, "com.microsoft:server-busy")]
    world.gate.refuse[EnqueueMessages] = Refusal(TIMED_OUT, "gone", known=False)
    link.send(event(b"two"), settled=False)
    peer.run()
    assert str(peer.refusal(link).condition) == "amqp:link:detach-forced"


def test_a_queue_that_is_switched_off_takes_no_link_and_one_that_stands_ends(world: World, peer: Peer) -> None:
    create_queue(world, "off", availability=Availability.SEND_DISABLED)
    assert str(peer.refusal(peer.sender("off")).condition) == "com.microsoft:entity-disabled"
    link = peer.sender("orders")
    assert peer.is_attached(link)
    switch(world, "orders", Availability.SEND_DISABLED)
    peer.run()
    assert str(peer.refusal(link).condition) == "com.microsoft:entity-disabled"


def test_dead_letters_take_nothing_and_a_queue_that_forwards_takes_messages(world: World, peer: Peer) -> None:
    refused = peer.refusal(peer.sender("orders/$DeadLetterQueue"))
    assert str(refused.condition) == "amqp:not-allowed"
    create_queue(world, "forwards", delivery=DeliverySettings(forward_to="orders"))
    assert peer.is_attached(peer.sender("forwards"))


def test_a_queue_that_is_deleted_ends_its_links(world: World, peer: Peer) -> None:
    link = peer.sender("orders")
    world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))
    peer.run()
    assert str(peer.refusal(link).condition) == "amqp:not-found"
