"""Links that bring messages: what comes is counted, handed to a subclass, and answered when its broker has answered.

A delivery is accepted when it is stored as its entity's mode promises, rejected when it was certainly not stored. Not
known: the link is detached with a timeout and nothing is said about the delivery. Delivery ids are serial numbers of
the session; ranges of them are settled with one disposition. The subclass says where deliveries go: publisher_node.py
to event hubs, queue_sender_node.py to queues.
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
from hubweir.broker.commands.process import Refusal
from hubweir.errors import MESSAGE_TOO_LARGE, TIMED_OUT, ServiceError
from hubweir.gateway.amqp.delivery_ranges import merge_ranges, ranges_of
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties
from hubweir.gateway.append_queue import DeliveryRange, Submission
from hubweir.gateway.refusals import What
from hubweir.kernels.contract import D_DELIVERY_ID, D_LENGTH, D_SETTLED, DELIVERY_WIDTH
from hubweir.namespace.error_text import message_too_large
from hubweir.namespace.rights import Rights

_ACCEPTED = Accepted()


class IncomingNode(Node):
    """See the module's text. entity: to which the link sends, its name as created.

    max_message_size_bytes: told to the peer, and enforced by the engine.
    """

    link: ReceiverLink

    def __init__(
        self, host: NodeHost, link: ReceiverLink, *, scope: Scope, entity: str, max_message_size_bytes: int
    ) -> None:
        super().__init__(host, link, right=Rights.SEND, scope=scope)
        self.entity = entity
        self._traffic = host.gateway.traffic.of(entity)
        self._max_message_size_bytes = max_message_size_bytes
        self._unanswered = 0
        self._accepted: list[DeliveryRange] = []
        self._scattered: list[array[int]] = []  # accepted too: ids between which others lie
        self._rejected: list[tuple[DeliveryRange, AmqpError]] = []
        self._is_over = False

    def stands_on(self, entity: str) -> bool:
        return entity == self.entity

    def start(self) -> None:
        properties = {**attach_properties(self.link), TRACKING_ID: self.host.env.new_id()}
        self.link.accept(max_message_size=self._max_message_size_bytes, properties=properties)
        self.host.authorized()
        self._top_up()

    def is_idle(self) -> bool:
        return not self._unanswered

    def oversize(self, event: OversizeReceived) -> None:
        text = message_too_large(event.delivery_id, event.size, self._max_message_size_bytes)
        refusal = ServiceError(MESSAGE_TOO_LARGE, text)
        self._traffic.requests += 1
        if event.transaction is not None:
            self.host.transactions.spoil(event.transaction.txn_id, refusal)
        if not event.settled:
            self._reject(event.delivery_id, refusal)
        self.host.finish_later(self)

    def answered(self, submission: Submission, answer: Answer) -> None:
        """The broker's word about a submission of this link (append_queue.Submitter)."""
        self._give_back(submission.deliveries, submission.size_bytes)
        if isinstance(answer, Refusal):
            self._traffic.refused(answer.condition, submission.deliveries)
        else:
            self._traffic.successful += submission.deliveries
        if self._is_over:
            return
        if isinstance(answer, Refusal) and not answer.known:
            text = f"The outcome of sends to '{self.entity}' is not known: {answer.text} Attach again to go on."
            self.host.detach(self, ServiceError(TIMED_OUT, text))
            return
        if not submission.settled:
            ids = submission.ids
            if isinstance(answer, Refusal):
                error = self.host.describe(What.SEND, answer.error, entity=self.entity)
                spans = [ids] if isinstance(ids, DeliveryRange) else merge_ranges(ranges_of([ids]))
                self._rejected += [(span, error) for span in spans]
            elif isinstance(ids, DeliveryRange):
                self._accepted.append(ids)
            else:
                self._scattered.append(ids)
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

    def closed(self) -> None:
        self._is_over = True

    def _take(self, event: DeliveriesReceived) -> bool:
        """Count deliveries that came; False when the link's claim is over, and the link with it."""
        if not self.is_covered():
            return False
        self.host.gateway.counters["gateway.deliveries_received"] += event.count
        self.host.budget.take_bytes(sum(event.rows[D_LENGTH : event.count * DELIVERY_WIDTH : DELIVERY_WIDTH]))
        self._unanswered += event.count
        self._traffic.requests += event.count
        return True

    def _top_up(self) -> None:
        """Credit is what the service still has room for: what is not answered yet counts as taken."""
        room = max(1, self.host.link_settings.publisher_credit - self._unanswered)
        if self.link.credit <= room // 2:
            self.link.grant(room)

    def reject_row(self, rows: array[int], row: int, refusal: ServiceError) -> None:
        at = row * DELIVERY_WIDTH
        self._give_back(1, rows[at + D_LENGTH])
        if not rows[at + D_SETTLED]:
            self._reject(rows[at + D_DELIVERY_ID], refusal)

    def _reject(self, delivery_id: int, refusal: ServiceError) -> None:
        self.host.gateway.counters["gateway.deliveries_rejected"] += 1
        self._traffic.refused(refusal.condition)
        error = self.host.describe(What.SEND, refusal, entity=self.entity)
        self._rejected.append((DeliveryRange(delivery_id, delivery_id), error))

    def _give_back(self, deliveries: int, size: int) -> None:
        self._unanswered -= deliveries
        self.host.budget.give_back_bytes(size)
