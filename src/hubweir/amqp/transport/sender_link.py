"""A link on which we send: credit spent, transfers split, runs written by the deliver kernel (part 2, section 2.6).

Frames that the peer's session window does not take yet are held back in the session, in order; nothing else is sent on
any link of it before them. The host looks at `sendable` before it reads more to send.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from hubweir.amqp.messaging.outcome import DeliveryState
from hubweir.amqp.transport.events import CreditGranted
from hubweir.amqp.transport.faults import NotSendable
from hubweir.amqp.transport.flow_said import FlowSaid
from hubweir.amqp.transport.frame import split_transfer
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.link_credit import SenderCredit
from hubweir.amqp.transport.link_states import LinkState
from hubweir.amqp.transport.performatives import Attach, Flow, Transfer
from hubweir.amqp.transport.serial_number import MODULUS, add_serial
from hubweir.kernels import deliver, deliver_batches, deliver_messages
from hubweir.kernels.contract import RunCursor, SendRoom, TransferForm

if TYPE_CHECKING:  # a session makes its links: the import would go round
    from hubweir.amqp.transport.session import Session

RCV_SECOND, SND_SETTLED = 1, 1


class SendProgress(Struct, frozen=True):
    """What one send_run wrote: events, bytes of frames, and where to go on; cursor.batch_at is the run's length at
    its end. first_id: delivery id of the first event, for the settlement of what was sent unsettled."""

    events: int
    bytes: int
    cursor: RunCursor
    first_id: int


NOWHERE = RunCursor()  # of messages, which are not sent by a cursor


class SenderLink(Link):
    """The sending end. sender_credit: as it counts it; for others to read.

    presettled: whether events and answers go out settled: always, unless the receiver settles second and so waits for
    us.
    """

    ROLE: ClassVar[bool] = False

    def __init__(self, session: Session, local: Attach | None, remote: Attach | None) -> None:
        super().__init__(session, local, remote)
        self._initial_delivery_count = (local.initial_delivery_count or 0) if local is not None else 0
        self.sender_credit = SenderCredit(self._initial_delivery_count)
        self.unsettled_count = 0
        self._unsettled_most = session.connection.settings.max_unsettled
        self.host_answers = False
        self.presettled = True
        self._forms: tuple[TransferForm, ...] = ()  # unsettled and settled; of a link that stands

    def answer_by_host(self, unknown: Callable[[], DeliveryState]) -> None:
        """From now on the host answers what the receiver says about its deliveries, by `answer`: not the engine.

        Call it before the link is accepted. unknown: asked, when a receiver settles deliveries of this session that
        are not unsettled any more, for what it hears about them at once.
        """
        self.host_answers = True
        self.session.settlement.unknown = unknown

    def answer(self, ranges: Sequence[tuple[int, int]], outcome: DeliveryState) -> None:
        """Tell a receiver that settles second how deliveries ended, of which it has spoken: one frame a range.

        ranges: first and last id of each, both included. Does nothing on a link that is over. (part 2, section 2.6.12)
        """
        if self.is_attached:
            self.session.answer(ranges, outcome)

    @property
    def deliveries(self) -> int:
        """How many deliveries were started on it (wraps)."""
        credit = self.sender_credit
        return (credit.delivery_count - self._initial_delivery_count - credit.skipped) % MODULUS

    @property
    def credit(self) -> int:
        """How many deliveries the receiver still takes."""
        return self.sender_credit.credit

    @property
    def drain(self) -> bool:
        """Whether the receiver wants its credit used up or given back now: send what there is, then call drained."""
        return self.sender_credit.drain

    @property
    def unsettled_room(self) -> int:
        """How many deliveries more may be unsettled; settled ones need no room. Settled says that there is more."""
        return max(0, self._unsettled_most - self.unsettled_count)

    @property
    def sendable(self) -> int:
        """How many deliveries may be given to send or send_run now; 0 while the session holds frames back."""
        return self._sendable(self.presettled)

    def takes(self, deliveries: int) -> bool:
        """Whether so many may be sent unsettled, as far as the link itself says.

        Its session may hold frames back, or be over.
        """
        return (
            deliveries <= self.sender_credit.credit
            and deliveries <= self._unsettled_most - self.unsettled_count
            and self.state is LinkState.ATTACHED
            and not self.refused_by_peer
        )

    def _sendable(self, settled: bool) -> int:
        # While frames are held back, the window is shut.
        if self.session.window.remote_window == 0 or not self.is_attached:
            return 0
        if settled:
            return self.sender_credit.credit
        # Unsettled deliveries reserve memory: not more of them than the limit, whatever was granted.
        return min(self.sender_credit.credit, self.unsettled_room)

    def send(
        self,
        payload: bytes | bytearray | memoryview,
        *,
        message_format: int = 0,
        settled: bool = True,
        tag: bytes | None = None,
        state: DeliveryState | None = None,
    ) -> int:
        """Send one delivery and return its id; frames beyond the session window wait in the session.

        payload: an encoded message; copied. tag: at most 32 bytes; the id as 4 bytes when left out. state: a
        TransactionalState, of a delivery that is part of a transaction. NotSendable without credit or on a link that
        does not stand.
        """
        if not self.is_attached or self.sender_credit.credit == 0:
            raise NotSendable(f"the link {self.name!r} has no credit, or does not stand; look at sendable first")
        session = self.session
        delivery_id = session.next_delivery_id
        session.next_delivery_id = add_serial(delivery_id, 1)
        transfer = Transfer(
            handle=self.handle,
            delivery_id=delivery_id,
            delivery_tag=delivery_id.to_bytes(4, "big") if tag is None else tag,
            message_format=message_format,
            settled=settled,
            state=state,
        )
        frames = split_transfer(transfer, memoryview(payload), session.channel, session.connection.outgoing_frame_limit)
        self.started(1, settled=settled)
        if not settled:
            session.settlement.sent.add(delivery_id, 1, self)
        for frame in frames:
            session.held.add(self, frame)
        session.held.send(session.connection.out)
        return delivery_id

    def send_run(
        self,
        run: bytes | bytearray | memoryview,
        cursor: RunCursor,
        *,
        max_events: int,
        max_bytes: int,
        delivery_annotations: bytes = b"",
    ) -> SendProgress:
        """Send events of a run from cursor on, as many as credit, window, max_events and max_bytes allow.

        run: stored batches as the owner completed them; not kept. The frames are written straight into the bytes of
        this turn. When the first event needs more frames than the window takes, the rest of it is held back.
        delivery_annotations: an encoded section that every delivery gets in the place of its own.
        """
        session, settled = self.session, self.presettled
        events = min(self._sendable(settled), max_events)
        first_id = session.next_delivery_id
        if events <= 0:
            return SendProgress(0, 0, cursor, first_id)
        out = session.connection.out
        start = len(out)
        room = SendRoom(events, session.window.remote_window, max_bytes)
        written, frames, cursor = deliver(run, cursor, self._forms[settled], first_id, room, out, delivery_annotations)
        size = len(out) - start
        self._started(first_id, written, frames, start, settled=settled)
        return SendProgress(written, size, cursor, first_id)

    def send_batches(
        self, run: bytes | bytearray | memoryview, cursor: RunCursor, *, max_events: int, max_bytes: int
    ) -> SendProgress:
        """The same for a receiver that takes stored batches (docs/on_the_wire.md): each delivery, and so each
        credit, is one frame full of events, or one event that needs more frames.
        """
        session, settled = self.session, self.presettled
        deliveries = self._sendable(settled)
        first_id = session.next_delivery_id
        if deliveries <= 0 or max_events <= 0:
            return SendProgress(0, 0, cursor, first_id)
        out = session.connection.out
        start = len(out)
        room = SendRoom(deliveries, session.window.remote_window, max_bytes)
        events, written, frames, cursor = deliver_batches(
            run, cursor, self._forms[settled], first_id, room, max_events, out
        )
        size = len(out) - start
        self._started(first_id, written, frames, start, settled=settled)
        return SendProgress(events, size, cursor, first_id)

    def send_messages(
        self,
        run: bytes | bytearray | memoryview,
        rows: array[int],
        first_row: int,
        *,
        id_prefix: bytes,
        settled: bool,
        max_bytes: int,
    ) -> SendProgress:
        """Send messages of a queue from a row of their table on, as many as credit, window and max_bytes allow.

        run, rows, id_prefix: as kernels.deliver_messages takes them; not kept. settled: the mode of the link's
        receiver. The progress counts in its events the rows that were sent; its cursor says nothing.
        """
        session = self.session
        messages = self._sendable(settled)
        first_id = session.next_delivery_id
        if messages <= 0:
            return SendProgress(0, 0, NOWHERE, first_id)
        out = session.connection.out
        start = len(out)
        room = SendRoom(messages, session.window.remote_window, max_bytes)
        written, frames = deliver_messages(run, rows, first_row, id_prefix, self._forms[settled], first_id, room, out)
        size = len(out) - start
        self._started(first_id, written, frames, start, settled=settled)
        return SendProgress(written, size, NOWHERE, first_id)

    def drained(self) -> None:
        """Give the rest of the credit back: the answer to drain, once nothing is left to send."""
        if self.is_attached and self.sender_credit.drain:
            self.sender_credit.use_up()
            self._write_flow()
            self.sender_credit.drain = False

    # From here on: called by the session only.

    def receive_flow(self, flow: Flow | FlowSaid) -> None:
        """The receiver's new grant; before the host accepted the link it is kept for then."""
        if flow.link_credit is not None:
            self.sender_credit.on_flow(flow.link_credit, flow.delivery_count, flow.drain, self._initial_delivery_count)
        if self.is_attached:
            if flow.echo:
                self._write_flow()
            self.session.report.add_event(CreditGranted(self))

    def release(self) -> None:
        """Drop frames that wait for the window, and forget unsettled deliveries."""
        super().release()
        self.session.held.drop(self)
        if self.unsettled_count:
            self.session.settlement.sent.forget(self)
            self.unsettled_count = 0

    def started(self, deliveries: int, *, settled: bool) -> None:
        """So many deliveries were written, on this link."""
        self.sender_credit.spend(deliveries)
        if not settled:
            self.unsettled_count += deliveries

    def _started(self, first_id: int, deliveries: int, frames: int, start: int, *, settled: bool) -> None:
        """Deliveries were written to the bytes of this turn from start on: what the window does not take waits."""
        self.started(deliveries, settled=settled)
        if deliveries and not settled:
            self.session.settlement.sent.add(first_id, deliveries, self)
        self.session.written(self, deliveries, frames, start)

    def _write_flow(self) -> None:
        self.session.write_flow(
            self,
            delivery_count=self.sender_credit.delivery_count,
            link_credit=self.sender_credit.credit,
            drain=self.sender_credit.drain,
            echo=False,
        )

    def _take_attach(self, attach: Attach) -> None:
        self.presettled = attach.rcv_settle_mode != RCV_SECOND or attach.snd_settle_mode == SND_SETTLED

    def form(self, *, settled: bool) -> TransferForm:
        """What its transfers have in common; of a link that stands."""
        return self._forms[settled]

    def _attached(self) -> None:
        session = self.session
        frame_limit = session.connection.outgoing_frame_limit
        self._forms = tuple(
            TransferForm(session.channel, self.handle, frame_limit, settled) for settled in (False, True)
        )

    def _before_answer(self, initial_delivery_count: int, max_message_size: int | None) -> None:
        self._initial_delivery_count = self.sender_credit.delivery_count = initial_delivery_count
