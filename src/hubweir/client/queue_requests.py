"""Requests to the management node of a queue or a sub-queue: what its links do not do themselves.

Maps in and out as the service has them. Reading is repeated when a retry can cure what went wrong; what changes
something is not, once it may have been carried out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.messaging.outcome import TransactionalState
from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Int, Long, Timestamp, UInt
from hubweir.client.connection import Connection
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.message_run import MessageRun
from hubweir.client.queue_message import QueueMessage, Sendable, encoded
from hubweir.client.queue_transaction import QueueTransaction
from hubweir.client.request_link import RequestLink
from hubweir.errors import CONDITION_OF_SYMBOL, CONDITIONS, INTERNAL_ERROR, SERVER_BUSY, ServiceError

PREFIX = "com.microsoft:"
NO_CONTENT = 204
# The last time that clients of the service have: sessions that hold messages, whenever their state changed.
EVER_MS = 253_402_300_800_000
SESSIONS_A_PAGE = 100


class RequestUnknown(ServiceError):
    """A request went out and no answer came: it was carried out, or not."""

    def __init__(self, cause: ServiceError) -> None:
        super().__init__(cause.condition, f"{cause.text}; the request may have been carried out")


class QueueRequests:
    """The management node of one sub-queue. path: of the entity, or with `/$DeadLetterQueue` behind it."""

    def __init__(self, connection: LastingConnection, entity: str, path: str) -> None:
        """entity: whose right is proved."""
        self._connection = connection
        self._entity = entity
        self._node = f"{path}/$management"
        self._links: tuple[Connection, RequestLink] | None = None

    async def peek(self, from_number: int, most: int, session_id: str | None) -> MessageRun:
        """Messages from a sequence number on, in any state, without a lock; at most 256 KiB of them at once."""
        asked: dict[str, object] = {"from-sequence-number": Long(from_number), "message-count": Int(most)}
        return _messages(await self._read("peek-message", asked | _session(session_id)))

    async def receive_deferred(
        self, numbers: Sequence[int], *, deletes: bool, session_id: str | None, link_name: str | None
    ) -> MessageRun:
        """Deferred messages, all or none. ServiceError MESSAGE_NOT_FOUND."""
        asked: dict[str, object] = {
            "sequence-numbers": _numbers(numbers),
            "receiver-settle-mode": UInt(0 if deletes else 1),
        }
        found = await self._change("receive-by-sequence-number", asked | _session(session_id), link_name)
        return _messages(found)

    async def schedule(self, messages: Iterable[Sendable]) -> list[int]:
        """Have messages become active at their times; their sequence numbers, in order."""
        found = await self._change("schedule-message", {"messages": [_entry(message) for message in messages]})
        return [int(number) for number in _items(found["sequence-numbers"])]

    async def cancel(self, numbers: Sequence[int], transaction: QueueTransaction | None = None) -> None:
        """Take scheduled messages back. ServiceError MESSAGE_NOT_FOUND: one is active already, or never was there."""
        asked: dict[str, object] = {"sequence-numbers": _numbers(numbers)}
        await self._change("cancel-scheduled-message", asked, transaction=transaction)

    async def settle(
        self,
        status: str,
        tokens: Sequence[UUID],
        details: Mapping[str, object],
        session_id: str | None,
        transaction: QueueTransaction | None = None,
    ) -> None:
        """Settle by lock tokens. ServiceError MESSAGE_LOCK_LOST: one of them is not right any more."""
        asked: dict[str, object] = {"disposition-status": status, "lock-tokens": _uuids(tokens), **details}
        await self._change("update-disposition", asked | _session(session_id), transaction=transaction)

    async def renew(self, tokens: Sequence[UUID]) -> list[int]:
        """When the locks end now. ServiceError MESSAGE_LOCK_LOST: one of them has ended."""
        found = await self._read("renew-lock", {"lock-tokens": _uuids(tokens)})
        return [int(until) for until in _items(found["expirations"])]

    async def delete(self, most: int, before_ms: int | None, session_id: str | None) -> int:
        """Delete active messages, the oldest first, that were enqueued before a time; how many."""
        asked: dict[str, object] = {"message-count": Int(most)}
        if before_ms is not None:
            asked["enqueued-time-utc"] = Timestamp(before_ms)
        found = await self._change("batch-delete-messages", asked | _session(session_id))
        return int(found["message-count"]) if found else 0

    async def renew_session(self, session_id: str, link_name: str) -> int:
        """When the session's lock ends now. ServiceError SESSION_LOCK_LOST."""
        return int((await self._read("renew-session-lock", _session(session_id), link_name))["expiration"])

    async def state(self, session_id: str, link_name: str) -> bytes | None:
        """The state of a session; None: it has none."""
        state = (await self._read("get-session-state", _session(session_id), link_name))["session-state"]
        return None if state is None else bytes(state)

    async def set_state(self, session_id: str, state: bytes | None, link_name: str) -> None:
        """Give a session a state, or take it away."""
        asked = _session(session_id) | {"session-state": state}
        await self._read("set-session-state", asked, link_name)  # the same again changes nothing

    async def sessions(self, updated_since_ms: int | None) -> list[str]:
        """The ids of sessions with messages or a state; with a time: of those whose state changed since."""
        found: list[str] = []
        while True:
            asked: dict[str, object] = {
                "last-updated-time": Timestamp(EVER_MS if updated_since_ms is None else updated_since_ms),
                "skip": Int(len(found)),
                "top": Int(SESSIONS_A_PAGE),
            }
            page = [str(each) for each in _items((await self._read("get-message-sessions", asked)).get("sessions-ids"))]
            found += page
            if len(page) < SESSIONS_A_PAGE:
                return found

    async def _read(self, operation: str, asked: dict[str, object], link_name: str | None = None) -> dict[str, Any]:
        async def step(connection: Connection) -> dict[str, Any]:
            link = await self._linked(connection)
            return _result(await link.call(_request(operation, asked, link_name), timeout_s=connection.timeout_s))

        return await self._connection.retried(step)

    async def _change(
        self,
        operation: str,
        asked: dict[str, object],
        link_name: str | None = None,
        *,
        transaction: QueueTransaction | None = None,
    ) -> dict[str, Any]:
        async def step(connection: Connection, state: TransactionalState | None = None) -> dict[str, Any]:
            link = await self._linked(connection)
            request = _request(operation, asked, link_name)
            try:
                answer = await link.call(request, timeout_s=connection.timeout_s, state=state)
            except ServiceError as error:
                raise RequestUnknown(error) from None
            try:
                return _result(answer)
            except ServiceError as error:
                if error.condition.retriable and error.condition is not SERVER_BUSY:
                    raise RequestUnknown(error) from None
                raise

        if transaction is not None:
            return await transaction.do(step)
        return await self._connection.retried(step, final=(RequestUnknown,))

    async def _linked(self, connection: Connection) -> RequestLink:
        """The pair of links of now, attached if it is not."""
        if self._links is not None and self._links[0] is connection and self._links[1].error is None:
            return self._links[1]
        await connection.authorization.authorize(self._entity)
        link = RequestLink(connection, self._node)
        self._links = connection, link
        await link.ready(connection.timeout_s)
        return link


