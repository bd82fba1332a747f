"""Clients that share one connection, each in sessions of its own: links of one never touch those of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.performatives import Attach, Begin, Detach, Disposition, End, Flow, Transfer
from hubweir.testing.frames import frame
from tests.conformance.conftest import Doors
from tests.conformance.raw_client import RawClient

Make = Callable[..., str]
pytestmark = pytest.mark.conformance
SEND, RECEIVE = 0, 1  # the handles of each session


@pytest.fixture
def client(doors: Doors) -> Iterator[RawClient]:
    with doors.raw() as client:
        yield client.trusted()


class PeerSession:
    """A session with a link each way to one queue. Its handles begin at 0, as another session's do."""

    def __init__(self, client: RawClient, queue: str, channel: int) -> None:
        self._client, self._channel = client, channel
        begin = Begin(next_outgoing_id=0, incoming_window=5_000, outgoing_window=5_000, handle_max=255)
        client.write(frame(begin, channel=channel))
        self._from = client.expect_frame(Begin, where=lambda begun: begun.remote_channel == channel).channel
        client._handles = client._deliveries = 0
        # The same names in each: a link is known by its session.
        client.attach(queue, sends=True, channel=channel, name="up")
        client.attach(queue, sends=False, channel=channel, name="down", rcv_settle_mode=1)
        for _ in (SEND, RECEIVE):
            assert client.expect(Attach, channel=self._from).target is not None
        client.expect(Flow, channel=self._from)
        self._sent = self._received = 0

    def send(self, text: bytes) -> None:
        """Send a message, and have it accepted."""
        transfer = self._client.transfer_of(SEND, self._sent)
        self._client.write(frame(transfer, encode_message(Message(body=DataBody((text,)))), channel=self._channel))
        outcome = self._client.expect(Disposition, channel=self._from, where=lambda d: d.role)
        assert (outcome.first, outcome.state) == (self._sent, Accepted())
        self._sent += 1

    def receive(self, text: bytes) -> None:
        """Receive and complete the next message, which is this one."""
        flow = Flow(
            next_incoming_id=1 + self._received, incoming_window=5_000, next_outgoing_id=self._sent,
            outgoing_window=5_000, handle=RECEIVE, delivery_count=self._received, link_credit=1,
        )  # fmt: skip
        self._client.write(frame(flow, channel=self._channel))
        came = self._client.expect_frame(Transfer, channel=self._from)
        assert text in came.payload
        first = came.performative.delivery_id
        settle = Disposition(role=True, first=first, last=first, settled=False, state=Accepted())
        self._client.write(frame(settle, channel=self._channel))
        answer = self._client.expect(Disposition, channel=self._from, where=lambda d: not d.role)
        assert (answer.first, answer.settled, answer.state) == (first, True, Accepted())
        self._received += 1

    def end(self) -> None:
        self._client.write(frame(End(), channel=self._channel))
        assert self._client.expect(End, channel=self._from).error is None


@pytest.mark.sb(15)
def test_sessions_of_one_connection_go_on_when_one_of_them_ends(client: RawClient, make_queue: Make) -> None:
    """Three sessions with equal handles, link names and delivery ids; two of them share a queue."""
    shared, own = make_queue(), make_queue()
    first, second, third = (PeerSession(client, queue, at) for at, queue in ((1, shared), (2, shared), (3, own)))
    for text in (b"one", b"two"):
        first.send(text)
        third.send(text + b" of the third")
    first.receive(b"one")
    second.receive(b"two")
    first.end()
    third.receive(b"one of the third")
    second.send(b"three")
    second.receive(b"three")
    third.receive(b"two of the third")
    # The channel is free again, and the links that had been on it are not there any more.
    again = PeerSession(client, own, 1)
    again.send(b"four")
    third.receive(b"four")
    assert client.none_of(Detach)
    assert client.none_of(End, seconds=0.0)
