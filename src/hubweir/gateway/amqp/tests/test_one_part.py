"""Receivers of a queue with one fragment: what they ask its broker, and that nothing is asked twice."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.broker.commands.fragment import CancelReceive, ReceiveMessages
from hubweir.gateway.amqp.tests.queue_world import PEEK_LOCK, flows, queue_world, send, settle
from hubweir.gateway.amqp.tests.world import Peer, World


@pytest.fixture
def world() -> World:
    return queue_world()


def asked(world: World) -> list[tuple[int, bool]]:
    """How many messages each receive asked for, and whether it waits."""
    return [(command.max_count, command.waits) for command in world.gate.sent(ReceiveMessages)]


def test_a_receiver_waits_with_all_of_its_credit_and_asks_again_for_the_rest_of_it(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=5, **PEEK_LOCK)
    assert asked(world) == [(5, True)]
    send(peer, b"a", b"b")
    assert peer.bodies(link) == [b"a", b"b"]
    assert asked(world) == [(5, True), (3, True)]
    settle(peer, link, 0, 1, Accepted())
    assert asked(world) == [(5, True), (3, True)], "it waits already, and is asked nothing more"


def test_more_credit_changes_nothing_while_it_waits_and_less_credit_is_asked_for_anew(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", credit=3, **PEEK_LOCK)
    link.grant(9)
    peer.run()
    assert asked(world) == [(3, True)]
    link.grant(2)
    peer.run()
    assert asked(world) == [(3, True), (2, True)]
    assert len(world.gate.sent(CancelReceive)) == 1


def test_at_a_drain_it_looks_once_and_waits_again_when_there_is_credit_anew(world: World, peer: Peer) -> None:
    link = peer.receiver("orders", **PEEK_LOCK)
    for _ in range(2):
        begun = len(peer.came)
        link.grant(4, drain=True)
        peer.run()
        assert [flow.drain for flow in flows(peer, begun)] == [True]
    assert asked(world) == [(4, False)] * 2
    link.grant(1)
    peer.run()
    assert asked(world)[2:] == [(1, True)]
