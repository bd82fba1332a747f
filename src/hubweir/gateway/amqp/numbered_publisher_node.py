"""Links of idempotent producers: to one partition, every transfer with the number of its first event.

The attach is answered when the partition's owner has opened the producer: with what the peer named, and with what it
left null filled in. Each delivery goes to the owner by itself, so that it can be taken as new, found stored before, or
refused, alone; deliveries keep their order. Numbers stand in the message annotations of the transfer (of the envelope
of a batch) and count events, from 1. (Contract of the client libraries that publish idempotently)

An attach that names a round is of a sink that resumes (event_hub/producer_sequence.py): it leaves the number null, is
answered with the last number and the digest that came with it, and every transfer carries the digest behind its rows.
The names for that are ours; whoever does not name a round sees nothing of them.
"""

from __future__ import annotations

from hubweir.amqp.messaging.annotations import (
    IDEMPOTENT_PRODUCER,
    PRODUCER_DIGEST,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    PRODUCER_ROUND,
    PRODUCER_SEQUENCE_NUMBER,
    RESUMING_PRODUCER,
    TRACKING_ID,
)
from hubweir.amqp.messaging.sections import MESSAGE_ANNOTATIONS, walk_sections
from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.values import Int, Long, Short, Symbol
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer, nobody_waits
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AppendNumbered, CloseProducer, OpenProducer, ProducerOpened
from hubweir.errors import (
    ARGUMENT_ERROR,
    ARGUMENT_OUT_OF_RANGE,
    DECODE_ERROR,
    ENTITY_MOVED,
    INVALID_FIELD,
    DecodeError,
    ServiceError,
)
from hubweir.event_hub.open_run import AddStatus, OpenRun
from hubweir.event_hub.producer_state import DIGEST_LIMIT, NUMBER_LIMIT, ROUND_LIMIT
from hubweir.gateway.amqp.node import NodeHost, attach_properties, gone
from hubweir.gateway.amqp.publisher_node import PublisherNode, refusal_of
from hubweir.gateway.append_queue import DeliveryRange, PendingAppend, Submission
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.directory import PartitionPlace
from hubweir.gateway.refusals import What
from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_SETTLED, D_START, DELIVERY_WIDTH

_NAMES = (PRODUCER_ID, PRODUCER_EPOCH, PRODUCER_SEQUENCE_NUMBER)


def wants_numbers(link: Link) -> bool:
    """Whether the peer's attach desires to publish idempotently."""
    desired = None if link.attach is None else link.attach.desired_capabilities
    return IDEMPOTENT_PRODUCER in (desired or ())


