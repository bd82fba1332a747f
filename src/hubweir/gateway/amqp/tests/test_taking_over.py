"""Readers with owner levels and readers without, as clients see them on their links."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.amqp.messaging.annotations import EPOCH, RECEIVER_NAME
from hubweir.amqp.transport.events import LinkAttached, LinkDetached
from hubweir.amqp.types.values import Int, Long
from hubweir.broker.commands.reader import CloseReader, ConfirmReaderClosed, OpenReader
from hubweir.gateway.amqp.tests.filled_partition import PARTITION, fill
from hubweir.gateway.amqp.tests.world import Peer, World

STOLEN = "amqp:link:stolen"


def reader(
    peer: Peer, *, epoch: int | None = None, name: str | None = None, address: str = PARTITION, credit: int = 100
) -> Any:
    properties: dict[Any, object] = {}
    if epoch is not None:
        properties[EPOCH] = Long(epoch)
    if name is not None:
        properties[RECEIVER_NAME] = name
    return peer.receiver(address, credit=credit, properties=properties)


def condition(peer: Peer, link: Any) -> str | None:
    error = peer.refusal(link)
    return None if error is None else str(error.condition)


def note_arrivals(peer: Peer, name: str, told: list[str]) -> None:
    """Append name to told whenever a link of this peer is answered or ended."""
    flush = peer._flush

    def noted() -> None:
        before = len(peer.side.events)
        flush()
        told.extend(name for event in peer.side.events[before:] if isinstance(event, LinkAttached | LinkDetached))

    peer._flush = noted  # type: ignore[method-assign]


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_equal_or_higher_epoch_takes_the_partition_over(world: World, epoch: int) -> None:
    old, new = world.trusted_peer(), world.trusted_peer()
    fill(old, 3)
    first = reader(old, epoch=0, name="old")
    second = reader(new, epoch=epoch, name="new")
    assert condition(old, first) == STOLEN
    text = old.refusal(first).description
    assert "'new'" in text and "'old'" in text and f"'{epoch}'" in text and "TrackingId:" in text
    assert new.is_attached(second) and len(new.received(second)) == 3
    fill(old, 2)
    assert (len(old.received(first)), len(new.received(second))) == (3, 5)


def test_a_lower_epoch_is_refused_letter_for_letter(world: World) -> None:
    old, new = world.trusted_peer(), world.trusted_peer()
    first = reader(old, epoch=1, name="holder")
    second = reader(new, epoch=0)
    assert condition(new, second) == STOLEN
    assert new.refusal(second).description.startswith(
        "Receiver 'holder' with a higher epoch '1' already exists. Receiver 'nil' with epoch 0 cannot be created. Make "
        "sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure all old epoch "
        "receivers are closed or disconnected, TrackingId:"
    )
    assert old.is_attached(first)


def test_an_epoch_ends_readers_without_one_and_keeps_them_out(world: World) -> None:
    old, new = world.trusted_peer(), world.trusted_peer()
    several = [reader(old) for _ in range(3)]
    owner = reader(new, epoch=0)
    assert [condition(old, link) for link in several] == [STOLEN] * 3
    late = reader(old)
    assert condition(old, late) == STOLEN
    assert new.is_attached(owner)
    owner.detach()
    new.run()
    assert old.is_attached(reader(old))  # free again at once


def test_the_sixth_reader_is_told_the_names_and_comes_in_after_one_left(world: World) -> None:
    peer = world.trusted_peer()
    readers = [reader(peer, name=f"r{number}" if number else None) for number in range(5)]
    sixth = reader(peer, name="sixth", address=PARTITION.replace("$Default", "$DEFAULT"))
    assert condition(peer, sixth) == "amqp:resource-limit-exceeded"
    assert "nil, r1, r2, r3, r4" in peer.refusal(sixth).description
    readers[2].detach()
    peer.run()
    assert peer.is_attached(reader(peer))


def test_the_losers_detach_is_written_before_the_winners_attach_is_answered(world: World) -> None:
    old, new = world.trusted_peer(), world.trusted_peer()
    fill(old, 1)
    first = reader(old, epoch=5)
    told: list[str] = []
    for name, peer in (("old", old), ("new", new)):
        note_arrivals(peer, name, told)
    second = reader(new, epoch=5)
    assert condition(old, first) == STOLEN and new.is_attached(second)
    assert told == ["old", "new"]
    assert [command.reader_id for command in world.gate.sent(ConfirmReaderClosed)] == [1]


def test_a_reader_that_the_broker_ended_is_not_ended_again(world: World) -> None:
    old, new = world.trusted_peer(), world.trusted_peer()
    first = reader(old, epoch=5, credit=0)  # no read of it is under way, so the broker's word comes by itself
    reader(new, epoch=6)
    assert condition(old, first) == STOLEN
    assert world.gate.sent(CloseReader) == []


def test_a_gateway_that_is_stuck_delays_the_winner_by_two_seconds(world: World) -> None:
    old, new = world.trusted_peer(), world.trusted_peer()
    reader(old, epoch=5)
    world.gate.hold[ConfirmReaderClosed] = []
    second = reader(new, epoch=5)
    new.run(1_900)
    assert not new.is_attached(second)
    new.run(200)
    assert new.is_attached(second)


def test_a_reader_may_take_over_on_the_same_connection(world: World) -> None:
    peer = world.trusted_peer()
    first = reader(peer, epoch=1)
    second = reader(peer, epoch=2)
    assert condition(peer, first) == STOLEN
    assert peer.is_attached(second)


def test_a_dead_connection_frees_its_readers_at_once(world: World) -> None:
    dead, alive = world.trusted_peer(), world.trusted_peer()
    for _ in range(5):
        reader(dead)
    assert condition(alive, reader(alive)) == "amqp:resource-limit-exceeded"
    dead.cut()
    assert alive.is_attached(reader(alive))  # within the 50 ms that this attach takes


def test_a_dead_connection_does_not_delay_who_takes_over(world: World) -> None:
    dead, alive = world.trusted_peer(), world.trusted_peer()
    reader(dead, epoch=7)
    world.gate.hold[ConfirmReaderClosed] = []
    link = reader(alive, epoch=7)
    assert not alive.is_attached(link)
    dead.cut()
    alive.run()
    assert alive.is_attached(link)


@pytest.mark.parametrize("value", [Long(3), Int(3), 3])
def test_an_epoch_of_any_integer_type_is_an_epoch(world: World, value: object) -> None:
    peer = world.trusted_peer()
    peer.receiver(PARTITION, credit=1, properties={EPOCH: value})
    assert [command.epoch for command in world.gate.sent(OpenReader)] == [3]
