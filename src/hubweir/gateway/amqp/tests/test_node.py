"""What a node does when it does nothing of its own."""

from __future__ import annotations

import pytest

from hubweir.amqp.transport.link import Link
from hubweir.amqp.types.values import Symbol
from hubweir.gateway.amqp.node import Node, attach_properties
from hubweir.gateway.amqp.request_node import ReplyNode
from hubweir.gateway.amqp.tests.world import Peer, World


@pytest.fixture
def peer() -> Peer:
    return World(hubs={"hub": 1}).trusted_peer()


class Quiet(Node):
    """Nothing but what every node has."""


def quiet(peer: Peer) -> Node:
    """A node on a link that stands, which does not know of it."""
    peer.receiver("$management")
    (node,) = peer.host.nodes
    return Quiet(peer.host, node.link)


def test_every_call_of_the_host_may_come_and_changes_nothing(peer: Peer) -> None:
    node = quiet(peer)
    for call in (node.credit, node.finish, node.catalog_changed, node.closed):
        call()
    peer.run(1_000)
    assert len(peer.host.nodes) == 1
    assert peer.endpoint.is_open


def test_a_node_is_never_idle_unless_it_says_so(peer: Peer) -> None:
    assert not quiet(peer).is_idle()


def test_a_node_was_used_when_it_was_made(peer: Peer) -> None:
    peer.run(5_000)
    assert quiet(peer).last_used_ms == peer.env.monotonic_ms()


def test_without_a_right_and_a_scope_no_claim_is_wanted(peer: Peer) -> None:
    node = quiet(peer)
    assert (node.right, node.scope) == (None, None)
    assert node.recheck_claim()


def test_starting_accepts_the_attach(peer: Peer) -> None:
    link = peer.receiver("$management")
    assert peer.is_attached(link)
    assert any(isinstance(node, ReplyNode) for node in peer.host.nodes)


def test_the_properties_of_an_attach_are_those_that_the_peer_sent_or_none(peer: Peer) -> None:
    peer.receiver("$management")
    peer.receiver("hub/$management", properties={Symbol("p"): 7})
    links: list[Link] = [node.link for node in peer.host.nodes]
    assert [attach_properties(link) for link in links] == [{}, {Symbol("p"): 7}]
