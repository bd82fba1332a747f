"""What tests of links that read need first: a partition with numbered events, and which of them came."""

from __future__ import annotations

from hubweir.amqp.types.values import Symbol
from hubweir.gateway.amqp.tests.world import Peer, event

PARTITION = "hub/ConsumerGroups/$Default/Partitions/0"
SEQUENCE_NUMBER, OFFSET, TIME = (
    Symbol("x-opt-sequence-number"),
    Symbol("x-opt-offset"),
    Symbol("x-opt-enqueued-time"),
)


def fill(peer: Peer, count: int, *, size: int = 0, address: str = "hub/Partitions/0") -> None:
    """Send events 0 … count - 1 to a partition, 5 ms apart."""
    link = peer.sender(address)
    for number in range(count):
        link.send(event(b"%d" % number + bytes(size)), settled=False)
        peer.run(5)
    peer.run(100)
    link.detach()
    peer.run()


def numbers(peer: Peer, link: object) -> list[int]:
    return [int((message.message_annotations or {})[SEQUENCE_NUMBER]) for message in peer.received(link)]