class NumberedPublisherNode(PublisherNode):
    """See the module's text."""

    def __init__(self, host: NodeHost, link: ReceiverLink, *, scope: Scope, place: PartitionPlace) -> None:
        """Raises ServiceError INVALID_FIELD when a property is no number, ARGUMENT_OUT_OF_RANGE for a bad round."""
        super().__init__(host, link, scope=scope, places=(place,), router=None)
        self._place = place
        properties = attach_properties(link)
        self._asked = tuple(_number(properties.get(name), name) for name in _NAMES)
        self._round = _number(properties.get(PRODUCER_ROUND), PRODUCER_ROUND)
        if self._round is not None and not 0 <= self._round < ROUND_LIMIT:
            raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"{PRODUCER_ROUND} is {self._round}: it counts from 0.")
        self._opening: int | None = None
        self._producer_id = self._epoch = 0
        self._run = OpenRun()

    def start(self) -> None:
        """Open the producer; the attach is answered when its owner has."""
        self.host.uses_readers()
        place = self._place
        producer_id, epoch, number = self._asked
        command = OpenProducer(
            place.log_id, self.host.owner, producer_id, epoch, number, self._round
        )  # fmt: skip
        place.broker.submit(command, self._opened)

    def closed(self) -> None:
        super().closed()
        # The end of a connection closes all that it holds with one command.
        if self._opening is not None and not self.host.is_over:
            self._place.broker.submit(CloseProducer(self._place.log_id, self._opening), nobody_waits)

    def broker_gone(self, broker: BrokerClient) -> None:
        """The producer is over. Its number may be another's when the broker is back."""
        if self._place.broker is broker and self._opening is not None:
            self._opening = None
            self.host.detach(self, gone(self.entity))

    def _opened(self, answer: Answer) -> None:
        if isinstance(answer, ProducerOpened):
            if self._is_over:
                self._place.broker.submit(CloseProducer(self._place.log_id, answer.opening_id), nobody_waits)
                return
            self._opening, self._producer_id, self._epoch = answer.opening_id, answer.producer_id, answer.epoch
            properties = {
                **attach_properties(self.link),
                TRACKING_ID: self.host.env.new_id(),
                PRODUCER_ID: Long(answer.producer_id),
                PRODUCER_EPOCH: Short(answer.epoch),
                PRODUCER_SEQUENCE_NUMBER: Int(answer.sequence_number),
            }
            offered: tuple[Symbol, ...] = (IDEMPOTENT_PRODUCER,)
            if self._round is not None:
                properties |= {PRODUCER_ROUND: Long(self._round), PRODUCER_DIGEST: Long(answer.digest)}
                offered += (RESUMING_PRODUCER,)
            self.link.accept(
                max_message_size=self.host.gateway.max_message_size_bytes,
                properties=properties,
                offered_capabilities=offered,
            )
            self.host.authorized()
            self._top_up()
        elif not self._is_over:
            self.host.refuse(self, self.host.describe(What.ATTACH, error_of(answer), entity=self.entity))
        self.host.wake()

    def deliveries(self, event: DeliveriesReceived) -> None:
        if not self._take(event):
            return
        for row in range(event.count):
            if self._is_over:  # a transfer before it ended the link: nothing behind it is taken
                self._give_back(1, event.rows[row * DELIVERY_WIDTH + D_LENGTH])
                continue
            try:
                self._send(event, row)
            except ServiceError as refusal:
                self.reject_row(event.rows, row, refusal)
        self.host.finish_later(self)

    def answered(self, submission: Submission, answer: Answer) -> None:
        """As a publisher; and when the owner does not know the producer any more the link ends: attach anew."""
        super().answered(submission, answer)
        if isinstance(answer, Refusal) and answer.condition is ENTITY_MOVED and not self._is_over:
            self.host.detach(self, ServiceError(ENTITY_MOVED, answer.text))

    def _send(self, event: DeliveriesReceived, row: int) -> None:
        """Hand one delivery to the owner; ServiceError when it is refused here."""
        rows, at = event.rows, row * DELIVERY_WIDTH
        start, size = rows[at + D_START], rows[at + D_LENGTH]
        number, digest = self._numbers_of(event.data, start, start + size)
        added = self._run.add_numbered(
            event.data, rows, row, producer_id=self._producer_id, epoch=self._epoch, first_number=number,
            round=0 if self._round is None else self._round + 1, digest=digest,
        )  # fmt: skip
        run = self._run.take_run()
        if added.status is not AddStatus.DONE:
            raise refusal_of(added.status, self.entity)
        if not added.events:
            raise ServiceError(ARGUMENT_ERROR, "A numbered transfer holds at least one event; this one is empty.")
        delivery_id = rows[at + D_DELIVERY_ID]
        submission = Submission(self, DeliveryRange(delivery_id, delivery_id), 1, size, bool(rows[at + D_SETTLED]))
        assert self._opening is not None  # no credit was given, and the engine reports nothing, before the accept
        command = AppendNumbered(self._place.log_id, self._opening, run, added.events, size)
        gateway = self.host.gateway
        pending = PendingAppend(
            [submission],
            began_s=gateway.env.monotonic_s(),
            clock=gateway.env.monotonic_s,
            latency=gateway.counters.send,
        )
        gateway.units.append(self._place.broker, command, pending)

    def _numbers_of(self, data: memoryview, start: int, end: int) -> tuple[int, int]:
        """First number and digest of a delivery, as its annotations say. The digest is 0 without a round.

        ServiceError when one is missing, or of another producer.
        """
        annotations = _annotations(data, start, end)
        found = tuple(_number(annotations.get(name), name) for name in _NAMES)
        if found[0] not in (None, self._producer_id) or found[1] not in (None, self._epoch):
            text = (
                f"The transfer names producer {found[0]} with epoch {found[1]}; this link was attached for producer "
                f"{self._producer_id} with epoch {self._epoch}."
            )
            raise ServiceError(ARGUMENT_ERROR, text)
        if found[2] is None or not 0 <= found[2] <= NUMBER_LIMIT:
            text = (
                f"A transfer on this link has to carry its first event's number as {PRODUCER_SEQUENCE_NUMBER}, 0 to "
                f"{NUMBER_LIMIT}; this one has {found[2]}."
            )
            raise ServiceError(ARGUMENT_ERROR, text)
        if self._round is None:
            return found[2], 0
        digest = _number(annotations.get(PRODUCER_DIGEST), PRODUCER_DIGEST)
        if digest is None or not 0 <= digest <= DIGEST_LIMIT:
            text = f"A transfer in a round has to carry {PRODUCER_DIGEST}, 0 to {DIGEST_LIMIT}; this one has {digest}."
            raise ServiceError(ARGUMENT_ERROR, text)
        return found[2], digest


def _annotations(data: memoryview, start: int, end: int) -> dict[object, object]:
    """The message annotations of a delivery as it came; empty when there are none. ServiceError DECODE_ERROR."""
    try:
        for section in walk_sections(data, start, end):
            if section.code == MESSAGE_ANNOTATIONS:
                value, _ = decode(data, section.value, section.end)
                return value if isinstance(value, dict) else {}
    except DecodeError as error:
        raise ServiceError(DECODE_ERROR, f"The delivery is no legal AMQP message: {error}") from None
    return {}


def _number(value: object, name: str) -> int | None:
    """An integer of any width, or None; ServiceError INVALID_FIELD for anything else."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise ServiceError(INVALID_FIELD, f"{name} must be an integer or null.")
    return int(value)
