"""Our server against Apache Qpid Proton's engine, in memory. Proton trims lists and writes list0, as few clients do."""

from __future__ import annotations

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import Closed, OversizeReceived, Settled
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.testing.endpoint_pair import Side

proton = pytest.importorskip("proton")


def push(transport: object, data: bytes) -> None:
    """Give proton bytes as fast as it takes them."""
    while data:
        room = transport.capacity()
        assert room > 0, transport.condition
        transport.push(data[:room])
        data = data[room:]


class ProtonPeer:
    """Proton's transport, connection and session as the client of one of our servers."""

    def __init__(self, *, sasl: bool, mechanism: str = "ANONYMOUS", max_frame_size: int = 32768) -> None:
        self.server = Side(Endpoint(Role.SERVER, EndpointSettings("server", sasl=sasl), now_ms=0))
        self.transport = proton.Transport()
        self.transport.max_frame_size = max_frame_size
        self.connection = proton.Connection()
        self.connection.hostname = "localhost"
        self.connection.container = "proton"
        if sasl:
            self.transport.sasl().allowed_mechs(mechanism)
        self.transport.bind(self.connection)
        self.connection.open()
        self.session = self.connection.session()
        self.session.open()

    def sender(self, name: str) -> object:
        link = self.session.sender(name)
        link.source.address, link.target.address = "me", "hub"
        link.open()
        return link

    def receiver(self, name: str, credit: int) -> object:
        link = self.session.receiver(name)
        link.source.address, link.target.address = "hub", "me"
        link.open()
        link.flow(credit)
        return link

    def ours(self, name: str) -> ReceiverLink | SenderLink:
        link = self.server.link(name)
        assert isinstance(link, (ReceiverLink, SenderLink))
        return link

    def pump(self) -> None:
        moved = True
        while moved:
            moved = self._to_server() | self._to_proton()

    def _to_server(self) -> bool:
        pending = self.transport.pending()
        if pending <= 0:
            return False
        data = self.transport.peek(pending)
        self.transport.pop(len(data))
        self.server.take(self.server.endpoint.receive_data(memoryview(data), 0))
        due = self.server.endpoint.next_deadline_ms()
        if due is not None and due <= 0:
            self.server.take(self.server.endpoint.on_time(0))
        return True

    def _to_proton(self) -> bool:
        data = self.server.drain()
        push(self.transport, data)
        return bool(data)


@pytest.fixture(params=[False, True], ids=["no SASL", "SASL"])
def peer(request: pytest.FixtureRequest) -> ProtonPeer:
    return ProtonPeer(sasl=request.param)


def test_a_message_of_many_frames_goes_up_and_is_settled(peer: ProtonPeer) -> None:
    sender = peer.sender("up")
    peer.pump()
    peer.ours("up").grant(10)
    peer.pump()
    assert sender.credit == 10
    deliveries = []
    for size in (3, 300_000, 0, 40_000):
        deliveries.append(sender.delivery(f"tag{size}"))
        sender.stream(b"x" * size)
        sender.advance()
    peer.pump()
    assert [len(entry.payload) for entry in peer.server.deliveries()] == [3, 300_000, 0, 40_000]
    link = peer.ours("up")
    link.settle(0, 1, Accepted())
    link.settle(2, 2, Rejected(error=AmqpError(condition="amqp:not-allowed", description="no")))
    peer.pump()
    states = [delivery.remote_state for delivery in deliveries]
    assert states[:3] == [proton.Delivery.ACCEPTED, proton.Delivery.ACCEPTED, proton.Delivery.REJECTED]
    assert deliveries[2].remote.condition.name == "amqp:not-allowed"
    assert [delivery.settled for delivery in deliveries] == [True, True, True, False]
    assert link.unsettled_count == 1


def test_an_oversize_message_is_drained_and_the_link_stays_usable(peer: ProtonPeer) -> None:
    sender = peer.sender("up")
    peer.pump()
    peer.ours("up").grant(10)
    peer.pump()
    for size in ((1 << 20) + 1, 1 << 20):
        sender.delivery(str(size))
        sender.stream(b"x" * size)
        sender.advance()
        peer.pump()
    oversize = [event for event in peer.server.events if isinstance(event, OversizeReceived)]
    assert [(event.delivery_id, event.size, event.settled) for event in oversize] == [(0, (1 << 20) + 1, False)]
    assert [len(entry.payload) for entry in peer.server.deliveries()] == [1 << 20]


def test_messages_come_down_within_credit_and_window(peer: ProtonPeer) -> None:
    peer.session.incoming_capacity = 4 * 32768
    receiver = peer.receiver("down", 3)
    peer.pump()
    link = peer.ours("down")
    assert link.credit == 3
    link.send(b"a" * 300_000)
    peer.pump()
    assert link.session.held
    got = b""
    for _ in range(20):
        got += receiver.recv(1 << 20) or b""
        peer.pump()
    assert got == b"a" * 300_000
    assert not link.session.held
    assert not receiver.current.partial
    receiver.advance()
    assert (link.credit, receiver.credit) == (2, 2)


