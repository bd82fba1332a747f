"""Links that receive messages from a queue, a subscription, or a sub-queue of one, with a session or without.

A link has a part for each fragment of the entity (receiver_part.py); of most entities that is one (one_part.py). As
long as the link has credit, it asks its parts for messages, of several in the order that fan_in.py says. What comes is
sent before anything more is asked. It goes out by one kernel call, with the token of the lock as delivery tag. What the
session's window or the transport does not take is kept for the next turn.
When the credit is used up, nothing is asked any more, and others have what came beyond it. Where there are several
parts that is so after a moment: a client that goes on finds its questions as they were. At a drain it is so at once.
When the receiver settles, what it said in one turn goes to the broker together with what other links of its connection
said (turn_settlements.py), and the answers go back to it when the broker says that they are durable. Under
receive-and-delete messages go out settled, and are gone. Drain ends with a flow that has used the credit up, behind all
that is there.

A session is one part's: a named one its key's, and for the next free one all are asked, and the first that has one is
the link's. Parts whose broker is away are opened again and again; when all are away, the link ends.
The end of the link gives back what was not sent; locks of what was sent stay until they end (4.2.5).
Long because receiving, sending and settling are one node's, and share its state.
"""

from __future__ import annotations

from enum import Enum, auto

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.annotations import TRACKING_ID
from hubweir.amqp.messaging.outcome import Rejected, TransactionalState
from hubweir.amqp.transport.events import Settled
from hubweir.amqp.transport.sender_link import SND_SETTLED, SenderLink
from hubweir.auth.resource_scope import Scope
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.fragment import MessagesSettled, ReceiverOpened, SessionLost
from hubweir.broker.commands.process import Refusal
from hubweir.env import Timer
from hubweir.errors import TIMED_OUT, ServiceError
from hubweir.gateway.amqp.delivery_ranges import merge_ranges
from hubweir.gateway.amqp.fan_in import FanIn
from hubweir.gateway.amqp.node import Node, NodeHost, attach_properties, gone
from hubweir.gateway.amqp.one_part import OnePart
from hubweir.gateway.amqp.receiver_part import PartState, ReceiverPart
from hubweir.gateway.amqp.sent_tokens import SentRange, SentTokens
from hubweir.gateway.amqp.session_filter import SessionWish, grant_session
from hubweir.gateway.amqp.settlements import Settling, spoken_of, transacted_of
from hubweir.gateway.amqp.turn_settlements import SaidOnLink
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.fragments import FragmentPlace, Fragments
from hubweir.gateway.queue_admission import check_gives
from hubweir.gateway.refusals import What
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.rights import Rights
from hubweir.queue.settle_outcome import LOCK_LOST, lost_error
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# A part that is away is opened again so long after the last try: a broker that died is back in some seconds.
REOPEN_MS = 1_000
# A wait for a session ends by itself at each fragment. A broker that stalls says nothing, and this long behind the end
# of the wait nobody waits for it any more.
SESSION_GRACE_MS = 500
# A link without credit keeps its questions and what comes for so long: clients that take one message at a time come
# back sooner, and other receivers wait no longer for what it keeps.
KEEP_MS = 50
# A broker that is well answers in some milliseconds; other fragments are not kept from giving messages for longer.
SLOW_MS = 200


