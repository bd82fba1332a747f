"""A connection: channels, open and close, and who gets each frame (part 2, section 2.4).

Endpoint feeds it whole reads; the header bytes and SASL in front of it are not its business. Events go into `report`,
bytes into `out`. A fault of the peer leaves no `receive_…` method: it becomes a close, an end or a detach here.
Long because all that may come on a connection has its method here, so that each fault is answered in one place.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Sequence

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import DeliveryState
from hubweir.amqp.transport.budget import SESSION_COST_BYTES, PeerBudget
from hubweir.amqp.transport.connection_states import (
    CLOSE_WRITTEN,
    OPEN_WRITTEN,
    ConnectionState,
    ConnectionStep,
    advance,
)
from hubweir.amqp.transport.events import Closed, Opened
from hubweir.amqp.transport.faults import ConnectionFault, DescribeError, IllegalState, SessionFault, as_it_is
from hubweir.amqp.transport.flow_said import FlowSaid
from hubweir.amqp.transport.frame import AMQP_FRAME, MIN_MAX_FRAME_SIZE, append_frame, cut_down
from hubweir.amqp.transport.link import Link, LinkFault
from hubweir.amqp.transport.number_pool import NumberPool
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Performative,
    Transfer,
    decode_performative,
)
from hubweir.amqp.transport.receiver_link import TransferPart, part_of
from hubweir.amqp.transport.report import Report
from hubweir.amqp.transport.session import Session
from hubweir.amqp.transport.session_states import END_WRITTEN, SessionState
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.errors import DECODE_ERROR, FRAMING_ERROR, ILLEGAL_STATE, NOT_ALLOWED, RESOURCE_LIMIT, DecodeError


class Connection:
    """One AMQP connection, either role. out: bytes to send, replaced by the endpoint at each drain."""

    def __init__(self, role: Role, settings: EndpointSettings, describe_error: DescribeError = as_it_is) -> None:
        self.role = role
        self.settings = settings
        self._describe_error = describe_error
        self.state = ConnectionState.START
        self.report = Report()
        self.out = bytearray()
        self.remote_open: Open | None = None
        self.outgoing_frame_limit = settings.limits.max_frame_size_bytes
        self.incoming_frame_limit = min(settings.open_frame_limit, settings.limits.max_frame_size_bytes)
        self.usual_frame_bytes = self.incoming_frame_limit  # of the frames that came last: sizes the next table
        self.is_reading = True  # until the end: what comes in is still looked at
        self.has_changed = True  # the state, or whether there is a link, since the endpoint last looked
        self.link_count = 0  # links that stand, or that the peer asks for and waits for
        self.attach_size = 0  # bytes of the frame being handled
        self._channels = NumberPool()
        self._sessions: dict[int, Session] = {}  # by our channel
        self._by_remote_channel: dict[int, Session] = {}
        self._ended: set[int] = set()  # the peer's channels whose session has ended; at most channel_max
        self.budget = PeerBudget(settings)

    @property
    def sessions(self) -> list[Session]:
        """All sessions, the oldest first."""
        return list(self._sessions.values())

    @property
    def is_open(self) -> bool:
        """Whether both opens have gone over and no close."""
        return self.state is ConnectionState.OPENED

    @property
    def is_writable(self) -> bool:
        """Whether frames that need an open may be written."""
        return self.state in OPEN_WRITTEN

    @property
    def takes_links(self) -> bool:
        """Whether the peer may ask for links: of a server, yes."""
        return self.role is Role.SERVER

    def step(self, step: ConnectionStep) -> None:
        """Take a step that the endpoint saw: header bytes, or the end of the transport."""
        self.state = advance(self.state, step)
        self.has_changed = True

    def send_open(self) -> None:
        """Write our open."""
        settings = self.settings
        append_frame(
            self.out,
            0,
            Open(
                container_id=settings.container_id,
                hostname=settings.hostname,
                max_frame_size=settings.limits.max_frame_size_bytes,
                channel_max=settings.channel_max,
                idle_time_out=settings.limits.idle_timeout_ms,
            ),
        )
        self.step(ConnectionStep.SEND_OPEN)

    def begin_session(self) -> Session:
        """Client: begin a session; links may be attached at once, SessionBegun follows."""
        highest = self.settings.channel_max
        if self.remote_open is not None:
            highest = min(highest, self.remote_open.channel_max)
        channel = self._channels.take(highest)
        if channel is None or not self.is_writable:
            raise IllegalState(f"a session cannot begin: the connection is {self.state.name} or has no free channel")
        session = self._sessions[channel] = Session(self, channel)
        session.send_begin()
        return session

    def close(self, error: AmqpError | None = None) -> None:
        """Write close; Closed follows with the peer's answer. Before open was written, open goes first."""
        if self.state in CLOSE_WRITTEN or self.state in (ConnectionState.START, ConnectionState.HEADER_RECEIVED):
            return
        if self.state not in OPEN_WRITTEN:
            self.send_open()
        self._forget_sessions()
        append_frame(self.out, 0, Close(error=error))
        self.step(ConnectionStep.SEND_CLOSE if error is None else ConnectionStep.SEND_CLOSE_ERROR)

    def fail(self, error: AmqpError) -> None:
        """End the connection for a fault of the peer: close with error, and read no more."""
        if self.state is ConnectionState.END:
            return
        self.close(error)
        self._finish(Closed(error, by_peer=False, clean=False))

    def fail_for(self, fault: ConnectionFault) -> None:
        """The same for a fault that was found outside of a frame."""
        self.fail(self._error(fault))

    def lose_transport(self, error: AmqpError | None, *, by_peer: bool) -> None:
        """The transport ended, or is to end, without a close of the peer."""
        if self.state is not ConnectionState.END:
            self._finish(Closed(error, by_peer=by_peer, clean=False))

    def write(self, channel: int, performative: Performative) -> None:
        """Write one frame of ours; an error or a state that makes it too large for the peer is cut down."""
        if not self.write_if_it_fits(channel, performative):
            append_frame(self.out, channel, cut_down(performative))

    def write_if_it_fits(self, channel: int, performative: Performative) -> bool:
        """Write one frame, or nothing and False when it is over the peer's maximum frame size."""
        start = len(self.out)
        if append_frame(self.out, channel, performative) > self.outgoing_frame_limit:
            del self.out[start:]
            return False
        return True

    def receive_frame(self, data: memoryview, body: int, end: int, channel: int, frame_type: int) -> None:
        """Handle a frame that is not a transfer in usual form."""
        try:
            self._receive_frame(data, body, end, channel, frame_type)
        except (ConnectionFault, SessionFault, LinkFault, IllegalState) as fault:
            self._handle(fault, channel)

    def receive_rows(self, channel: int, handle: int, data: memoryview, rows: array[int], count: int) -> None:
        """Handle whole deliveries of one frame each, all of one link."""
        self._in_session(channel, "transfer", Session.receive_rows, handle, data, rows, count)

    def receive_part(self, channel: int, handle: int, part: TransferPart) -> None:
        """Handle any other transfer."""
        self._in_session(channel, "transfer", Session.receive_part, handle, part)

    def is_known(self, channel: int) -> bool:
        """Whether what comes on this channel is no fault: it carries a session, or all is over."""
        return self.state in CLOSE_WRITTEN or channel in self._by_remote_channel

    def handles_on(self, channel: int) -> Container[int]:
        """The handles of the links of the session that a channel carries; none where it carries none."""
        session = self._by_remote_channel.get(channel)
        return () if session is None else session.handles

    def receive_dispositions(self, channel: int, rows: array[int], count: int, states: Sequence[DeliveryState]) -> None:
        """Handle so many disposition rows of one channel (kernels/contract.py, O_…). states: that they number."""
        self._in_session(
            channel, "disposition", lambda session: session.settlement.receive_rows(session, rows, count, states)
        )

    def receive_flows(self, channel: int, flows: Sequence[FlowSaid]) -> None:
        """Handle flows in usual form; of several, each for a link that is there, or for none."""
        self._in_session(channel, "flow", Session.receive_flows, flows)

    def link_opened(self, link: Link) -> None:
        """A link stands, or the peer asks for it; may be called for both."""
        self.link_count += not link.is_counted
        link.is_counted = self.has_changed = True

    def link_closed(self, link: Link) -> None:
        """It stands no longer, or was refused; may be called more than once."""
        self.link_count -= link.is_counted
        link.is_counted = False
        self.has_changed = True

    def _receive_frame(self, data: memoryview, body: int, end: int, channel: int, frame_type: int) -> None:
        if frame_type != AMQP_FRAME:
            raise ConnectionFault(FRAMING_ERROR, f"a frame of type {frame_type} where only AMQP frames may come")
        if body == end:
            return  # keeps the connection alive
        self.attach_size = end - body
        try:
            performative, payload = decode_performative(data, body, end)
        except DecodeError as error:
            if self.state in CLOSE_WRITTEN:
                return
            raise ConnectionFault(DECODE_ERROR, str(error)) from None
        if isinstance(performative, Close):
            self._receive_close(performative)
        elif self.state in CLOSE_WRITTEN and not isinstance(performative, Open):
            return  # the peer had it under way when our close went out
        elif isinstance(performative, Open):
            self._receive_open(performative)
        elif self.remote_open is None:
            raise ConnectionFault(ILLEGAL_STATE, f"{type(performative).__name__.lower()} came before open")
        elif isinstance(performative, Begin):
            self._receive_begin(channel, performative)
        elif isinstance(performative, Transfer):
            self.receive_part(channel, performative.handle, part_of(performative, data[payload:end]))
        elif not (isinstance(performative, Detach) and channel in self._ended):  # as Azure's Python client sends it
            self._receive_in_session(self._session(channel), performative)

    def _receive_in_session(self, session: Session, performative: Performative) -> None:
        if isinstance(performative, End):
            session.receive_end(performative)
            if session.state is SessionState.ENDED:
                self._remove(session)
        elif session.state in END_WRITTEN:
            return  # the peer had it under way when our end went out
        elif isinstance(performative, Attach):
            session.receive_attach(performative)
        elif isinstance(performative, Flow):
            session.receive_flow(performative)
        elif isinstance(performative, Disposition):
            session.settlement.receive(session, performative)
        elif isinstance(performative, Detach):
            session.receive_detach(performative)

    def _receive_open(self, remote: Open) -> None:
        if len(remote.container_id.encode()) > self.settings.max_name_bytes:
            raise ConnectionFault(RESOURCE_LIMIT, f"a container-id is over {self.settings.max_name_bytes} bytes")
        if remote.max_frame_size < MIN_MAX_FRAME_SIZE:
            raise ConnectionFault(
                FRAMING_ERROR, f"a max-frame-size of {remote.max_frame_size}; every peer takes {MIN_MAX_FRAME_SIZE}"
            )
        self.step(ConnectionStep.RECEIVE_OPEN)
        self.remote_open = remote
        self.incoming_frame_limit = self.settings.limits.max_frame_size_bytes
        self.outgoing_frame_limit = min(self.incoming_frame_limit, remote.max_frame_size)
        if self.state is ConnectionState.OPEN_RECEIVED:
            self.send_open()
        if self.state is ConnectionState.OPENED:
            self.report.add_event(Opened(remote))

    def _receive_begin(self, channel: int, begin: Begin) -> None:
        if channel > self.settings.channel_max:
            raise ConnectionFault(
                FRAMING_ERROR, f"channel {channel} is over the channel-max {self.settings.channel_max}"
            )
        if channel in self._by_remote_channel:
            raise ConnectionFault(ILLEGAL_STATE, f"begin on channel {channel}, whose session has not ended")
        if begin.remote_channel is not None:
            session = self._sessions.get(begin.remote_channel)
            if session is None or session.remote_channel is not None:
                raise ConnectionFault(ILLEGAL_STATE, f"begin answers channel {begin.remote_channel}, which did not ask")
        else:
            assert self.remote_open is not None  # looked at before
            highest = min(self.settings.channel_max, self.remote_open.channel_max)
            own = self._channels.take(highest, wanted=channel)
            if own is None:
                raise ConnectionFault(RESOURCE_LIMIT, "the peer's channel-max leaves no channel for this session")
            session = self._sessions[own] = Session(self, own)
            session.remote_channel = channel
            self.budget.charge(session, SESSION_COST_BYTES)
        self._by_remote_channel[channel] = session
        self._ended.discard(channel)
        session.receive_begin(channel, begin)

    def _receive_close(self, close: Close) -> None:
        self.step(ConnectionStep.RECEIVE_CLOSE)
        answered = self.state is ConnectionState.END
        if not answered:
            append_frame(self.out, 0, Close())
            self.step(ConnectionStep.SEND_CLOSE)
        self._finish(Closed(close.error, by_peer=not answered, clean=True))

    def _session(self, channel: int) -> Session:
        session = self._by_remote_channel.get(channel)
        if session is None:
            if channel > self.settings.channel_max:
                raise ConnectionFault(
                    FRAMING_ERROR, f"channel {channel} is over the channel-max {self.settings.channel_max}"
                )
            raise ConnectionFault(NOT_ALLOWED, f"channel {channel} carries no session")
        return session

    def _in_session(self, channel: int, what: str, handle: Callable[..., None], *given: object) -> None:
        """Let the session of a channel handle what came on it, unless all is over; a fault is answered at its scope."""
        if self.state in CLOSE_WRITTEN:
            return
        try:
            if self.remote_open is None:
                raise ConnectionFault(ILLEGAL_STATE, f"{what} came before open")
            session = self._by_remote_channel.get(channel) or self._session(channel)
            if session.state not in END_WRITTEN:
                handle(session, *given)
        except (ConnectionFault, SessionFault, LinkFault, IllegalState) as fault:
            self._handle(fault, channel)

    def _handle(self, fault: ConnectionFault | SessionFault | LinkFault | IllegalState, channel: int) -> None:
        """Answer a fault at its scope."""
        if isinstance(fault, LinkFault):
            fault.link.session.fail_link(fault.link, self._error(fault))
        elif isinstance(fault, SessionFault):
            self._by_remote_channel[channel].fail(self._error(fault))
        elif isinstance(fault, ConnectionFault):
            self.fail(self._error(fault))
        else:
            self.fail(self._error(ConnectionFault(ILLEGAL_STATE, str(fault))))

    def _error(self, fault: ConnectionFault | SessionFault | LinkFault) -> AmqpError:
        error = fault.error()
        described = self._describe_error(error.condition, error.description)
        return AmqpError(condition=error.condition, description=described)

    def _remove(self, session: Session) -> None:
        session.forget()
        session.let_go()
        del self._sessions[session.channel]
        if session.remote_channel is not None:
            del self._by_remote_channel[session.remote_channel]
            self._ended.add(session.remote_channel)
        self.budget.give_back(session)
        self._channels.give_back(session.channel)

    def _forget_sessions(self) -> None:
        for session in self.sessions:
            session.forget()

    def _finish(self, event: Closed) -> None:
        self._forget_sessions()
        for session in self.sessions:
            session.let_go()
        self._sessions, self._by_remote_channel = {}, {}
        self.state, self.is_reading, self.has_changed = ConnectionState.END, False, True
        self.report.add_event(event)
