"""A session: begun and ended, with its links, ids of deliveries and two windows (part 2, section 2.5).

Which link a frame is for is link_handles.py, dispositions over ranges are settlement.py. The server answers begin at
once. Transfers beyond our window are taken all the same (session_window.py says why); those beyond the peer's are held
back here, in order, until it opens.
Long because what the connection, links and hosts ask of a session stands on one page.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import DeliveryState
from hubweir.amqp.messaging.terminus import Coordinator, Source, Target
from hubweir.amqp.transport.connection_states import OPEN_WRITTEN
from hubweir.amqp.transport.events import (
    CreditGranted,
    LinkAttached,
    LinkDetached,
    LinkRefused,
    SessionBegun,
    SessionEnded,
)
from hubweir.amqp.transport.faults import ConnectionFault, SessionFault
from hubweir.amqp.transport.flow_said import FlowSaid
from hubweir.amqp.transport.frame import accepted_frame, cut_frames
from hubweir.amqp.transport.held_frames import HeldFrames
from hubweir.amqp.transport.link import RCV_FIRST, SND_MIXED, Link, LinkFault
from hubweir.amqp.transport.link_handles import LinkHandles
from hubweir.amqp.transport.link_states import DETACH_WRITTEN, LinkState
from hubweir.amqp.transport.performatives import (
    Attach,
    Begin,
    Detach,
    End,
    Flow,
    Performative,
)
from hubweir.amqp.transport.receiver_link import ReceiverLink, TransferPart
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.serial_number import MODULUS
from hubweir.amqp.transport.session_states import CAN_END, SessionState, SessionStep, advance
from hubweir.amqp.transport.session_window import SessionWindow
from hubweir.amqp.transport.settlement import Settlement
from hubweir.amqp.types.values import Symbol
from hubweir.errors import (
    FRAME_SIZE_TOO_SMALL,
    FRAMING_ERROR,
    NOT_ALLOWED,
    RESOURCE_LIMIT,
)

if TYPE_CHECKING:  # a connection makes its sessions: the import would go round
    from hubweir.amqp.transport.connection import Connection
    from hubweir.amqp.transport.report import Report


class Session:
    """One session. channel: ours, in frames we write. links: those that stand or wait for an answer."""

    def __init__(self, connection: Connection, channel: int) -> None:
        self.connection = connection
        self.report: Report = connection.report  # where events of each read go
        self.channel = channel
        self.remote_channel: int | None = None
        self.state = SessionState.UNMAPPED
        self.state_bytes = 0  # what this session counts for in the connection's budget, its links apart
        self.window = SessionWindow(connection.settings.incoming_window)
        self.settlement = Settlement()
        self._failed = False
        self._handles: LinkHandles[Link] = LinkHandles(connection.settings.handle_max)
        self.next_delivery_id = 0  # of what we send; its links move it on
        self.held: HeldFrames[SenderLink] = HeldFrames(self.window)

    @property
    def links(self) -> list[Link]:
        """All links of the session, in the order in which they were attached."""
        return self._handles.links

    @property
    def handles(self) -> Container[int]:
        """The handles of the peer's under which a link stands, or is on its way out."""
        return self._handles.used

    @property
    def is_writable(self) -> bool:
        """Whether frames may be written on this session."""
        return self.state in CAN_END and self.connection.state in OPEN_WRITTEN

    def attach_sender(
        self,
        name: str,
        *,
        source: Source | None,
        target: Target | Coordinator | None,
        properties: dict[Symbol, object] | None = None,
        desired_capabilities: tuple[Symbol, ...] | None = None,
        initial_delivery_count: int = 0,
        max_message_size: int | None = None,
    ) -> SenderLink:
        """Ask for a link to send on; LinkAttached or LinkRefused follows."""
        attach = Attach(
            name=name,
            handle=0,  # filled in when it is written
            role=SenderLink.ROLE,
            snd_settle_mode=SND_MIXED,
            rcv_settle_mode=RCV_FIRST,
            source=source,
            target=target,
            initial_delivery_count=initial_delivery_count,
            max_message_size=max_message_size,
            desired_capabilities=desired_capabilities,
            properties=properties,
        )
        link = SenderLink(self, attach, None)
        self._ask(link)
        return link

    def attach_receiver(
        self,
        name: str,
        *,
        source: Source | None,
        target: Target | None,
        snd_settle_mode: int = SND_MIXED,
        rcv_settle_mode: int = RCV_FIRST,
        properties: dict[Symbol, object] | None = None,
        desired_capabilities: tuple[Symbol, ...] | None = None,
        max_message_size: int | None = None,
    ) -> ReceiverLink:
        """Ask for a link to receive on; LinkAttached or LinkRefused follows. Credit may be granted right away."""
        attach = Attach(
            name=name,
            handle=0,
            role=ReceiverLink.ROLE,
            snd_settle_mode=snd_settle_mode,
            rcv_settle_mode=rcv_settle_mode,
            source=source,
            target=target,
            max_message_size=max_message_size,
            desired_capabilities=desired_capabilities,
            properties=properties,
        )
        link = ReceiverLink(self, attach, None)
        self._ask(link)
        return link

    def end(self, error: AmqpError | None = None) -> None:
        """End the session with all its links; SessionEnded comes with the peer's answer."""
        if self.is_writable:
            self._release_links()
            self.write(End(error=error))
            self.state = advance(self.state, SessionStep.SEND_END if error is None else SessionStep.SEND_END_ERROR)

    def answer(self, ranges: Iterable[tuple[int, int]], outcome: DeliveryState) -> None:
        """As SenderLink.answer, of deliveries of any of its links that stand: one frame a range, whosever they are."""
        self.settlement.answer(self, ranges, outcome)

    # From here on: called by the connection and by links only.

    def send_begin(self) -> None:
        """Write our begin: the first step of a session of ours, or the answer to the peer's."""
        settings = self.connection.settings
        self.connection.write(
            self.channel,
            Begin(
                remote_channel=self.remote_channel,
                next_outgoing_id=self.window.next_outgoing_id,
                incoming_window=self.window.incoming_window,
                outgoing_window=settings.incoming_window,
                handle_max=settings.handle_max,
            ),
        )
        self.state = advance(self.state, SessionStep.SEND_BEGIN)

    def receive_begin(self, channel: int, begin: Begin) -> None:
        """The peer's begin, on its channel: a new session, or the answer to ours."""
        self.state = advance(self.state, SessionStep.RECEIVE_BEGIN)
        self.remote_channel = channel
        self._handles.remote_max = begin.handle_max
        self.window.on_begin(begin.next_outgoing_id, begin.incoming_window)
        if self.state is SessionState.BEGIN_RECEIVED:
            self.send_begin()
        if self.state is SessionState.MAPPED:
            self.report.add_event(SessionBegun(self))

    def receive_end(self, end: End) -> None:
        """The peer's end: answer it unless ours went first."""
        self.state = advance(self.state, SessionStep.RECEIVE_END)
        if self.state is SessionState.END_RECEIVED:
            self._release_links()
            self.connection.write(self.channel, End())
            self.state = advance(self.state, SessionStep.SEND_END)
        if not self._failed:  # else it was reported when it happened
            self.report.add_event(SessionEnded(self, end.error))

    def fail(self, error: AmqpError) -> None:
        """End the session for a fault of the peer."""
        if self.is_writable:
            self.end(error)
            self._failed = True
            self.report.add_event(SessionEnded(self, error))

    def receive_attach(self, attach: Attach) -> None:
        """The peer asks for a link, or answers our attach."""
        settings = self.connection.settings
        if attach.handle > settings.handle_max:
            raise ConnectionFault(
                FRAMING_ERROR, f"handle {attach.handle} is over the handle-max {settings.handle_max} of this session"
            )
        link = self._handles.answered(attach)
        if link is not None:
            link.receive_attach(attach)
            if link.is_attached:
                self.report.add_event(LinkAttached(link))
            return
        if len(attach.name.encode()) > settings.max_name_bytes:
            raise SessionFault(
                RESOURCE_LIMIT, f"a link name is over {settings.max_name_bytes} bytes; choose a shorter one"
            )
        link = SenderLink(self, None, attach) if attach.role else ReceiverLink(self, None, attach)
        self._handles.add(attach.handle, link)
        link.receive_attach(attach)
        self.connection.budget.charge_link(link, self.connection.attach_size)
        if self.connection.takes_links:
            self.report.add_event(LinkAttached(link))
        else:
            link.refuse(SessionFault(NOT_ALLOWED, "this end asks for links itself and takes none").error())

    def receive_flows(self, flows: Sequence[FlowSaid]) -> None:
        """As many flows in usual form, in their order."""
        for flow in flows:
            self.receive_flow(flow)

    def receive_flow(self, flow: Flow | FlowSaid) -> None:
        """The peer's windows, and a link's credit."""
        was_closed = self.window.remote_window == 0  # as it is while frames are held back
        self.window.on_flow(flow.next_incoming_id, flow.incoming_window)
        if was_closed:
            self.held.send(self.connection.out)
        link = None if flow.handle is None else self._handles.link(flow.handle)
        if link is not None and link.state not in DETACH_WRITTEN:
            link.receive_flow(flow)
        if flow.echo and (link is None or not link.is_attached):
            self.write_flow()
        if was_closed and not self.held and self.window.remote_window > 0:
            for other in self.links:
                if other is not link and isinstance(other, SenderLink) and other.credit > 0:
                    self.report.add_event(CreditGranted(other))

    def receive_rows(self, handle: int, data: memoryview, rows: array[int], count: int) -> None:
        """Whole deliveries of one frame each, all on handle; rows is given away."""
        if self.window.received(count) and self.is_writable:
            self.write_flow()
        link = self._receiver(handle)
        if link is not None:
            link.take_rows(data, rows, count)

    def receive_part(self, handle: int, part: TransferPart) -> None:
        """A transfer frame in any other form."""
        if self.window.received(1) and self.is_writable:
            self.write_flow()
        link = self._receiver(handle)
        if link is not None:
            link.take_part(part)

    def receive_detach(self, detach: Detach) -> None:
        """The peer ends a link, or answers our detach."""
        link = self._handles.link(detach.handle)
        announce = link.state not in DETACH_WRITTEN or link.detached_by_host
        link.receive_detach()
        self._remove(link)
        if link.refused_by_peer:
            self.report.add_event(LinkRefused(link, detach.error))
        elif announce:
            self.report.add_event(LinkDetached(link, detach.error, detach.closed))

    def fail_link(self, link: Link, error: AmqpError) -> None:
        """Detach one link for a fault of the peer."""
        if link.fail(error) and self.is_writable:
            self.report.add_event(LinkDetached(link, error, True))

    def write(self, performative: Performative) -> None:
        """Write one frame on this session."""
        self.connection.write(self.channel, performative)

    def written(self, link: SenderLink, deliveries: int, frames: int, start: int) -> None:
        """Deliveries were written to the bytes of this turn from start on: what the window does not take waits.

        link: the one of the first of them, which alone may need more frames than the window takes.
        """
        self.next_delivery_id = (self.next_delivery_id + deliveries) % MODULUS
        window, out = self.window.remote_window, self.connection.out
        if frames > window:
            cut = cut_frames(out, start, window)
            self.held.add_all(link, out[cut:], frames - window)
            del out[cut:]
        self.window.sent(min(frames, window))

    def write_accepted(self, first: int, last: int) -> None:
        """Write the disposition that says of deliveries first to last of the peer: accepted and settled."""
        self.connection.out += accepted_frame(self.channel, first, last)

    def write_attach(self, link: Link, attach: Attach) -> bool:
        """Write an attach under a free handle. False, and the session is over, when the peer cannot take it."""
        if not self._handles.number(link):
            self.fail(SessionFault(RESOURCE_LIMIT, "the peer's handle-max leaves no handle for this link").error())
            return False
        if not self.connection.write_if_it_fits(self.channel, replace(attach, handle=link.handle)):
            text = f"an attach does not fit into the peer's frames of {self.connection.outgoing_frame_limit} bytes"
            self.fail(SessionFault(FRAME_SIZE_TOO_SMALL, text).error())
            return False
        return True

    def write_flow(
        self,
        link: Link | None = None,
        *,
        delivery_count: int | None = None,
        link_credit: int | None = None,
        drain: bool = False,
        echo: bool = False,
    ) -> None:
        """Write a flow: our windows, and a link's credit when link is given."""
        window = self.window
        self.write(
            Flow(
                next_incoming_id=window.next_incoming_id,
                incoming_window=window.incoming_window,
                next_outgoing_id=window.next_outgoing_id,
                outgoing_window=self.connection.settings.incoming_window,
                handle=None if link is None else link.handle,
                delivery_count=delivery_count,
                link_credit=link_credit,
                available=None if link is None or link.ROLE else 0,
                drain=drain,
                echo=echo,
            )
        )
        window.announced()

    def _receiver(self, handle: int) -> ReceiverLink | None:
        """The link that transfers on handle go to; None when it is on its way out and they are dropped."""
        link = self._handles.link(handle)
        if not isinstance(link, ReceiverLink):
            if link.state in DETACH_WRITTEN:
                return None
            raise LinkFault(link, NOT_ALLOWED, "transfers came on a link on which this end sends")
        return None if link.state in DETACH_WRITTEN else link

    def _ask(self, link: Link) -> None:
        if self._handles.is_asked_for(link):
            raise ValueError(f"an attach of the name {link.name!r} is waiting for its answer")
        link.send_first_attach()
        self._handles.asked_for(link)

    def _remove(self, link: Link) -> None:
        if link.state is LinkState.CLOSED:
            self._handles.remove(link)
            self.connection.budget.give_back(link)

    def _release_links(self) -> None:
        self.held.clear()
        self.settlement.clear()  # at once: each link would look for its own
        for link in self.links:
            link.release()

    def forget(self) -> None:
        """The session is over, or its connection is: give back what its links counted for."""
        self._release_links()
        for link in self.links:
            self.connection.budget.give_back(link)

    def let_go(self) -> None:
        """Nothing more is read for it: forget its links, which know it, so that they all are freed at once."""
        self._handles = LinkHandles(self.connection.settings.handle_max)