def _request(operation: str, asked: dict[str, object], link_name: str | None) -> Message:
    properties: dict[str, object] = {"operation": PREFIX + operation}
    if link_name is not None:
        properties["associated-link-name"] = link_name
    return Message(application_properties=properties, body=ValueBody(asked))


def _result(answer: Message) -> dict[str, Any]:
    """The map that a request was answered with, empty when nothing was found. ServiceError: it was refused."""
    said = answer.application_properties or {}
    status = said.get("statusCode", 500)
    if not isinstance(status, int) or status >= 400:
        by_symbol = CONDITION_OF_SYMBOL.get(str(said.get("errorCondition", "")))
        by_status = next((each for each in CONDITIONS if each.management == status), INTERNAL_ERROR)
        raise ServiceError(by_symbol or by_status, str(said.get("statusDescription", "")))
    value = answer.body.value if isinstance(answer.body, ValueBody) else None
    return value if isinstance(value, dict) and status != NO_CONTENT else {}


def _messages(found: dict[str, Any]) -> MessageRun:
    entries = _items(found.get("messages"))
    tokens = [entry.get("lock-token") for entry in entries]
    return MessageRun.of_messages([bytes(entry["message"]) for entry in entries], tokens if any(tokens) else ())


def _entry(message: Sendable) -> dict[str, object]:
    """A message as a request to schedule it holds it."""
    entry: dict[str, object] = {"message": encoded(message)}
    if isinstance(message, QueueMessage):
        if message.message_id is not None:
            entry["message-id"] = str(message.message_id)
        if message.session_id is not None:
            entry["session-id"] = message.session_id
        if message.partition_key is not None:
            entry["partition-key"] = message.partition_key
    return entry


def _session(session_id: str | None) -> dict[str, object]:
    return {} if session_id is None else {"session-id": session_id}


def _numbers(numbers: Sequence[int]) -> Array:
    return Array(AmqpType.LONG, tuple(Long(number) for number in numbers))


def _uuids(tokens: Sequence[UUID]) -> Array:
    return Array(AmqpType.UUID, tuple(tokens))


def _items(value: Any) -> Sequence[Any]:
    """The entries of a list, of an array, or of nothing."""
    return value.items if isinstance(value, Array) else value or ()
