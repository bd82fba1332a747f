"""One byte stream's conversation: protocol header, SASL, then the connection. What a driver holds.

Three doors: receive_data takes bytes and returns events, data_to_send gives bytes to write, and time comes in with
each call. After every call that takes bytes or time, and after the host has handled the events, write what
data_to_send returns; once is_closed, close the transport when it is written.
"""

from __future__ import annotations

from enum import Enum, auto

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.security.mechanisms import OFFERED
from hubweir.amqp.security.protocol_header import (
    AMQP_HEADER,
    HEADER_SIZE,
    SASL_HEADER,
    can_become,
    name_header,
)
from hubweir.amqp.security.sasl import AUTH_FAILED, OK, SaslClient, SaslServer, SaslState, bare_hostname
from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.connection_states import CLOSE_WRITTEN, ConnectionStep
from hubweir.amqp.transport.events import Event, Opened, SaslFinished, SaslInitiated
from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.frame import EMPTY_FRAME, find_sasl_frame, sasl_frame
from hubweir.amqp.transport.frame_reader import FrameReader
from hubweir.amqp.transport.idle_clock import IdleClock
from hubweir.amqp.transport.performatives import Open
from hubweir.amqp.transport.session import Session
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.errors import CONNECTION_FORCED, DECODE_ERROR, FRAMING_ERROR, RESOURCE_LIMIT, DecodeError

__all__ = ["Endpoint", "EndpointSettings", "Role"]


class Phase(Enum):
    """What the next bytes are."""

    SASL_HEADER = auto()
    SASL_FRAMES = auto()
    AMQP_HEADER = auto()
    FRAMES = auto()
    OVER = auto()


