"""Receiving from a queue or a sub-queue, whatever happens to connections: receive, settle, renew, defer, peek, delete.

A message is settled on the link that brought it, by its delivery id. Where that link is gone, or the message came in an
answer, or was settled in a transaction that was rolled back, it is settled by its lock token: a lock outlives its link.
Messages are given as what a receive returned, as one message of it, or as any collection of such.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Modified, Outcome, Rejected, Released
from hubweir.amqp.transport.delivery import IdRange
from hubweir.amqp.types.values import Symbol
from hubweir.client.connection import Connection
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.message_link import MessageLink
from hubweir.client.message_run import MessageRun, ReceivedMessage, SettlingLink, spans_of
from hubweir.client.queue_requests import QueueRequests
from hubweir.client.queue_transaction import QueueTransaction
from hubweir.errors import ILLEGAL_STATE, MESSAGE_LOCK_LOST, ServiceError
from hubweir.queue.dead_letter_properties import DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON
from hubweir.queue.queue_part import DEAD_LETTERS, TRANSFER
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

DEAD_LETTER = Symbol("com.microsoft:dead-letter")
_PARTS = {
    SubQueue.MAIN: "",
    SubQueue.DEAD_LETTERS: f"/{DEAD_LETTERS}",
    SubQueue.TRANSFER_DEAD_LETTERS: f"/{TRANSFER}/{DEAD_LETTERS}",
}

Messages = MessageRun | ReceivedMessage | Iterable[ReceivedMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReceiverOptions:
    """How a queue is received from.

    prefetch: how many messages may come before they are asked for, and are locked meanwhile; 0: none.
    """

    mode: ReceiveMode = ReceiveMode.PEEK_LOCK
    sub_queue: SubQueue = SubQueue.MAIN
    prefetch: int = 0


# Peek-lock, the messages that were sent, nothing ahead of what is asked for.
PLAIN = QueueReceiverOptions()


@dataclass(frozen=True, slots=True)
class _Group:
    """Messages to settle that one link brought; None: that no link did."""

    link: SettlingLink | None
    run: MessageRun
    places: Sequence[int] | None = None  # None: all

    @property
    def spans(self) -> list[IdRange[None]]:
        if self.places is None:
            return self.run.spans()
        ids = self.run.delivery_ids()
        return spans_of(ids[place] for place in self.places)

    @property
    def tokens(self) -> list[UUID]:
        places = range(len(self.run)) if self.places is None else self.places
        found = [self.run.token(place) for place in places]
        tokens = [token for token in found if token is not None]
        if len(tokens) < len(found):
            raise ServiceError(ILLEGAL_STATE, "a message has no lock to settle or to renew: it was peeked or deleted")
        return tokens


class QueueReceiver:
    """Receives from one sub-queue, for one caller of `receive` at a time; settlements may overlap."""

    def __init__(
        self, connection: LastingConnection, entity: str, requests: QueueRequests, options: QueueReceiverOptions
    ) -> None:
        self.entity = entity
        self.address = address_of_part(entity, options.sub_queue)
        self._connection = connection
        self._requests = requests
        self._options = options
        self._link: MessageLink | None = None
        self._next_peeked = 1

    async def receive(self, max_count: int = 1, *, max_wait_s: float) -> MessageRun:
        """Up to max_count messages as soon as there is one; an empty run when none came in time.

        ServiceError: what the last try ended with; the messages that came before an end are given first.
        """

        async def step(connection: Connection) -> MessageRun:
            link = await self._attached(connection)
            try:
                return await link.receive(max_count, max_wait_s=max_wait_s)
            except ServiceError:
                self._link = None
                raise

        return await self._connection.retried(step)

    async def complete(self, messages: Messages, *, transaction: QueueTransaction | None = None) -> None:
        """They are done, and gone. Here and below: returns when that is durable. ServiceError MESSAGE_LOCK_LOST: the
        lock of one has ended (NotSettled says whose); SettlementUnknown, RequestUnknown: no answer came.

        transaction: this is a part of it, and done at its commit, where locks are looked at.
        """
        await self._settle(messages, Accepted(), "completed", {}, transaction)

    async def abandon(
        self,
        messages: Messages,
        properties: Mapping[str, object] | None = None,
        *,
        transaction: QueueTransaction | None = None,
    ) -> None:
        """Give them back, with one delivery more counted. properties: application properties that are set."""
        outcome = Modified(delivery_failed=True, message_annotations=_symbols(properties))
        await self._settle(messages, outcome, "abandoned", _changes(properties), transaction)

    async def defer(
        self,
        messages: Messages,
        properties: Mapping[str, object] | None = None,
        *,
        transaction: QueueTransaction | None = None,
    ) -> None:
        """Keep them aside: they come again by their sequence numbers only (receive_deferred)."""
        outcome = Modified(undeliverable_here=True, message_annotations=_symbols(properties))
        changes = _changes(properties)
        await self._settle(messages, outcome, "defered", changes, transaction)  # as the service spells it

    async def dead_letter(
        self,
        messages: Messages,
        reason: str | None = None,
        description: str | None = None,
        properties: Mapping[str, object] | None = None,
        *,
        transaction: QueueTransaction | None = None,
    ) -> None:
        """Move them to the dead letters, where these texts are application properties of theirs."""
        told: dict[str, object] = {}
        if reason is not None:
            told[DEAD_LETTER_REASON] = reason
        if description is not None:
            told[DEAD_LETTER_DESCRIPTION] = description
        outcome = Rejected(error=AmqpError(condition=DEAD_LETTER, info=_symbols({**told, **(properties or {})}) or {}))
        details: dict[str, object] = {"deadletter-reason": reason, "deadletter-description": description}
        await self._settle(messages, outcome, "suspended", details | _changes(properties), transaction)

    async def release(self, messages: Messages) -> None:
        """Give them back as if they had never come: no delivery is counted. Only on the link that brought them."""
        await self._settle(messages, Released(), None, {})

    async def renew(self, messages: Messages) -> list[int]:
        """Lock them anew; when the locks end now (ms since 1970), in order. ServiceError MESSAGE_LOCK_LOST."""
        ends: list[int] = []
        for group in _groups(messages):
            ends += await self._requests.renew(group.tokens)
        return ends

    async def receive_deferred(self, *sequence_numbers: int) -> MessageRun:
        """Deferred messages, all of these or none. ServiceError MESSAGE_NOT_FOUND. They stay deferred when their locks
        end. RequestUnknown: no answer came, and they may be locked, or gone.
        """
        deletes = self._options.mode is ReceiveMode.RECEIVE_AND_DELETE
        return await self._requests.receive_deferred(
            sequence_numbers, deletes=deletes, session_id=self._session_id, link_name=self._link_name
        )

    async def peek(self, max_count: int = 1, *, from_sequence_number: int | None = None) -> MessageRun:
        """Look at messages in any state, without locks, at most 256 KiB of them.

        from_sequence_number: where to begin; left out, behind the last one that this receiver peeked.
        """
        begin = self._next_peeked if from_sequence_number is None else from_sequence_number
        run = await self._requests.peek(begin, max_count, self._session_id)
        self._next_peeked = max(run.sequence_numbers(), default=begin - 1) + 1
        return run

    async def delete(self, max_count: int, *, before_ms: int | None = None) -> int:
        """Delete up to max_count active messages, the oldest first, enqueued before a time; how many. 0: none is left.

        Messages that are locked, deferred or scheduled stay. RequestUnknown: no answer came, and some may be gone.
        """
        return await self._requests.delete(max_count, before_ms, self._session_id)

    async def close(self) -> None:
        """Give back what nobody took, and detach. Messages that were taken stay locked until their locks end."""
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def __aenter__(self) -> QueueReceiver:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()

    @property
    def _session_id(self) -> str | None:
        return None

    @property
    def _link_name(self) -> str | None:
        return None if self._link is None or self._link.error is not None else self._link.name

    async def _attached(self, connection: Connection) -> MessageLink:
        """The link of now, attached if it is not. One that is over still gives what came before its end."""
        link = self._link
        if link is not None and link.error is not None and not link.has_messages:
            link, self._link = None, None
        if link is None:
            await connection.authorization.authorize(self.entity)
            link = MessageLink(
                connection,
                self.address,
                deletes=self._options.mode is ReceiveMode.RECEIVE_AND_DELETE,
                prefetch=self._options.prefetch,
            )
            await link.wait_opened(connection.timeout_s)
            self._link = link
        return link

    async def _settle(
        self,
        messages: Messages,
        outcome: Outcome,
        status: str | None,
        details: Mapping[str, object],
        transaction: QueueTransaction | None = None,
    ) -> None:
        for group in (part for whole in _groups(messages) for part in _by_way(whole)):
            if group.link is not None and group.link.error is None:
                if transaction is None:
                    await group.link.settle(group.spans, outcome)
                else:
                    await transaction.settle(group.link, group.spans, outcome)
            elif status is None:
                raise ServiceError(MESSAGE_LOCK_LOST, "the link of a message is gone: its lock ends by itself")
            else:
                await self._requests.settle(status, group.tokens, details, self._session_id, transaction)


def address_of_part(entity: str, sub_queue: SubQueue) -> str:
    """The address of a sub-queue."""
    return entity + _PARTS[sub_queue]


def _groups(messages: Messages) -> list[_Group]:
    """Messages by what brought them, in the order given."""
    if isinstance(messages, MessageRun):
        return [_Group(messages.link, messages)] if messages else []
    if isinstance(messages, ReceivedMessage):
        return [_Group(messages.run.link, messages.run, (messages.place,))]
    places: dict[int, tuple[MessageRun, list[int]]] = {}
    for message in messages:
        places.setdefault(id(message.run), (message.run, []))[1].append(message.place)
    return [_Group(run.link, run, found) for run, found in places.values()]


def _by_way(group: _Group) -> list[_Group]:
    """A group, apart from what its link has given up: that is settled by tokens."""
    if group.link is None or not (given_up := group.link.given_up):
        return [group]
    ids = group.run.delivery_ids()
    kept: list[int] = []
    gone: list[int] = []
    for place in range(len(group.run)) if group.places is None else group.places:
        (gone if ids[place] in given_up else kept).append(place)
    parts = (_Group(group.link, group.run, kept), _Group(None, group.run, gone))
    return [part for part in parts if part.places]


def _symbols(properties: Mapping[str, object] | None) -> dict[Symbol, object] | None:
    return {Symbol(name): value for name, value in properties.items()} if properties else None


def _changes(properties: Mapping[str, object] | None) -> dict[str, object]:
    return {"properties-to-modify": dict(properties)} if properties else {}
