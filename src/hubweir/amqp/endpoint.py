"""The conversation on one byte stream, as a driver holds it: the opening (opening.py), then the connection.

Three doors: receive_data takes bytes and returns events, data_to_send gives bytes to write, and time comes in with
each call. After every call that takes bytes or time, and after the host has handled the events, write what
data_to_send returns; once is_closed, close the transport when it is written.
"""

from __future__ import annotations

from hubweir.amqp.deadlines import Deadlines
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.annotations import PRODUCT
from hubweir.amqp.opening import Opening
from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.connection_states import CLOSE_WRITTEN, ConnectionState
from hubweir.amqp.transport.events import Event, Opened
from hubweir.amqp.transport.faults import ConnectionFault, DescribeError, as_it_is
from hubweir.amqp.transport.frame import EMPTY_FRAME
from hubweir.amqp.transport.frame_reader import FrameReader
from hubweir.amqp.transport.idle_clock import IdleClock
from hubweir.amqp.transport.performatives import Open
from hubweir.amqp.transport.session import Session
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.errors import CONNECTION_FORCED

__all__ = ["Endpoint", "EndpointSettings", "Role"]


class Endpoint:
    """One end of one byte stream. now_ms: the time of the last call that brought one."""

    def __init__(
        self, role: Role, settings: EndpointSettings, *, now_ms: int, describe_error: DescribeError = as_it_is
    ) -> None:
        self.role = role
        self.settings = settings
        self._connection = Connection(role, settings, describe_error)
        self._opening = Opening(role, settings, self._connection)
        self._reader = FrameReader(self._connection)
        self._idle = IdleClock(settings.limits.idle_timeout_ms, now_ms)
        self._deadlines = Deadlines(role, settings, now_ms)
        self.now_ms = now_ms
        self._started = False

    @property
    def is_open(self) -> bool:
        """Whether both opens have gone over and no close."""
        return self._connection.is_open

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is to come: close the transport once data_to_send is empty."""
        return self._connection.state is ConnectionState.END

    @property
    def has_changed(self) -> bool:
        """Whether is_closed, or a deadline that is sooner, may be new since next_deadline_ms was asked."""
        return self._connection.has_changed or not self._opening.is_over

    @property
    def remote_open(self) -> Open | None:
        """The peer's open performative, None before it came."""
        return self._connection.remote_open

    @property
    def remote_product(self) -> str:
        """The library that the peer says it is, in its open; "" when it says nothing."""
        properties = None if self.remote_open is None else self.remote_open.properties
        product = (properties or {}).get(PRODUCT)
        return product if isinstance(product, str) else ""

    @property
    def sessions(self) -> list[Session]:
        """All sessions of the connection, the oldest first."""
        return self._connection.sessions

    @property
    def unsent_bytes(self) -> int:
        """How many bytes data_to_send would give now."""
        return len(self._connection.out)

    def open(self) -> None:
        """Client: start the conversation. SaslFinished and Opened follow."""
        if not self._started:
            self._started = True
            self._opening.start()

    def begin_session(self) -> Session:
        """Client: begin a session, once Opened came; links may be attached to it at once."""
        return self._connection.begin_session()

    def close(self, error: AmqpError | None = None) -> None:
        """Write close; Closed follows with the peer's answer, or after close_deadline_ms without it."""
        if not self._opening.is_over:
            self._connection.lose_transport(error, by_peer=False)  # reported by the next call that takes time or bytes
            return
        self._connection.close(error)

    def answer_sasl(self, code: int) -> None:
        """Server: the verdict on SaslInitiated. 0 lets the peer in; anything else closes behind the outcome.

        What the peer sent meanwhile is handled by on_time, which next_deadline_ms asks for at once.
        """
        self._opening.answer(code)

    def receive_data(self, data: memoryview, now_ms: int) -> list[Event]:
        """Take bytes from the transport. data must hold until the host has handled the events returned."""
        self.now_ms = now_ms
        if not self._connection.is_reading:
            return self._take_events()
        if len(data):
            self._idle.received(now_ms)
        if self._opening.is_over:
            self._reader.feed(data)
        else:
            self._open_with(data)
        return self._take_events()

    def receive_eof(self, now_ms: int) -> list[Event]:
        """The peer closed its half of the transport, or the transport failed."""
        self.now_ms = now_ms
        self._connection.lose_transport(None, by_peer=True)
        return self._take_events()

    def data_to_send(self) -> list[bytes | bytearray | memoryview]:
        """Everything to write, in order; the buffers are the driver's now."""
        out = self._connection.out
        if not out:
            return []
        # A fresh one each turn: the transport may keep the old one until the socket has taken it. The allocator
        # hands the same memory back.
        self._connection.out = bytearray()
        self._idle.has_written = True
        return [out]

    def next_deadline_ms(self) -> int | None:
        """When on_time wants to be called next; a time that has passed means at once.

        Until has_changed it is never sooner than this; later it may be.
        """
        self._connection.has_changed = False
        if self.is_closed:
            return None
        if self._opening.is_ready:
            return self.now_ms
        self._notice()
        deadline_ms = self._deadline_ms()
        # After our close is written only the close deadline matters: silence of the peer is expected.
        idle_ms = None if self._connection.state in CLOSE_WRITTEN else self._idle.next_deadline_ms()
        if idle_ms is None or (deadline_ms is not None and deadline_ms < idle_ms):
            return deadline_ms
        return idle_ms

    def on_time(self, now_ms: int) -> list[Event]:
        """Let time pass: heartbeats, deadlines, and input that had waited for answer_sasl."""
        self._notice()
        self.now_ms = now_ms
        if self.is_closed:
            return self._take_events()
        if self._opening.is_ready:
            self._open_with(memoryview(b""))
        deadline = self._deadline_ms()
        if self._connection.state not in CLOSE_WRITTEN and self._idle.peer_is_lost(now_ms):
            self._force(f"nothing came for {self.settings.limits.idle_timeout_ms * 2} ms, twice the idle time-out")
        elif deadline is not None and now_ms >= deadline:
            self._pass_deadline()
        elif self._idle.heartbeat_due(now_ms) and self._connection.is_open:
            self._connection.out += EMPTY_FRAME
        return self._take_events()

    def _take_events(self) -> list[Event]:
        events = self._connection.report.take_events()
        for event in events:
            if isinstance(event, Opened):
                self._idle.peer_wants(event.open.idle_time_out, self.now_ms)
                self._deadlines.opened(self.now_ms)
        return events

    def _open_with(self, data: memoryview) -> None:
        frames = self._opening.feed(data)
        if frames and not self.is_closed:
            self._reader.feed(memoryview(frames))

    def _notice(self) -> None:
        """Tell the deadlines of links and states: the host changes them between our calls, too."""
        connection = self._connection
        self._deadlines.notice(connection.link_count, connection.state in CLOSE_WRITTEN, self.now_ms)

    def _deadline_ms(self) -> int | None:
        return self._deadlines.next_ms(has_begun=self._opening.has_begun)

    def _pass_deadline(self) -> None:
        if self._connection.state in CLOSE_WRITTEN:
            self._connection.lose_transport(None, by_peer=False)
        elif not self._deadlines.is_opened:
            text = "the opening of the connection (header, SASL, open) took too long"
            self._connection.lose_transport(ConnectionFault(CONNECTION_FORCED, text).error(), by_peer=False)
        else:
            self._force("the connection has had no link for too long; attach one, or connect again when needed")

    def _force(self, text: str) -> None:
        self._connection.fail_for(ConnectionFault(CONNECTION_FORCED, text))
