"""Queues of one namespace, whatever happens to connections: senders, receivers, sessions and transactions, which share
one connection.

    async with QueueClient.from_connection_string(text) as client:
        await client.sender("orders").send(b"one", QueueMessage(b"two", subject="second"))
        receiver = client.receiver("orders")
        messages = await receiver.receive(10, max_wait_s=5)
        await receiver.complete(messages)

An error that a retry can cure is met with a wait and another try, as often as the RetryPolicy says; then it is raised.
Subscriptions are received from like queues (`topic/Subscriptions/name`), topics are sent to.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from hubweir.client.connection import DEFAULT_TIMEOUT_S
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.queue_receiver import PLAIN, QueueReceiver, QueueReceiverOptions, address_of_part
from hubweir.client.queue_requests import QueueRequests
from hubweir.client.queue_sender import QueueSender
from hubweir.client.queue_transaction import ControlLinks, QueueTransaction
from hubweir.client.retry import RetryPolicy
from hubweir.client.session_receiver import SessionReceiver, accept_session
from hubweir.drivers.tls import client_context
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.connection_string import ConnectionString


class QueueClient:
    """One namespace. Everything on the loop that first uses it. Names left out: the connection string's EntityPath."""

    def __init__(
        self,
        target: ConnectionString,
        *,
        tls: ssl.SSLContext | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        """tls: None speaks plain AMQP. timeout_s: for each try of each request."""
        self.target = target
        self._connection = LastingConnection(
            target, f"this client of {target.host}", tls=tls, retry=retry or RetryPolicy(), timeout_s=timeout_s
        )
        self._requests: dict[str, QueueRequests] = {}
        self._controls = ControlLinks(self._connection)

    @classmethod
    def from_connection_string(
        cls,
        text: str,
        *,
        ca_file: Path | str | None = None,
        retry: RetryPolicy | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> QueueClient:
        """ca_file: trust this CA instead of the system's. ServiceError ARGUMENT_ERROR: text is no connection string."""
        target = ConnectionString.parse(text)
        tls = None if target.emulator else client_context(None if ca_file is None else Path(ca_file))
        return cls(target, tls=tls, retry=retry, timeout_s=timeout_s)

    def sender(self, queue: str | None = None, *, resend_unknown: bool = True) -> QueueSender:
        """Sends to a queue or a topic. resend_unknown: see ResendingSender. Nothing is asked of the service yet."""
        entity = self._named(queue)
        return QueueSender(self._connection, entity, self._requests_of(entity, entity), resend_unknown=resend_unknown)

    def receiver(self, queue: str | None = None, options: QueueReceiverOptions = PLAIN) -> QueueReceiver:
        """Receives from a queue that needs no sessions, or from a sub-queue. Nothing is asked of the service yet."""
        entity = self._named(queue)
        requests = self._requests_of(entity, address_of_part(entity, options.sub_queue))
        return QueueReceiver(self._connection, entity, requests, options)

    async def accept_session(
        self,
        queue: str | None = None,
        session_id: str | None = None,
        options: QueueReceiverOptions = PLAIN,
        *,
        max_wait_s: float = 60.0,
    ) -> SessionReceiver:
        """Lock a session of a queue that needs sessions; without session_id the next one that has messages.

        SessionNotGranted: none came within max_wait_s (TIMED_OUT), or another receiver holds it.
        """
        entity = self._named(queue)
        requests = self._requests_of(entity, entity)
        return await accept_session(
            self._connection, entity, requests, options, session_id=session_id, max_wait_s=max_wait_s
        )

    async def sessions(self, queue: str | None = None, *, updated_since_ms: int | None = None) -> list[str]:
        """The ids of sessions with messages or a state; with a time: of those whose state changed since."""
        entity = self._named(queue)
        return await self._requests_of(entity, entity).sessions(updated_since_ms)

    def transaction(self) -> QueueTransaction:
        """What is sent and settled in its block is done at the end of it, together, or not at all.

        async with client.transaction() as transaction:
            await sender.send(b"answer", transaction=transaction)
            await receiver.complete(request, transaction=transaction)
        """
        return QueueTransaction(self._controls)

    async def close(self) -> None:
        """Close the connection and with it every sender and receiver. Safe to call twice."""
        await self._connection.close()

    async def __aenter__(self) -> QueueClient:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    def _named(self, queue: str | None) -> str:
        entity = queue or self.target.entity_path
        if not entity:
            raise ServiceError(ARGUMENT_ERROR, "no queue is named: give one, or a connection string with EntityPath")
        return entity

    def _requests_of(self, entity: str, path: str) -> QueueRequests:
        """The management node of a sub-queue: one pair of links for all who ask it."""
        return self._requests.setdefault(path, QueueRequests(self._connection, entity, path))
