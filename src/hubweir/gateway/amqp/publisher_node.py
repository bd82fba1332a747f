"""Links that bring events: to a hub, to one partition, or in the name of a publisher.

Each read's deliveries go into the open runs of their partitions by the ingest kernel, table by table; on a hub link
kernels sort them by partition first: by the hash of the key, else the next in turn. incoming_node.py counts deliveries
and answers them.
"""

from __future__ import annotations

from array import array

from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import Refusal
from hubweir.errors import DECODE_ERROR, ENTITY_MOVED, NOT_ALLOWED, STORE_OFFLINE, ServiceError
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.hub_router import HubRouter
from hubweir.event_hub.open_run import AddStatus
from hubweir.event_hub.partition_key import KEY_LIMIT_CHARACTERS, key_too_long
from hubweir.event_hub.publisher_policy import check_publisher
from hubweir.gateway.amqp.delivery_ranges import submissions_of
from hubweir.gateway.amqp.incoming_node import IncomingNode
from hubweir.gateway.amqp.node import NodeHost, gone
from hubweir.gateway.append_queue import LogQueue, Submission
from hubweir.gateway.directory import PartitionPlace, partitions_away
from hubweir.kernels import find_keys, group_deliveries
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    K_WHERE,
    KEY_MALFORMED,
    KEY_NONE,
    KEY_TOO_LONG,
    KEY_WIDTH,
)
from hubweir.namespace.availability import check_may_send
from hubweir.namespace.event_hub_description import EventHubDescription

ILLEGAL = ServiceError(
    DECODE_ERROR,
    "The delivery is no legal AMQP message, or its batch envelope holds one that is not, or its partition key is no "
    "string.",
)
LONG_KEY = key_too_long()
# Azure's Python client 5.15 sends nothing again that was rejected, whatever the condition; it attaches again, and sends
# again, when the link ended.
TRIES_NOTHING_REJECTED = ("azsdk-python-eventhubs",)


def refusal_of(status: AddStatus, hub: str) -> ServiceError:
    """Why an open run of this hub did not take a delivery."""
    if status is AddStatus.KEY_TOO_LONG:
        return LONG_KEY
    return properties_too_large(hub) if status is AddStatus.PROPERTIES else ILLEGAL


class PublisherNode(IncomingNode):
    """See the module's text.

    places: the partitions it may send to, all of the hub's or one. publisher: the name that every event gets, or None.
    """

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
        hub, largest = places[0].hub, host.gateway.max_message_size_bytes
        super().__init__(host, link, scope=scope, entity=hub, max_message_size_bytes=largest)
        self._places = places
        self._queues = tuple(host.gateway.append_queue.of(place) for place in places)
        self._router = router
        self._publisher = publisher

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

    def catalog_changed(self) -> None:
        hub = self.host.gateway.namespace.find(self.entity, EventHubDescription)
        if hub is None:
            return
        try:
            check_may_send(hub.description)
            if self._publisher is not None:
                check_publisher(hub.description, self._publisher.decode())
        except ServiceError as refusal:
            self.host.detach(self, refusal)

    def _add(
        self, queue: LogQueue[AppendEvents], data: memoryview, rows: array[int], last: int, first: int = 0
    ) -> None:
        """Put deliveries into a partition's open run; those that it does not take are rejected one by one."""
        while first < last:
            added = queue.run.add_deliveries(data, rows, first, last, publisher=self._publisher)
            if added.row > first:
                queue.add_submissions(submissions_of(self, rows, first, added.row))
            if added.row < last:
                self.reject_row(rows, added.row, refusal_of(added.status, self.entity))
            first = added.row + 1

    def _send_by_partition(self, event: DeliveriesReceived, router: HubRouter) -> None:
        """Each delivery of a hub link to its partition, in order; those without a legal key are rejected here."""
        keys, without = self._keys_of(event)
        grouped, ends = (
            array("q", bytes(8 * DELIVERY_WIDTH * event.count)),
            array("q", bytes(8 * (len(self._queues) + 1))),
        )
        away = () if self.host.gateway.brokers.all_up else partitions_away(self._places)
        turns = router.next_partitions(without, away)
        group_deliveries(event.rows, 0, event.count, keys, turns, grouped, ends)
        first = 0
        for queue, last in zip(self._queues, ends, strict=False):
            if last > first:
                self._add(queue, event.data, grouped, last, first)
            first = last
        if first < event.count:
            wheres = keys[K_WHERE::KEY_WIDTH]
            for row, where in enumerate(wheres):
                if where in (KEY_MALFORMED, KEY_TOO_LONG):
                    self.reject_row(event.rows, row, ILLEGAL if where == KEY_MALFORMED else LONG_KEY)

    def answered(self, submission: Submission, answer: Answer) -> None:
        """As every incoming link; but a client that takes a rejection for the last word is told by the link's end."""
        is_away = isinstance(answer, Refusal) and answer.known and answer.condition in (STORE_OFFLINE, ENTITY_MOVED)
        if is_away and not self._is_over and self.host.endpoint.remote_product in TRIES_NOTHING_REJECTED:
            self._give_back(submission.deliveries, submission.size_bytes)
            self._traffic.refused(STORE_OFFLINE, submission.deliveries)
            self.host.detach(self, gone(self.entity))
        else:
            super().answered(submission, answer)

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
                self.reject_row(rows, row, ServiceError(NOT_ALLOWED, text))
                continue
            kept.extend(rows[row * DELIVERY_WIDTH : (row + 1) * DELIVERY_WIDTH])
        return kept
