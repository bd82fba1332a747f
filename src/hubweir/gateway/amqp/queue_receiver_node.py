"""Links that receive messages from a queue, a subscription, or a sub-queue of one, with a session or without.

A receiver is opened at the fragment's broker. As long as the link has credit, it asks for messages, one receive at a
time; a receive waits at the broker until there is a message. They go out by one kernel call, with the token of the lock
as delivery tag. What the session's window or the transport does not take is kept for the next turn: it is locked.
When the receiver settles, what it said in one turn goes to the broker in a command for each outcome, and the answers
go back to it when the broker says that they are durable (contract "Service Bus", 4.5). Under receive-and-delete
messages go out settled, and are gone.
Drain ends with a flow that has used the credit up, behind all that could be given.
Long because receiving, sending and settling are one node's, and share its state.
The end of the link gives back what was not sent; locks of what was sent stay until they end (4.2.5).
"""

from __future__ import annotations

from array import array
from enum import Enum, auto

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.annotations import TRACKING_ID
from hubweir.amqp.messaging.outcome import Rejected, TransactionalState
from hubweir.amqp.transport.events import Settled
from hubweir.amqp.transport.sender_link import SND_SETTLED, SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import (
    CancelReceive,
    CloseReceiver,
    GiveUpSession,
    MessagesReceived,
    MessagesSettled,
    OpenReceiver,
    ReceiveMessages,
    ReceiverOpened,
    SessionLost,
    SettleMessages,
)
from hubweir.broker.commands.process import Refusal
from hubweir.env import Timer
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.amqp.delivery_ranges import merge_ranges
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties
from hubweir.gateway.amqp.sent_tokens import SentTokens, tokens_of
from hubweir.gateway.amqp.session_filter import SessionWish, granted
from hubweir.gateway.amqp.settlements import Settling, spoken_of, transacted_of
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.queue_admission import check_gives
from hubweir.gateway.refusals import What
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.settle_outcome import LOCK_LOST, SettleOutcome, lost_error
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# A receive that drain ends gets this long: the fragment gives what it has at the end of the turn in which it was asked.
DRAIN_MS = 5


class ReceiverState(Enum):
    """OPENING: the broker was asked for a receiver. READY: the link stands. RECEIVING: a receive is outstanding."""

    OPENING = auto()
    READY = auto()
    RECEIVING = auto()
    OVER = auto()