def test_drain_gives_the_credit_back(peer: ProtonPeer) -> None:
    receiver = peer.receiver("down", 0)
    receiver.drain(7)
    peer.pump()
    link = peer.ours("down")
    assert (link.drain, link.credit) == (True, 7)
    link.send(b"last one")
    link.drained()
    peer.pump()
    assert (link.credit, receiver.queued) == (0, 1)
    assert receiver.credit == 1, "proton counts what lies in its queue"
    assert receiver.drained() == 6


def test_a_receiver_that_settles_second_is_answered() -> None:
    peer = ProtonPeer(sasl=True)
    receiver = peer.session.receiver("down")
    receiver.source.address, receiver.target.address = "hub", "me"
    receiver.rcv_settle_mode = proton.Link.RCV_SECOND
    receiver.open()
    receiver.flow(5)
    peer.pump()
    link = peer.ours("down")
    assert not link.presettled
    link.send(b"one", settled=link.presettled)
    peer.pump()
    delivery = receiver.current
    receiver.recv(10)
    receiver.advance()
    delivery.update(proton.Delivery.ACCEPTED)
    peer.pump()
    assert delivery.settled, "the sender's settlement came back"
    assert peer.server.events[-1] == Settled(link, 0, 0, Accepted(), False)
    assert link.unsettled_count == 0


def test_detach_end_and_close_are_answered_in_order(peer: ProtonPeer) -> None:
    sender = peer.sender("up")
    peer.pump()
    sender.close()
    peer.pump()
    assert sender.state & proton.Endpoint.REMOTE_CLOSED
    peer.session.close()
    peer.pump()
    assert peer.session.state & proton.Endpoint.REMOTE_CLOSED
    peer.connection.close()
    peer.pump()
    assert peer.connection.state & proton.Endpoint.REMOTE_CLOSED
    assert peer.server.endpoint.is_closed
    assert peer.server.events[-1] == Closed(None, by_peer=True, clean=True)
    assert peer.transport.condition is None


def test_proton_reads_our_refusal() -> None:
    peer = ProtonPeer(sasl=True)
    peer.server.accepts = False
    sender = peer.sender("up")
    peer.pump()
    peer.ours("up").refuse(AmqpError(condition="amqp:not-found", description="there is no hub"))
    peer.pump()
    assert sender.state & proton.Endpoint.REMOTE_CLOSED
    assert sender.remote_target.address is None
    assert (sender.remote_condition.name, sender.remote_condition.description) == ("amqp:not-found", "there is no hub")
    sender.close()
    peer.pump()
    assert peer.server.endpoint.sessions[0].links == []


def test_a_server_that_wants_sasl_refuses_a_peer_without() -> None:
    peer = ProtonPeer(sasl=False)
    peer.server = Side(Endpoint(Role.SERVER, EndpointSettings("server"), now_ms=0))
    peer.pump()
    assert bytes(peer.server.written) == b"AMQP\x03\x01\x00\x00"
    assert peer.server.endpoint.is_closed


def test_our_client_talks_to_protons_server() -> None:
    ours = Side(Endpoint(Role.CLIENT, EndpointSettings("client", hostname="localhost", sasl=False), now_ms=0))
    transport = proton.Transport(proton.Transport.SERVER)
    connection = proton.Connection()
    collector = proton.Collector()
    connection.collect(collector)
    transport.bind(connection)

    def pump() -> None:
        moved = True
        while moved:
            data = ours.drain()
            push(transport, data)
            for state_of in (connection, connection.session_head(proton.Endpoint.REMOTE_ACTIVE)):
                if state_of is not None and state_of.state & proton.Endpoint.LOCAL_UNINIT:
                    state_of.open()
            link = connection.link_head(proton.Endpoint.REMOTE_ACTIVE | proton.Endpoint.LOCAL_UNINIT)
            if link is not None:
                link.source.copy(link.remote_source)
                link.target.copy(link.remote_target)
                link.open()
            moved = bool(data)
            pending = transport.pending()
            if pending > 0:
                answer = transport.peek(pending)
                transport.pop(len(answer))
                ours.take(ours.endpoint.receive_data(memoryview(answer), 0))
                moved = True

    ours.endpoint.open()
    pump()
    session = ours.endpoint.begin_session()
    sender = session.attach_sender("up", source=Source(address="me"), target=Target(address="q"))
    pump()
    assert ours.said[-1] == ("attached", "up")
    remote = connection.link_head(proton.Endpoint.REMOTE_ACTIVE)
    remote.flow(5)
    pump()
    assert sender.credit == 5
    first = sender.send(b"y" * 100_000, settled=False)
    pump()
    delivery = remote.current
    assert remote.recv(200_000) == b"y" * 100_000
    delivery.update(proton.Delivery.ACCEPTED)
    delivery.settle()
    pump()
    assert ours.said[-1] == ("settled", "up", first, first, Accepted(), True)
    ours.endpoint.close()
    pump()
    connection.close()
    pump()
    assert ours.events[-1] == Closed(None, by_peer=False, clean=True)
