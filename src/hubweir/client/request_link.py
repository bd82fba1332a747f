"""Requests and their answers over a pair of links, as `$cbs` and `$management` work.

One pair a node and connection. Requests may overlap: answers find their request by correlation id.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from itertools import count

from hubweir.amqp.messaging.message import Message, Properties, decode_message, encode_message
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import CreditGranted, DeliveriesReceived, LinkAttached
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.client.link_user import LinkCarrier, LinkUser
from hubweir.errors import TIMED_OUT, DecodeError, ServiceError
from hubweir.kernels.contract import D_LENGTH, D_START, DELIVERY_WIDTH

# Answers in flight at once; the node keeps more back until we grant again.
_CREDIT = 100


class RequestLink:
    """Both links to one node. `call` sends a request and waits for its answer."""

    def __init__(self, connection: LinkCarrier, node: str) -> None:
        self.node = node
        self._numbers = count(1)
        self._reply_to = connection.name_link(f"{node}-client")
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._unsent: deque[tuple[bytes, TransactionalState | None]] = deque()
        session = connection.session
        self._answers = _Answers(self)
        self._requests = _Requests(self)
        receiver = session.attach_receiver(
            connection.name_link(f"{node}-answers"), source=Source(address=node), target=Target(address=self._reply_to)
        )
        sender = session.attach_sender(
            connection.name_link(f"{node}-requests"), source=Source(address=self._reply_to), target=Target(address=node)
        )
        self._receiver: ReceiverLink = receiver
        self._sender: SenderLink = sender
        self._connection = connection
        connection.register(receiver, self._answers)
        connection.register(sender, self._requests)

    @property
    def error(self) -> ServiceError | None:
        """Why this pair is over; None while it works. Make another one then, if the connection stands."""
        return self._answers.error or self._requests.error

    async def ready(self, timeout_s: float) -> None:
        """Wait until both links are attached; ServiceError when the node refuses, or TIMED_OUT."""
        await self._answers.wait_attached(timeout_s)
        await self._requests.wait_attached(timeout_s)

    async def call(self, request: Message, *, timeout_s: float, state: TransactionalState | None = None) -> Message:
        """The answer to request (its message id and reply-to are set here). ServiceError: TIMED_OUT when none
        comes in time, or what ended the link first; after either the request may have been carried out all the same.
        state: of the transaction of which it is a part.
        """
        if self.error is not None:
            raise self.error
        number = f"{self.node}-{next(self._numbers)}"
        asked = replace(request, properties=Properties(message_id=number, reply_to=self._reply_to))
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._unsent.append((encode_message(asked), state))
        self._send()
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise ServiceError(TIMED_OUT, f"{self.node} gave no answer within {timeout_s} s: try again") from None
        finally:
            del self._waiting[number]

    def _send(self) -> None:
        """Hand over what the node's credit allows; the rest goes when it grants more."""
        while self._unsent and self._sender.sendable:
            payload, state = self._unsent.popleft()
            self._sender.send(payload, settled=True, state=state)
        self._connection.wake()

    def _answered(self, message: Message) -> None:
        number = message.properties.correlation_id if message.properties else None
        waiting = self._waiting.get(number) if isinstance(number, str) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _failed(self, error: ServiceError) -> None:
        """One of the links is over: so is the other, which a service may keep for ever."""
        self._connection.detach(self._receiver)
        self._connection.detach(self._sender)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)


class _Requests(LinkUser):
    """The link that requests go out on."""

    def __init__(self, owner: RequestLink) -> None:
        super().__init__(owner.node)
        self._owner = owner

    def on_credit(self, event: CreditGranted) -> None:
        self._owner._send()

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._owner._failed(error)


class _Answers(LinkUser):
    """The link that the node answers on."""

    def __init__(self, owner: RequestLink) -> None:
        super().__init__(owner.node)
        self._owner = owner
        self._taken = 0

    def on_attached(self, event: LinkAttached) -> None:
        super().on_attached(event)
        assert isinstance(event.link, ReceiverLink)
        event.link.grant(_CREDIT)

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        for base in range(0, event.count * DELIVERY_WIDTH, DELIVERY_WIDTH):
            start = event.rows[base + D_START]
            try:
                self._owner._answered(decode_message(event.data, start, start + event.rows[base + D_LENGTH]))
            except DecodeError:
                continue  # an answer that nobody can read is no answer: its request times out
        self._taken += event.count
        if self._taken * 2 >= _CREDIT:
            self._taken = 0
            event.link.grant(_CREDIT)

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        self._owner._failed(error)
