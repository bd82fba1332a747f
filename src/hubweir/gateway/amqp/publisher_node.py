"""Links that bring events: to a hub, to one partition, or in the name of a publisher.

Each read's deliveries go into the open runs of their partitions by the ingest kernel, table by table; on a hub link
kernels sort them by partition first: by the hash of the key, else the next in turn. A delivery is answered when its
broker has answered for the run it went into: accepted when it is stored as the hub's mode promises, rejected when it
was certainly not stored. Not known: the link is detached with a timeout and nothing is said about the delivery.
Delivery ids are serial numbers of the session; ranges of them are settled with one disposition.
"""

from __future__ import annotations

from array import array

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.annotations import TRACKING_ID
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.transport.events import DeliveriesReceived, OversizeReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AlreadyAppended
from hubweir.errors import (
    DECODE_ERROR,
    MESSAGE_TOO_LARGE,
    NOT_ALLOWED,
    TIMED_OUT,
    ServiceError,
)
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.hub_router import HubRouter
from hubweir.event_hub.open_run import AddStatus
from hubweir.event_hub.partition_key import KEY_LIMIT_CHARACTERS, key_too_long
from hubweir.event_hub.publisher_policy import check_publisher
from hubweir.gateway.amqp.delivery_ranges import merge_ranges, ranges_of, submissions_of
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties
from hubweir.gateway.append_queue import DeliveryRange, PartitionQueue, Submission
from hubweir.gateway.directory import PartitionPlace
from hubweir.gateway.refusals import What
from hubweir.kernels import find_keys, group_deliveries
from hubweir.kernels.contract import (
    D_DELIVERY_ID,
    D_LENGTH,
    D_SETTLED,
    DELIVERY_WIDTH,
    K_WHERE,
    KEY_MALFORMED,
    KEY_NONE,
    KEY_TOO_LONG,
    KEY_WIDTH,
)
from hubweir.namespace.availability import check_may_send
from hubweir.namespace.error_text import message_too_large
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rights import Rights

_ACCEPTED = Accepted()
ILLEGAL = ServiceError(
    DECODE_ERROR,
    "The delivery is no legal AMQP message, or its batch envelope holds one that is not, or its partition key is no "
    "string.",
)
LONG_KEY = key_too_long()


def refusal_of(status: AddStatus, hub: str) -> ServiceError:
    """Why an open run of this hub did not take a delivery."""
    if status is AddStatus.KEY_TOO_LONG:
        return LONG_KEY
    return properties_too_large(hub) if status is AddStatus.PROPERTIES else ILLEGAL


