"""Links that bring messages to a queue or a topic: each read's deliveries go into the open runs of its fragments.

What a queue does not take is found by a kernel before it is stored (check_messages), and that delivery is rejected
alone; how the others are counted and answered is incoming_node.py. A batch is stored whole or not at all.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from hubweir.amqp.messaging.outcome import Accepted, TransactionalState
from hubweir.amqp.transport.events import DeliveriesReceived, TransactionalReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.auth.resource_scope import Scope
from hubweir.errors import UNAUTHORIZED, ServiceError
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.open_run import AddStatus, OpenRun
from hubweir.gateway.amqp.delivery_ranges import submissions_of
from hubweir.gateway.amqp.incoming_node import IncomingNode
from hubweir.gateway.amqp.node import NodeHost
from hubweir.gateway.append_queue import Submission
from hubweir.gateway.destinations import Way
from hubweir.gateway.fragment_choice import FragmentChoice
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.queue_admission import ID_LIMIT_CHARACTERS, check_takes, refusal_of
from hubweir.kernels import check_messages
from hubweir.kernels.contract import CHECK_MALFORMED, D_DELIVERY_ID, D_SETTLED
from hubweir.namespace.messaging_description import MessagingDescription


class RunQueue(Protocol):
    """An open run and who waits for it (append_queue.LogQueue)."""

    run: OpenRun

    def add_submissions(self, submissions: list[Submission]) -> None: ...


class QueueSenderNode(IncomingNode):
    """See the module's text. needs_session: the queue takes no message without a session id.

    place: of its fragment, or of the first of several. choice: among those; None: it has one. way: by which what comes
    in a transaction goes there; None: straight.
    """

    def __init__(
        self,
        host: NodeHost,
        link: ReceiverLink,
        *,
        scope: Scope,
        place: FragmentPlace,
        needs_session: bool,
        max_message_size_bytes: int,
        choice: FragmentChoice | None = None,
        way: Way | None = None,
    ) -> None:
        super().__init__(host, link, scope=scope, entity=place.entity, max_message_size_bytes=max_message_size_bytes)
        self._queue: RunQueue = host.gateway.enqueue_queue.of(place)
        self._way = way
        self._place = place
        self._choice = self._sorts_by = choice  # sorts by: None while all that comes goes into one run
        self._uses = host.gateway.uses
        self._needs_session = needs_session

    def start(self) -> None:
        self._uses.sender_came(self._place)
        super().start()

    def closed(self) -> None:
        super().closed()
        self._uses.sender_left(self._place)

    def deliveries(self, event: DeliveriesReceived) -> None:
        if not self._take(event):
            return
        data, rows, first = event.data, event.rows, 0
        while first < event.count:
            last, status = check_messages(data, rows, first, event.count, ID_LIMIT_CHARACTERS, self._needs_session)
            if self._sorts_by is None:
                self._add(self._queue, data, rows, first, last)
            else:
                self._spread(self._sorts_by, data, rows, first, last)
            if last < event.count:
                self.reject_row(rows, last, refusal_of(status, self.entity))
            first = last + 1
        if self._rejected:
            self.host.finish_later(self)
        else:
            self._top_up()

    def transactional(self, event: TransactionalReceived) -> None:
        """The delivery is part of a transaction: it is answered now, and stored at the commit.

        One that is refused spoils the transaction, also where its sender is told: azure-messaging-servicebus 7.17 for
        Java takes every answer to a send in a transaction for success, and hears of it at the commit alone.
        """
        if not self.is_covered():
            text = f"A send to '{self.entity}' came when nothing gave its link the right to send any more."
            self.host.transactions.spoil(event.state.txn_id, ServiceError(UNAUTHORIZED, text))
            return
        delivery_id, settled, txn_id = event.rows[D_DELIVERY_ID], event.rows[D_SETTLED], event.state.txn_id
        self.host.gateway.counters["gateway.deliveries_received"] += 1
        self._traffic.requests += 1
        try:
            row, status = check_messages(event.data, event.rows, 0, 1, ID_LIMIT_CHARACTERS, self._needs_session)
            if not row:
                raise refusal_of(status, self.entity)
            place, key = self._place, None
            if self._choice is not None:
                key = self._choice.transaction_key(event.data, event.rows, 0, 1)
                place = self._choice.of_key(key)
            self.host.transactions.send(txn_id, place, event.data, event.rows, key=key, way=self._way)
            self._traffic.successful += 1
            if not settled:
                self.link.settle(delivery_id, delivery_id, TransactionalState(txn_id=txn_id, outcome=Accepted()))
        except ServiceError as refusal:
            self.host.transactions.spoil(txn_id, refusal)
            if not settled:
                self._reject(delivery_id, refusal)
        self.host.finish_later(self)

    def catalog_changed(self) -> None:
        entity = self.host.gateway.namespace.find(self.entity, MessagingDescription)
        if entity is not None:
            try:
                check_takes(entity.description)
            except ServiceError as refusal:
                self.host.detach(self, refusal)

    def _spread(self, choice: FragmentChoice, data: memoryview, rows: array[int], first: int, last: int) -> None:
        """Put deliveries into the open runs of their fragments."""
        found = choice.sort(data, rows, first, last)
        for row in found.scattered:
            self.reject_row(rows, row, choice.scattered())
        for share in found.shares:
            self._add(share.queue, data, share.rows, share.first, share.last)

    def _add(self, queue: RunQueue, data: memoryview, rows: array[int], first: int, last: int) -> None:
        """Put deliveries into an open run; one whose properties are too large is rejected."""
        while first < last:
            added = queue.run.add_deliveries(data, rows, first, last)
            if added.row > first:
                queue.add_submissions(submissions_of(self, rows, first, added.row))
            if added.row < last:
                malformed = added.status is not AddStatus.PROPERTIES
                refusal = refusal_of(CHECK_MALFORMED, self.entity) if malformed else properties_too_large(self.entity)
                self.reject_row(rows, added.row, refusal)
            first = added.row + 1


class ScheduledRun(Struct, frozen=True):
    """Messages that are to be scheduled. place: the fragment that takes them all; run: of their sealed batches.

    key: of all of them, where they are scheduled in a transaction in an entity of several fragments; else None.
    """

    place: FragmentPlace
    run: bytearray
    key: bytes | None = None


def scheduled_run(
    messages: Sequence[bytes],
    place: FragmentPlace,
    choice: FragmentChoice | None,
    *,
    needs_session: bool,
    in_transaction: bool = False,
) -> ScheduledRun:
    """Encoded messages, each of which says itself when it is to become active. place, choice: see QueueSenderNode.

    Raises ServiceError for the first that the entity does not take, or when they cannot lie in one fragment.
    """
    data, rows = b"".join(messages), array("q")
    at = 0
    for message in messages:
        rows.extend((0, at, len(message), 0, 0))
        at += len(message)
    row, status = check_messages(data, rows, 0, len(messages), ID_LIMIT_CHARACTERS, needs_session)
    if row < len(messages):
        raise refusal_of(status, place.entity)
    run, key = OpenRun(names_keys=False), None
    added = run.add_deliveries(data, rows, 0, len(messages))
    if added.row < len(messages):
        malformed = added.status is not AddStatus.PROPERTIES
        raise refusal_of(CHECK_MALFORMED, place.entity) if malformed else properties_too_large(place.entity)
    if choice is not None and in_transaction:
        key = choice.transaction_key(data, rows, 0, len(messages))
        place = choice.of_key(key)
    elif choice is not None:
        place = choice.place_of(data, rows, 0, len(messages))
    return ScheduledRun(place, run.take_run(), key)
