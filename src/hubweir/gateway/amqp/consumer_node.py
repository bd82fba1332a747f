"""Links that read one partition through a consumer group.

A reader is opened at the partition's broker, then read one run at a time as long as there is credit; the kernel writes
transfer frames straight from the run, an event in each delivery or stored batches (outgoing_events.py). What credit,
the session's window or the transport do not take is kept as run and cursor, one run a link and not for long: a run that
nothing is sent from is dropped, and read again from where it stopped. How much goes out in one turn is shared by the
links of a connection (turn_share.py). Deliveries go out settled, unless the receiver settles second: then its
disposition is answered, and makes room where as many are unsettled as a link may have; its outcome has no effect.
(Event Hubs has no redelivery.) The end of the link frees the reader at once. A receiver that desires runtime metrics is
told with every delivery how far the partition reaches: the owner is asked before each send.
"""

from __future__ import annotations

from hubweir.amqp.messaging.annotations import TRACKING_ID
from hubweir.amqp.transport.events import Settled
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer, nobody_waits
from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.broker.commands.reader import (
    CancelRead,
    CloseReader,
    EventsRead,
    OpenReader,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
)
from hubweir.errors import EVENTS_LOST, LINK_STOLEN, ServiceError
from hubweir.gateway.amqp.egress_pacer import EgressPacer
from hubweir.gateway.amqp.held_run import HeldRun
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties, gone
from hubweir.gateway.amqp.outgoing_events import outgoing_events
from hubweir.gateway.amqp.reader_attach import read_attach
from hubweir.gateway.amqp.reader_states import NEXT, ReaderState, ReaderStep
from hubweir.gateway.amqp.runtime_metrics import encode_metrics
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.directory import PartitionPlace
from hubweir.gateway.held_runs import ReadSize
from hubweir.gateway.refusals import What
from hubweir.namespace.availability import check_may_receive
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.traced_step import Trace

CONTAINER_SHOWN = 128  # characters of a container id that people see of a reader
# Clients that attach again without a word whatever a receiver's link ended with, but when another reader took the
# partition: so lost events are told under that condition. Azure's Python client 5.15 counts its tries afresh with each
# poll; its Go client 2.0 opens a new connection for every condition that its table has not.
TELL_NOTHING_ELSE = ("azsdk-python-eventhubs", "MSGolangClient")


