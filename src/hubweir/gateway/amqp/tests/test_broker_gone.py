"""A broker of another process goes away: links that had something open there end so that clients attach again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import CloseOwner, Refusal
from hubweir.broker.commands.producer import CloseProducer, OpenProducer
from hubweir.broker.commands.reader import CloseReader, OpenReader, ReadEvents
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE, TIMED_OUT
from hubweir.gateway.amqp.publisher_node import TRIES_NOTHING_REJECTED
from hubweir.gateway.amqp.tests.filled_partition import PARTITION
from hubweir.gateway.amqp.tests.test_numbered_publisher_node import producer, send
from hubweir.gateway.amqp.tests.world import Gate, Peer, World, event

FORCED = "amqp:link:detach-forced"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def peer(world: World) -> Peer:
    return world.trusted_peer()


def gone(world: World) -> None:
    """The connections hear of it, and what was open at the broker is over, as after its end."""
    world.connections.broker_gone(world.gate)
    world.ask(CloseOwner(Owner(0, -1)))


def ended_with(peer: Peer, link: Any) -> str:
    peer.run()
    return str(peer.refusal(link).condition)


@pytest.mark.parametrize("credit", [0, 10])
def test_a_reader_ends_whether_it_waits_for_events_or_for_credit(world: World, peer: Peer, credit: int) -> None:
    link = peer.receiver(PARTITION, credit=credit)
    peer.run()
    gone(world)
    assert ended_with(peer, link) == FORCED
    assert world.gate.sent(CloseReader) == []  # its number may be another's by now
    again = peer.receiver(PARTITION, credit=10)
    peer.sender("hub/Partitions/0").send(event(b"x"), settled=True)
    peer.run()
    assert peer.bodies(again) == [b"x"]


def test_a_reader_whose_read_was_refused_before_ends_once(world: World, peer: Peer) -> None:
    world.gate.refuse[ReadEvents] = Refusal(TIMED_OUT, "it went away", known=False)
    link = peer.receiver(PARTITION, credit=10)
    peer.run()
    gone(world)
    assert ended_with(peer, link) == FORCED


def test_a_reader_that_is_not_open_yet_waits_for_its_answer(world: World, peer: Peer) -> None:
    world.gate.hold[OpenReader] = []
    link = peer.receiver(PARTITION, credit=10)
    world.connections.broker_gone(world.gate)
    peer.run()
    world.gate.release(OpenReader)
    peer.run()
    assert peer.is_attached(link)


def test_a_numbered_producer_ends_and_attaches_again_where_it_was(world: World, peer: Peer) -> None:
    link = producer(peer)
    assert send(peer, link, 1) == ["accepted"]
    gone(world)
    assert ended_with(peer, link) == FORCED
    assert world.gate.sent(CloseProducer) == []
    assert send(peer, producer(peer, number=None), 2) == ["accepted"]


def test_a_numbered_producer_that_is_not_open_yet_waits_for_its_answer(world: World, peer: Peer) -> None:
    world.gate.hold[OpenProducer] = []
    link = producer(peer)
    world.connections.broker_gone(world.gate)
    peer.run()
    world.gate.release(OpenProducer)
    peer.run(200)
    assert peer.is_attached(link)


def test_publishers_and_links_of_other_brokers_go_on(world: World, peer: Peer) -> None:
    publisher, reader = peer.sender("hub"), peer.receiver(PARTITION, credit=10)
    numbered = producer(peer)
    peer.run()
    world.connections.broker_gone(Gate(world.broker))
    assert all(peer.is_attached(link) for link in (publisher, reader, numbered))
    gone(world)
    peer.run()
    assert peer.is_attached(publisher)


def test_what_a_broker_that_is_away_refuses_is_told_as_clients_try_again(world: World, peer: Peer) -> None:
    world.gate.refuse[AppendEvents] = world.gate.refuse[OpenReader] = Refusal(STORE_OFFLINE, "it is away")
    publisher = peer.sender("hub/Partitions/0")
    peer.run()
    publisher.send(event(b"x"), settled=False)
    peer.run()
    assert [outcome for _, _, outcome in peer.outcomes(publisher)] == ["com.microsoft:server-busy"]
    assert peer.is_attached(publisher)
    assert ended_with(peer, peer.receiver(PARTITION, credit=10)) == "com.microsoft:server-busy"


def test_a_client_that_tries_nothing_rejected_again_is_told_by_the_end_of_its_link(world: World, peer: Peer) -> None:
    connection = peer.server._connection
    assert connection.remote_open is not None
    connection.remote_open = replace(connection.remote_open, properties={"product": TRIES_NOTHING_REJECTED[0]})
    publisher = peer.sender("hub")
    peer.run()
    world.gate.refuse[AppendEvents] = Refusal(SERVER_BUSY, "over the units")
    publisher.send(event(b"x"), settled=False)
    peer.run()
    assert [outcome for _, _, outcome in peer.outcomes(publisher)] == ["com.microsoft:server-busy"]
    world.gate.refuse[AppendEvents] = Refusal(STORE_OFFLINE, "it is away")
    publisher.send(event(b"x"), settled=False)
    assert ended_with(peer, publisher) == FORCED
    assert world.process.budget.used == 0


def test_what_has_no_key_goes_to_the_partitions_that_are_up() -> None:
    world = World(stores=2)
    peer = world.trusted_peer()
    publisher = peer.sender("hub")
    peer.run()
    world.gates[1].is_up = False
    world.gates[1].commands.clear()
    for _ in range(8):
        publisher.send(event(b"x"), settled=False)
    peer.run(100)
    assert {outcome for _, _, outcome in peer.outcomes(publisher)} == {"accepted"}
    assert world.gates[1].sent(AppendEvents) == []
