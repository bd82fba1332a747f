"""All links of a connection share what one turn sends, and take turns."""

from __future__ import annotations

import pytest

from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.gateway.amqp.turn_share import SMALL_REST
from hubweir.gateway.settings import LinkSettings

EVENTS = 60  # of 10,000 bytes: a partition holds more than one turn takes


@pytest.fixture
def world() -> World:
    return World(link_settings=LinkSettings(turn_limit_bytes=256 * 1024))  # less than a partition here holds


def readers(peer: Peer) -> list[ReceiverLink]:
    """A link to each of four partitions that hold events."""
    links = []
    for partition in range(4):
        sender = peer.sender(f"hub/Partitions/{partition}")
        for _ in range(EVENTS):
            sender.send(event(bytes(10_000)), settled=False)
        peer.run(200)
        links.append(peer.receiver(f"hub/ConsumerGroups/$Default/Partitions/{partition}"))
    return links


def counts(peer: Peer, links: list[ReceiverLink]) -> list[int]:
    return [peer.received_count(link) for link in links]


def test_all_links_of_a_connection_share_what_one_turn_sends(world: World, peer: Peer) -> None:
    links = readers(peer)
    peer.transport_full = True  # nothing leaves, so what one turn produced can be seen
    for link in links:
        link.grant(1_000)
    peer._carry_to_server()
    assert 0 < peer.server.unsent_bytes <= world.process.link_settings.turn_limit_bytes + 20_000
    peer.transport_full = False
    peer.run(500)
    assert counts(peer, links) == [EVENTS] * 4


def test_a_small_rest_of_the_share_is_not_begun_with(world: World) -> None:
    """Five events of 13,000 bytes leave a few hundred of a share of 64 KiB: a sixth, sent whole, would go far over."""
    use_up(world)
    peer = world.trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    for _ in range(EVENTS):
        sender.send(event(bytes(12_700)), settled=False)
    peer.run(200)
    link = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0")
    peer.transport_full = True
    link.grant(1_000)
    peer._carry_to_server()
    share = world.process.link_settings.turn_bytes
    assert share * (1 - 1 / SMALL_REST) <= peer.server.unsent_bytes <= share


def test_an_event_larger_than_the_share_goes_out_alone(world: World) -> None:
    peer = world.trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    for _ in range(3):
        sender.send(event(bytes(500_000)), settled=False)
    peer.run(200)
    link = peer.receiver("hub/ConsumerGroups/$Default/Partitions/0")
    peer.transport_full = True
    link.grant(1_000)
    peer._carry_to_server()
    assert 500_000 < peer.server.unsent_bytes < 502_000
    peer.transport_full = False
    peer.run(500)
    assert counts(peer, [link]) == [3]


def test_links_take_turns_when_the_transport_takes_one_share_at_a_time(peer: Peer) -> None:
    links = readers(peer)
    peer.host.on_writing_paused()
    for link in links:
        link.grant(1_000)
    peer.run()
    for _ in range(4):
        peer.host.on_writable()
        peer.host.on_writing_paused()
        peer._flush()
        peer.run()
    assert all(0 < count < EVENTS for count in counts(peer, links))
    peer.host.on_writable()
    peer.run(500)
    assert counts(peer, links) == [EVENTS] * 4


def use_up(world: World) -> None:
    """Other connections hold all that turns may send beyond their least."""
    world.gateway.process.large_turns.used_bytes = world.gateway.process.large_turns.limit_bytes


def turn_of(peer: Peer, links: list[ReceiverLink]) -> int:
    """Bytes that one turn produced for a peer that takes nothing."""
    peer.transport_full = True
    for link in links:
        link.grant(1_000)
    peer._carry_to_server()
    return peer.server.unsent_bytes


def test_a_turn_goes_beyond_the_least_while_the_process_can_bear_it(world: World, peer: Peer) -> None:
    settings = world.process.link_settings
    assert turn_of(peer, readers(peer)) > settings.turn_limit_bytes - 20_000
    assert world.gateway.process.large_turns.used_bytes == settings.turn_limit_bytes - settings.turn_bytes


def test_while_the_pool_is_used_up_a_turn_sends_the_least(world: World, peer: Peer) -> None:
    links = readers(peer)
    use_up(world)
    settings = world.process.link_settings
    assert settings.turn_bytes // 2 < turn_of(peer, links) <= settings.turn_bytes + 20_000


def test_what_the_socket_has_taken_is_held_no_more(world: World, peer: Peer) -> None:
    links = readers(peer)
    for link in links:
        link.grant(1_000)
    peer.run(500)
    assert counts(peer, links) == [EVENTS] * 4
    assert world.gateway.process.large_turns.used_bytes == 0


def test_a_full_transport_holds_its_part_of_the_pool_until_it_drains_or_ends(world: World, peer: Peer) -> None:
    settings, pool = world.process.link_settings, world.gateway.process.large_turns
    peer.unwritten_bytes = settings.turn_bytes + 100_000
    peer.host.on_writing_paused()
    assert pool.used_bytes == 100_000
    peer.host.on_writable()
    assert pool.used_bytes == 0
    peer.host.on_writing_paused()
    peer.host.on_closed()
    peer.host.on_writing_paused()
    assert pool.used_bytes == 0


def test_peers_that_are_slow_and_hold_no_more_than_the_least_leave_the_pool_to_others(world: World) -> None:
    """As many that read the newest events over slow lines: each was sent little, and its transport is full of that."""
    settings, pool = world.process.link_settings, world.gateway.process.large_turns
    for peer in [world.trusted_peer() for _ in range(100)]:
        peer.unwritten_bytes = settings.turn_bytes - 1_000
        peer.host.on_writing_paused()
    assert pool.used_bytes == 0


def test_a_transport_that_is_full_takes_no_more_of_the_pool_when_its_peer_grants_credit(
    world: World, peer: Peer
) -> None:
    links, pool = readers(peer), world.gateway.process.large_turns
    use_up(world)
    peer.host.on_writing_paused()
    pool.used_bytes = 0  # others have let go of theirs
    for link in links:
        link.grant(1_000)
    peer._carry_to_server()
    assert pool.used_bytes == 0
    peer.host.on_writable()
    peer.run(500)
    assert counts(peer, links) == [EVENTS] * 4
    assert pool.used_bytes == 0