class ConsumerNode(Node):
    """See the module's text."""

    link: SenderLink

    def __init__(self, host: NodeHost, link: SenderLink, *, scope: Scope, place: PartitionPlace, group: str) -> None:
        """Raises ServiceError when the attach asks for an impossible position or epoch."""
        super().__init__(host, link, right=Rights.LISTEN, scope=scope)
        self._place = place
        self.entity = place.hub
        self._traffic = host.gateway.traffic.of(place.hub)
        self._group = group
        self._wish = read_attach(link)
        self._outgoing = outgoing_events(link)
        env, settings = host.env, host.link_settings
        self._held = HeldRun(
            ReadSize(
                host.gateway.process.held_runs, least_bytes=settings.read_bytes, limit_bytes=settings.read_limit_bytes
            )
        )
        self._pacer = EgressPacer(host.gateway.units, env.monotonic_ms, env.call_later, self._pump)
        self._tracer = host.gateway.process.tracer
        self._trace: Trace | None = None  # of the run that is held, where clients trace events of it
        self._metrics = b""  # for the next send only
        self._reader_id: int | None = None  # while it is open at its broker
        self._state = ReaderState.OPENING
        self._is_pumping = False  # an answer that comes while it is asked for must not begin another round

    @property
    def holds_run(self) -> bool:
        """Whether events that were read wait in memory."""
        return self._held.run is not None

    def start(self) -> None:
        """Open the reader; the attach is answered when its broker has."""
        self.host.uses_readers()
        wish = self._wish
        opened = self.host.endpoint.remote_open
        command = OpenReader(
            self._place.log_id, self.host.owner, self._group, wish.position, wish.owner_level, wish.name,
            self.host.peer, "" if opened is None else opened.container_id[:CONTAINER_SHOWN],
        )  # fmt: skip
        self._place.broker.submit(command, self._opened)

    def credit(self) -> None:
        if self._state is ReaderState.READING and self.link.drain:
            assert self._reader_id is not None
            self._state = NEXT[self._state, ReaderStep.CANCEL]
            self._place.broker.submit(CancelRead(self._place.log_id, self._reader_id), nobody_waits)
        self._pump()

    def settled(self, event: Settled) -> None:
        if self._state is ReaderState.UNSETTLED:  # one send for all dispositions of this turn
            self.host.finish_later(self)

    def finish(self) -> None:
        self._pump()

    def go_on(self) -> None:
        """This link's turn has come."""
        self._pump()

    def drop_stale_run(self) -> bool:
        """Forget the run that is held when nothing was sent from it since the last call; True while one is held."""
        self._held.drop_when_stale()
        return self.holds_run

    def is_idle(self) -> bool:
        return self._outgoing.wanted == 0

    def catalog_changed(self) -> None:
        hub = self.host.gateway.namespace.find(self._place.hub, EventHubDescription)
        if hub is None:
            return
        try:
            check_may_receive(hub.description)
        except ServiceError as refusal:
            if self._state is ReaderState.OPENING:
                self.host.refuse(self, self.host.describe(What.ATTACH, refusal, entity=self._place.hub))
            else:
                self.host.detach(self, refusal)

    def closed(self) -> None:
        self._state = NEXT[self._state, ReaderStep.END]
        self._held.close()
        self._pacer.close()
        self.host.share.forget(self)
        # The end of a connection frees all of its readers with one command.
        if self._reader_id is not None and not self.host.is_over:
            self._place.broker.submit(CloseReader(self._place.log_id, self._reader_id), nobody_waits)

    def reader_closed(self, broker: BrokerClient, push: ReaderClosed) -> None:
        """The link ends with the reason that the broker gave."""
        if self._place.broker is broker and self._reader_id == push.reader_id:
            self._reader_id = None
            self._fail(ServiceError(push.condition, push.text))

    def broker_gone(self, broker: BrokerClient) -> None:
        """The reader is over. Its number may be another's when the broker is back."""
        if self._place.broker is broker and self._reader_id is not None:
            self._reader_id = None
            self._fail(gone(self._place.hub))

    def _opened(self, answer: Answer) -> None:
        if isinstance(answer, ReaderOpened):
            if self._state is ReaderState.OVER:
                self._place.broker.submit(CloseReader(self._place.log_id, answer.reader_id), nobody_waits)
                return
            self._reader_id = answer.reader_id
            self._state = NEXT[self._state, ReaderStep.OPENED]
            properties = {**attach_properties(self.link), TRACKING_ID: self.host.env.new_id()}
            offered = self._outgoing.offered
            self.link.accept(source=self._wish.source, properties=properties, offered_capabilities=offered)
            self.host.authorized()
            self._pump()
        elif self._state is not ReaderState.OVER:
            self.host.refuse(self, self.host.describe(What.ATTACH, error_of(answer), entity=self._place.hub))
        self.host.wake()

    # Reading and sending

    def _pump(self) -> None:
        """Send and read as long as credit, window, transport and the connection's share of the turn allow."""
        if self._is_pumping:
            return
        if self._state is ReaderState.UNSETTLED:
            self._state = NEXT[self._state, ReaderStep.GO_ON]
        if self._state is not ReaderState.READY:
            return
        self._is_pumping = True
        try:
            while self._state is ReaderState.READY and self._step():
                pass
        finally:
            self._is_pumping = False
        host, held = self.host, self._held
        if held.run is not None and host.writing_paused and host.gateway.process.held_runs.is_used_up:
            held.drop()
        if held.run is not None:
            host.share.holds_run(self)
        host.wake()

    def _step(self) -> bool:
        """One send or one read; False when no other can follow now."""
        held = self._held
        run = held.run
        left_bytes = self.host.share.left_bytes(0 if run is None else len(run) - held.cursor.batch_at)
        if not left_bytes:
            self.host.share.wait(self)
            return False
        wanted = self._outgoing.wanted
        if wanted <= 0:
            self._answer_drain()
            return False
        if run is None:
            self._read()
        elif self._outgoing.wants_metrics and not self._metrics:
            self._ask_metrics()
        else:
            return self._send(run, wanted, left_bytes)
        return True

    def _send(self, run: bytes | memoryview, wanted: int, left_bytes: int) -> bool:
        held = self._held
        allowed = self._pacer.allowed(wanted, held.events, len(run) - held.cursor.batch_at)
        if not allowed:
            return False
        progress = self._outgoing.send(
            run, held.cursor, max_events=allowed, max_bytes=left_bytes, delivery_annotations=self._metrics
        )
        self._metrics = b""
        self._pacer.sent(progress.events, progress.bytes)
        self.host.gateway.counters["gateway.events_delivered"] += progress.events
        traffic = self._traffic
        traffic.messages_out += progress.events
        traffic.bytes_out += progress.bytes
        held.sent(run, progress)
        if self._trace is not None and held.run is None:
            self._trace.ended()
            self._trace = None
        # Where nothing went out, the session's window is shut, and its next flow comes as `credit`; or too many
        # deliveries are unsettled, and the next disposition comes as `settled`.
        if progress.events == 0 and held.run is not None and not self.link.unsettled_room:
            self._state = NEXT[self._state, ReaderStep.STOP]
            self._answer_drain()
        return progress.events > 0 or held.run is None

    def _ask_metrics(self) -> None:
        """Ask how far the partition reaches now."""
        self._state = NEXT[self._state, ReaderStep.ASK]
        self._place.broker.submit(AskPartitionInfo(self._place.log_id), self._took_metrics)

    def _took_metrics(self, answer: Answer) -> None:
        if self._state is ReaderState.OVER:
            return
        self._state = NEXT[self._state, ReaderStep.ANSWERED]
        if isinstance(answer, PartitionInfo):
            self._metrics = encode_metrics(answer, self.host.env.now_ms())
            self._pump()
        else:
            self._fail(error_of(answer))

    def _read(self) -> None:
        """Ask for the next run."""
        assert self._reader_id is not None
        size_bytes, settings = self._held.size.next_bytes(), self.host.link_settings
        # A large read is taken out of what all readers share, so it does not wait for events: a small one does.
        wait_ms = 0 if self.link.drain or size_bytes > settings.read_bytes else settings.read_wait_ms
        self._state = NEXT[self._state, ReaderStep.READ]
        command = ReadEvents(self._place.log_id, self._reader_id, size_bytes, wait_ms, self._held.again_from)
        self._place.broker.submit(command, self._took)

    def _took(self, answer: Answer) -> None:
        if self._state is ReaderState.OVER:
            return
        self._state = NEXT[self._state, ReaderStep.ANSWERED]
        if isinstance(answer, EventsRead):
            self._held.came(answer)
            if self._tracer is not None:
                self._trace = self._tracer.delivers(self._place.hub, answer.run)
            if self._held.run is None:
                self._answer_drain()
            self._pump()
        else:
            self._fail(error_of(answer))

    def _answer_drain(self) -> None:
        """Nothing is left to send: give the rest of the credit back, when that was asked for."""
        if self.link.drain:
            self.link.drained()
            self.host.wake()

    def _fail(self, error: ServiceError) -> None:
        if error.condition is EVENTS_LOST and self.host.endpoint.remote_product in TELL_NOTHING_ELSE:
            error = ServiceError(LINK_STOLEN, error.text)
        self.host.detach(self, error)
