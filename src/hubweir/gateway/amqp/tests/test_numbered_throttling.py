"""Throughput units and idempotent producers: a transfer over the units is refused whole, its numbers stay free.

In virtual time. A client sends it again under the same numbers; what is stored in the end is every event, once.
"""

from __future__ import annotations

from hubweir.gateway.amqp.tests.test_numbered_publisher_node import OUT_OF_ORDER, producer, send
from hubweir.gateway.amqp.tests.world import World, event
from hubweir.throughput_unit.usage import HourUsage

BUSY = "com.microsoft:server-busy"
UNIT = 1_000  # events a second, and its burst


def a_world(units: int = 1) -> World:
    world = World(hubs={"hub": 1})
    world.wait(lambda done: world.gateway.units.change(done, held=units))
    world.run_for(1_000)
    return world


def stored(world: World) -> int:
    return sum(hosted.log.bounds.next_index for hosted in world.broker._residents)


def test_a_transfer_over_the_units_is_refused_and_nothing_of_it_is_stored() -> None:
    world = a_world()
    peer = world.trusted_peer()
    link = producer(peer)
    assert send(peer, link, 1, UNIT) == ["accepted"]
    assert send(peer, link, UNIT + 1, 500) == ["accepted", BUSY]  # a tenth of a second gave room for a hundred
    assert stored(world) == UNIT
    assert peer.is_attached(link)
    usage = HourUsage(*world.gateway.units.hours()[-1])
    assert (usage.events_in, usage.refused_events) == (UNIT, 500)


def test_the_same_numbers_are_taken_when_there_is_room_again() -> None:
    world = a_world()
    peer = world.trusted_peer()
    link = producer(peer)
    send(peer, link, 1, UNIT)
    assert send(peer, link, UNIT + 1, 500)[-1] == BUSY
    world.run_for(300)
    assert send(peer, link, UNIT + 1, 500)[-1] == "accepted"
    assert stored(world) == UNIT + 500


def test_what_a_client_had_under_way_behind_a_refused_transfer_is_out_of_order() -> None:
    """Small enough for the room that is left, it is refused all the same: the numbers before it are not there."""
    world = a_world()
    peer = world.trusted_peer()
    link = producer(peer)
    send(peer, link, 1, UNIT - 10, wait=0)
    send(peer, link, UNIT - 9, 50, wait=0)
    send(peer, link, UNIT + 41, 5)
    by_delivery = [outcome for _, _, outcome in sorted(peer.outcomes(link))]
    assert by_delivery == ["accepted", BUSY, OUT_OF_ORDER]
    assert stored(world) == UNIT - 10


def test_a_repeat_takes_nothing_of_the_units() -> None:
    """A client that lost the answer sends again: the events are known, and others have the room."""
    world = a_world()
    peer = world.trusted_peer()
    link = producer(peer)
    send(peer, link, 1, 300)
    for _ in range(10):  # 3,000 in a third of a second, of which a unit lets in 1,300
        send(peer, link, 1, 300, wait=30)
    world.run_for(100)
    assert [outcome for _, _, outcome in peer.outcomes(link)] == ["accepted"] * 11
    usage = HourUsage(*world.gateway.units.hours()[-1])
    assert (usage.events_in, usage.refused_events, stored(world)) == (300, 0, 300)


def test_numbered_and_unnumbered_events_share_the_units_to_the_event() -> None:
    """All of it at one moment: 700 numbered, then single events until there is no room, then one more numbered."""
    world = a_world()
    peer = world.trusted_peer()
    numbered, ordinary = producer(peer), peer.sender("hub/Partitions/0")
    send(peer, numbered, 1, 700, wait=0)
    world.run_for(0)
    for _ in range(400):
        ordinary.send(event(b"x"), settled=False)
    world.run_for(200)
    singles = [outcome for first, last, outcome in peer.outcomes(ordinary) for _ in range(last - first + 1)]
    assert [outcome for _, _, outcome in peer.outcomes(numbered)] == ["accepted"]
    assert singles == [BUSY] * 400  # one run, which does not fit whole
    for _ in range(300):
        ordinary.send(event(b"x"), settled=False)
    world.run_for(200)
    assert stored(world) == 1_000


def test_without_units_numbers_are_never_refused_for_their_rate() -> None:
    world = World(hubs={"hub": 1})
    peer = world.trusted_peer()
    link = producer(peer)
    for first in range(1, 5_001, 500):
        assert send(peer, link, first, 500)[-1] == "accepted"
    assert stored(world) == 5_000
