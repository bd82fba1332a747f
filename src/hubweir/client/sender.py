"""Publishing: one link to a hub, a partition or a publisher, with as many batches in flight as the peer allows.

`send` waits for the outcome of what it sent; `submit` returns at once and gives a future, so that many batches are on
their way together. An outcome is the server's word: accepted means stored as durably as the hub's mode says. When the
link ends first, the future raises OutcomeUnknown for a batch that went out, and the link's error for one that did not:
only the first may be stored twice by sending again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.outcome import Accepted, Rejected, TransactionalState
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import CreditGranted, Settled
from hubweir.amqp.types.values import Symbol
from hubweir.client.event_batch import EventBatch, batches_of
from hubweir.client.link_user import LinkUser, service_error
from hubweir.errors import DETACH_FORCED, INTERNAL_ERROR, MESSAGE_TOO_LARGE, ServiceError

if TYPE_CHECKING:
    from hubweir.amqp.transport.performatives import Attach
    from hubweir.client.connection import Connection

DEFAULT_MAX_MESSAGE_SIZE = 1024 * 1024


class OutcomeUnknown(ServiceError):
    """A batch went out and the link ended before its outcome came: it is stored whole, or not at all."""

    def __init__(self, cause: ServiceError) -> None:
        super().__init__(
            cause.condition, f"{cause.text}; the batch may have been stored: sending it again may store it twice"
        )


class Sender(LinkUser):
    """One sender link. `address`: `hub`, `hub/Partitions/0` or `hub/Publishers/name`."""

    def __init__(
        self,
        connection: Connection,
        address: str,
        *,
        properties: dict[Symbol, object] | None = None,
        desired_capabilities: tuple[Symbol, ...] | None = None,
    ) -> None:
        super().__init__(address)
        self._connection = connection
        self._waiting: deque[tuple[bytes, int, TransactionalState | None, asyncio.Future[None]]] = deque()
        self._in_flight: dict[int, asyncio.Future[None]] = {}
        name = connection.name_link("sender")
        self._link = connection.session.attach_sender(
            name,
            source=Source(address=name),
            target=Target(address=address),
            properties=properties,
            desired_capabilities=desired_capabilities,
        )
        connection.register(self._link, self)

    @classmethod
    async def open(cls, connection: Connection, address: str) -> Sender:
        """Prove the right and attach; ServiceError when either is refused."""
        await connection.authorization.authorize(address)
        self = cls(connection, address)
        try:
            await self.wait_attached(connection.timeout_s)
        except BaseException:  # also when the caller gave up
            await self.close()
            raise
        return self

    @property
    def answer(self) -> Attach | None:
        """The server's attach; None before it came."""
        return self._link.attach

    @property
    def max_message_size(self) -> int:
        """Bytes that one transfer may carry, as the server told."""
        attach = self._link.attach
        return (attach.max_message_size if attach else None) or DEFAULT_MAX_MESSAGE_SIZE

    def batch(self, *, partition_key: str | None = None) -> EventBatch:
        """An empty batch of the size that this link takes."""
        return EventBatch(self.max_message_size, partition_key=partition_key)

    async def send(self, bodies: Iterable[bytes], *, partition_key: str | None = None) -> int:
        """Publish bodies in as few batches as they need, wait until all are accepted, return how many batches.

        Each batch is whole in one partition; several batches are not one transaction. ServiceError: the first refusal.
        """
        # All are cut before the first goes out: an event over the limit leaves nothing sent.
        batches = list(batches_of(bodies, self.max_message_size, partition_key=partition_key))
        outcomes = [self.submit(batch) for batch in batches]
        for ended in await asyncio.gather(*outcomes, return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended
        return len(outcomes)

    def submit(self, batch: EventBatch) -> asyncio.Future[None]:
        """Put a batch on its way; the future ends with the server's outcome. Order of calls is order of storing.

        The future raises ServiceError for a refusal and OutcomeUnknown; the call itself when the link is over. One that
        is cancelled before its batch goes out is not sent.
        """
        return self.submit_payload(batch.payload())

    def submit_payload(
        self, payload: bytes, *, message_format: int = BATCH_FORMAT, state: TransactionalState | None = None
    ) -> asyncio.Future[None]:
        """The same for bytes that are encoded already (message_format 0: a single message), kept until sent.

        state: of the transaction of which they are a part.

        ServiceError MESSAGE_TOO_LARGE, before anything is sent, above max_message_size bytes.
        """
        if self.error is not None:
            raise self.error
        if len(payload) > self.max_message_size:
            raise ServiceError(
                MESSAGE_TOO_LARGE,
                f"{len(payload)} bytes are over the {self.max_message_size} that {self.what} takes: send less at once",
            )
        outcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((payload, message_format, state, outcome))
        self._send_waiting()
        return outcome

    async def close(self) -> None:
        """Detach. What is in flight ends unknown."""
        self._connection.detach(self._link)
        self.fail(ServiceError(DETACH_FORCED, f"the link to {self.what} was closed here"))

    def on_credit(self, event: CreditGranted) -> None:
        self._send_waiting()

    def on_turn_end(self) -> None:
        if self._waiting:
            self._send_waiting()

    def on_settled(self, event: Settled) -> None:
        error, said = None, event.outcome
        if isinstance(said, TransactionalState):
            said = said.outcome
        if isinstance(said, Rejected):
            error = service_error(said.error, f"{self.what} rejected the batch")
        elif not isinstance(said, Accepted):
            error = ServiceError(INTERNAL_ERROR, f"{self.what} ended the batch as {said!r}: send it again")
        delivery_id = event.first_id
        while True:
            outcome = self._in_flight.pop(delivery_id, None)
            if outcome is not None and not outcome.done():
                if error is None:
                    outcome.set_result(None)
                else:
                    outcome.set_exception(error)
            if delivery_id == event.last_id:
                break
            delivery_id = (delivery_id + 1) & 0xFFFFFFFF

    def fail(self, error: ServiceError) -> None:
        super().fail(error)
        unknown, self._in_flight = list(self._in_flight.values()), {}
        unsent, self._waiting = [outcome for _, _, _, outcome in self._waiting], deque()
        for outcome in unknown:
            if not outcome.done():
                outcome.set_exception(OutcomeUnknown(error))
        for outcome in unsent:
            if not outcome.done():
                outcome.set_exception(error)

    def _send_waiting(self) -> None:
        """Hand over what credit, session window and the transport allow."""
        while self._waiting and self._link.sendable > 0 and not self._connection.writing_paused:
            payload, message_format, state, outcome = self._waiting.popleft()
            if outcome.cancelled():
                continue  # who gave up before it went out does not want it stored later
            delivery_id = self._link.send(payload, message_format=message_format, settled=False, state=state)
            self._in_flight[delivery_id] = outcome
        self._connection.wake()
