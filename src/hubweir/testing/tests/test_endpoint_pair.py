from __future__ import annotations

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import Closed
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.testing.endpoint_pair import Delivered, EndpointPair


def both_ways(piece: int | None) -> EndpointPair:
    """A whole conversation, from header to close, with deliveries of all sizes each way."""
    pair = EndpointPair(piece=piece).opened()
    session = pair.client.endpoint.begin_session()
    pair.pump()
    up = session.attach_sender("up", source=Source(address="me"), target=Target(address="hub"))
    down = session.attach_receiver("down", source=Source(address="hub"), target=Target(address="me"))
    down.grant(20)
    pair.pump()
    server_up, server_down = pair.server.link("up"), pair.server.link("down")
    assert isinstance(server_up, ReceiverLink) and isinstance(server_down, SenderLink)
    server_up.grant(20)
    pair.pump()
    for size in (0, 1, 100, 70_000, 3, 140_000):
        up.send(b"u" * size, settled=False)
        server_down.send(b"d" * size)
    pair.pump()
    server_up.settle(0, 5, Accepted())
    pair.pump()
    up.detach()
    session.end()
    pair.pump()
    pair.client.endpoint.close()
    pair.pump()
    return pair


def test_a_conversation_goes_from_header_to_close() -> None:
    pair = both_ways(None)
    assert [len(entry.payload) for entry in pair.server.deliveries()] == [0, 1, 100, 70_000, 3, 140_000]
    assert [len(entry.payload) for entry in pair.client.deliveries()] == [0, 1, 100, 70_000, 3, 140_000]
    assert ("settled", "up", 0, 5, Accepted(), True) in pair.client.said
    assert pair.client.events[-1] == Closed(None, by_peer=False, clean=True)
    assert pair.server.events[-1] == Closed(None, by_peer=True, clean=True)


@pytest.mark.parametrize("piece", [1, 2, 7, 64, 1_000, 65_536, 65_537])
def test_no_cut_of_the_bytes_changes_what_is_reported_or_written(piece: int) -> None:
    whole, cut = both_ways(None), both_ways(piece)
    assert cut.server.said == whole.server.said
    assert cut.client.said == whole.client.said
    assert cut.server.written == whole.server.written
    assert cut.client.written == whole.client.written


def test_a_planted_fault_in_the_bytes_is_seen() -> None:
    """The control arm: one changed byte of a payload shows in what was reported."""
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    up = session.attach_sender("up", source=Source(address="me"), target=Target(address="hub"))
    pair.pump()
    link = pair.server.link("up")
    assert isinstance(link, ReceiverLink)
    link.grant(1)
    pair.pump()
    up.send(b"payload")
    damaged = bytearray(pair.client.drain())
    damaged[-1] ^= 1
    pair.server.take(pair.server.endpoint.receive_data(memoryview(damaged), 0))
    assert pair.server.said[-1] == Delivered("up", 0, b"payloae", True, 0)


def test_time_passes_for_both_ends() -> None:
    pair = EndpointPair().opened()
    session = pair.client.endpoint.begin_session()
    session.attach_sender("up", source=Source(address="me"), target=Target(address="hub"))
    pair.pump()
    before = (len(pair.client.written), len(pair.server.written))
    for _ in range(100):
        pair.pass_time(60_000)
    assert pair.client.endpoint.is_open and pair.server.endpoint.is_open
    assert (len(pair.client.written), len(pair.server.written)) > before
