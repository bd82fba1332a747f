"""Dispositions of one session: which deliveries are unsettled, and what is said about them (part 2, section 2.6.12).

A disposition names a range of ids and knows nothing of links; here each range is told apart by link again, but for
deliveries that several links sent together (joint_send.py), which are reported together.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.outcome import DELIVERY_STATE, Accepted, DeliveryState, Received, Released
from hubweir.amqp.transport.delivery import IdRange, SentRanges, SentTogether, UnsettledRanges
from hubweir.amqp.transport.events import Answered, Settled, SettledTogether
from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.frame import SHORT_STATE_LIMIT_BYTES, settled_frames
from hubweir.amqp.transport.performatives import Disposition
from hubweir.amqp.transport.serial_number import add_serial, distance
from hubweir.errors import INVALID_FIELD
from hubweir.kernels.contract import (
    DISPOSITION_WIDTH,
    OUTCOME_ACCEPTED,
    OUTCOME_NONE,
    OUTCOME_RELEASED,
    OUTCOME_STATED,
)

if TYPE_CHECKING:  # a session owns its settlement: the import would go round
    from hubweir.amqp.transport.receiver_link import ReceiverLink
    from hubweir.amqp.transport.sender_link import SenderLink
    from hubweir.amqp.transport.session import Session


# The outcomes that a disposition row names by itself.
_OUTCOMES = {OUTCOME_NONE: None, OUTCOME_ACCEPTED: Accepted(), OUTCOME_RELEASED: Released()}


class Settlement:
    """The unsettled deliveries of a session, both ways."""

    def __init__(self) -> None:
        self.received: UnsettledRanges[ReceiverLink] = UnsettledRanges()
        self.sent: SentRanges[SenderLink] = SentRanges()
        # Asked for what a receiver that waits for our word hears about deliveries that are not unsettled here (any
        # more). None: nothing. Set where a host answers by itself: there a client waits for every answer.
        self.unknown: Callable[[], DeliveryState] | None = None

    def receive(self, session: Session, disposition: Disposition) -> None:
        """The peer's word about a range: of our deliveries when it is their receiver, else of its own."""
        first = disposition.first
        last = first if disposition.last is None else disposition.last
        if distance(last, first) < 0:
            raise SessionFault(INVALID_FIELD, f"a disposition of deliveries {first} to {last} ends before it begins")
        if disposition.role:
            self._said_by_receiver(session, first, last, disposition.state, settled=disposition.settled)
        else:
            self._said_by_sender(session, first, last, disposition.state, settled=disposition.settled)

    def receive_rows(self, session: Session, rows: array[int], count: int, states: Sequence[DeliveryState]) -> None:
        """The same for so many disposition rows, of which none ends before it begins (kernels/contract.py, O_…).

        states: those that the rows number.
        """
        for at in range(0, count * DISPOSITION_WIDTH, DISPOSITION_WIDTH):
            role, first, last, settled, outcome, _ = rows[at : at + DISPOSITION_WIDTH]
            said = self._said_by_receiver if role else self._said_by_sender
            state = states[outcome - OUTCOME_STATED] if outcome >= OUTCOME_STATED else _OUTCOMES[outcome]
            said(session, first, last, state, settled=bool(settled))

    def _said_by_sender(
        self, session: Session, first: int, last: int, outcome: DeliveryState | None, *, settled: bool
    ) -> None:
        if settled:
            for received in self.received.take_ranges(first, last):
                link = received.owner
                link.unsettled_count -= received.count
                session.report.add_event(Answered(link, received.first, received.last, outcome))

    def _said_by_receiver(
        self, session: Session, first: int, last: int, outcome: DeliveryState | None, *, settled: bool
    ) -> None:
        if not settled and (outcome is None or isinstance(outcome, Received)):
            return  # how far it has come; its outcome is still to follow
        taken = self.sent.take_ranges(first, last)
        for sent in taken:
            link = sent.owner
            if isinstance(link, SentTogether):
                for its_link in link.links:
                    its_link.unsettled_count -= 1
                session.report.add_event(SettledTogether(link, outcome, settled))
                continue
            link.unsettled_count -= sent.count
            if not settled and not link.host_answers:
                # The receiver settles second: it holds its state until it hears that ours is gone.
                session.write(Disposition(role=False, first=sent.first, last=sent.last, settled=True, state=outcome))
            session.report.add_event(Settled(link, sent.first, sent.last, outcome, settled))
        if self.unknown is not None and not settled:
            self._answer_unknown(session, taken, first, last, self.unknown)

    def _answer_unknown(
        self,
        session: Session,
        taken: list[IdRange[SenderLink | SentTogether[SenderLink]]],
        first: int,
        last: int,
        unknown: Callable[[], DeliveryState],
    ) -> None:
        """Answer what of a range was not unsettled: one disposition for each stretch between what was."""
        stretches, at = [], first
        for sent in taken:
            if at != sent.first:
                stretches.append((at, add_serial(sent.first, -1)))
            at = add_serial(sent.last, 1)
        if distance(last, at) >= 0:
            stretches.append((at, last))
        if stretches:
            outcome = unknown()
            for begin, end in stretches:
                session.write(Disposition(role=False, first=begin, last=end, settled=True, state=outcome))

    def answer(self, session: Session, ranges: Iterable[tuple[int, int]], outcome: DeliveryState) -> None:
        """Write dispositions of deliveries that we sent and the receiver has spoken of: they are settled so."""
        state = bytearray()
        DELIVERY_STATE.write(state, outcome)
        if len(state) <= SHORT_STATE_LIMIT_BYTES:
            session.connection.out += settled_frames(session.channel, ranges, bytes(state), role=False)
            return
        for first, last in ranges:
            session.write(Disposition(role=False, first=first, last=last, settled=True, state=outcome))

    def clear(self) -> None:
        """The session is over: no delivery of its links is unsettled any more."""
        self.received.clear()
        self.sent.clear()

    def settle_received(
        self, link: ReceiverLink, first_id: int, last_id: int, outcome: DeliveryState | None, *, settled: bool
    ) -> None:
        """Write dispositions for the unsettled deliveries of link in a range; they are forgotten when settled."""
        for entry in self.received.take_ranges(first_id, last_id, owner=link):
            if settled:
                link.unsettled_count -= entry.count
                if type(outcome) is Accepted:
                    link.session.write_accepted(entry.first, entry.last)
                    continue
            else:
                self.received.add(entry.first, entry.count, link)
            link.session.write(
                Disposition(role=True, first=entry.first, last=entry.last, settled=settled, state=outcome)
            )
