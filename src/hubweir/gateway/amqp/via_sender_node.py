"""Links that send by way of another entity: what they bring goes to their destination, in transactions with the rest.

A link whose target is the via entity names the destination in a property. It needs the right to send to both. Messages
are stored at the destination, in the same step as all that their transaction does; so nothing is on its way between the
two, and an entity that is full takes none of it. Where the destination takes nothing because of its status, or is gone
by then, they are transfer dead letters of the via entity instead.
"""

from __future__ import annotations

from hubweir.amqp.transport.events import DeliveriesReceived
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.transaction import CommitTransaction
from hubweir.errors import ServiceError
from hubweir.event_hub.open_run import OpenRun
from hubweir.gateway.amqp.node import NodeHost
from hubweir.gateway.amqp.queue_sender_node import QueueSenderNode
from hubweir.gateway.append_queue import PendingAppend, Submission
from hubweir.gateway.destinations import Undeliverable, Way
from hubweir.gateway.fragment_choice import FragmentChoice
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.queue_admission import check_takes
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.queue.transaction import Undelivered


class ViaSenderNode(QueueSenderNode):
    """See the module's text. place, choice, needs_session: of the destination; scope: of the via entity."""

    def __init__(
        self,
        host: NodeHost,
        link: ReceiverLink,
        *,
        scope: Scope,
        destination_scope: Scope,
        place: FragmentPlace,
        way: Way,
        needs_session: bool,
        max_message_size_bytes: int,
        choice: FragmentChoice | None = None,
    ) -> None:
        super().__init__(
            host,
            link,
            scope=scope,
            place=place,
            needs_session=needs_session,
            max_message_size_bytes=max_message_size_bytes,
            choice=choice,
            way=way,
        )
        self.further_scopes = (destination_scope,)
        self._way: Way = way
        self._deliverable = self._queue

    def start(self) -> None:
        self._uses.sender_came(self._way.via)
        super().start()

    def closed(self) -> None:
        super().closed()
        self._uses.sender_left(self._way.via)

    def stands_on(self, entity: str) -> bool:
        return entity in (self.entity, self._way.via.entity)

    def deliveries(self, event: DeliveriesReceived) -> None:
        try:
            why = self._way.undeliverable()
        except ServiceError as refusal:
            if self._take(event):
                for row in range(event.count):
                    self.reject_row(event.rows, row, refusal)
                self.host.finish_later(self)
            return
        if why is None:
            self._queue, self._sorts_by = self._deliverable, self._choice
        else:
            self._queue, self._sorts_by = UndeliveredQueue(self._way.via, why), None
        super().deliveries(event)

    def catalog_changed(self) -> None:
        entity = self.host.gateway.namespace.find(self._way.via.entity, MessagingDescription)
        if entity is not None:
            try:
                check_takes(entity.description)
            except ServiceError as refusal:
                self.host.detach(self, refusal)


class UndeliveredQueue:
    """The open run of what becomes transfer dead letters, each time that deliveries were added to it."""

    def __init__(self, via: FragmentPlace, why: Undeliverable) -> None:
        self._via = via
        self._why = why
        self.run = OpenRun(names_keys=False)

    def add_submissions(self, submissions: list[Submission]) -> None:
        """Store the run; whoever waits is told how that ended."""
        messages, size_bytes = self.run.events, sum(each.size_bytes for each in submissions)
        run = self.run.take_run()
        said = Undelivered(messages, len(run), self._why.reason, self._why.description)
        command = CommitTransaction(self._via.log_id, (), b"", (said,), (), messages, size_bytes, run)
        self._via.broker.submit(command, PendingAppend(submissions).answered)
