"""Links for answers: what waits for credit, what goes with the link."""

from __future__ import annotations

import pytest

from hubweir.amqp.messaging.message import Message, Properties, encode_message
from hubweir.gateway.amqp.reply_node import ReplyNode
from hubweir.gateway.amqp.tests.world import Peer, World


@pytest.fixture
def peer() -> Peer:
    return World(hubs={"hub": 1}).trusted_peer()


def read_hub(name: str = "hub") -> bytes:
    said = {"operation": "READ", "type": "com.microsoft:eventhub", "name": name}
    return encode_message(Message(properties=Properties(message_id="m"), application_properties=dict(said)))


def nodes(peer: Peer) -> list[ReplyNode]:
    return [node for node in peer.host.nodes if isinstance(node, ReplyNode)]


@pytest.mark.parametrize("address", ["$cbs", "$management", "hub/$management"])
def test_a_receiver_on_a_node_of_requests_gets_one(peer: Peer, address: str) -> None:
    link = peer.receiver(address)
    assert peer.is_attached(link)
    assert len(nodes(peer)) == 1


def test_it_sends_nothing_of_its_own_accord(peer: Peer) -> None:
    link = peer.receiver("$management", credit=100)
    peer.run(5_000)
    assert peer.received(link) == []


def test_answers_wait_for_credit_and_come_in_their_order_as_far_as_it_goes(peer: Peer) -> None:
    reply, ask = peer.receiver("$management"), peer.sender("$management")
    for name in ("hub", "absent", "hub"):
        ask.send(read_hub(name), settled=True)
    peer.run(200)
    assert peer.received(reply) == []
    codes = []
    for _ in range(3):
        reply.grant(1)
        peer.run()
        codes.append([(answer.application_properties or {})["status-code"] for answer in peer.received(reply)])
    assert codes == [[200], [200, 404], [200, 404, 200]]


def test_answers_go_with_their_link_and_the_next_link_starts_empty(peer: Peer) -> None:
    reply, ask = peer.receiver("$management"), peer.sender("$management")
    ask.send(read_hub(), settled=True)
    peer.run(200)
    reply.detach()
    peer.run()
    assert nodes(peer) == []
    later = peer.receiver("$management", credit=10)
    peer.run(200)
    assert peer.received(later) == []
    ask.send(read_hub(), settled=True)
    peer.run(200)
    assert len(peer.received(later)) == 1
