"""Idempotent producers as clients see them: the attach's answer, outcomes, take-over, and a restart."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import (
    IDEMPOTENT_PRODUCER,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    PRODUCER_SEQUENCE_NUMBER,
)
from hubweir.amqp.messaging.message import Message, encode_message
from hubweir.amqp.types.values import Int, Long, Short
from hubweir.broker.commands import AppendNumbered, OpenProducer, Refusal
from hubweir.gateway.amqp.tests.test_consumer_node import PARTITION
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.kernels.contract import BATCH_FORMAT
from hubweir.testing.simulated_env import SimulatedEnv

WANTED = (IDEMPOTENT_PRODUCER,)
ADDRESS = "hub/Partitions/0"
STOLEN, OUT_OF_ORDER = "com.microsoft:producer-epoch-stolen", "com.microsoft:out-of-order-sequence"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


def numbers(producer_id: int | None, epoch: int | None, number: int | None) -> dict[Any, Any]:
    given = (PRODUCER_ID, Long, producer_id), (PRODUCER_EPOCH, Short, epoch), (PRODUCER_SEQUENCE_NUMBER, Int, number)
    return {name: None if value is None else kind(value) for name, kind, value in given}


def producer(
    peer: Peer, producer_id: int | None = 7, epoch: int | None = 0, number: int | None = 0, *, address: str = ADDRESS
) -> Any:
    asked = numbers(producer_id, epoch, number)
    link = peer.sender(address, properties=asked, desired_capabilities=WANTED)
    peer.run(100)  # the first one in a partition waits for a snapshot
    return link


def answered(link: Any) -> tuple[int, int, int]:
    properties = link.attach.properties
    return properties[PRODUCER_ID], properties[PRODUCER_EPOCH], properties[PRODUCER_SEQUENCE_NUMBER]


def send(peer: Peer, link: Any, first: int, events: int = 1, *, wait: int = 100, epoch: int = 0) -> list[str]:
    """Send one transfer; what became of it, and of all before it."""
    envelope = encode_message(Message(message_annotations=numbers(7, epoch, first)))
    for number in range(first, first + events):
        inner = event(b"%d" % number)
        envelope += b"\x00\x53\x75\xb0" + len(inner).to_bytes(4, "big") + inner
    link.send(envelope, message_format=BATCH_FORMAT, settled=False)
    peer.run(wait)
    return [outcome for first_id, last_id, outcome in peer.outcomes(link) for _ in range(first_id, last_id + 1)]


def stored(peer: Peer) -> list[bytes]:
    return peer.bodies(peer.receiver(PARTITION, credit=100))


def test_the_attach_is_answered_with_what_it_names_and_the_rest_is_assigned(peer: Peer) -> None:
    link = producer(peer, None, None, None)
    producer_id, epoch, number = answered(link)
    assert producer_id > 0 and (epoch, number) == (0, 0)
    assert link.attach.offered_capabilities == WANTED
    properties = link.attach.properties
    assert (type(properties[PRODUCER_EPOCH]), type(properties[PRODUCER_SEQUENCE_NUMBER])) == (Short, Int)
    assert answered(producer(peer, 99, 3, 41)) == (99, 3, 41)


def test_transfers_are_stored_once_however_often_they_are_sent(peer: Peer) -> None:
    link = producer(peer)
    assert send(peer, link, 1, 2) == ["accepted"]
    assert send(peer, link, 3, 2, wait=0) + send(peer, link, 3, 2, wait=0) == ["accepted"] * 2  # the first one's, twice
    peer.run(100)
    assert send(peer, link, 1, 2) == ["accepted"] * 4
    assert stored(peer) == [b"1", b"2", b"3", b"4"]


def test_gaps_and_overlaps_are_rejected_and_the_link_goes_on(peer: Peer) -> None:
    link = producer(peer)
    send(peer, link, 1, 2)
    assert send(peer, link, 4) == ["accepted", OUT_OF_ORDER]
    assert send(peer, link, 2, 2)[2:] == [OUT_OF_ORDER]
    assert send(peer, link, 3)[3:] == ["accepted"]
    assert stored(peer) == [b"1", b"2", b"3"]


def test_what_follows_a_refused_transfer_is_out_of_order(world: World, peer: Peer) -> None:
    link = producer(peer)
    world.gate.refuse[AppendNumbered] = Refusal("com.microsoft:server-busy", "wait")
    assert send(peer, link, 1) == ["com.microsoft:server-busy"]
    del world.gate.refuse[AppendNumbered]
    assert send(peer, link, 2)[1:] == [OUT_OF_ORDER]
    assert send(peer, link, 1)[2:] == ["accepted"]


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_new_link_takes_the_producer_over(world: World, peer: Peer, epoch: int) -> None:
    old = producer(peer)
    send(peer, old, 1)
    other = world.trusted_peer()
    new = producer(other, epoch=epoch, number=None)
    assert answered(new) == (7, epoch, 1)
    assert send(peer, old, 2)[1:] == [STOLEN]
    assert send(other, new, 2, epoch=epoch) == ["accepted"]
    late = producer(peer, epoch=epoch - 1) if epoch else None
    assert late is None or str(peer.refusal(late).condition) == STOLEN


@pytest.mark.parametrize("address", ["hub", "hub/Publishers/p"])
def test_only_a_partition_takes_numbers(peer: Peer, address: str) -> None:
    assert str(peer.refusal(producer(peer, address=address)).condition) == "amqp:not-allowed"


def test_a_transfer_without_its_number_or_of_another_producer_is_rejected(peer: Peer) -> None:
    link = producer(peer)
    link.send(event(b"x"), settled=False)
    link.send(event(b"x", message_annotations=numbers(8, 0, 1)), settled=False)
    link.send(event(b"x", message_annotations=numbers(None, None, 1)), settled=False)
    peer.run(100)
    outcomes = sorted((first, outcome) for first, _, outcome in peer.outcomes(link))
    assert [outcome for _, outcome in outcomes] == ["com.microsoft:argument-error"] * 2 + ["accepted"]
    assert str(peer.refusal(peer.sender(ADDRESS, properties={PRODUCER_ID: "7"}, desired_capabilities=WANTED))).count(
        "invalid-field"
    )


def test_after_a_crash_numbers_go_on_and_duplicates_are_known(world: World, peer: Peer) -> None:
    link = producer(peer)
    send(peer, link, 1, 3)
    send(peer, link, 4, 2)
    world.env.crash(power_cut=True)
    env: SimulatedEnv = world.env.restart()
    after = World(env=env)
    again = after.trusted_peer()
    link = producer(again, number=None)
    assert answered(link) == (7, 0, 5)
    assert send(again, link, 4, 2) == ["accepted"]
    assert send(again, link, 6) == ["accepted"] * 2
    assert stored(again) == [b"%d" % number for number in range(1, 7)]


def test_the_end_of_a_connection_closes_its_producers(world: World, peer: Peer) -> None:
    producer(peer)
    peer.cut()
    other = world.trusted_peer()
    assert answered(producer(other, epoch=None)) == (7, 0, 0)  # held by nobody: no need for a higher epoch
    assert len(world.gate.sent(OpenProducer)) == 2