class ReceiverState(Enum):
    """OPENING: no part has its receiver yet. READY: the link stands."""

    OPENING = auto()
    READY = auto()
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
        fragments: Fragments,
        sub_queue: SubQueue,
        wish: SessionWish | None,
    ) -> None:
        super().__init__(host, link, right=Rights.LISTEN, scope=scope)
        self.entity = fragments.entity
        self._traffic = host.gateway.traffic.of(fragments.entity)
        self._fragments = fragments
        self._sub_queue = sub_queue
        self._wish = wish
        attach = link.attach
        is_settled = attach is not None and attach.snd_settle_mode == SND_SETTLED
        self._mode = ReceiveMode.RECEIVE_AND_DELETE if is_settled else ReceiveMode.PEEK_LOCK
        self._state = ReceiverState.OPENING
        parts = self._made_parts()
        self._parts: FanIn | OnePart = OnePart(parts[0]) if len(parts) == 1 else FanIn(parts, host.env)
        self.sent = SentTokens()
        self._reopen_timer: Timer | None = None
        self._slow_timer: Timer | None = None  # while an answer is due at once
        self._keep_timer: Timer | None = None
        self._wait_timer: Timer | None = None  # while a session is waited for
        self._used_up_ms = -1  # when the credit was, on the monotonic clock; -1: it is not
        self._is_pumping = False
        self.lacks_room = False
        self.session_id: str | None = None

    def _made_parts(self) -> list[ReceiverPart]:
        """A part for each fragment that the link may get messages from. The first one differs from link to link."""
        fragments, wish = self._fragments, self._wish
        places = fragments.places
        if wish is not None and wish.session_id is not None:
            places = (fragments.of_key(wish.session_id.encode()),)
        elif fragments.is_partitioned:
            first = int.from_bytes(self.host.env.random_bytes(2), "big") % len(places)
            places = places[first:] + places[:first]
        takes_first = self._mode is ReceiveMode.RECEIVE_AND_DELETE and wish is None and len(places) > 1
        return [
            ReceiverPart(
                self, self.host, place, self._sub_queue, self._mode,
                takes_first=takes_first, names_partition=fragments.is_partitioned,
            )
            for place in places
        ]  # fmt: skip

    def start(self) -> None:
        """Open the receivers; the attach is answered when a broker has the first one."""
        self.host.uses_readers()
        if self._wish is not None:
            # The right is proven, and a session may be waited for longer than a connection may go without one.
            self.host.authorized()
            self._wait_timer = self.host.env.call_later(self._wish.wait_ms + SESSION_GRACE_MS, self._wait_no_longer)
        for part in self._parts:
            if part.state is not PartState.OVER:  # which it is where another one has the session already
                part.open(self._wish)

    def credit(self) -> None:
        # What is released in this turn comes before what follows it, and some clients (Proton) write their flow in
        # front of the disposition: the host hands over what was settled, and then has its nodes go on.
        granted = self.link.sender_credit
        if granted.drain or not self._parts.waits_within(granted.credit):
            self.host.finish_later(self)

    def settled(self, event: Settled) -> None:
        """The receiver settled what it got; it is told when that is durable."""
        self.settled_ranges(event, self.sent.take_ranges(event.first_id, event.last_id))

    def settled_ranges(self, event: Settled, ranges: list[SentRange]) -> None:
        """See JointUser. ranges: of the deliveries of the event."""
        if isinstance(event.outcome, TransactionalState):
            self._settled_in(event, event.outcome, ranges)
            return
        try:
            spoken = spoken_of(event.outcome)
        except ServiceError as refusal:
            self._refuse_settling(event, refusal)
            return
        for each in ranges:
            self.host.settlements.add(SaidOnLink(self, each, not event.settled), self._place_of(each), spoken, self)
        if self.lacks_room:
            self.go_on_later()

    def go_on_later(self) -> None:
        """See JointUser."""
        self.host.finish_later(self)

    def _settled_in(self, event: Settled, state: TransactionalState, ranges: list[SentRange]) -> None:
        """The settlement is part of a transaction: it is answered now, and done at the commit."""
        transactions, txn_id, done = self.host.transactions, state.txn_id, 0
        try:
            spoken = transacted_of(state.outcome)
            for each in ranges:
                transactions.settle(txn_id, self._place_of(each), each.tokens, spoken.outcome, spoken.details)
                done += 1
        except ServiceError as refusal:
            if event.settled or done:
                transactions.spoil(txn_id, refusal)
            self._refuse_settling(event, refusal)
        else:
            if not event.settled:
                answer = TransactionalState(txn_id=txn_id, outcome=spoken.answer)
                self.link.answer([(event.first_id, event.last_id)], answer)
        if self.lacks_room:
            self.go_on_later()

    def _place_of(self, sent: SentRange) -> FragmentPlace:
        """The fragment that these deliveries came from: of several, their tokens say which."""
        places = self._fragments.places
        if len(places) == 1:
            return places[0]
        place = self._fragments.of_token(sent.tokens)
        assert place is not None  # a fragment of this entity gave them
        return place

    def _refuse_settling(self, event: Settled, refusal: ServiceError) -> None:
        if not event.settled:
            error = self.host.describe(What.SEND, refusal, entity=self.entity)
            self.link.answer([(event.first_id, event.last_id)], Rejected(error=error))

    def finish(self) -> None:
        """Go on: there may be room for more, or credit."""
        self._pump()

    def go_on(self) -> None:
        """This link's turn has come."""
        self._pump()

    def drop_stale_run(self) -> bool:
        """Messages that were received are locked: they stay until they are sent, or given up."""
        return self._parts.kept is not None

    def is_idle(self) -> bool:
        return self.link.credit == 0 and not self.link.unsettled_count

    def stands_on(self, entity: str) -> bool:
        return self._fragments.places[0].goes_with(entity)

    def catalog_changed(self) -> None:
        entity = self.host.gateway.namespace.find(self.entity, MessagingDescription)
        if entity is None:
            return
        try:
            check_gives(entity.description, self._sub_queue)
        except ServiceError as refusal:
            self._end(refusal)

    def session_lost(self, broker: BrokerClient, push: SessionLost) -> None:
        """The broker ended the lock of this link's session."""
        for part in self._parts:
            if part.is_receiver(broker, push.receiver_id):
                part.receiver_ended()
                self.host.detach(self, ServiceError(push.condition, push.text))
                return

    def broker_gone(self, broker: BrokerClient) -> None:
        for part in self._parts:
            if part.place.broker is broker:
                part.broker_gone(gone(self.entity))

    def closed(self) -> None:
        self._state = ReceiverState.OVER
        for timer in (self._reopen_timer, self._slow_timer, self._keep_timer, self._wait_timer):
            if timer is not None:
                timer.cancel()
        self._reopen_timer = self._slow_timer = self._keep_timer = self._wait_timer = None
        self.host.share.forget(self)
        for part in self._parts:
            part.close()
        self._parts = FanIn([], self.host.env)  # each knows this node: no circle may be left

    # Parts come and go

    def part_opened(self, part: ReceiverPart, answer: ReceiverOpened) -> None:
        """See PartUser."""
        if self._state is ReceiverState.OPENING:
            if self._wish is not None:
                others, self._parts = self._parts, OnePart(part)
                for each in others:
                    if each is not part:
                        each.close()
            self._accept(answer)
            self._reopen_later()  # those that were away when the link came
        self._pump()
        self.host.wake()

    def _accept(self, opened: ReceiverOpened) -> None:
        self.session_id, self._state = opened.session_id, ReceiverState.READY
        properties = {**attach_properties(self.link), TRACKING_ID: self.host.env.new_id()}
        source = self.link.source
        if self._wish is not None and opened.session_id is not None:
            source, more = grant_session(self._wish, opened.session_id, opened.locked_until_ms or 0)
            properties |= more
        if self._mode is ReceiveMode.PEEK_LOCK:
            host, entity = self.host, self.entity  # the session keeps what follows, longer than this link lives
            self.link.answer_by_host(
                lambda: Rejected(error=host.describe(What.SEND, lost_error(LOCK_LOST), entity=entity))
            )
        self.link.accept(source=source, properties=properties)
        self.host.authorized()

    def _wait_no_longer(self) -> None:
        """The wait for a session is over, and the broker of some fragment has not said so."""
        self._wait_timer = None
        if self._state is ReceiverState.OPENING:
            text = f"'{self.entity}' gave no session in time: a fragment of it does not answer. Ask again."
            self._end(ServiceError(TIMED_OUT, text))

    def part_away(self, part: ReceiverPart, error: ServiceError) -> None:
        """See PartUser."""
        if self._state is ReceiverState.OVER:
            return
        if self._parts.are_away:
            self._end(error)
        elif self._state is ReceiverState.READY:
            self._reopen_later()
        self._pump()
        self.host.wake()

    def _reopen_later(self) -> None:
        """Have parts that are away opened again, as long as there are some."""
        if self._reopen_timer is None and any(part.state is PartState.AWAY for part in self._parts):
            self._reopen_timer = self.host.env.call_later(REOPEN_MS, self._reopen)

    def _reopen(self) -> None:
        self._reopen_timer = None
        for part in self._parts:
            if part.state is PartState.AWAY:
                part.open(None)

    def _end(self, error: ServiceError) -> None:
        """The link ends, or is refused while nobody gave it a receiver."""
        if self._state is ReceiverState.OPENING:
            self.host.refuse(self, self.host.describe(What.ATTACH, error, entity=self.entity))
        else:
            self.host.detach(self, error)

    # Receiving and sending

    def part_answered(self) -> None:
        """See PartUser."""
        self._pump()

    def _pump(self) -> None:
        """Send and receive as long as credit, window, transport and the connection's share of the turn allow."""
        if self._is_pumping or self._state is not ReceiverState.READY:
            return
        self._is_pumping = True
        try:
            while self._step():
                pass
        finally:
            self._is_pumping = False
        if self._slow_timer is None and self._state is ReceiverState.READY and self._parts.is_due:
            self._slow_timer = self.host.env.call_later(SLOW_MS, self._go_on_without_slow)
        self.host.wake()

    def _go_on_without_slow(self) -> None:
        self._slow_timer = None
        self._parts.note_slow(SLOW_MS)
        self._pump()

    def _step(self) -> bool:
        """One send or one question; False when no other can follow now."""
        if self._state is ReceiverState.OVER:
            return False  # an answer ended it
        parts, granted = self._parts, self.link.sender_credit
        kept, on_link, is_drain = parts.kept, granted.credit, granted.drain
        credit = max(0, on_link - parts.reserved)
        if kept is not None and on_link and kept.is_ready:
            return self._send(kept)
        if kept is not None and credit and not kept.is_ready:
            kept.take_next(credit)
            return True
        if on_link:
            self._used_up_ms = -1
            parts.ask_for_less(credit, is_drain=is_drain)
        elif not parts.are_idle:
            self._keep(is_drain=is_drain)
        room = self._room if credit else 0
        self.lacks_room = room < credit
        wanted = min(credit, room)
        if wanted > 0 and parts.ask(wanted, is_drain=is_drain):
            return True
        if is_drain and not parts.is_asked:
            self._answer_drain()
        return False

    def _send(self, part: ReceiverPart) -> bool:
        room = self.host.share.left_bytes(part.kept.size_bytes)
        if room <= 0:
            self.host.share.wait(self)
            return False
        progress = part.send(self.link, self.sent, room)
        self.host.gateway.counters["gateway.messages_delivered"] += progress.events
        traffic = self._traffic
        traffic.messages_out += progress.events
        traffic.bytes_out += progress.bytes
        self.lacks_room = not progress.events  # or the window is shut, or the transport full
        granted = self.link.sender_credit
        # Mostly the credit is used up by that, and nothing is left to give up.
        is_over = not granted.credit and not granted.drain and self._parts.are_idle
        return progress.events > 0 and not is_over

    def _keep(self, *, is_drain: bool) -> None:
        """There is no credit: what is asked and what is kept is given up, in a moment or at once."""
        parts, left_ms = self._parts, 0
        if len(parts) > 1:
            now_ms = self.host.env.monotonic_ms()
            if self._used_up_ms < 0:
                self._used_up_ms = now_ms
            left_ms = self._used_up_ms + KEEP_MS - now_ms
        if is_drain or left_ms <= 0:
            parts.ask_for_less(0, is_drain=is_drain)
            parts.release()
        elif self._keep_timer is None and (parts.is_asked or parts.kept is not None):
            self._keep_timer = self.host.env.call_later(left_ms, self._keep_no_longer)

    def _keep_no_longer(self) -> None:
        self._keep_timer = None
        self._pump()

    @property
    def _room(self) -> int:
        """How many more may be unsettled."""
        return self.link.unsettled_room if self._mode is ReceiveMode.PEEK_LOCK else self.link.credit

    def _answer_drain(self) -> None:
        """Nothing is left to send: give the rest of the credit back, as was asked."""
        self.link.drained()
        self._parts.drained()
        self.host.wake()

    # Settling

    def settlements_answered(self, settling: Settling, answer: Answer) -> None:
        """See SettlingUser: the broker's word about what was settled, for the receiver, where it waits for it.

        Where all is done TurnSettlements tells it, of many links at once.
        """
        if self._state is ReceiverState.OVER:
            return
        if isinstance(answer, MessagesSettled):
            self._tell(settling, answer.codes)
        elif isinstance(answer, Refusal) and not answer.known:
            self._tell_unknown(settling, answer)
        else:
            self._reject(settling, error_of(answer))
        self.host.wake()

    def _tell(self, settling: Settling, codes: bytes) -> None:
        """Answer deliveries by their codes, with as few dispositions as the ids allow."""
        for code, ranges in settling.ranges_by_code(codes).items():
            state = Rejected(error=self._lost(lost_error(code, self._sub_queue))) if code else settling.spoken.answer
            self.link.answer([(span.first_id, span.last_id) for span in merge_ranges(ranges)], state)

    def _tell_unknown(self, settling: Settling, refusal: Refusal) -> None:
        """Nobody can say what became of them. That ends the link, where it has no other fragments to go on with."""
        text = f"The outcome of settlements at '{self.entity}' is not known: {refusal.text}"
        if len(self._parts) == 1:
            self.host.detach(self, ServiceError(TIMED_OUT, f"{text} Attach again to go on."))
        else:
            self._reject(settling, ServiceError(TIMED_OUT, text))

    def _reject(self, settling: Settling, error: ServiceError) -> None:
        refused = Rejected(error=self.host.describe(What.SEND, error, entity=self.entity))
        self.link.answer([(first_id, last_id) for first_id, last_id, waits in settling.spans if waits], refused)

    def _lost(self, error: ServiceError) -> AmqpError:
        return self.host.describe(What.SEND, error, entity=self.entity)
