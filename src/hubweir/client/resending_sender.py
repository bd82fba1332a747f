"""A sender that survives its connection: attaches again and sends again what was not accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from hubweir.amqp.messaging.batch import BATCH_FORMAT
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.client.connection import Connection
from hubweir.client.event_batch import EventBatch, batches_of
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.sender import OutcomeUnknown, Sender
from hubweir.errors import ILLEGAL_STATE, ServiceError


class ResendingSender:
    """Publishes over whatever connection there is. Several `send` may run at once; their order is then open."""

    def __init__(self, connection: LastingConnection, address: str, *, resend_unknown: bool) -> None:
        """resend_unknown: send a batch again when nobody knows whether it was stored, so it may be there twice. Without
        it that is raised as OutcomeUnknown, and a batch is there once or not at all.
        """
        self.address = address
        self._connection = connection
        self._resend_unknown = resend_unknown
        self._sender: Sender | None = None
        self._mutex = asyncio.Lock()
        self._closed_times = 0

    async def batch(self, *, partition_key: str | None = None) -> EventBatch:
        """An empty batch of the size that the service takes."""
        sender = await self._connection.retried(self._attached)
        return sender.batch(partition_key=partition_key)

    async def send(self, bodies: Iterable[bytes], *, partition_key: str | None = None) -> int:
        """Publish bodies in order, in as few batches as they need; wait until all are accepted; how many batches.

        ServiceError: the refusal of the first batch that no retry could help; those before it are stored.
        """
        sender = await self._connection.retried(self._attached)
        batches = list(batches_of(bodies, sender.max_message_size, partition_key=partition_key))
        for batch in batches:
            await self.send_batch(batch)
        return len(batches)

    async def send_batch(self, batch: EventBatch) -> None:
        """Publish one batch, as one whole."""
        await self.send_payload(batch.payload())

    async def max_message_size(self) -> int:
        """Bytes that one transfer may carry, as the service told."""
        return (await self._connection.retried(self._attached)).max_message_size

    async def send_payload(self, payload: bytes, *, message_format: int = BATCH_FORMAT) -> None:
        """Publish one transfer that is encoded already: data sections, each with one whole encoded message; one such
        message by itself with message_format 0.

        ServiceError ILLEGAL_STATE when it was closed while this waited: the batch is not sent again, nor a link made.
        """
        closed_times = self._closed_times

        async def step(connection: Connection) -> None:
            if self._closed_times != closed_times:
                text = f"the sender to {self.address} was closed while a batch was on its way: it is stored, or not"
                raise ServiceError(ILLEGAL_STATE, text)
            sender = await self._attached(connection)
            await sender.submit_payload(payload, message_format=message_format)

        await self._connection.retried(step, final=() if self._resend_unknown else (OutcomeUnknown,))

    async def send_payload_in(
        self, connection: Connection, state: TransactionalState, payload: bytes, *, message_format: int = BATCH_FORMAT
    ) -> None:
        """The same in a transaction, which is of one connection: one try, on that."""
        sender = await self._attached(connection)
        await sender.submit_payload(payload, message_format=message_format, state=state)

    async def close(self) -> None:
        """Detach; what is on its way is not sent again. The sender attaches again when it is used again."""
        self._closed_times += 1
        if self._sender is not None:
            await self._sender.close()

    async def _attached(self, connection: Connection) -> Sender:
        """The link on this connection, attached now if it is not."""
        async with self._mutex:
            if self._sender is None or self._sender.error is not None:
                self._sender = await Sender.open(connection, self.address)
            return self._sender
