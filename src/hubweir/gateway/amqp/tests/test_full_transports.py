"""Links whose transport takes no more: what they hold meanwhile, when they drop it, and that no event is lost."""

from __future__ import annotations

import pytest

from hubweir.broker.commands.reader import ReadEvents
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.tests.filled_partition import PARTITION, fill, numbers
from hubweir.gateway.amqp.tests.world import Peer, World
from hubweir.gateway.settings import LinkSettings


@pytest.fixture
def world() -> World:
    return World(link_settings=LinkSettings(turn_limit_bytes=256 * 1024))  # less than a partition here holds


def test_a_full_transport_stops_the_sending_and_a_drained_one_goes_on(world: World, peer: Peer) -> None:
    fill(peer, 100, size=10_000)
    link = peer.receiver(PARTITION)
    peer.transport_full = True
    peer.host.on_writing_paused()
    link.grant(1_000)
    peer.run(500)
    assert world.gate.sent(ReadEvents) == []
    peer.transport_full = False
    peer.host.on_writable()
    peer.run(500)
    assert numbers(peer, link) == list(range(100))


def test_a_run_that_nothing_is_sent_from_is_dropped_and_read_again(world: World, peer: Peer) -> None:
    fill(peer, 60, size=1_000)
    link = peer.receiver(PARTITION, credit=3)
    (node,) = [node for node in peer.host.nodes if isinstance(node, ConsumerNode)]
    assert node.holds_run
    peer.run(2_000)
    assert not node.holds_run
    fill(peer, 1)
    link.grant(100)
    peer.run()
    assert numbers(peer, link) == list(range(61))
    assert [read.again_from for read in world.gate.sent(ReadEvents)][:2] == [None, 3]


def test_a_full_transport_keeps_no_run_and_loses_no_event(peer: Peer) -> None:
    fill(peer, 60, size=10_000)
    link = peer.receiver(PARTITION)
    link.grant(1_000)
    peer._carry_to_server()
    peer.host.on_writing_paused()
    peer.run(2_000)
    (node,) = [node for node in peer.host.nodes if isinstance(node, ConsumerNode)]
    assert not node.holds_run
    assert 0 < len(numbers(peer, link)) < 60
    peer.host.on_writable()
    peer.run(500)
    assert numbers(peer, link) == list(range(60))


def test_a_reader_that_catches_up_reads_more_at_once_and_one_at_the_end_reads_little(world: World, peer: Peer) -> None:
    settings = world.process.link_settings
    link = peer.receiver(PARTITION)
    fill(peer, 300, size=10_000)
    link.grant(1_000)
    peer.run(500)
    assert numbers(peer, link) == list(range(300))
    asked = [read.max_bytes for read in world.gate.sent(ReadEvents)]
    assert asked[:3] == [settings.read_bytes, 2 * settings.read_bytes, 4 * settings.read_bytes]
    assert max(asked) <= settings.read_limit_bytes and asked[-1] == settings.read_bytes
    assert world.gateway.process.held_runs.used_bytes == 0


def test_while_the_process_holds_too_much_a_run_that_the_transport_does_not_take_is_dropped_at_once(
    world: World, peer: Peer
) -> None:
    world.gateway.process.held_runs.limit_bytes = 150_000  # one run of about 120 KB, not two
    other = world.trusted_peer()
    fill(peer, 60, size=10_000)
    nodes, links = [], []
    for stalled in (peer, other):
        link = stalled.receiver(PARTITION)
        stalled.transport_full = True
        link.grant(1_000)
        stalled._carry_to_server()
        stalled.host.on_writing_paused()
        links.append(link)
        (node,) = [node for node in stalled.host.nodes if isinstance(node, ConsumerNode)]
        assert node.holds_run
        nodes.append(node)
    assert world.gateway.process.held_runs.is_used_up
    for node in nodes:
        node.go_on()
    assert [node.holds_run for node in nodes] == [False, True]  # the first made room enough for the second
    for stalled, link in zip((peer, other), links, strict=True):
        stalled.transport_full = False
        stalled.host.on_writable()
        stalled.run(500)
        assert numbers(stalled, link) == list(range(60))
    assert world.gateway.process.held_runs.used_bytes == 0


def test_the_end_of_a_connection_gives_back_what_its_readers_hold(world: World, peer: Peer) -> None:
    fill(peer, 60, size=1_000)
    peer.receiver(PARTITION, credit=3)
    assert world.gateway.process.held_runs.used_bytes > 0
    peer.host.on_closed()
    assert world.gateway.process.held_runs.used_bytes == 0


def test_a_link_gives_others_a_turn_after_one_turns_worth(world: World, peer: Peer) -> None:
    fill(peer, 100, size=10_000)
    link = peer.receiver(PARTITION)
    peer.transport_full = True  # nothing leaves, so what one turn produced can be seen
    link.grant(1_000)
    peer._carry_to_server()
    assert 0 < peer.server.unsent_bytes <= world.process.link_settings.turn_limit_bytes + 20_000  # of a million
    peer.transport_full = False
    peer.run(500)
    assert len(numbers(peer, link)) == 100
