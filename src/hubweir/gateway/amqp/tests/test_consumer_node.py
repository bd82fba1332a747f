"""Links that read: credit, drain, windows and settlement."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.broker.commands.reader import CancelRead, ReadEvents
from hubweir.gateway.amqp.tests.filled_partition import PARTITION, fill, numbers
from hubweir.gateway.amqp.tests.world import HOST, KEY, ROOT, Peer, World, event
from hubweir.gateway.settings import LinkSettings


@pytest.fixture
def world() -> World:
    return World(link_settings=LinkSettings(turn_limit_bytes=256 * 1024))  # less than a partition here holds


@pytest.mark.parametrize("credit", [1, 2, 3, 5])
def test_credit_of_n_brings_n_in_one_go_and_nothing_more(peer: Peer, credit: int) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION)
    before = len(peer.side.events)
    link.grant(credit)
    peer.run(1_000)
    assert numbers(peer, link) == list(range(credit))
    (only,) = [entry for entry in peer.side.events[before:] if type(entry).__name__ == "DeliveriesReceived"]
    assert only.count == credit


def test_small_credit_goes_on_where_it_stopped_without_another_read(world: World, peer: Peer) -> None:
    fill(peer, 10)
    link = peer.receiver(PARTITION, credit=3)
    reads = len(world.gate.sent(ReadEvents))
    for _ in range(2):
        link.grant(3)
        peer.run()
    assert numbers(peer, link) == list(range(9))
    assert len(world.gate.sent(ReadEvents)) == reads


def test_no_credit_no_events(peer: Peer) -> None:
    fill(peer, 3)
    link = peer.receiver(PARTITION)
    peer.run(120_000)
    assert peer.is_attached(link)
    assert numbers(peer, link) == []


def test_a_waiting_reader_gets_a_new_event_at_once(peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=10)
    peer.run(200_000)  # several waits of an idle reader
    sender = peer.sender("hub/Partitions/0")
    sender.send(event(b"now"), settled=False)
    peer.run(50)
    assert peer.bodies(link) == [b"now"]


def test_drain_without_events_gives_the_credit_back(peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=10)
    assert link.credit == 10
    link.grant(10, drain=True)
    peer.run()
    assert link.credit == 0


def test_drain_sends_what_there_is_first(peer: Peer) -> None:
    fill(peer, 4)
    link = peer.receiver(PARTITION)
    link.grant(10, drain=True)
    peer.run()
    assert numbers(peer, link) == [0, 1, 2, 3]
    assert link.credit == 0
    link.grant(10)
    fill(peer, 1)
    assert numbers(peer, link) == [0, 1, 2, 3, 4]


def test_drain_is_answered_when_all_is_sent_however_small_the_peers_window_is(world: World) -> None:
    proof = {"sasl_mechanism": "PLAIN", "sasl_response": f"\0{ROOT}\0{KEY}".encode()}
    peer = Peer(world, EndpointSettings("peer", HOST, incoming_window=4, **proof))
    peer.endpoint.open()
    peer.run()
    fill(peer, 20)
    link = peer.receiver(PARTITION)
    link.grant(30, drain=True)
    peer.run(500)
    assert numbers(peer, link) == list(range(20))
    assert link.credit == 0


def test_a_read_is_broken_off_for_a_drain_and_for_no_other_credit(world: World, peer: Peer) -> None:
    link = peer.receiver(PARTITION, credit=1)
    link.grant(5)
    peer.run()
    assert world.gate.sent(CancelRead) == []
    link.grant(5, drain=True)
    peer.run()
    assert len(world.gate.sent(CancelRead)) == 1


def test_events_are_settled_unless_the_receiver_settles_second(peer: Peer) -> None:
    fill(peer, 2)
    first = peer.receiver(PARTITION, credit=10)
    second = peer.receiver(PARTITION, credit=10, rcv_settle_mode=1)
    by_name = {entry.link_name: entry.settled for entry in peer.side.deliveries()}
    assert by_name[first.name] is True
    assert by_name[second.name] is False
    second.settle(0, 3, Accepted(), settled=False)
    peer.run()
    fill(peer, 1)
    assert numbers(peer, second) == [0, 1, 2]


def test_a_small_window_holds_frames_back_and_loses_none() -> None:
    world = World(link_settings=LinkSettings(read_bytes=64 * 1024))
    peer = world.trusted_peer()
    fill(peer, 50, size=30_000)
    link = peer.receiver(PARTITION, credit=7)
    for _ in range(10):
        link.grant(7)
        peer.run(100)
    assert numbers(peer, link) == list(range(50))
