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
from hubweir.amqp.transport.sender_link import RunCursor, SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import AskPartitionInfo, PartitionInfo
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.reader import (
    CancelRead,
    CloseReader,
    EventsRead,
    OpenReader,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
)
from hubweir.errors import EVENTS_LOST, INTERNAL_ERROR, LINK_STOLEN, ServiceError
from hubweir.event_hub.availability import check_may_receive
from hubweir.gateway.amqp.egress_pacer import EgressPacer
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties
from hubweir.gateway.amqp.outgoing_events import outgoing_events
from hubweir.gateway.amqp.reader_attach import read_filter, read_owner_level
from hubweir.gateway.amqp.run_cursor import cursor_at, sequence_number_at
from hubweir.gateway.amqp.runtime_metrics import encode_metrics
from hubweir.gateway.directory import PartitionPlace
from hubweir.gateway.held_runs import ReadSize
from hubweir.gateway.refusals import What
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.rights import Rights

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
        self._group = group
        self._position, self._source = read_filter(link)
        self._epoch, self._name = read_owner_level(link)
        self._reader_id: int | None = None
        self._held: bytes | memoryview | None = None
        self._cursor = RunCursor(0, 0, 0)
        self._left = 0  # at most so many events of the held run are not sent
        env, settings = host.env, host.link_settings
        self._read_size = ReadSize(
            host.gateway.held_runs, least_bytes=settings.read_bytes, limit_bytes=settings.read_limit_bytes
        )
        self._pacer = EgressPacer(host.gateway.units, env.monotonic_ms, env.call_later, self._pump)
        self._held_is_fresh = False
        self._again_from: int | None = None  # of the first event that was read, and dropped unsent
        self._outgoing = outgoing_events(link)
        self._metrics = b""  # for the next send only
        self._is_asking = False
        self._is_reading = False
        self._is_cancelled = False
        self._is_pumping = False
        self._is_full = False  # nothing was sent because too many deliveries are unsettled
        self._drain_is_answered = False
        self._is_over = False

    @property
    def reader_id(self) -> int | None:
        """The broker's id of the open reader, or None."""
        return self._reader_id

    @property
    def place(self) -> PartitionPlace:
        return self._place

    def start(self) -> None:
        """Open the reader; the attach is answered when its broker has."""
        self.host.uses_readers()
        command = OpenReader(
            self._place.log_id,
            self._group,
            self._position,
            self._epoch,
            self._name,
            self.host.owner,
        )
        self._place.broker.submit(command, self._opened)

    def credit(self) -> None:
        self._drain_is_answered = False
        if self.link.drain and self._is_reading and not self._is_cancelled and self._reader_id is not None:
            self._is_cancelled = True
            self._place.broker.submit(CancelRead(self._place.log_id, self._reader_id), _nothing)
        self._pump()

    def settled(self, event: Settled) -> None:
        if self._is_full:  # one send for all dispositions of this turn
            self.host.finish_later(self)

    def finish(self) -> None:
        self._is_full = False
        self._pump()

    def go_on(self) -> None:
        """This link's turn has come."""
        self._pump()

    def drop_stale_run(self) -> bool:
        """Forget the run that is held when nothing was sent from it since the last call; True while one is held."""
        if not self._held_is_fresh:
            self._drop_run()
        self._held_is_fresh = False
        return self._held is not None

    def is_idle(self) -> bool:
        return self._outgoing.wanted == 0

    def catalog_changed(self) -> None:
        hub = self.host.gateway.namespace.find(self._place.hub, EventHubDescription)
        if hub is None:
            return
        try:
            check_may_receive(hub.description)
        except ServiceError as refusal:
            if self._reader_id is None:  # its attach is not answered yet
                self.host.refuse(self, self.host.describe(What.ATTACH, refusal, entity=self._place.hub))
            else:
                self.host.detach(self, refusal)

    def closed(self) -> None:
        self._is_over = True
        self._held = None
        self._read_size.dropped()
        self._pacer.close()
        self.host.share.forget(self)
        # The end of a connection frees all of its readers with one command.
        if self._reader_id is not None and not self.host.is_over:
            self._place.broker.submit(CloseReader(self._place.log_id, self._reader_id), _nothing)

    def reader_closed(self, push: ReaderClosed) -> None:
        """The broker ended the reader: the link ends with its reason."""
        self._reader_id = None
        self._fail(push.symbol, push.text)

    def _opened(self, answer: Answer) -> None:
        if isinstance(answer, ReaderOpened):
            if self._is_over:
                self._place.broker.submit(CloseReader(self._place.log_id, answer.reader_id), _nothing)
                return
            self._reader_id = answer.reader_id
            properties = {**attach_properties(self.link), TRACKING_ID: self.host.env.new_id()}
            offered = self._outgoing.offered
            self.link.accept(source=self._source, properties=properties, offered_capabilities=offered)
            self.host.authorized()
            self._pump()
        elif not self._is_over:
            symbol, text = _reason(answer)
            self.host.refuse(self, self.host.describe_symbol(What.ATTACH, symbol, text, entity=self._place.hub))
        self.host.wake()

    # Reading and sending

    def _pump(self) -> None:
        """Send and read as long as credit, window, transport and the connection's share of the turn allow."""
        if self._is_pumping or self._is_over or self._reader_id is None:
            return
        self._is_pumping = True
        try:
            while self._step():
                pass
        finally:
            self._is_pumping = False
        if self.host.writing_paused and self.host.gateway.held_runs.is_used_up:
            self._drop_run()
        if self._held is not None:
            self.host.share.holds_run(self)
        self.host.wake()

    def _step(self) -> bool:
        """One send or one read; False when there is nothing to do now."""
        if self._is_over:
            return False
        if not self.host.share.has_room:
            self.host.share.wait(self)
            return False
        if self._held is not None:
            if self._outgoing.wants_metrics and not self._metrics and self._outgoing.wanted > 0:
                return self._ask_metrics()
            return self._send(self._held)
        if self._is_reading:
            return False
        if self._outgoing.wanted <= 0:
            self._answer_drain()
            return False
        return self._read()

    def _send(self, run: bytes | memoryview) -> bool:
        wanted = self._outgoing.wanted
        if wanted <= 0:
            self._answer_drain()
            return False
        allowed = self._pacer.allowed(wanted, self._left, len(run) - self._cursor.batch_at)
        if not allowed:
            return False
        progress = self._outgoing.send(
            run, self._cursor, max_events=allowed, max_bytes=self.host.share.left_bytes, metrics=self._metrics
        )
        self._metrics = b""
        self._pacer.sent(progress.events, progress.bytes)
        self._left -= progress.events
        self._cursor = progress.cursor
        self._held_is_fresh = self._held_is_fresh or progress.events > 0
        self.host.gateway.counters.add("gateway.events_delivered", progress.events)
        if self._cursor.batch_at >= len(run):
            self._held = None
            self._read_size.sent()
            return True
        if progress.events == 0:
            self._stopped()
        return progress.events > 0

    def _stopped(self) -> None:
        """Nothing went out, with credit. The session's window is shut, and its next flow comes as `credit`; or too
        many deliveries are unsettled, and the next disposition comes as `settled`.
        """
        self._is_full = not self.link.unsettled_room
        if self._is_full:
            self._answer_drain()

    def _ask_metrics(self) -> bool:
        """Ask how far the partition reaches now; True when the answer came at once."""
        if not self._is_asking:
            self._is_asking = True
            self._place.broker.submit(AskPartitionInfo(self._place.log_id), self._took_metrics)
        return not self._is_asking

    def _took_metrics(self, answer: Answer) -> None:
        self._is_asking = False
        if self._is_over:
            return
        if isinstance(answer, PartitionInfo):
            self._metrics = encode_metrics(answer, self.host.env.now_ms())
        else:
            symbol, text = _reason(answer)
            self._fail(symbol, text)
        self._pump()

    def _read(self) -> bool:
        """Ask for the next run; True when it came at once."""
        if self._reader_id is None:
            return False
        self._is_reading = True
        self._is_cancelled = False
        size_bytes, settings = self._read_size.ask(), self.host.link_settings
        # A large read is taken out of what all readers share, so it does not wait for events: a small one does.
        wait_ms = 0 if self.link.drain or size_bytes > settings.read_bytes else settings.read_wait_ms
        command = ReadEvents(self._place.log_id, self._reader_id, size_bytes, wait_ms, self._again_from)
        self._again_from = None
        self._place.broker.submit(command, self._took)
        return not self._is_reading

    def _took(self, answer: Answer) -> None:
        self._is_reading = False
        if self._is_over:
            return
        self._read_size.came(len(answer.run) if isinstance(answer, EventsRead) else 0)
        if not isinstance(answer, EventsRead):
            symbol, text = _reason(answer)
            self._fail(symbol, text)
        elif len(answer.run):
            self._held, self._held_is_fresh = answer.run, True
            self._left = answer.next_sequence_number - answer.sequence_number
            self._cursor = cursor_at(answer.run, answer.sequence_number)
        else:
            self._answer_drain()
        self._pump()

    def _drop_run(self) -> None:
        """Forget the run that is held, if any; what of it was not sent is read again."""
        if self._held is not None:
            self._again_from = sequence_number_at(self._held, self._cursor)
            self._held = None
            self._read_size.dropped()

    def _answer_drain(self) -> None:
        """Nothing is left to send: give the rest of the credit back, when that was asked for."""
        if self.link.drain and not self._drain_is_answered:
            self._drain_is_answered = True
            self.link.drained()
            self.host.wake()

    def _fail(self, symbol: str, text: str) -> None:
        if symbol == EVENTS_LOST.symbol and self.host.endpoint.remote_product in TELL_NOTHING_ELSE:
            symbol = LINK_STOLEN.symbol
        self.host.detach_symbol(self, symbol, text)


def _reason(answer: Answer) -> tuple[str, str]:
    if isinstance(answer, Refusal):
        return answer.symbol, answer.text
    return INTERNAL_ERROR.symbol, "The broker gave an answer that does not belong to the request."


def _nothing(answer: Answer) -> None:
    """The answer of a command that nobody waits for."""