class Endpoint:
    """One end of one byte stream. context: the host's own object, untouched here."""

    def __init__(self, role: Role, settings: EndpointSettings, *, now_ms: int) -> None:
        self.role = role
        self.settings = settings
        self.context: object = None
        self._connection = Connection(role, settings)
        self._phase = Phase.SASL_HEADER if settings.sasl else Phase.AMQP_HEADER
        self._early = bytearray()  # input before the frames phase that is not used yet
        self._early_is_ready = False  # input that waited for answer_sasl may be handled now
        self._reader = FrameReader(self._connection)
        self._idle = IdleClock(settings.idle_timeout_ms, now_ms)
        self._now_ms = now_ms
        self._started_ms = now_ms
        self._opened_ms: int | None = None
        self._had_link = False
        self._linkless_since_ms: int | None = None
        self._closing_since_ms: int | None = None
        self._sasl_server = SaslServer()
        self._sasl_client = SaslClient(settings.sasl_mechanism, settings.sasl_response, settings.hostname)
        self._started = False

    @property
    def is_open(self) -> bool:
        """Whether both opens have gone over and no close."""
        return self._connection.is_open

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is to come: close the transport once data_to_send is empty."""
        return self._phase is Phase.OVER or not self._connection.is_reading

    @property
    def remote_open(self) -> Open | None:
        """The peer's open performative, None before it came."""
        return self._connection.remote_open

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
            if self._phase is Phase.SASL_HEADER:
                self._connection.out += SASL_HEADER
            else:
                self._start_amqp()

    def begin_session(self) -> Session:
        """Client: begin a session, once Opened came; links may be attached to it at once."""
        return self._connection.begin_session()

    def close(self, error: AmqpError | None = None) -> None:
        """Write close; Closed follows with the peer's answer, or after close_deadline_ms without it."""
        if self._phase is not Phase.FRAMES:
            self._connection.lose_transport(error, by_peer=False)  # reported by the next call that takes time or bytes
            return
        self._connection.close(error)

    def answer_sasl(self, code: int) -> None:
        """Server: the verdict on SaslInitiated. 0 lets the peer in; anything else closes behind the outcome.

        What the peer sent meanwhile is handled by on_time, which next_deadline_ms asks for at once.
        """
        if self._sasl_server.state is not SaslState.AWAIT_ANSWER or self._phase is not Phase.SASL_FRAMES:
            return
        self._connection.out += sasl_frame(self._sasl_server.answer(code))
        if code == OK:
            self._phase = Phase.AMQP_HEADER
            self._early_is_ready = bool(self._early)
        else:
            error = AmqpError(condition="amqp:unauthorized-access", description="SASL authentication failed")
            self._connection.lose_transport(error, by_peer=False)

    def receive_data(self, data: memoryview, now_ms: int) -> list[Event]:
        """Take bytes from the transport. data must hold until the host has handled the events returned."""
        self._now_ms = now_ms
        if self.is_closed:
            return self._take_events()
        if len(data):
            self._idle.received(now_ms)
        if self._phase is Phase.FRAMES:
            self._reader.feed(data)
        else:
            self._feed_early(data)
        return self._take_events()

    def receive_eof(self, now_ms: int) -> list[Event]:
        """The peer closed its half of the transport, or the transport failed."""
        self._now_ms = now_ms
        self._connection.lose_transport(None, by_peer=True)
        return self._take_events()

    def data_to_send(self) -> list[bytes | bytearray | memoryview]:
        """Everything to write, in order; the buffers are the driver's now."""
        self._notice()
        out = self._connection.out
        if not out:
            return []
        # A fresh one each turn: the transport may keep the old one until the socket has taken it. The allocator
        # hands the same memory back.
        self._connection.out = bytearray()
        self._idle.wrote()
        return [out]

    def next_deadline_ms(self) -> int | None:
        """When on_time wants to be called next; a time that has passed means at once."""
        if self.is_closed:
            return None
        if self._early_is_ready:
            return self._now_ms
        # Once our close is written only its own deadline counts: a peer that is lost does not get less lost.
        idle_ms = None if self._connection.state in CLOSE_WRITTEN else self._idle.next_deadline_ms()
        times = [time for time in (idle_ms, self._deadline_ms()) if time is not None]
        return min(times, default=None)

    def on_time(self, now_ms: int) -> list[Event]:
        """Let time pass: heartbeats, deadlines, and input that had waited for answer_sasl."""
        self._notice()
        self._now_ms = now_ms
        if self.is_closed:
            return self._take_events()
        if self._early_is_ready:
            self._feed_early(memoryview(b""))
        deadline = self._deadline_ms()
        if self._connection.state not in CLOSE_WRITTEN and self._idle.peer_is_lost(now_ms):
            self._force(f"nothing came for {self.settings.idle_timeout_ms * 2} ms, twice the idle time-out")
        elif deadline is not None and now_ms >= deadline:
            self._pass_deadline()
        elif self._idle.heartbeat_due(now_ms) and self._connection.is_open:
            self._connection.out += EMPTY_FRAME
        return self._take_events()

    def _take_events(self) -> list[Event]:
        events = self._connection.report.take()
        for event in events:
            if isinstance(event, Opened):
                self._idle.peer_wants(event.open.idle_time_out, self._now_ms)
                self._opened_ms = self._now_ms
        self._notice()
        return events

    def _notice(self) -> None:
        """Note since when there is no link, and since when we close; the host changes both between our calls."""
        connection = self._connection
        self._had_link = self._had_link or connection.link_count > 0
        if connection.link_count > 0:
            self._linkless_since_ms = None
        elif self._linkless_since_ms is None:
            self._linkless_since_ms = self._now_ms
        if connection.state in CLOSE_WRITTEN and self._closing_since_ms is None:
            self._closing_since_ms = self._now_ms

    def _deadline_ms(self) -> int | None:
        """When the phase the conversation is in has lasted too long; for a client only the end of a close."""
        settings = self.settings
        if self._connection.state in CLOSE_WRITTEN:
            since = self._now_ms if self._closing_since_ms is None else self._closing_since_ms
            return since + settings.close_deadline_ms
        if self.role is Role.CLIENT:
            return None
        if self._phase is Phase.SASL_HEADER or (self._phase is Phase.AMQP_HEADER and not settings.sasl):
            return self._started_ms + settings.header_deadline_ms
        if self._opened_ms is None:
            return self._started_ms + settings.sasl_deadline_ms
        if not self._had_link:
            return self._opened_ms + settings.first_link_deadline_ms
        if self._linkless_since_ms is not None:
            return self._linkless_since_ms + settings.linkless_timeout_ms
        return None

    def _pass_deadline(self) -> None:
        if self._connection.state in CLOSE_WRITTEN:
            self._connection.lose_transport(None, by_peer=False)
        elif self._opened_ms is None:
            text = "the opening of the connection (header, SASL, open) took too long"
            self._connection.lose_transport(_error(CONNECTION_FORCED.symbol, text), by_peer=False)
        else:
            self._force("the connection has had no link for too long; attach one, or connect again when needed")

    def _force(self, text: str) -> None:
        self._connection.fail_for(ConnectionFault(CONNECTION_FORCED, text))

    def _feed_early(self, data: memoryview) -> None:
        """Input before the frames phase: a few short pieces, copied together."""
        self._early += data
        self._early_is_ready = False
        if len(self._early) > self.settings.buffered_before_auth_bytes and self._is_waiting():
            limit = self.settings.buffered_before_auth_bytes
            self._end_early(ConnectionFault(RESOURCE_LIMIT, f"more than {limit} bytes before the SASL outcome"))
            return
        try:
            while self._early and not self.is_closed and self._early_step():
                pass
        except ConnectionFault as fault:
            self._end_early(fault)
        except DecodeError as error:
            self._end_early(ConnectionFault(DECODE_ERROR, str(error)))
        if self._phase is Phase.FRAMES and not self.is_closed and self._early:
            early, self._early = self._early, bytearray()
            self._reader.feed(memoryview(early))

    def _is_waiting(self) -> bool:
        return self._phase is Phase.SASL_FRAMES and self._sasl_server.state is SaslState.AWAIT_ANSWER

    def _early_step(self) -> bool:
        """Handle one header or one SASL frame; False when more bytes, or the host's answer, are needed."""
        if self._phase is Phase.SASL_HEADER:
            if self._leaves_out_sasl():
                self._phase = Phase.AMQP_HEADER
                return True
            if not self._take_header(SASL_HEADER):
                return False
            self._phase = Phase.SASL_FRAMES
            if self.role is Role.SERVER:
                self._connection.out += SASL_HEADER
                self._connection.out += sasl_frame(self._sasl_server.mechanisms())
            return True
        if self._phase is Phase.AMQP_HEADER:
            if not self._take_header(AMQP_HEADER):
                return False
            self._connection.step(ConnectionStep.RECEIVE_HEADER)
            if self.role is Role.SERVER:
                self._start_amqp()
            self._phase = Phase.FRAMES
            return False
        if self._is_waiting():
            return False
        frame = find_sasl_frame(self._early)
        if frame is None:
            return False
        self._receive_sasl(memoryview(bytes(self._early[frame.body : frame.end])))
        del self._early[: frame.end]
        return True

    def _leaves_out_sasl(self) -> bool:
        """Whether the peer begins with AMQP itself, and may."""
        return self.settings.sasl_may_be_left_out and self._early.startswith(AMQP_HEADER)

    def _take_header(self, expected: bytes) -> bool:
        """Whether the expected header is there; it is used up. Any other is answered with it, and ends all."""
        if not can_become(self._early, expected):
            if self.settings.sasl_may_be_left_out and can_become(self._early, AMQP_HEADER):
                return False
            if self.role is Role.SERVER:
                self._connection.out += expected
            raise ConnectionFault(FRAMING_ERROR, f"the connection began with {name_header(self._early)}")
        if len(self._early) < HEADER_SIZE:
            return False
        del self._early[:HEADER_SIZE]
        return True

    def _receive_sasl(self, body: memoryview) -> None:
        connection = self._connection
        if self.role is Role.SERVER:
            init = self._sasl_server.receive_init(body)
            if init.mechanism not in OFFERED:
                self.answer_sasl(AUTH_FAILED)
                return
            connection.report.add(
                SaslInitiated(str(init.mechanism), init.initial_response or b"", bare_hostname(init.hostname))
            )
        elif self._sasl_client.state is SaslState.AWAIT_MECHANISMS:
            connection.out += sasl_frame(self._sasl_client.receive_mechanisms(body))
        else:
            code = self._sasl_client.receive_outcome(body)
            connection.report.add(SaslFinished(code))
            if code != OK:
                text = f"the server refused the SASL response with code {code}"
                connection.lose_transport(_error("amqp:unauthorized-access", text), by_peer=True)
                return
            self._phase = Phase.AMQP_HEADER
            self._start_amqp()

    def _start_amqp(self) -> None:
        """Write our header; a client sends open right behind it."""
        self._connection.out += AMQP_HEADER
        self._connection.step(ConnectionStep.SEND_HEADER)
        if self.role is Role.CLIENT:
            self._connection.send_open()

    def _end_early(self, fault: ConnectionFault) -> None:
        """A fault before there is a connection: nothing can be told in a frame, so the transport just ends."""
        self._early.clear()
        self._connection.lose_transport(fault.error(), by_peer=False)


def _error(condition: str, text: str) -> AmqpError:
    return AmqpError(condition=condition, description=text)
