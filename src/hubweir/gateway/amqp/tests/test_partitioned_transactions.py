"""What transactions, schedules and sends by way of another entity do with the fragments of a partitioned queue."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.message import Properties
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.amqp.types.values import Symbol
from hubweir.errors import (
    NOT_ALLOWED,
    ServiceError,
)
from hubweir.gateway.amqp.queue_sender_node import ScheduledRun, scheduled_run
from hubweir.gateway.amqp.tests.controller import Controller, send_in, state_of, told
from hubweir.gateway.amqp.tests.partitioned_world import (
    FRAGMENTS,
    KEY,
    PARTITIONED,
    fragment_of,
    in_session,
    outcomes,
    partitioned_world,
)
from hubweir.gateway.amqp.tests.queue_world import create_queue, stored, switch
from hubweir.gateway.amqp.tests.world import Peer, World, event, keyed
from hubweir.messaging_store.record import headers_of
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import Availability
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.queue.sub_queue import SubQueue


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return partitioned_world(monkeypatch)


def test_a_transaction_stores_messages_of_one_key_in_its_fragment(
    world: World, peer: Peer, controller: Controller
) -> None:
    txn_id, link = controller.declare(), peer.sender("orders")
    annotations = {KEY: "k"}
    assert send_in(peer, txn_id, link, b"a", b"b", message_annotations=annotations) == ["accepted"] * 2
    assert send_in(peer, txn_id, link, b"c", properties=Properties(group_id="k")) == ["accepted"]
    assert not any(stored(world))
    assert controller.commit(txn_id) == "accepted"
    assert stored(world)[fragment_of("k")] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    "second",
    [
        {}, {"message_annotations": {KEY: "other"}}, {"properties": Properties(group_id="other")},
        {"properties": Properties(message_id="k")}, {"message_annotations": {KEY: ""}},
    ],
)  # fmt: skip
def test_a_send_in_a_transaction_without_the_one_key_spoils_it(
    world: World, peer: Peer, controller: Controller, second: dict[str, Any]
) -> None:
    txn_id, link = controller.declare(), peer.sender("orders")
    assert send_in(peer, txn_id, link, b"a", properties=Properties(group_id="k")) == ["accepted"]
    assert send_in(peer, txn_id, link, b"b", **second) == ["amqp:not-allowed"]
    assert controller.commit(txn_id) == "amqp:transaction:rollback"
    assert not any(stored(world))


def test_a_batch_in_a_transaction_has_one_key(peer: Peer, controller: Controller) -> None:
    same = next(key for key in map(str, range(200)) if fragment_of(key) == fragment_of("k"))
    for batch in ([keyed(b"a", "k"), keyed(b"b", same)], [keyed(b"a", "k"), event(b"b")], [event(b"a")]):
        txn_id, link = controller.declare(), peer.sender("orders")
        assert send_batch(peer, txn_id, link, batch) == "amqp:not-allowed"
    txn_id = controller.declare()
    assert send_batch(peer, txn_id, link, [keyed(b"a", "k"), keyed(b"b", "k")]) == "accepted"
    assert controller.commit(txn_id) == "accepted"


def send_batch(peer: Peer, txn_id: bytes, link: Any, messages: list[bytes]) -> str:
    state = TransactionalState(txn_id=txn_id)
    return told(state_of(peer, link, pack_batch(messages), state=state, message_format=BATCH_FORMAT))


def test_other_entities_have_other_keys_in_one_transaction(world: World, peer: Peer, controller: Controller) -> None:
    create_queue(world, "others", storage=PARTITIONED)
    create_queue(world, "plain")
    txn_id = controller.declare()
    for queue, sections in (
        ("orders", {"message_annotations": {KEY: "a"}}), ("others", {"message_annotations": {KEY: "b"}}), ("plain", {}),
    ):  # fmt: skip
        assert send_in(peer, txn_id, peer.sender(queue), b"x", **sections) == ["accepted"]
    assert controller.commit(txn_id, wait_ms=500) == "accepted", "three logs at three brokers"
    assert stored(world, "orders")[fragment_of("a")] == stored(world, "others")[fragment_of("b")] == [b"x"]
    assert stored(world, "plain") == [[b"x"]]


def test_an_id_is_a_key_of_a_transaction_where_duplicates_are_detected(
    world: World, peer: Peer, controller: Controller
) -> None:
    create_queue(world, "once", storage=StorageSettings(is_partitioned=True, requires_duplicate_detection=True))
    txn_id, link = controller.declare(), peer.sender("once")
    assert send_in(peer, txn_id, link, b"a", properties=Properties(message_id="m")) == ["accepted"]
    assert controller.commit(txn_id) == "accepted"
    assert stored(world, "once")[fragment_of("m")] == [b"a"]


# What is scheduled


def test_messages_of_one_request_are_scheduled_in_one_fragment(world: World) -> None:
    entity = world.namespace.find("orders", QueueDescription)
    assert entity is not None
    place, choice = world.gateway.directory.fragments(entity).places[0], world.gateway.fragment_choice(entity)
    assert choice is not None

    def of(*messages: bytes, in_transaction: bool = False) -> ScheduledRun:
        return scheduled_run(messages, place, choice, needs_session=False, in_transaction=in_transaction)

    found = of(keyed(b"a", "k"), event(b"b"))
    assert (found.place.number, found.key) == (fragment_of("k"), None)
    assert sum(each.count for each in headers_of(found.run)) == 2
    first, *others = (of(event(b"a"), event(b"b")).place.number for _ in range(3))
    assert others == [(first + 1) % FRAGMENTS, (first + 2) % FRAGMENTS]
    transacted = of(keyed(b"a", "k"), in_session(b"b", "k"), in_transaction=True)
    assert (transacted.place.number, transacted.key) == (fragment_of("k"), b"k")
    for messages, in_transaction in (((keyed(b"a", "key-1"), keyed(b"b", "key-2")), False), ((event(b"a"),), True)):
        with pytest.raises(ServiceError) as refused:
            of(*messages, in_transaction=in_transaction)
        assert refused.value.condition is NOT_ALLOWED


# By way of another entity


def via(peer: Peer, between: str, to: str) -> Any:
    return peer.sender(between, properties={Symbol("com.microsoft:transfer-destination-address"): to})


def test_what_is_sent_by_way_of_another_entity_goes_to_the_fragments_of_its_keys(
    world: World, peer: Peer, controller: Controller
) -> None:
    create_queue(world, "between", storage=PARTITIONED)
    link = via(peer, "between", "orders")
    assert outcomes(peer, link, keyed(b"a", "key-1"), keyed(b"b", "key-2"), event(b"c")) == ["accepted"] * 3
    txn_id = controller.declare()
    assert send_in(peer, txn_id, link, b"d", message_annotations={KEY: "key-3"}) == ["accepted"]
    assert controller.commit(txn_id) == "accepted"
    bodies = stored(world)
    for key, body in (("key-1", b"a"), ("key-2", b"b"), ("key-3", b"d")):
        assert body in bodies[fragment_of(key)]
    assert sorted(sum(bodies, [])) == [b"a", b"b", b"c", b"d"] and not any(stored(world, "between"))


def test_what_cannot_go_on_is_a_transfer_dead_letter_of_the_entity_between(
    world: World, peer: Peer, controller: Controller
) -> None:
    create_queue(world, "between", storage=PARTITIONED)
    link = via(peer, "between", "orders")
    switch(world, "orders", Availability.DISABLED)
    assert outcomes(peer, link, keyed(b"a", "key-1"), keyed(b"b", "key-2"), event(b"c")) == ["accepted"] * 3
    txn_id = controller.declare()
    assert send_in(peer, txn_id, link, b"d", message_annotations={KEY: "key-3"}) == ["accepted"]
    assert controller.commit(txn_id) == "accepted"
    dead = stored(world, "between", sub_queue=SubQueue.TRANSFER_DEAD_LETTERS)
    assert sorted(sum(dead, [])) == [b"a", b"b", b"c", b"d"] and not any(stored(world, "between"))


def test_sessions_are_required_of_a_transaction_too(world: World, peer: Peer, controller: Controller) -> None:
    create_queue(world, "held", storage=PARTITIONED, delivery=DeliverySettings(requires_session=True))
    txn_id, link = controller.declare(), peer.sender("held")
    assert send_in(peer, txn_id, link, b"a", message_annotations={KEY: "k"}) == ["amqp:not-allowed"]
