"""A link on which we receive: credit granted, transfers joined, deliveries settled (part 2, section 2.6).

Credit is advice: some clients send without any, so no delivery is refused for the lack of it. What bounds memory is
the maximum message size, the connection's budget for unfinished deliveries and the limit on unsettled ones.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hubweir.amqp.messaging.outcome import DeliveryState, TransactionalState
from hubweir.amqp.transport.delivery import PartialDelivery
from hubweir.amqp.transport.events import Drained, OversizeReceived, TransactionalReceived
from hubweir.amqp.transport.flow_said import FlowSaid
from hubweir.amqp.transport.link import Link, LinkFault
from hubweir.amqp.transport.link_credit import ReceiverCredit
from hubweir.amqp.transport.link_states import LinkState
from hubweir.amqp.transport.performatives import Attach, Flow, Transfer
from hubweir.errors import INVALID_FIELD, NOT_IMPLEMENTED, RESOURCE_LIMIT
from hubweir.kernels.contract import D_LENGTH, D_SETTLED, DELIVERY_WIDTH, MOST_TAG_BYTES

if TYPE_CHECKING:  # a session makes its links: the import would go round
    from hubweir.amqp.transport.session import Session


@dataclass(frozen=True, slots=True)
class TransferPart:
    """One transfer frame that is not a whole delivery in usual form. None: the frame does not say.

    transaction: as the first frame of a delivery says it; the others may repeat it.
    """

    delivery_id: int | None
    tag_length: int
    message_format: int | None
    settled: bool
    more: bool
    aborted: bool
    resume: bool
    transaction: TransactionalState | None
    payload: memoryview


def part_of(transfer: Transfer, payload: memoryview) -> TransferPart:
    """The same of a transfer performative that was decoded in full."""
    return TransferPart(
        transfer.delivery_id,
        len(transfer.delivery_tag or b""),
        transfer.message_format,
        bool(transfer.settled),
        transfer.more,
        transfer.aborted,
        transfer.resume,
        transfer.state if isinstance(transfer.state, TransactionalState) else None,
        payload,
    )


def _last_part(data: memoryview, rows: array[int]) -> TransferPart:
    """The first row of a table as the last frame of a delivery that was begun before."""
    delivery_id, start, length, settled, message_format = rows[:DELIVERY_WIDTH]
    payload = data[start : start + length]
    return TransferPart(delivery_id, 0, message_format, bool(settled), False, False, False, None, payload)


class ReceiverLink(Link):
    """The receiving end. max_message_size: bytes of payload enforced on each delivery."""

    ROLE: ClassVar[bool] = True

    def __init__(self, session: Session, local: Attach | None, remote: Attach | None) -> None:
        super().__init__(session, local, remote)
        settings = session.connection.settings
        self._credit = ReceiverCredit()
        self._partial: PartialDelivery | None = None
        self._granted = False
        self._draining = False
        self.unsettled_count = 0
        asked = None if local is None else local.max_message_size
        # Before the host accepts the link, and when it names no size, a delivery gets no more than a stranger may hold.
        self.max_message_size = asked or (
            settings.max_partial_bytes if local is not None else settings.buffered_before_auth_bytes
        )

    @property
    def credit(self) -> int:
        """How many deliveries were granted and have not come."""
        return self._credit.credit

    def grant(self, credit: int, *, drain: bool = False) -> None:
        """Set the credit now outstanding; the flow goes out at once, or as soon as the link is attached.

        drain: the sender must use it up or give it back now; Drained follows when it has, and credit is 0.
        """
        self._credit.credit = credit
        self._draining = drain
        self._granted = True
        if self.is_attached:
            self.session.write_flow(
                self, delivery_count=self._credit.delivery_count, link_credit=credit, drain=drain, echo=False
            )

    def settle(self, first_id: int, last_id: int, outcome: DeliveryState | None, *, settled: bool = True) -> None:
        """Tell the sender the outcome of this link's unsettled deliveries first_id to last_id, both included.

        One disposition for each unbroken range of ids: other links of the session may own ids in between. Deliveries
        that the sender had settled, and ids it never used, are left out.
        """
        if self.is_attached:
            self.session.settlement.settle_received(self, first_id, last_id, outcome, settled=settled)

    # From here on: called by the session only.

    def receive_flow(self, flow: Flow | FlowSaid) -> None:
        """A flow of the sending side: nothing to obey. It may end a drain, and may ask for an echo."""
        if self._draining and flow.drain:
            self._credit.on_flow(flow.delivery_count, flow.link_credit, drain=True)
            self._draining = self._credit.credit > 0
            if not self._draining:
                self.session.report.add_event(Drained(self))
        if flow.echo and self.is_attached:
            self.grant(self._credit.credit, drain=self._draining)

    def take_rows(self, data: memoryview, rows: array[int], count: int) -> None:
        """Take whole deliveries of one frame each, ids without a gap, all settled or all not; rows is given away.

        LinkFault: over a limit.
        """
        if self._partial is not None:
            # Some clients repeat the id on every frame of a delivery: its last frame looks like a whole one.
            self.take_part(_last_part(data, rows))
            rows = rows[DELIVERY_WIDTH:]
            count -= 1
            if not count:
                return
        # No payload is larger than its frame may be: with a usual limit none of them has to be looked at.
        limit = self.max_message_size
        if limit < self.session.connection.incoming_frame_limit and limit < max(rows[D_LENGTH::DELIVERY_WIDTH]):
            self._take_rows_one_by_one(data, rows, count)
            return
        self._credit.received(count)
        if not rows[D_SETTLED]:
            self._await_settlement(rows[0], count)
        self.session.connection.report.deliveries(self, data, rows, count)

    def _take_rows_one_by_one(self, data: memoryview, rows: array[int], count: int) -> None:
        for at in range(0, len(rows), DELIVERY_WIDTH):
            row = rows[at : at + DELIVERY_WIDTH]
            delivery_id, _, length, settled, _ = row
            if length <= self.max_message_size:
                self.take_rows(data, row, 1)
            else:
                self._credit.received(1)
                self._report_oversize(delivery_id, length, bool(settled))

    def take_part(self, part: TransferPart) -> None:
        """Take a frame that is part of a delivery, or in an unusual form. LinkFault: what may not be."""
        partial = self._partial
        if partial is None:
            partial = self._begin_delivery(part)
        elif part.delivery_id is not None and part.delivery_id != partial.delivery_id:
            raise LinkFault(self, INVALID_FIELD, "a delivery was begun before the last one on this link was complete")
        if part.tag_length > MOST_TAG_BYTES:
            raise LinkFault(self, INVALID_FIELD, f"a delivery tag of {part.tag_length} bytes; {MOST_TAG_BYTES} at most")
        if part.aborted:
            self._drop_partial()
            return
        partial.settled = partial.settled or part.settled
        over_bytes = self.session.connection.budget.hold_partial(
            partial.append(part.payload, self.max_message_size),
            largest=self.max_message_size,
            is_accepted=self.state is not LinkState.ATTACH_RECEIVED,
        )
        if over_bytes is not None:
            text = f"unfinished deliveries of more than {over_bytes} bytes on one connection"
            raise LinkFault(self, RESOURCE_LIMIT, text)
        if not part.more:
            self._finish_delivery(partial)

    def _begin_delivery(self, part: TransferPart) -> PartialDelivery:
        if part.delivery_id is None:
            raise LinkFault(self, INVALID_FIELD, "the first transfer of a delivery has no delivery-id")
        if part.resume:
            raise LinkFault(self, NOT_IMPLEMENTED, "deliveries cannot be resumed here: send it again on a new link")
        partial = self._partial = PartialDelivery(part.delivery_id, part.message_format or 0, part.transaction)
        self._credit.received(1)
        return partial

    def _finish_delivery(self, partial: PartialDelivery) -> None:
        self._partial = None
        if partial.payload is None:
            self._report_oversize(partial.delivery_id, partial.size, partial.settled, partial.transaction)
            return
        self.session.connection.budget.hold_partial(-len(partial.payload))
        if not partial.settled:
            self._await_settlement(partial.delivery_id, 1)
        row = array("q", (partial.delivery_id, 0, partial.size, int(partial.settled), partial.message_format))
        data = memoryview(partial.payload)
        if partial.transaction is None:
            self.session.report.deliveries(self, data, row, 1)
        else:
            self.session.report.add_event(TransactionalReceived(self, partial.transaction, data, row))

    def _report_oversize(
        self, delivery_id: int, size: int, settled: bool, transaction: TransactionalState | None = None
    ) -> None:
        if not settled:
            self._await_settlement(delivery_id, 1)
        self.session.report.add_event(OversizeReceived(self, delivery_id, size, settled, transaction))

    def _await_settlement(self, first_id: int, count: int) -> None:
        limit = self.session.connection.settings.max_unsettled
        self.unsettled_count += count
        if self.unsettled_count > limit:
            raise LinkFault(
                self, RESOURCE_LIMIT, f"more than {limit} unsettled deliveries on this link: wait for outcomes"
            )
        self.session.settlement.received.add(first_id, count, self)

    def _drop_partial(self) -> None:
        if self._partial is not None:
            self.session.connection.budget.hold_partial(-self._partial.let_go())
            self._partial = None

    def release(self) -> None:
        """Drop an unfinished delivery and forget unsettled ones."""
        super().release()
        self._drop_partial()
        self.session.settlement.received.forget(self)
        self.unsettled_count = 0

    def _before_answer(self, initial_delivery_count: int, max_message_size: int | None) -> None:
        if max_message_size:
            self.max_message_size = max_message_size

    def _take_attach(self, attach: Attach) -> None:
        self._credit.delivery_count = attach.initial_delivery_count or 0

    def _attached(self) -> None:
        if self._granted:
            self.grant(self._credit.credit, drain=self._draining)
