"""Two endpoints that talk to each other in memory: the engine tested against itself.

Bytes go over in pieces of a chosen size, so a test can show that no cut changes what is reported. Time is a number
that the test moves.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.transport.events import (
    Answered,
    Closed,
    CreditGranted,
    DeliveriesReceived,
    Drained,
    Event,
    LinkAttached,
    LinkDetached,
    LinkRefused,
    Opened,
    OversizeReceived,
    SaslFinished,
    SaslInitiated,
    SessionBegun,
    SessionEnded,
    Settled,
    SettledTogether,
    TransactionalReceived,
)
from hubweir.amqp.transport.link import Link
from hubweir.kernels.contract import D_DELIVERY_ID, D_FORMAT, D_LENGTH, D_SETTLED, D_START, DELIVERY_WIDTH


@dataclass(frozen=True, slots=True)
class Delivered:
    """One delivery of a DeliveriesReceived, with its bytes copied out."""

    link_name: str
    delivery_id: int
    payload: bytes
    settled: bool
    message_format: int


def open_deliveries(event: DeliveriesReceived) -> list[Delivered]:
    """The rows of an event, one by one; call it before the next read."""
    found = []
    for at in range(0, event.count * DELIVERY_WIDTH, DELIVERY_WIDTH):
        row: array[int] = event.rows[at : at + DELIVERY_WIDTH]
        payload = bytes(event.data[row[D_START] : row[D_START] + row[D_LENGTH]])
        found.append(Delivered(event.link.name, row[D_DELIVERY_ID], payload, bool(row[D_SETTLED]), row[D_FORMAT]))
    return found


def describe(event: Event) -> list[object]:
    """What an event says, in values that compare: the same for every cut of the bytes that caused it."""
    match event:
        case DeliveriesReceived():
            return list(open_deliveries(event))
        case SessionBegun(session):
            return [("begun", session.channel)]
        case SessionEnded(session, error):
            return [("ended", session.channel, error)]
        case LinkAttached(link):
            return [("attached", link.name)]
        case LinkRefused(link, error):
            return [("refused", link.name, error)]
        case LinkDetached(link, error, closed):
            return [("detached", link.name, error, closed)]
        case TransactionalReceived(link, state, data, rows):
            return [(state, *open_deliveries(DeliveriesReceived(link, data, rows, 1)))]
        case OversizeReceived(link, delivery_id, size, settled):
            return [("oversize", link.name, delivery_id, size, settled)]
        case CreditGranted(link):
            return [("credit", link.name, link.credit)]
        case Settled(link, first, last, outcome, settled):
            return [("settled", link.name, first, last, outcome, settled)]
        case SettledTogether(sent, outcome, settled):
            return [("settled together", [link.name for link in sent.links], sent.first_id, outcome, settled)]
        case Answered(link, first, last, outcome):
            return [("answered", link.name, first, last, outcome)]
        case Drained(link):
            return [("drained", link.name)]
        case Opened() | SaslInitiated() | SaslFinished() | Closed():
            return [event]


@dataclass(slots=True)
class Side:
    """One end: its endpoint, every event it reported, and every byte it wrote."""

    endpoint: Endpoint
    events: list[Event] = field(default_factory=list)
    said: list[object] = field(default_factory=list)
    written: bytearray = field(default_factory=bytearray)
    accepts: bool = True

    def take(self, events: list[Event]) -> None:
        """Keep the events, and do what a host must: answer SASL, and accept links where the side accepts."""
        for event in events:
            self.events.append(event)
            self.said.extend(describe(event))
            if isinstance(event, SaslInitiated):
                self.endpoint.answer_sasl(0)
            elif isinstance(event, LinkAttached) and self.endpoint.role is Role.SERVER and self.accepts:
                event.link.accept(max_message_size=1 << 20)

    def drain(self) -> bytes:
        """Everything the endpoint wants to write now."""
        data = b"".join(bytes(piece) for piece in self.endpoint.data_to_send())
        self.written += data
        return data

    def deliveries(self) -> list[Delivered]:
        """All deliveries so far."""
        return [entry for entry in self.said if isinstance(entry, Delivered)]

    def link(self, name: str) -> Link:
        """The link of that name; KeyError when there is none."""
        for session in self.endpoint.sessions:
            for link in session.links:
                if link.name == name:
                    return link
        raise KeyError(name)


class EndpointPair:
    """A client and a server; pump carries bytes both ways until both are silent.

    piece: how many bytes a read holds at most; None: all there are.
    """

    def __init__(
        self,
        *,
        client: EndpointSettings | None = None,
        server: EndpointSettings | None = None,
        piece: int | None = None,
    ) -> None:
        self.now_ms = 0
        self.piece = piece
        self.client = Side(Endpoint(Role.CLIENT, client or EndpointSettings("client", hostname="localhost"), now_ms=0))
        self.server = Side(Endpoint(Role.SERVER, server or EndpointSettings("server"), now_ms=0))

    def pump(self) -> None:
        """Carry bytes until neither side has any."""
        while self._carry(self.client, self.server) | self._carry(self.server, self.client):
            pass

    def opened(self) -> EndpointPair:
        """Open the connection and return the pair."""
        self.client.endpoint.open()
        self.pump()
        return self

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass for both, in one step, and carry what they write for it."""
        self.now_ms += milliseconds
        for side in (self.client, self.server):
            side.take(side.endpoint.on_time(self.now_ms))
        self.pump()

    def _carry(self, source: Side, sink: Side) -> bool:
        data = source.drain()
        step = self.piece or len(data) or 1
        for start in range(0, len(data), step):
            # A fresh buffer each time, as a driver's would be overwritten: nothing may point into it later.
            buffer = bytearray(data[start : start + step])
            sink.take(sink.endpoint.receive_data(memoryview(buffer), self.now_ms))
            buffer[:] = bytes(len(buffer))
            due = sink.endpoint.next_deadline_ms()
            if due is not None and due <= self.now_ms:
                sink.take(sink.endpoint.on_time(self.now_ms))
        return bool(data)
