"""One end of a link: attach and detach, the half that senders and receivers share (part 2, section 2.6).

A link of the peer's making waits in ATTACH_RECEIVED until the host calls accept or refuse. Every method here may be
called at any time: on a link that is over, because the peer detached it or its session or connection ended, nothing
happens and nothing is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.terminus import Coordinator, Source, Target
from hubweir.amqp.transport.faults import PeerFault
from hubweir.amqp.transport.flow_said import FlowSaid
from hubweir.amqp.transport.link_states import DETACH_WRITTEN, LinkState, LinkStep, advance
from hubweir.amqp.transport.performatives import Attach, Detach, Flow
from hubweir.amqp.types.values import Symbol
from hubweir.errors import INVALID_FIELD, Condition, EncodeError

if TYPE_CHECKING:  # a session makes its links: the import would go round
    from hubweir.amqp.transport.session import Session


SND_MIXED, RCV_FIRST = 2, 0


class Link(ABC):
    """The part of a link that both roles share. context: the host's own object, untouched here.

    attach: the peer's attach performative, None on a client until it came. remote_max_message_size: bytes, None
    when the peer has no limit.
    """

    ROLE: ClassVar[bool]  # as in a performative: False for a sender, True for a receiver; of this end

    def __init__(self, session: Session, local: Attach | None, remote: Attach | None) -> None:
        self.session = session
        self.context: object = None
        self.state = LinkState.DETACHED
        self.attach = remote
        self.handle = -1  # ours, in frames we write
        self.remote_handle = -1 if remote is None else remote.handle
        self.state_bytes = 0  # what this link counts for in the connection's budget
        self.is_counted = False  # among the connection's links
        self.detached_by_host = False
        self.refused_by_peer = False
        self._local = local

    @property
    def name(self) -> str:
        """The link's name; unique at most per connection and direction."""
        return self._either.name

    @property
    def source(self) -> Source | None:
        """Where messages come from, as the peer put it; until it did, as we asked."""
        return self._either.source

    @property
    def target(self) -> Target | Coordinator | None:
        """Where messages go, as the peer put it; until it did, as we asked."""
        return self._either.target

    @property
    def remote_max_message_size(self) -> int | None:
        """The largest payload, in bytes, that the peer takes on this link; None: no limit."""
        return (self.attach.max_message_size or None) if self.attach is not None else None

    @property
    def is_attached(self) -> bool:
        """Whether deliveries can go over this link now."""
        return self.state is LinkState.ATTACHED and not self.refused_by_peer and self.session.is_writable

    @property
    def _either(self) -> Attach:
        attach = self.attach if self.attach is not None else self._local
        assert attach is not None  # one of the two made this link
        return attach

    def accept(
        self,
        *,
        source: Source | None = None,
        target: Target | None = None,
        max_message_size: int | None = None,
        properties: dict[Symbol, object] | None = None,
        offered_capabilities: tuple[Symbol, ...] | None = None,
        initial_delivery_count: int = 0,
    ) -> None:
        """Answer the peer's attach with an attach: the link stands.

        source, target, properties: what the peer sent when left out. The settle modes are the peer's. On a receiver
        max_message_size is both told and enforced; initial_delivery_count is for senders.
        """
        if self.state is not LinkState.ATTACH_RECEIVED or not self.session.is_writable or self.attach is None:
            return
        asked = self.attach
        self._before_answer(initial_delivery_count, max_message_size)
        self._send_attach(
            replace(
                self._answer_to(asked),
                source=asked.source if source is None else source,
                target=asked.target if target is None else target,
                initial_delivery_count=None if self.ROLE else initial_delivery_count,
                max_message_size=max_message_size,
                offered_capabilities=offered_capabilities,
                properties=asked.properties if properties is None else properties,
            )
        )
        if self.is_attached:
            self.session.connection.link_opened(self)
            self._attached()

    def refuse(self, error: AmqpError) -> None:
        """Answer the peer's attach with an attach whose source and target are null, then a detach with error.

        A detach alone makes one client close the whole connection.
        """
        self._refuse(error)

    def _refuse(self, error: AmqpError | None) -> None:
        if self.state is not LinkState.ATTACH_RECEIVED or not self.session.is_writable or self.attach is None:
            return
        self._send_attach(self._answer_to(self.attach))
        self._send_detach(error, closed=True)
        self.session.connection.link_closed(self)

    def _answer_to(self, asked: Attach) -> Attach:
        """The answer without source and target, which refuses; its handle is filled in when it is written."""
        return Attach(
            name=asked.name,
            handle=0,
            role=self.ROLE,
            snd_settle_mode=asked.snd_settle_mode,
            rcv_settle_mode=asked.rcv_settle_mode,
            initial_delivery_count=None if self.ROLE else 0,
        )

    def detach(self, error: AmqpError | None = None, *, closed: bool = True) -> None:
        """End the link. The peer's answer is reported as LinkDetached; what it sends until then is dropped."""
        if self.state is LinkState.ATTACH_RECEIVED:
            self._refuse(error)
        elif self.state in (LinkState.ATTACHED, LinkState.ATTACH_SENT) and self.session.is_writable:
            self.detached_by_host = True
            self._send_detach(error, closed=closed)

    # From here on: called by the session only.

    def send_first_attach(self) -> None:
        """Client: ask for the link."""
        assert self._local is not None  # made by Session.attach_sender or attach_receiver
        self._send_attach(self._local)

    def receive_attach(self, attach: Attach) -> None:
        """The peer asks for the link, or answers; IllegalState when it has no right to."""
        self.state = advance(self.state, LinkStep.RECEIVE_ATTACH)
        self.attach = attach
        self.remote_handle = attach.handle
        self._take_attach(attach)
        if self.state is LinkState.ATTACH_RECEIVED:
            # The host may let it wait for its answer, as a receiver that waits for a message session.
            self.session.connection.link_opened(self)
        elif self.state is LinkState.ATTACHED:
            answered = attach.target if self.ROLE is False else attach.source
            self.refused_by_peer = answered is None
            if not self.refused_by_peer:
                self.session.connection.link_opened(self)
                self._attached()

    def fail(self, error: AmqpError) -> bool:
        """Detach for a fault of the peer; False when we had detached before."""
        if self.state in DETACH_WRITTEN:
            return False
        if self.state is LinkState.ATTACH_RECEIVED:
            self.refuse(error)
        else:
            self._send_detach(error, closed=True)
        return True

    def receive_detach(self) -> None:
        """The peer's detach: answer it unless ours went first."""
        if self.state is LinkState.ATTACH_RECEIVED:
            # It gave up before the host decided. The answer is complete all the same: attach, then detach.
            self._refuse(None)
        self.state = advance(self.state, LinkStep.RECEIVE_DETACH)
        if self.state is LinkState.DETACH_RECEIVED:
            self._send_detach(None, closed=True)
        self.release()

    @abstractmethod
    def receive_flow(self, flow: Flow | FlowSaid) -> None:
        """The link part of a flow frame."""

    def release(self) -> None:
        """Let go of what the link holds in its session; it will carry nothing more."""
        self.session.connection.link_closed(self)

    def _before_answer(self, initial_delivery_count: int, max_message_size: int | None) -> None:  # noqa: B027
        """Take what accept was given, before the attach goes out."""

    def _take_attach(self, attach: Attach) -> None:  # noqa: B027
        """Take what the peer's attach says for this role."""

    def _attached(self) -> None:  # noqa: B027
        """The link stands now: send what waited for it."""

    def _send_attach(self, attach: Attach) -> None:
        try:
            if self.session.write_attach(self, attach):
                self.state = advance(self.state, LinkStep.SEND_ATTACH)
        except EncodeError as error:
            if self._local is not None:
                raise
            # Something the peer sent can be read but not be written back: its session ends, our process goes on.
            self.session.fail(
                AmqpError(condition=INVALID_FIELD.symbol, description=f"an attach cannot be echoed: {error}")
            )

    def _send_detach(self, error: AmqpError | None, *, closed: bool) -> None:
        if not self.session.is_writable:
            return  # the attach did not fit, so the session ended
        self.state = advance(self.state, LinkStep.SEND_DETACH)
        self.release()
        self.session.write(Detach(handle=self.handle, closed=closed, error=error))


class LinkFault(PeerFault):
    """Detaches link, on whose handle the frame came; its session goes on."""

    def __init__(self, link: Link, condition: Condition, text: str) -> None:
        super().__init__(condition, text)
        self.link = link
