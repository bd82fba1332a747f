"""The link of a connection to the coordinator of transactions: declare and discharge, each answered by a state.

What was declared over it and not discharged is rolled back by the service when it ends. (AMQP 1.0 part 4)
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.message import encode_message
from hubweir.amqp.messaging.outcome import Accepted, Declared, DeliveryState, Rejected
from hubweir.amqp.messaging.terminus import Coordinator, Source
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, message_of
from hubweir.amqp.transport.events import CreditGranted, Settled
from hubweir.client.link_user import LinkUser, service_error
from hubweir.errors import INTERNAL_ERROR, TIMED_OUT, ServiceError

if TYPE_CHECKING:
    from hubweir.client.connection import Connection

WHAT = "the coordinator of transactions"


class AnswerLost(ServiceError):
    """A request went out and no answer came that says how it ended: it was done, or not."""


class ControlLink(LinkUser):
    """See the module's text. Requests may overlap."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(WHAT)
        self._connection = connection
        self._unsent: deque[tuple[bytes, asyncio.Future[DeliveryState | None]]] = deque()
        self._in_flight: dict[int, asyncio.Future[DeliveryState | None]] = {}
        name = connection.name_link("control")
        self._link = connection.session.attach_sender(name, source=Source(address=name), target=Coordinator())
        connection.register(self._link, self)

    async def declare(self) -> bytes:
        """Begin a transaction; its id. ServiceError: the coordinator's refusal, or that no answer came."""
        state = await self._ask(Declare())
        if not isinstance(state, Declared):
            raise _refused(state, "declared no transaction")
        return state.txn_id

    async def discharge(self, txn_id: bytes, *, fail: bool) -> None:
        """End a transaction. AnswerLost; another ServiceError: the coordinator's refusal, or nothing was asked."""
        state = await self._ask(Discharge(txn_id=txn_id, fail=fail))
        if isinstance(state, Rejected):
            raise _refused(state, "did not commit")
        if not isinstance(state, Accepted):
            raise AnswerLost(INTERNAL_ERROR, f"{WHAT} settled a discharge with {state!r}, which says nothing")

    async def _ask(self, request: Request) -> DeliveryState | None:
        if self.error is not None:
            raise self.error
        answer: asyncio.Future[DeliveryState | None] = asyncio.get_running_loop().create_future()
        self._unsent.append((encode_message(message_of(request)), answer))
        self._send()
        seconds = self._connection.timeout_s
        try:
            async with asyncio.timeout(seconds):
                return await answer
        except TimeoutError:
            raise AnswerLost(TIMED_OUT, f"{WHAT} gave no answer within {seconds} s") from None

    def on_credit(self, event: CreditGranted) -> None:
        self._send()

    def on_turn_end(self) -> None:
        if self._unsent:
            self._send()

    def on_settled(self, event: Settled) -> None:
        delivery_id = event.first_id
        while True:
            answer = self._in_flight.pop(delivery_id, None)
            if answer is not None and not answer.done():
                answer.set_result(event.outcome)
            if delivery_id == event.last_id:
                break
            delivery_id = (delivery_id + 1) & 0xFFFFFFFF

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        lost, self._in_flight = list(self._in_flight.values()), {}
        unsent, self._unsent = [answer for _, answer in self._unsent], deque()
        for answer in lost:
            if not answer.done():
                answer.set_exception(AnswerLost(error.condition, error.text))
        for answer in unsent:
            if not answer.done():
                answer.set_exception(error)

    def _send(self) -> None:
        while self._unsent and self._link.sendable > 0:
            payload, answer = self._unsent.popleft()
            if not answer.done():  # who gave up before it went out wants nothing done
                self._in_flight[self._link.send(payload, settled=False)] = answer
        self._connection.wake()


def _refused(state: DeliveryState | None, what: str) -> ServiceError:
    if isinstance(state, Rejected) and state.error is not None:
        error = service_error(state.error, f"{WHAT} {what}")
        return ServiceError(error.condition, state.error.description or error.text)
    return ServiceError(INTERNAL_ERROR, f"{WHAT} {what}: it answered {state!r}")