class QueueReceiverNode(Node):
    """See the module's text. wish: the session that is wanted; None: none."""

    link: SenderLink

    def __init__(
        self,
        host: NodeHost,
        link: SenderLink,
        *,
        scope: Scope,
        place: FragmentPlace,
        sub_queue: SubQueue,
        wish: SessionWish | None,
    ) -> None:
        super().__init__(host, link, right=Rights.LISTEN, scope=scope)
        self.entity = place.entity
        self._place = place
        self._sub_queue = sub_queue
        self._wish = wish
        attach = link.attach
        is_settled = attach is not None and attach.snd_settle_mode == SND_SETTLED
        self._mode = ReceiveMode.RECEIVE_AND_DELETE if is_settled else ReceiveMode.PEEK_LOCK
        self._id_prefix = place.id_prefix
        self._state = ReceiverState.OPENING
        self._wait = "" if wish is None else host.env.new_id()  # for a session, until it is there
        self._receiver_id = -1
        self._run: bytes | memoryview = b""
        self._rows: array[int] = array("q")  # of what was received; those before _next_row were sent
        self._next_row = 0
        self._asked = 0  # by the receive that is outstanding; 0 when it was cancelled
        self._sent = SentTokens()
        self._settling: dict[tuple[SettleOutcome, object], Settling] = {}  # of this turn
        self._drain_timer: Timer | None = None
        self._is_pumping = False
        self.session_id: str | None = None

    def start(self) -> None:
        """Open the receiver; the attach is answered when its broker has."""
        self.host.uses_readers()
        wish = self._wish
        if wish is not None:
            # The right is proven, and a session may be waited for longer than a connection may go without one.
            self.host.authorized()
        command = OpenReceiver(
            self._place.log_id,
            self.host.owner,
            self._sub_queue,
            self._mode,
            with_session=wish is not None,
            session_id=None if wish is None else wish.session_id,
            wait_ms=0 if wish is None else wish.wait_ms,
            wait=self._wait,
        )
        self._place.broker.submit(command, self._opened)

    def credit(self) -> None:
        # What is released in this turn comes before what follows it, and some clients (Proton) write their flow in
        # front of the disposition: `finish` hands over what was settled, and goes on then.
        self.host.finish_later(self)

    def settled(self, event: Settled) -> None:
        """The receiver settled what it got; it is told when that is durable."""
        tokens = self._sent.take(event.first_id, event.last_id)
        if isinstance(event.outcome, TransactionalState):
            self._settled_in(event, event.outcome, tokens)
            return
        try:
            spoken = spoken_of(event.outcome)
        except ServiceError as refusal:
            self._refuse_settling(event, refusal)
            return
        settling = self._settling.setdefault((spoken.outcome, spoken.details), Settling(spoken))
        settling.tokens += tokens
        settling.spans.append((event.first_id, event.last_id, not event.settled))
        self.host.finish_later(self)

    def _settled_in(self, event: Settled, state: TransactionalState, tokens: bytes) -> None:
        """The settlement is part of a transaction: it is answered now, and done at the commit."""
        transactions, txn_id = self.host.transactions, state.txn_id
        try:
            spoken = transacted_of(state.outcome)
            transactions.settle(txn_id, self._place, tokens, spoken.outcome, spoken.details)
        except ServiceError as refusal:
            if event.settled:
                transactions.spoil(txn_id, refusal)
            self._refuse_settling(event, refusal)
        else:
            if not event.settled:
                answer = TransactionalState(txn_id=txn_id, outcome=spoken.answer)
                self.link.answer([(event.first_id, event.last_id)], answer)
        self.host.finish_later(self)

    def _refuse_settling(self, event: Settled, refusal: ServiceError) -> None:
        if not event.settled:
            error = self.host.describe(What.SEND, refusal, entity=self.entity)
            self.link.answer([(event.first_id, event.last_id)], Rejected(error=error))

    def finish(self) -> None:
        """Hand over what was settled in this turn, and go on: there may be room for more."""
        settlings, self._settling = self._settling, {}
        for settling in settlings.values():
            self._submit(settling)
        self._pump()

    def go_on(self) -> None:
        """This link's turn has come."""
        self._pump()

    def drop_stale_run(self) -> bool:
        """Messages that were received are locked: they stay until they are sent, or the link ends."""
        return self._has_rows

    def is_idle(self) -> bool:
        return self.link.credit == 0 and not len(self._sent)

    def stands_on(self, entity: str) -> bool:
        return self._place.goes_with(entity)

    def catalog_changed(self) -> None:
        entity = self.host.gateway.namespace.find(self.entity, MessagingDescription)
        if entity is None:
            return
        try:
            check_gives(entity.description, self._sub_queue)
        except ServiceError as refusal:
            if self._state is ReceiverState.OPENING:
                self.host.refuse(self, self.host.describe(What.ATTACH, refusal, entity=self.entity))
            else:
                self.host.detach(self, refusal)

    def session_lost(self, broker: BrokerClient, push: SessionLost) -> None:
        """The broker ended the lock of this link's session."""
        if self._place.broker is broker and push.receiver_id == self._receiver_id:
            self._receiver_id = -1
            self.host.detach(self, ServiceError(push.condition, push.text))

    def closed(self) -> None:
        was, self._state = self._state, ReceiverState.OVER
        self._stop_draining()
        self.host.share.forget(self)
        self._give_back_rows()
        for settling in self._settling.values():
            self._submit(settling)
        self._settling = {}
        if self.host.is_over:
            return  # the end of a connection closes all of its receivers with one command
        if was is ReceiverState.OPENING and self._wait:
            self._place.broker.submit(GiveUpSession(self._place.log_id, self._wait), _nothing)
        elif self._receiver_id >= 0:
            self._place.broker.submit(CloseReceiver(self._place.log_id, self._receiver_id), _nothing)

    # Opening

    def _opened(self, answer: Answer) -> None:
        if isinstance(answer, ReceiverOpened):
            if self._state is ReceiverState.OVER:
                self._place.broker.submit(CloseReceiver(self._place.log_id, answer.receiver_id), _nothing)
                return
            self._receiver_id, self.session_id = answer.receiver_id, answer.session_id
            self._state = ReceiverState.READY
            properties = {**attach_properties(self.link), TRACKING_ID: self.host.env.new_id()}
            source = self.link.source
            if self._wish is not None and answer.session_id is not None:
                source, more = granted(self._wish, answer.session_id, answer.locked_until_ms or 0)
                properties |= more
            if self._mode is ReceiveMode.PEEK_LOCK:
                self.link.answer_by_host(lambda: Rejected(error=self._lost(lost_error(LOCK_LOST))))
            self.link.accept(source=source, properties=properties)
            self.host.authorized()
            self._pump()
        elif self._state is not ReceiverState.OVER:
            self.host.refuse(self, self.host.describe(What.ATTACH, error_of(answer), entity=self.entity))
        self.host.wake()

    # Receiving and sending

    @property
    def _has_rows(self) -> bool:
        return self._next_row * MESSAGE_WIDTH < len(self._rows)

    def _pump(self) -> None:
        """Send and receive as long as credit, window, transport and the connection's share of the turn allow."""
        if self._is_pumping or self._state not in (ReceiverState.READY, ReceiverState.RECEIVING):
            return
        self._is_pumping = True
        try:
            while self._step():
                pass
        finally:
            self._is_pumping = False
        self.host.wake()

    def _step(self) -> bool:
        """One send or one receive; False when no other can follow now."""
        if self._state is ReceiverState.OVER:
            return False  # the answer to a receive ended it
        if self._has_rows:
            room = self.host.share.left_bytes(self.host.link_settings.read_bytes)
            if room <= 0:
                self.host.share.wait(self)
                return False
            return self._send(room)
        if self._state is ReceiverState.RECEIVING:
            self._ask_for_less()
            self._drain_soon()
            return self._state is not ReceiverState.RECEIVING
        wanted = min(self.link.credit, self._room)
        if wanted <= 0:
            self._answer_drain()
            return False
        self._receive(wanted)
        return True

    @property
    def _room(self) -> int:
        """How many more may be unsettled."""
        return self.link.unsettled_room if self._mode is ReceiveMode.PEEK_LOCK else self.link.credit

    def _receive(self, wanted: int) -> None:
        self._state, self._asked = ReceiverState.RECEIVING, wanted
        command = ReceiveMessages(self._place.log_id, self._receiver_id, wanted, self.host.link_settings.read_bytes)
        self._place.broker.submit(command, self._received)

    def _received(self, answer: Answer) -> None:
        if self._state is ReceiverState.OVER:
            if isinstance(answer, MessagesReceived):
                self._run, self._rows, self._next_row = answer.run, array("q", answer.rows), 0
                self._give_back_rows()
            return
        self._state = ReceiverState.READY
        self._stop_draining()
        if isinstance(answer, MessagesReceived):
            self._run, self._rows, self._next_row = answer.run, array("q", answer.rows), 0
            if not self._rows:
                self._answer_drain()
            self._pump()
        else:
            self.host.detach(self, error_of(answer))

    def _send(self, max_bytes: int) -> bool:
        first_row, settled = self._next_row, self._mode is ReceiveMode.RECEIVE_AND_DELETE
        progress = self.link.send_messages(
            self._run, self._rows, first_row,
            id_prefix=self._id_prefix, settled=settled, max_bytes=max_bytes,
        )  # fmt: skip
        self._next_row += progress.events
        if not settled:
            self._sent.add(progress.first_id, tokens_of(self._rows, first_row, self._next_row))
        self.host.gateway.counters["gateway.messages_delivered"] += progress.events
        if not self._has_rows:
            self._run, self._rows, self._next_row = b"", array("q"), 0
            return True
        if progress.events or self.link.credit:
            return progress.events > 0
        # The receiver took credit back.
        if settled:
            self._answer_drain()
            return False  # they are in no queue any more: it gets them with its next credit
        self._give_back_rows()  # others may have them
        return True

    def _ask_for_less(self) -> None:
        """A receive is outstanding for more than the receiver takes by now: what comes is for others."""
        if self.link.credit < self._asked:
            self._asked = 0
            self._place.broker.submit(CancelReceive(self._place.log_id, self._receiver_id), _nothing)

    def _give_back_rows(self) -> None:
        """Release what was received and not sent. Of receive-and-delete it is gone with the link (P9)."""
        if self._has_rows and self._mode is ReceiveMode.PEEK_LOCK:
            tokens = tokens_of(self._rows, self._next_row, len(self._rows) // MESSAGE_WIDTH)
            self._place.broker.submit(SettleMessages(self._place.log_id, tokens, SettleOutcome.RELEASE), _nothing)
        self._run, self._rows, self._next_row = b"", array("q"), 0

    def _drain_soon(self) -> None:
        """A receive is outstanding, and the receiver wants its credit back: it is cancelled, after a moment."""
        if self.link.drain and self._drain_timer is None and self._state is ReceiverState.RECEIVING:
            self._drain_timer = self.host.env.call_later(DRAIN_MS, self._drain)

    def _drain(self) -> None:
        self._drain_timer = None
        if self._state is ReceiverState.RECEIVING:
            self._place.broker.submit(CancelReceive(self._place.log_id, self._receiver_id), _nothing)

    def _stop_draining(self) -> None:
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None

    def _answer_drain(self) -> None:
        """Nothing is left to send: give the rest of the credit back, when that was asked for."""
        if self.link.drain:
            self.link.drained()
            self.host.wake()

    # Settling

    def _submit(self, settling: Settling) -> None:
        command = SettleMessages(
            self._place.log_id, bytes(settling.tokens), settling.spoken.outcome, settling.spoken.details
        )
        self._place.broker.submit(command, lambda answer: self._answered(settling, answer))

    def _answered(self, settling: Settling, answer: Answer) -> None:
        """The broker's word about what was settled: the receiver's, where it waits for it."""
        if self._state is ReceiverState.OVER:
            return
        if isinstance(answer, MessagesSettled):
            self._tell(settling, answer.codes)
        elif isinstance(answer, Refusal) and not answer.known:
            text = f"The outcome of settlements at '{self.entity}' is not known: {answer.text} Attach again to go on."
            self.host.detach(self, ServiceError(TIMED_OUT, text))
        else:
            refused = Rejected(error=self.host.describe(What.SEND, error_of(answer), entity=self.entity))
            self.link.answer([(first_id, last_id) for first_id, last_id, waits in settling.spans if waits], refused)
        self.host.wake()

    def _tell(self, settling: Settling, codes: bytes) -> None:
        """Answer deliveries by their codes, with as few dispositions as the ids allow."""
        for code, ranges in settling.ranges_by_code(codes).items():
            state = Rejected(error=self._lost(lost_error(code, self._sub_queue))) if code else settling.spoken.answer
            self.link.answer([(span.first_id, span.last_id) for span in merge_ranges(ranges)], state)

    def _lost(self, error: ServiceError) -> AmqpError:
        return self.host.describe(What.SEND, error, entity=self.entity)


def _nothing(answer: Answer) -> None:
    """The answer of a command that nobody waits for."""
