"""Sending to a queue, whatever happens to connections: one message, many, at a time to come; and taking those back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hubweir.amqp.messaging.batch import BATCH_FORMAT, MESSAGE_FORMAT
from hubweir.amqp.messaging.message import Message
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.client.connection import Connection
from hubweir.client.event_batch import data_section
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.queue_message import QueueMessage, Sendable, encoded, scheduled
from hubweir.client.queue_requests import QueueRequests
from hubweir.client.queue_transaction import QueueTransaction
from hubweir.client.resending_sender import ResendingSender
from hubweir.errors import ARGUMENT_ERROR, MESSAGE_TOO_LARGE, ServiceError


class QueueSender:
    """Sends to one queue or topic. Calls may overlap; the order of what overlapping calls send is open."""

    def __init__(
        self, connection: LastingConnection, entity: str, requests: QueueRequests, *, resend_unknown: bool
    ) -> None:
        """resend_unknown: see ResendingSender."""
        self.entity = entity
        self._inner = ResendingSender(connection, entity, resend_unknown=resend_unknown)
        self._requests = requests

    async def send(self, *messages: Sendable, transaction: QueueTransaction | None = None) -> None:
        """Send messages and return when they are stored. One goes by itself, several as one batch: all or nothing.

        transaction: they are a part of it, and stored at its commit.

        ServiceError MESSAGE_TOO_LARGE: together they are over what the link takes (send_all cuts them into batches);
        ARGUMENT_ERROR: there is none, or one that the queue does not take.
        """
        if not messages:
            raise ServiceError(ARGUMENT_ERROR, "there is no message to send: give one or more")
        if len(messages) == 1:
            await self._send_payload(encoded(messages[0]), MESSAGE_FORMAT, transaction)
            return
        await self._send_payload(b"".join(map(_section, messages)), BATCH_FORMAT, transaction)

    async def send_all(self, messages: Iterable[Sendable], *, transaction: QueueTransaction | None = None) -> int:
        """Send messages in order, in as few batches as they need; how many there were. Each batch is all or nothing;
        in a transaction all of them are.

        ServiceError: the refusal of the first batch that no retry could help; those before it are stored.
        """
        most = await self._inner.max_message_size()
        parts: list[bytes] = []
        size = sent = 0
        for message in messages:
            part = _section(message)
            if len(part) > most:
                text = f"a message of {len(part)} bytes does not fit the limit of {most} bytes: make it smaller"
                raise ServiceError(MESSAGE_TOO_LARGE, text)
            if size + len(part) > most:
                await self._send_payload(b"".join(parts), BATCH_FORMAT, transaction)
                parts, size = [], 0
            parts.append(part)
            size += len(part)
            sent += 1
        if parts:
            await self._send_payload(b"".join(parts), BATCH_FORMAT, transaction)
        return sent

    async def schedule(self, messages: Sequence[Sendable], at_ms: int) -> list[int]:
        """Store messages that become active at a time (ms since 1970); the sequence numbers that cancel them.

        RequestUnknown: no answer came, and they may be stored.
        """
        timed = [_timed(message, at_ms) for message in messages]
        return await self._requests.schedule(timed)

    async def cancel(self, *sequence_numbers: int, transaction: QueueTransaction | None = None) -> None:
        """Take scheduled messages back. ServiceError MESSAGE_NOT_FOUND: one of them is active, or was never there; a
        transaction, of which this is a part, is rolled back then.
        """
        await self._requests.cancel(sequence_numbers, transaction)

    async def close(self) -> None:
        """Detach. The sender attaches again when it is used again."""
        await self._inner.close()

    async def _send_payload(self, payload: bytes, message_format: int, transaction: QueueTransaction | None) -> None:
        if transaction is None:
            await self._inner.send_payload(payload, message_format=message_format)
            return

        async def step(connection: Connection, state: TransactionalState) -> None:
            await self._inner.send_payload_in(connection, state, payload, message_format=message_format)

        await transaction.do(step)


def _section(message: Sendable) -> bytes:
    return data_section(encoded(message))


def _timed(message: Sendable, at_ms: int) -> Sendable:
    if isinstance(message, Message):
        return replace(message, message_annotations={**(message.message_annotations or {}), **scheduled(at_ms)})
    return replace(message if isinstance(message, QueueMessage) else QueueMessage(message), scheduled_at_ms=at_ms)
