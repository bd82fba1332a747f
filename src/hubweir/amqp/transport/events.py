"""The events that the engine reports to its host, one frozen class each.

Endpoint.receive_data, receive_eof and on_time return lists of these, in the order in which the peer's frames came. The
engine has already done what the protocol demands by then: answered begin with begin, detach with detach, end with end,
close with close, echo with flow. What is left to the caller stands at each class.

One thing is gathered: all deliveries of one link in one read are one DeliveriesReceived, placed where the first of
them came, as long as nothing but deliveries of other links stands between them.

An end takes everything inside it along: after SessionEnded no event names a link of that session, and after Closed no
event comes at all.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from msgspec import Struct

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import DeliveryState, TransactionalState
from hubweir.amqp.transport.delivery import SentTogether
from hubweir.amqp.transport.performatives import Open

if TYPE_CHECKING:  # the engine's objects report these events: the imports would go round
    from hubweir.amqp.transport.link import Link
    from hubweir.amqp.transport.receiver_link import ReceiverLink
    from hubweir.amqp.transport.sender_link import SenderLink
    from hubweir.amqp.transport.session import Session


class SaslInitiated(Struct, frozen=True):
    """Server: the peer chose a mechanism. Call Endpoint.answer_sasl; until then its further bytes wait.

    response: the initial response as it came, b"" when absent. hostname: what the peer wants to reach, without
    anything from the first "/" on, or None.
    """

    mechanism: str
    response: bytes
    hostname: str | None


class SaslFinished(Struct, frozen=True):
    """Client: the server's outcome. 0 is success and the conversation goes on by itself; else Closed follows."""

    code: int


class Opened(Struct, frozen=True):
    """The peer's open came. On the server ours has been sent in answer."""

    open: Open


class SessionBegun(Struct, frozen=True):
    """A session is mapped on both sides. On the server the answer has been sent."""

    session: Session


class SessionEnded(Struct, frozen=True):
    """A session is over with all its links: the peer ended it, or answered an end of the host, or a fault ended it.

    error: the peer's, or the one that a fault of the peer made us send.
    """

    session: Session
    error: AmqpError | None


class LinkAttached(Struct, frozen=True):
    """Server: the peer asks for a link; call accept or refuse on it, now or later. Client: our attach was accepted.

    On the server link is a ReceiverLink when the peer wants to send, a SenderLink when it wants to receive. Deliveries
    may come before it is accepted. Credit may too: look at link.sendable after accept, no CreditGranted repeats it.
    """

    link: Link


class LinkRefused(Struct, frozen=True):
    """Client: our attach was answered with a null terminus and a detach. error: the reason the peer gave, if any."""

    link: Link
    error: AmqpError | None


class LinkDetached(Struct, frozen=True):
    """A link is over: the peer detached it, or answered a detach of the host, or a fault of the peer ended it.

    error: the reason, the peer's or ours. closed: False when the peer only suspended the link; we forget it either way.
    """

    link: Link
    error: AmqpError | None
    closed: bool


class DeliveriesReceived(Struct, frozen=True):
    """Whole deliveries of one link, in order. The host settles those whose D_SETTLED is 0, by id, with link.settle.

    rows: delivery rows as hubweir.kernels.contract draws them (DELIVERY_WIDTH integers each), count of them. Their
    D_START are positions in data. data is the driver's receive buffer or one of the engine's: it holds until the
    caller has handled the events of this call, not longer. rows belongs to the host.
    """

    link: ReceiverLink
    data: memoryview
    rows: array[int]
    count: int


class TransactionalReceived(Struct, frozen=True):
    """A whole delivery of a link that is part of a transaction. The host answers it as those of DeliveriesReceived,
    with a TransactionalState where it takes it.

    state: as the sender put it. data, rows: as there; one row.
    """

    link: ReceiverLink
    state: TransactionalState
    data: memoryview
    rows: array[int]


class OversizeReceived(Struct, frozen=True):
    """A delivery over the link's max_message_size came to its end; its bytes were thrown away as they came.

    The link stays usable. size: bytes of the whole payload. settled: the sender wants no outcome; else reject it.
    transaction: of which it was to be a part.
    """

    link: ReceiverLink
    delivery_id: int
    size: int
    settled: bool
    transaction: TransactionalState | None = None


class CreditGranted(Struct, frozen=True):
    """The receiver of one of our sender links wrote a flow, or a session window opened: link.credit, link.drain and
    link.sendable are new. When link.drain is set and nothing is left to send, call link.drained().
    """

    link: SenderLink


class Settled(Struct, frozen=True):
    """The receiver's word about deliveries first_id to last_id (both included) that we sent unsettled on link.

    outcome: None when it gave none. settled: False when the receiver waits for us to settle too; the engine has.
    link.sendable is new: where as many were unsettled as the limit allows, more may be sent now.
    """

    link: SenderLink
    first_id: int
    last_id: int
    outcome: DeliveryState | None
    settled: bool


class SettledTogether(Struct, frozen=True):
    """The receiver's word about deliveries that we sent unsettled on several links by one call (joint_send.py).

    outcome, settled: as of Settled; but where the receiver waits, it is the host that answers.
    """

    sent: SentTogether[SenderLink]
    outcome: DeliveryState | None
    settled: bool


class Answered(Struct, frozen=True):
    """The sender's word about deliveries first_id to last_id (both included) that came on link: they are settled.

    It follows link.settle with settled=False, where the sender answers an outcome; outcome is how they ended there.
    """

    link: ReceiverLink
    first_id: int
    last_id: int
    outcome: DeliveryState | None


class Drained(Struct, frozen=True):
    """The sender has answered link.grant with drain: what it had came before, and link.credit is 0."""

    link: ReceiverLink


class Closed(Struct, frozen=True):
    """The connection is over; the last event. Write what data_to_send still holds, then close the transport.

    error: the peer's, or the one that we sent it, or what was wrong before either could be. by_peer: whose step it
    was. clean: the peer's close frame came.
    """

    error: AmqpError | None
    by_peer: bool
    clean: bool


Event = (
    SaslInitiated
    | SaslFinished
    | Opened
    | SessionBegun
    | SessionEnded
    | LinkAttached
    | LinkRefused
    | LinkDetached
    | DeliveriesReceived
    | TransactionalReceived
    | OversizeReceived
    | CreditGranted
    | Settled
    | SettledTogether
    | Answered
    | Drained
    | Closed
)