class PublisherNode(Node):
    """See the module's text.

    places: the partitions it may send to, all of the hub's or one. publisher: the name that every event gets, or None.
    """

    link: ReceiverLink

    def __init__(
        self,
        host: NodeHost,
        link: ReceiverLink,
        *,
        scope: Scope,
        places: tuple[PartitionPlace, ...],
        router: HubRouter | None,
        publisher: bytes | None = None,
    ) -> None:
        super().__init__(host, link, right=Rights.SEND, scope=scope)
        self._hub = self.entity = places[0].hub
        self._queues = tuple(host.gateway.append_queue.of(place) for place in places)
        self._router = router
        self._publisher = publisher
        self._unanswered = 0
        self._accepted: list[DeliveryRange] = []
        self._scattered: list[array[int]] = []  # accepted too: ids between which others lie
        self._rejected: list[tuple[DeliveryRange, AmqpError]] = []
        self._is_over = False

    def sends_to(self, entity: str) -> bool:
        return entity == self._hub

    def start(self) -> None:
        properties = {**attach_properties(self.link), TRACKING_ID: self.host.env.new_id()}
        self.link.accept(max_message_size=self.host.gateway.max_message_size_bytes, properties=properties)
        self.host.authorized()
        self._top_up()

    def is_idle(self) -> bool:
        return not self._unanswered

    def deliveries(self, event: DeliveriesReceived) -> None:
        if not self._take(event):
            return
        if self._router is None:
            rows, last = event.rows, event.count
            if self._publisher is not None:
                rows = self._rows_of_publisher(event, self._publisher)
                last = len(rows) // DELIVERY_WIDTH
            self._add(self._queues[0], event.data, rows, last)
        else:
            self._send_by_partition(event, self._router)
        if self._rejected:
            self.host.finish_later(self)
        else:
            self._top_up()

    def oversize(self, event: OversizeReceived) -> None:
        text = message_too_large(event.delivery_id, event.size, self.host.gateway.max_message_size_bytes)
        if not event.settled:
            self._reject(event.delivery_id, ServiceError(MESSAGE_TOO_LARGE, text))
        self.host.finish_later(self)

    def answered(self, submission: Submission, answer: Answer) -> None:
        """The broker's word about a submission of this link (append_queue.Submitter)."""
        self._give_back(submission.deliveries, submission.size_bytes)
        if self._is_over:
            return
        if isinstance(answer, Refusal) and not answer.known:
            text = f"The outcome of sends to '{self._hub}' is not known: {answer.text} Attach again to go on."
            self.host.detach(self, ServiceError(TIMED_OUT, text))
            return
        if not submission.settled:
            ids = submission.ids
            if isinstance(answer, EventsAppended | AlreadyAppended):
                if isinstance(ids, DeliveryRange):
                    self._accepted.append(ids)
                else:
                    self._scattered.append(ids)
            elif isinstance(answer, Refusal):
                error = self.host.describe(What.SEND, answer.error, entity=self._hub)
                spans = [ids] if isinstance(ids, DeliveryRange) else merge_ranges(ranges_of([ids]))
                self._rejected += [(span, error) for span in spans]
        self.host.finish_later(self)

    def finish(self) -> None:
        """Settle what was answered in this turn, with as few dispositions as the ids allow, and renew the credit."""
        if self._accepted or self._scattered or self._rejected:
            self._settle()
        self._top_up()

    def _settle(self) -> None:
        accepted, rejected = self._accepted.copy(), self._rejected.copy()
        if self._scattered:
            accepted += ranges_of(self._scattered)
        # The lists stay: new ones for each send would be three more to collect.
        self._accepted.clear()
        self._scattered.clear()
        self._rejected.clear()
        for span in merge_ranges(accepted) if len(accepted) > 1 else accepted:
            self.link.settle(span.first_id, span.last_id, _ACCEPTED)
        for span, error in rejected:
            self.link.settle(span.first_id, span.last_id, Rejected(error=error))

    def catalog_changed(self) -> None:
        hub = self.host.gateway.namespace.find(self._hub, EventHubDescription)
        if hub is None:
            return
        try:
            check_may_send(hub.description)
            if self._publisher is not None:
                check_publisher(hub.description, self._publisher.decode())
        except ServiceError as refusal:
            self.host.detach(self, refusal)

    def closed(self) -> None:
        self._is_over = True

    def _take(self, event: DeliveriesReceived) -> bool:
        """Count deliveries that came; False when the link's claim is over, and the link with it."""
        if not self.is_covered():
            return False
        self.host.gateway.counters["gateway.deliveries_received"] += event.count
        self.host.budget.take_bytes(sum(event.rows[D_LENGTH : event.count * DELIVERY_WIDTH : DELIVERY_WIDTH]))
        self._unanswered += event.count
        return True

    def _top_up(self) -> None:
        """Credit is what the service still has room for: what is not answered yet counts as taken."""
        room = max(1, self.host.link_settings.publisher_credit - self._unanswered)
        if self.link.credit <= room // 2:
            self.link.grant(room)

    def _add(self, queue: PartitionQueue, data: memoryview, rows: array[int], last: int, first: int = 0) -> None:
        """Put deliveries into a partition's open run; those that it does not take are rejected one by one."""
        while first < last:
            added = queue.run.add(data, rows, first, last, publisher=self._publisher)
            if added.row > first:
                queue.add_submissions(submissions_of(self, rows, first, added.row))
            if added.row < last:
                self._reject_row(rows, added.row, refusal_of(added.status, self._hub))
            first = added.row + 1

    def _send_by_partition(self, event: DeliveriesReceived, router: HubRouter) -> None:
        """Each delivery of a hub link to its partition, in order; those without a legal key are rejected here."""
        keys, without = self._keys_of(event)
        grouped, ends = (
            array("q", bytes(8 * DELIVERY_WIDTH * event.count)),
            array("q", bytes(8 * (len(self._queues) + 1))),
        )
        group_deliveries(event.rows, 0, event.count, keys, router.next_partitions(without), grouped, ends)
        first = 0
        for queue, last in zip(self._queues, ends, strict=False):
            if last > first:
                self._add(queue, event.data, grouped, last, first)
            first = last
        if first < event.count:
            wheres = keys[K_WHERE::KEY_WIDTH]
            for row, where in enumerate(wheres):
                if where in (KEY_MALFORMED, KEY_TOO_LONG):
                    self._reject_row(event.rows, row, ILLEGAL if where == KEY_MALFORMED else LONG_KEY)

    def _keys_of(self, event: DeliveriesReceived) -> tuple[array[int], int]:
        """The key table of these deliveries (kernels/contract.py), and how many of them have no key."""
        keys = array("q", bytes(8 * KEY_WIDTH * event.count))
        return keys, find_keys(event.data, event.rows, 0, event.count, KEY_LIMIT_CHARACTERS, keys)

    def _rows_of_publisher(self, event: DeliveriesReceived, publisher: bytes) -> array[int]:
        """The rows whose partition key is the publisher's name or absent; the others are rejected here."""
        rows, data = event.rows, event.data
        keys, without = self._keys_of(event)
        if without == event.count:
            return rows[: event.count * DELIVERY_WIDTH]
        kept = array("q")
        for row in range(event.count):
            start, length, where, _ = keys[row * KEY_WIDTH : (row + 1) * KEY_WIDTH]
            if where != KEY_NONE and (where == KEY_MALFORMED or data[start : start + length] != publisher):
                text = f"A publisher's partition key is its own name, '{publisher.decode()}'; leave the key out."
                self._reject_row(rows, row, ServiceError(NOT_ALLOWED, text))
                continue
            kept.extend(rows[row * DELIVERY_WIDTH : (row + 1) * DELIVERY_WIDTH])
        return kept

    def _reject_row(self, rows: array[int], row: int, refusal: ServiceError) -> None:
        at = row * DELIVERY_WIDTH
        self._give_back(1, rows[at + D_LENGTH])
        if not rows[at + D_SETTLED]:
            self._reject(rows[at + D_DELIVERY_ID], refusal)

    def _reject(self, delivery_id: int, refusal: ServiceError) -> None:
        self.host.gateway.counters["gateway.deliveries_rejected"] += 1
        error = self.host.describe(What.SEND, refusal, entity=self._hub)
        self._rejected.append((DeliveryRange(delivery_id, delivery_id), error))

    def _give_back(self, deliveries: int, size: int) -> None:
        self._unanswered -= deliveries
        self.host.budget.give_back_bytes(size)
