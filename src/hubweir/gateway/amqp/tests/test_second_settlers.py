"""Receivers that settle second: how many of their deliveries may be unsettled, and what goes on when they settle."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.batch import BATCH_FORMAT, pack_batch
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.broker.commands.reader import ReadEvents
from hubweir.gateway.amqp.consumer_node import ConsumerNode
from hubweir.gateway.amqp.tests.world import Peer, World, event
from hubweir.limits import GatewayLimits

PARTITION = "hub/ConsumerGroups/$Default/Partitions/0"
LIMIT = EndpointSettings("any").max_unsettled
EVENTS = 2 * LIMIT + 500


@pytest.fixture
def peer() -> Peer:
    """A peer whose hub holds EVENTS events in partition 0."""
    peer = World().trusted_peer()
    sender = peer.sender("hub/Partitions/0")
    for first in range(0, EVENTS, 500):
        batch = pack_batch(event(b"%d" % number) for number in range(first, first + 500))
        sender.send(batch, message_format=BATCH_FORMAT, settled=False)
        peer.run(5)
    sender.detach()
    peer.run(200)
    return peer


def second_settler(peer: Peer, credit: int, **attach: object) -> ReceiverLink:
    link = peer.receiver(PARTITION, credit=credit, rcv_settle_mode=1, **attach)
    peer.run(200)
    return link


def came(peer: Peer, link: ReceiverLink) -> list[int]:
    """The bodies that came, each delivery of them once."""
    return [int(body) for body in peer.bodies(link)]


def node_of(peer: Peer) -> ConsumerNode:
    (node,) = peer.host.nodes
    assert isinstance(node, ConsumerNode)
    return node


@pytest.mark.parametrize("settled", [True, False], ids=["at once", "after our answer"])
def test_settling_brings_the_rest_of_what_the_credit_allows(peer: Peer, settled: bool) -> None:
    link = second_settler(peer, EVENTS + 1_000)
    assert came(peer, link) == list(range(LIMIT))
    link.settle(0, 9, Accepted(), settled=settled)
    peer.run(200)
    assert came(peer, link) == list(range(LIMIT + 10))
    for last in (LIMIT - 1, 2 * LIMIT - 1, EVENTS):
        link.settle(0, last, Accepted(), settled=settled)
        peer.run(2_000)
    assert came(peer, link) == list(range(EVENTS))
    assert node_of(peer).link.unsettled_count == 0


def test_credit_that_is_used_up_is_not_made_new_by_settling(peer: Peer) -> None:
    link = second_settler(peer, LIMIT + 20)
    link.settle(0, LIMIT - 1, Accepted())
    peer.run(500)
    link.settle(LIMIT, LIMIT + 19, Accepted())
    peer.run(500)
    assert came(peer, link) == list(range(LIMIT + 20))


def test_a_thousand_dispositions_of_one_read_are_one_send(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    link = second_settler(peer, EVENTS)
    finishes: list[int] = []
    whole = ConsumerNode.finish
    monkeypatch.setattr(ConsumerNode, "finish", lambda node: (finishes.append(1), whole(node)))
    for number in range(1_000):
        link.settle(number, number, Accepted())
    peer.run(200)
    assert came(peer, link) == list(range(LIMIT + 1_000))
    assert len(finishes) == 1
    link.settle(1_000, LIMIT + 999, Accepted())
    peer.run(200)
    assert len(finishes) == 2
    link.settle(LIMIT + 1_000, LIMIT + 2_000, Accepted())  # there was room this time
    peer.run(200)
    assert len(finishes) == 2


def test_who_settles_as_events_come_costs_nothing_more(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerNode, "finish", lambda node: pytest.fail("there was room all the time"))
    link = second_settler(peer, 100)
    link.settle(0, 99, Accepted())
    peer.run(200)
    assert came(peer, link) == list(range(100))


def test_a_run_that_was_dropped_meanwhile_is_read_again(peer: Peer) -> None:
    link = second_settler(peer, EVENTS)
    peer.run(5_000)
    assert not node_of(peer).holds_run
    reads = len(peer.world.gate.sent(ReadEvents))
    link.settle(0, LIMIT - 1, Accepted())
    peer.run(1_000)
    assert came(peer, link) == list(range(2 * LIMIT))
    assert len(peer.world.gate.sent(ReadEvents)) > reads


def test_drain_gives_back_what_unsettled_deliveries_have_no_room_for(peer: Peer) -> None:
    """A client that drains before it settles would wait for ever."""
    link = second_settler(peer, LIMIT + 300)
    link.grant(300, drain=True)
    peer.run(200)
    assert link.credit == 0
    link.settle(0, LIMIT - 1, Accepted())
    peer.run(200)
    assert came(peer, link) == list(range(LIMIT))
    link.grant(7)
    peer.run(200)
    assert came(peer, link) == list(range(LIMIT + 7))


def test_the_drain_is_answered_too_when_it_comes_before_the_limit_is_reached(peer: Peer) -> None:
    link = second_settler(peer, 0)
    link.grant(EVENTS, drain=True)
    peer.run(500)
    assert came(peer, link) == list(range(LIMIT))
    assert link.credit == 0


def test_a_link_on_which_deliveries_are_settled_is_in_use() -> None:
    world = World(limits=GatewayLimits(idle_link_ms=2_000))
    peer = world.trusted_peer(tick_ms=20)
    sender = peer.sender("hub/Partitions/0")
    for number in range(8):
        sender.send(event(b"%d" % number), settled=False)
    link = peer.receiver(PARTITION, credit=8, rcv_settle_mode=1)
    for number in range(8):
        peer.run(1_000)
        link.settle(number, number, Accepted())
    assert peer.is_attached(link)
    peer.run(4_000)
    assert peer.refusal(link).condition == "amqp:link:detach-forced"
