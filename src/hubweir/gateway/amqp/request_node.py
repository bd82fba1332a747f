"""Links on which requests come, and links on which their answers go out: both are messages.

$cbs and $management share this half: opening the message, settling its delivery, finding the link for the answer
(amqp/response_routes.py), the four properties of an answer, credit. What a request means is the subclass's. Requests
that are not answered yet count in the connection's byte budget, and no more than request_credit of them wait on a link,
so a peer cannot pile them up.

A request may be part of a transaction: the state of its delivery says so. Where a node knows none, it is refused, and
the link goes on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from hubweir.amqp.messaging.message import Message, Properties, ValueBody, decode_message, encode_message
from hubweir.amqp.messaging.outcome import Accepted, DeliveryState, Rejected, TransactionalState
from hubweir.amqp.response_routes import correlation_of
from hubweir.amqp.transport.events import DeliveriesReceived, OversizeReceived, TransactionalReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Int, Symbol
from hubweir.errors import DECODE_ERROR, MESSAGE_TOO_LARGE, NOT_FOUND, NOT_IMPLEMENTED, DecodeError, ServiceError
from hubweir.gateway.amqp.node import Node, NodeHost
from hubweir.gateway.entity_traffic import EntityTraffic
from hubweir.gateway.refusals import What
from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_SETTLED, D_START, DELIVERY_WIDTH
from hubweir.namespace.error_text import message_too_large

# A request is a token of at most 16 KiB or a few names; the rest is properties.
REQUEST_LIMIT_BYTES = 64 * 1024
_ACCEPTED = Accepted()


class RequestNode(Node, ABC):
    """See the module's text."""

    link: ReceiverLink

    def __init__(self, host: NodeHost, link: ReceiverLink) -> None:
        super().__init__(host, link)
        self._unanswered = 0
        self.is_over = False
        self.request_limit_bytes = REQUEST_LIMIT_BYTES

    def start(self) -> None:
        self.link.accept(max_message_size=self.request_limit_bytes)
        self._top_up()

    def closed(self) -> None:
        self.is_over = True

    @abstractmethod
    def request(self, message: Message, size: int) -> None:
        """A request of `size` bytes; the subclass answers it now or later with `answer` or `refuse`, once."""

    def transacted(self, message: Message, size: int, txn_id: bytes) -> None:
        """The same for a request that is part of a transaction."""
        text = "Requests to this node cannot be part of a transaction: ask without one."
        self.refuse(message, size, ServiceError(NOT_IMPLEMENTED, text))

    def deliveries(self, event: DeliveriesReceived) -> None:
        self._unanswered += event.count  # all of them: the answer to the first grants nothing that the others need
        for at in range(0, event.count * DELIVERY_WIDTH, DELIVERY_WIDTH):
            if (opened := self._open(event, at, _ACCEPTED)) is not None:
                self.request(*opened)
        self._top_up()

    def transactional(self, event: TransactionalReceived) -> None:
        self._unanswered += 1
        txn_id = event.state.txn_id
        opened = self._open(event, 0, TransactionalState(txn_id=txn_id, outcome=_ACCEPTED))
        if opened is not None:
            self.transacted(*opened, txn_id)
        self._top_up()

    def _open(
        self, event: DeliveriesReceived | TransactionalReceived, at: int, accepted: DeliveryState
    ) -> tuple[Message, int] | None:
        """Settle a delivery, by its row, and open the request in it, with its size; None when it is no message."""
        rows = event.rows
        start, size = rows[at + D_START], rows[at + D_LENGTH]
        delivery_id, settled = rows[at + D_DELIVERY_ID], rows[at + D_SETTLED]
        try:
            message = decode_message(bytes(event.data[start : start + size]))
        except DecodeError as error:
            self._unanswered -= 1
            if not settled:
                refusal = ServiceError(DECODE_ERROR, f"The request is no legal AMQP message: {error}.")
                self.link.settle(delivery_id, delivery_id, Rejected(error=self.host.describe(What.REQUEST, refusal)))
            return None
        if not settled:
            self.link.settle(delivery_id, delivery_id, accepted)
        self.host.budget.take_bytes(size)
        return message, size

    def oversize(self, event: OversizeReceived) -> None:
        if not event.settled:
            text = message_too_large(event.delivery_id, event.size, self.request_limit_bytes)
            error = self.host.describe(What.REQUEST, ServiceError(MESSAGE_TOO_LARGE, text))
            self.link.settle(event.delivery_id, event.delivery_id, Rejected(error=error))
        self._top_up()

    def answer(self, request: Message, size: int, code: int, description: str, body: object = None) -> None:
        """Answer a request with success."""
        traffic = self._traffic()
        traffic.requests += 1
        traffic.successful += 1
        self._respond(request, size, code, description, None, body)

    def refuse(
        self,
        request: Message,
        size: int,
        refusal: ServiceError,
        *,
        entity: str = "",
        code: int = 0,
        what: What = What.REQUEST,
    ) -> None:
        """Answer a request with its refusal; code: another status than the condition's. what: for the log."""
        traffic = self._traffic()
        traffic.requests += 1
        traffic.refused(refusal.condition)
        error = self.host.describe(what, refusal, entity=entity)
        status = code or refusal.condition.management
        self._respond(request, size, status, error.description, str(error.condition), None)

    def _traffic(self) -> EntityTraffic:
        """Of the entity that the link is for, or of the namespace; looked up each time: a link may outlive it."""
        return self.host.gateway.traffic.of(self.entity)

    def _respond(
        self, request: Message, size: int, code: int, description: str, condition: str | None, body: object
    ) -> None:
        self._unanswered -= 1
        self.host.budget.give_back_bytes(size)
        if self.host.is_over:
            return
        # Both spellings: one client reads the code from the first and the text from the second.
        said: dict[str, object] = {
            "status-code": Int(code),
            "status-description": description,
            "statusCode": Int(code),
            "statusDescription": description,
        }
        if condition is not None:
            said["error-condition"] = said["errorCondition"] = Symbol(condition)
        response = Message(
            properties=Properties(correlation_id=correlation_of(request)),
            application_properties=said,
            body=ValueBody(body),
        )
        self.host.gateway.counters["gateway.requests_answered"] += 1
        link = self.host.replies.reply_link(request, self.link)
        if link is None:
            nowhere = ServiceError(NOT_FOUND, "A request was done, and has no link to be answered on.")
            self.host.describe(What.REQUEST, nowhere)  # for the log: nobody can be told
        else:
            self.host.replies.respond(link, encode_message(response))
        if not self.is_over:
            self._top_up()
        self.host.wake()

    def _top_up(self) -> None:
        """Credit is what is left of request_credit: none while so many requests wait; each answer calls this again."""
        room = self.host.link_settings.request_credit - self._unanswered
        if self.link.credit < room and self.link.credit <= room // 2:
            self.link.grant(room)


class ReplyNode(Node):
    """One link for answers, which wait in the connection's replies until the peer grants credit."""

    link: SenderLink

    def credit(self) -> None:
        self.host.replies.on_credit(self.link)

    def closed(self) -> None:
        self.host.replies.forget(self.link)


def text_property(message: Message, name: str) -> str | None:
    """An application property that is text, or None when it is absent or of another type."""
    value = (message.application_properties or {}).get(name)
    return value if isinstance(value, str) else None
