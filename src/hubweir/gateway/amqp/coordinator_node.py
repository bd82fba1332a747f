"""The coordinator of transactions, behind a link whose target is one: declare, discharge, and the answers.

| request   | answer, when it is done                                              |
|-----------|----------------------------------------------------------------------|
| declare   | the state Declared, with the id                                      |
| discharge | accepted; rejected where the transaction was rolled back though a    |
|           | commit was asked for, or where it is none of this connection's       |

A discharge whose outcome is not known ends the link, and says nothing. The end of the link rolls back what it declared
and did not discharge. Rights are asked where a transaction does something, so the link itself needs none.
(AMQP 1.0 part 4)
"""

from __future__ import annotations

from hubweir.amqp.messaging.message import decode_message
from hubweir.amqp.messaging.outcome import Accepted, Declared, DeliveryState, Rejected
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, request_of
from hubweir.amqp.transport.events import DeliveriesReceived, OversizeReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.errors import DECODE_ERROR, MESSAGE_TOO_LARGE, NOT_IMPLEMENTED, TIMED_OUT, DecodeError, ServiceError
from hubweir.gateway.amqp.node import Node, NodeHost
from hubweir.gateway.refusals import What
from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_SETTLED, D_START, DELIVERY_WIDTH
from hubweir.namespace.error_text import message_too_large

# A request is an id and a word.
REQUEST_LIMIT_BYTES = 4 * 1024
_ACCEPTED = Accepted()


class CoordinatorNode(Node):
    """One control link."""

    link: ReceiverLink

    def __init__(self, host: NodeHost, link: ReceiverLink) -> None:
        """Raises ServiceError RESOURCE_LIMIT for a namespace whose tier has no transactions."""
        super().__init__(host, link)
        host.gateway.settings.profile.messaging.check_feature("The coordinator", "transactions", True)
        self._is_over = False

    def start(self) -> None:
        self.link.accept(max_message_size=REQUEST_LIMIT_BYTES)
        self._top_up()

    def deliveries(self, event: DeliveriesReceived) -> None:
        rows = event.rows
        for at in range(0, event.count * DELIVERY_WIDTH, DELIVERY_WIDTH):
            start, size = rows[at + D_START], rows[at + D_LENGTH]
            try:
                self._do(rows[at + D_DELIVERY_ID], bytes(event.data[start : start + size]), bool(rows[at + D_SETTLED]))
            except ServiceError as refusal:
                self._refuse(rows[at + D_DELIVERY_ID], refusal)
        self._top_up()

    def oversize(self, event: OversizeReceived) -> None:
        text = message_too_large(event.delivery_id, event.size, REQUEST_LIMIT_BYTES)
        self._refuse(event.delivery_id, ServiceError(MESSAGE_TOO_LARGE, text))
        self._top_up()

    def closed(self) -> None:
        self._is_over = True
        self.host.transactions.roll_back_all(self)

    def _do(self, delivery_id: int, message: bytes, settled: bool) -> None:
        match _request_of(message):
            case Declare(global_id=global_id):
                if global_id is not None:
                    text = "Transactions that span several coordinators do not exist here: declare one without an id."
                    raise ServiceError(NOT_IMPLEMENTED, text)
                if not settled:  # else nobody could ever name it
                    self._answer(delivery_id, Declared(txn_id=self.host.transactions.declare(self)))
            case Discharge(txn_id=txn_id, fail=True):
                self.host.transactions.roll_back(txn_id)
                self._answer(delivery_id, _ACCEPTED)
            case Discharge(txn_id=txn_id):
                self.host.transactions.commit(txn_id, lambda error, known: self._committed(delivery_id, error, known))

    def _committed(self, delivery_id: int, error: ServiceError | None, known: bool) -> None:
        if self._is_over:
            return
        if error is None:
            self._answer(delivery_id, _ACCEPTED)
        elif known:
            self._refuse(delivery_id, error)
        else:
            text = f"Whether a transaction was committed is not known: {error.text} Look before you do it again."
            self.host.detach(self, ServiceError(TIMED_OUT, text))
        self.host.wake()

    def _answer(self, delivery_id: int, state: DeliveryState) -> None:
        self.link.settle(delivery_id, delivery_id, state)

    def _refuse(self, delivery_id: int, refusal: ServiceError) -> None:
        self._answer(delivery_id, Rejected(error=self.host.describe(What.REQUEST, refusal)))

    def _top_up(self) -> None:
        room = self.host.link_settings.request_credit
        if self.link.credit <= room // 2:
            self.link.grant(room)


def _request_of(message: bytes) -> Request:
    try:
        return request_of(decode_message(message))
    except DecodeError as error:
        raise ServiceError(DECODE_ERROR, f"The coordinator takes declare and discharge: {error}.") from error
