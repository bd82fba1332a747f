"""The opening of a byte stream: protocol header, SASL, the header of AMQP, up to the first frame. (Part 5, section 5.3)

Either role. Input comes in a few short pieces, which are copied together; what the peer sends before the host has
answered SASL waits here, and is bounded. A fault ends the transport without a word, for there is no connection yet
that could carry one; only the header that is wanted is told.
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
from hubweir.amqp.transport.connection_states import ConnectionStep
from hubweir.amqp.transport.events import SaslFinished, SaslInitiated
from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.frame import find_sasl_frame, sasl_frame
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.errors import DECODE_ERROR, FRAMING_ERROR, RESOURCE_LIMIT, UNAUTHORIZED, DecodeError


class Phase(Enum):
    """Phases of an opening, by what the next bytes are."""

    SASL_HEADER = auto()
    SASL_FRAMES = auto()
    AMQP_HEADER = auto()
    FRAMES = auto()


class Opening:
    """The opening of one connection, into whose out and report it writes.

    is_over: frames come next. is_ready: input that waited for `answer` may be handled now, by an empty `feed`.
    """

    def __init__(self, role: Role, settings: EndpointSettings, connection: Connection) -> None:
        self._role = role
        self._settings = settings
        self._connection = connection
        self._phase = self._first = Phase.SASL_HEADER if settings.sasl else Phase.AMQP_HEADER
        self._input = bytearray()  # what is not used yet
        self._sasl_server = SaslServer()
        self._sasl_client = SaslClient(settings.sasl_mechanism, settings.sasl_response, settings.hostname)
        self.is_over = False
        self.is_ready = False

    @property
    def has_begun(self) -> bool:
        """Whether the peer's first protocol header has come."""
        return self._phase is not self._first

    def start(self) -> None:
        """Client: write the first header."""
        if self._phase is Phase.SASL_HEADER:
            self._connection.out += SASL_HEADER
        else:
            self._start_amqp()

    def answer(self, code: int) -> None:
        """Server: the host's verdict on SaslInitiated; ignored when none is waited for. See Endpoint.answer_sasl."""
        if not self._is_waiting():
            return
        self._connection.out += sasl_frame(self._sasl_server.answer(code))
        if code == OK:
            self._phase = Phase.AMQP_HEADER
            self.is_ready = bool(self._input)
        else:
            self._refuse("SASL authentication failed", by_peer=False)

    def feed(self, data: memoryview) -> bytearray:
        """Take input; return what stands behind the opening, which are frames. Nothing is kept of data itself."""
        self._input += data
        self.is_ready = False
        limit = self._settings.buffered_before_auth_bytes
        if len(self._input) > limit and self._is_waiting():
            self._fail(ConnectionFault(RESOURCE_LIMIT, f"more than {limit} bytes before the SASL outcome"))
            return bytearray()
        try:
            while self._input and self._connection.is_reading and self._step():
                pass
        except ConnectionFault as fault:
            self._fail(fault)
        except DecodeError as error:
            self._fail(ConnectionFault(DECODE_ERROR, str(error)))
        if not self.is_over:
            return bytearray()
        frames, self._input = self._input, bytearray()
        return frames

    def _is_waiting(self) -> bool:
        """Whether the host has to answer SASL."""
        return self._phase is Phase.SASL_FRAMES and self._sasl_server.state is SaslState.AWAIT_ANSWER

    def _step(self) -> bool:
        """Handle one header or one SASL frame; False when more bytes, or the host's answer, are needed."""
        if self._phase is Phase.SASL_HEADER:
            if self._leaves_out_sasl():
                self._phase = Phase.AMQP_HEADER
                return True
            if not self._take_header(SASL_HEADER):
                return False
            self._phase = Phase.SASL_FRAMES
            if self._role is Role.SERVER:
                self._connection.out += SASL_HEADER
                self._connection.out += sasl_frame(self._sasl_server.mechanisms())
            return True
        if self._phase is Phase.AMQP_HEADER:
            if not self._take_header(AMQP_HEADER):
                return False
            self._connection.step(ConnectionStep.RECEIVE_HEADER)
            if self._role is Role.SERVER:
                self._start_amqp()
            self._phase = Phase.FRAMES
            self.is_over = True
            return False
        if self._is_waiting():
            return False
        frame = find_sasl_frame(self._input)
        if frame is None:
            return False
        self._receive_sasl(memoryview(bytes(self._input[frame.body : frame.end])))
        del self._input[: frame.end]
        return True

    def _leaves_out_sasl(self) -> bool:
        """Whether the peer begins with AMQP itself, and may."""
        return self._settings.sasl_may_be_left_out and self._input.startswith(AMQP_HEADER)

    def _take_header(self, expected: bytes) -> bool:
        """Whether the expected header is there; it is used up. Any other is answered with it, and ends all."""
        if not can_become(self._input, expected):
            if self._settings.sasl_may_be_left_out and can_become(self._input, AMQP_HEADER):
                return False
            if self._role is Role.SERVER:
                self._connection.out += expected
            raise ConnectionFault(FRAMING_ERROR, f"the connection began with {name_header(self._input)}")
        if len(self._input) < HEADER_SIZE:
            return False
        del self._input[:HEADER_SIZE]
        return True

    def _receive_sasl(self, body: memoryview) -> None:
        connection = self._connection
        if self._role is Role.SERVER:
            init = self._sasl_server.receive_init(body)
            if init.mechanism not in OFFERED:
                self.answer(AUTH_FAILED)
                return
            connection.report.add_event(
                SaslInitiated(str(init.mechanism), init.initial_response or b"", bare_hostname(init.hostname))
            )
        elif self._sasl_client.state is SaslState.AWAIT_MECHANISMS:
            connection.out += sasl_frame(self._sasl_client.receive_mechanisms(body))
        else:
            code = self._sasl_client.receive_outcome(body)
            connection.report.add_event(SaslFinished(code))
            if code != OK:
                self._refuse(f"the server refused the SASL response with code {code}", by_peer=True)
                return
            self._phase = Phase.AMQP_HEADER
            self._start_amqp()

    def _start_amqp(self) -> None:
        """Write our header; a client sends open right behind it."""
        self._connection.out += AMQP_HEADER
        self._connection.step(ConnectionStep.SEND_HEADER)
        if self._role is Role.CLIENT:
            self._connection.send_open()

    def _refuse(self, text: str, *, by_peer: bool) -> None:
        error = AmqpError(condition=UNAUTHORIZED.symbol, description=text)
        self._connection.lose_transport(error, by_peer=by_peer)

    def _fail(self, fault: ConnectionFault) -> None:
        """A fault before there is a connection: nothing can be told in a frame, so the transport just ends."""
        self._input.clear()
        self._connection.lose_transport(fault.error(), by_peer=False)
