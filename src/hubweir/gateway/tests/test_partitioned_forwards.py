"""Messages are forwarded from, to and between entities of 16 fragments at three brokers: each once, by its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hubweir.amqp.messaging.message import Properties
from hubweir.broker.commands.command import Command
from hubweir.broker.commands.forwarding import (
    EndTransfer,
    StoreTransfer,
    TakeTransfer,
    TransferStored,
    TransferTaken,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import RESOURCE_LIMIT, STORE_OFFLINE
from hubweir.gateway.amqp.tests.partitioned_world import (
    FRAGMENTS,
    KEY,
    PARTITIONED,
    STORES,
    fragment_of,
    partitioned_world,
)
from hubweir.gateway.amqp.tests.queue_world import create_queue, send, stored, switch
from hubweir.gateway.amqp.tests.world import Peer, World, event, keyed
from hubweir.gateway.forwarder import GATHER_MS, LAST_RETRY_MS
from hubweir.gateway.transfer_parts import HALF_MOVED
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.queue.forwarding import TransferEnd
from hubweir.queue.sub_queue import SubQueue

KEYS = [f"key-{number}" for number in range(24)]
FULL, AWAY = Refusal(RESOURCE_LIMIT, "full"), Refusal(STORE_OFFLINE, "away")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """`plain` and `spread` forward to the partitioned `orders`; `spread` is partitioned, too."""
    world = partitioned_world(monkeypatch)
    create_queue(world, "plain", delivery=DeliverySettings(forward_to="orders"))
    create_queue(world, "spread", storage=PARTITIONED, delivery=DeliverySettings(forward_to="orders"))
    world.run_for(2 * GATHER_MS)
    return world


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


def send_keyed(peer: Peer, queue: str) -> None:
    """One message of each key, and three of none, in one turn."""
    link = peer.sender(queue)
    for key in KEYS:
        link.send(keyed(key.encode(), key), settled=False)
    for number in range(3):
        link.send(event(b"any-%d" % number), settled=False)
    peer.run()
    assert {how for _, _, how in peer.outcomes(link)} == {"accepted"}


def check_moved(world: World, source: str) -> None:
    """All that send_keyed sent is where its keys lead, once, and nothing is left."""
    bodies = stored(world)
    for fragment, found in enumerate(bodies):
        keyed_ones = [body for body in found if not body.startswith(b"any")]
        assert sorted(keyed_ones) == sorted(key.encode() for key in KEYS if fragment_of(key) == fragment)
    assert sorted(body for found in bodies for body in found if body.startswith(b"any")) == [
        b"any-0", b"any-1", b"any-2",
    ]  # fmt: skip
    assert not any(stored(world, source))
    assert not any(stored(world, source, sub_queue=SubQueue.TRANSFER_DEAD_LETTERS))


def sent(world: World, kind: type[Any]) -> list[Any]:
    return [command for gate in world.gates for command in gate.sent(kind)]


def hold(world: World, kind: type[Command], store: int) -> None:
    world.gates[store].hold[kind] = []


def restarted(world: World, *, power_cut: bool) -> World:
    world.env.crash(power_cut=power_cut)
    again = World(env=world.env.restart(), stores=STORES)
    again.gateway.forwarder.start()
    again.run_for(5_000)
    return again


@pytest.mark.parametrize("source", ["plain", "spread"])
def test_messages_go_where_their_keys_lead(world: World, peer: Peer, source: str) -> None:
    send_keyed(peer, source)
    world.run_for(500)
    check_moved(world, source)


def test_a_plain_queue_takes_what_comes_from_all_fragments(world: World, peer: Peer) -> None:
    create_queue(world, "last")
    create_queue(world, "to-plain", storage=PARTITIONED, delivery=DeliverySettings(forward_to="last"))
    world.run_for(2 * GATHER_MS)
    send_keyed(peer, "to-plain")
    world.run_for(500)
    [bodies] = stored(world, "last")
    assert sorted(bodies) == sorted([*(key.encode() for key in KEYS), b"any-0", b"any-1", b"any-2"])
    assert not any(stored(world, "to-plain"))


def test_messages_of_one_key_stay_in_their_order(world: World, peer: Peer) -> None:
    for source in ("plain", "spread"):
        send(peer, *(b"%d" % number for number in range(20)), queue=source, message_annotations={KEY: source})
    world.run_for(500)
    for source in ("plain", "spread"):
        assert stored(world)[fragment_of(source)] == [b"%d" % number for number in range(20)]


def test_an_id_chooses_the_fragment_where_the_destination_detects_duplicates(world: World, peer: Peer) -> None:
    once = StorageSettings(is_partitioned=True, requires_duplicate_detection=True)
    create_queue(world, "once", storage=once)
    create_queue(world, "twice", storage=PARTITIONED, delivery=DeliverySettings(forward_to="once"))
    world.run_for(2 * GATHER_MS)
    for _ in range(2):
        for number in range(5):
            send(peer, b"%d" % number, queue="twice", properties=Properties(message_id=f"m{number}"))
    world.run_for(500)
    expected: list[list[bytes]] = [[] for _ in range(FRAGMENTS)]
    for number in range(5):
        expected[fragment_of(f"m{number}")].append(b"%d" % number)
    assert stored(world, "once") == expected and not any(stored(world, "twice"))


# Some parts are stored, others not


@pytest.mark.parametrize("refusal", [FULL, AWAY], ids=["full", "away"])
@pytest.mark.parametrize("source", ["plain", "spread"])
def test_parts_that_are_stored_wait_for_the_others_and_are_not_stored_again(
    world: World, peer: Peer, source: str, refusal: Refusal
) -> None:
    world.gates[1].refuse[StoreTransfer] = refusal
    send_keyed(peer, source)
    world.run_for(5_000)
    if source == "plain":
        assert sent(world, EndTransfer) == [], "some parts are stored: the messages stay together"
    del world.gates[1].refuse[StoreTransfer]
    world.run_for(LAST_RETRY_MS + 500)
    check_moved(world, source)


def test_a_transfer_of_which_nothing_is_stored_is_given_back_when_all_are_full(world: World, peer: Peer) -> None:
    for gate in world.gates:
        gate.refuse[StoreTransfer] = FULL
    send_keyed(peer, "plain")
    world.run_for(3_000)
    assert {each.how for each in sent(world, EndTransfer)} == {TransferEnd.RETURNED}
    for gate in world.gates:
        gate.refuse.clear()
    world.run_for(LAST_RETRY_MS + 500)
    check_moved(world, "plain")


@pytest.mark.parametrize("power_cut", [False, True])
@pytest.mark.parametrize("kind", [StoreTransfer, EndTransfer, TakeTransfer])
@pytest.mark.parametrize("source", ["plain", "spread"])
@pytest.mark.parametrize("store", range(STORES))
def test_a_crash_between_the_parts_loses_nothing_and_moves_nothing_twice(
    world: World, peer: Peer, source: str, kind: type[Command], power_cut: bool, store: int
) -> None:
    hold(world, kind, store)
    send_keyed(peer, source)
    world.run_for(500)
    check_moved(restarted(world, power_cut=power_cut), source)


def test_what_has_no_key_goes_to_one_fragment_however_often_a_transfer_is_tried(world: World, peer: Peer) -> None:
    world.gates[0].refuse[EndTransfer] = world.gates[1].refuse[EndTransfer] = AWAY
    world.gates[2].refuse[EndTransfer] = AWAY
    send(peer, b"a", b"b", queue="plain")
    world.run_for(5_000)
    parts = sent(world, StoreTransfer)
    assert len(parts) > 2 and len({each.log_id for each in parts}) == 1
    for gate in world.gates:
        gate.refuse.clear()
    world.run_for(LAST_RETRY_MS)
    assert sorted(stored(world)) == [[]] * 15 + [[b"a", b"b"]]


def test_a_destination_that_is_switched_off_between_the_parts_gets_the_rest_when_it_is_on_again(
    world: World, peer: Peer
) -> None:
    world.gates[1].refuse[StoreTransfer] = AWAY
    send_keyed(peer, "plain")
    world.run_for(500)
    switch(world, "orders", Availability.SEND_DISABLED)
    world.gates[1].refuse.clear()
    world.run_for(LAST_RETRY_MS)
    assert len(stored(world, "plain")[0]) == len(KEYS) + 3, "all of it is in transfer still"
    switch(world, "orders", Availability.ACTIVE)
    world.run_for(LAST_RETRY_MS + 500)
    check_moved(world, "plain")


def test_a_destination_that_was_off_before_has_none_of_it(world: World, peer: Peer) -> None:
    switch(world, "orders", Availability.SEND_DISABLED)
    send_keyed(peer, "plain")
    world.run_for(500)
    assert not any(stored(world)) and not any(stored(world, "plain"))
    dead = stored(world, "plain", sub_queue=SubQueue.TRANSFER_DEAD_LETTERS)
    assert len(dead[0]) == len(KEYS) + 3


def test_a_deleted_destination_has_its_messages_among_transfer_dead_letters(world: World, peer: Peer) -> None:
    world.wait(lambda done: world.gateway.keeper.delete("orders", QueueDescription, done))
    send_keyed(peer, "spread")
    world.run_for(1_000)
    dead = stored(world, "spread", sub_queue=SubQueue.TRANSFER_DEAD_LETTERS)
    assert sum(map(len, dead)) == len(KEYS) + 3 and not any(stored(world, "spread"))


@pytest.mark.parametrize(
    ("stored_at", "how"),
    [((), TransferEnd.RETURNED), ((1,), TransferEnd.REFUSED), (range(STORES), TransferEnd.STORED)],
)
def test_a_transfer_that_cannot_be_read_is_asked_about_at_every_fragment(
    world: World, stored_at: Sequence[int], how: TransferEnd
) -> None:
    """Which messages make up which part nobody knows then: if some may be there, all become transfer dead letters."""
    plain, orders = (world.namespace.find(name, QueueDescription) for name in ("plain", "orders"))
    assert plain is not None and orders is not None
    unreadable: Any = TransferTaken(5, 9, f"{orders.entity_id}/orders".encode(), 0, b"", b"")
    source = world.gates[plain.placements[0].store_index]
    source.refuse[TakeTransfer] = unreadable
    for number, gate in enumerate(world.gates):
        said: Any = TransferStored(number in stored_at)
        gate.refuse[StoreTransfer] = said
    source.hold[EndTransfer] = []
    switch(world, "plain", Availability.RECEIVE_DISABLED)  # a transfer is asked for anew
    world.run_for(100)
    assert sorted(each.log_id for each in sent(world, StoreTransfer)) == sorted(
        placement.log_id for placement in orders.placements
    )
    [end] = sent(world, EndTransfer)
    assert (end.transfer, end.attempt, end.how) == (5, 9, how)
    assert (end.reason == HALF_MOVED.reason) == (how is TransferEnd.REFUSED)


# Topics


def test_a_partitioned_topic_takes_and_gives_what_is_forwarded(world: World, peer: Peer) -> None:
    """Queue to topic, and from its subscription, which has a fragment in each of the topic's logs, to a queue."""
    assert world.create(TopicDescription("news", storage=PARTITIONED)).name == "news"
    subscribe(world, "news/Subscriptions/all", "orders")
    create_queue(world, "to-topic", delivery=DeliverySettings(forward_to="news"))
    world.run_for(2 * GATHER_MS)
    send_keyed(peer, "to-topic")
    world.run_for(1_000)
    check_moved(world, "to-topic")


def subscribe(world: World, path: str, forward_to: str) -> None:
    made = world.create(SubscriptionDescription(path, delivery=DeliverySettings(forward_to=forward_to)))
    assert isinstance(made, SubscriptionDescription), made
