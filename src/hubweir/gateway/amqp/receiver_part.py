"""One fragment as a receiver's link has it: a receiver at its broker, a receive, what it brought.

The node of the link (queue_receiver_node.py) chooses among its parts and speaks with the peer; a part speaks with its
broker. A part *looks* for what is there now, or *waits* until there is something; it does one at a time. What a receive
brought is kept until it is sent or released.

Where the link receives and deletes from several fragments, more may come than the peer takes. So its parts lock what
they receive, and take it away for good when it is to be sent; it goes out when the broker says that this is durable. So
nothing is sent twice, and nothing is lost by being kept.

A part whose broker does not answer as it should is *away*: what it kept is released, and it may be opened anew. One
whose broker says nothing for a while, where it would answer at once, is *slow*, and nobody waits for it.
"""

from __future__ import annotations

from array import array
from enum import Enum, auto
from typing import Protocol

from hubweir.amqp.transport.sender_link import SenderLink, SendProgress
from hubweir.amqp.transport.session import Session
from hubweir.broker.commands.command import Answer, nobody_waits
from hubweir.broker.commands.fragment import (
    CancelReceive,
    CloseReceiver,
    GiveUpSession,
    MessagesReceived,
    MessagesSettled,
    OpenReceiver,
    ReceiveMessages,
    ReceiverOpened,
    SettleMessages,
)
from hubweir.errors import ServiceError
from hubweir.gateway.amqp.kept_messages import KeptMessages, name_partition
from hubweir.gateway.amqp.node import NodeHost
from hubweir.gateway.amqp.sent_tokens import SentTokens
from hubweir.gateway.amqp.session_filter import SessionWish
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.fragments import FragmentPlace
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.traced_step import Trace


class PartState(Enum):
    """OPENING: it asks for a receiver, or is about to. AWAY: it has none. IDLE: it asks for nothing.

    LOOKING, WAITING: a receive is outstanding. OVER: the link ended, or receives from another part alone.
    """

    OPENING = auto()
    AWAY = auto()
    IDLE = auto()
    LOOKING = auto()
    WAITING = auto()
    OVER = auto()


ASKED = (PartState.LOOKING, PartState.WAITING)  # a receive is outstanding


class PartUser(Protocol):
    """The node whose part it is. Each may be called before the part's own method returned."""

    link: SenderLink

    def part_opened(self, part: ReceiverPart, answer: ReceiverOpened) -> None:
        """It has its receiver."""

    def part_answered(self) -> None:
        """What a part asked was answered: it may have messages."""

    def part_away(self, part: ReceiverPart, error: ServiceError) -> None:
        """It could not be opened, or has no receiver any more."""


class ReceiverPart:
    """See the module's text.

    takes_first: under RECEIVE_AND_DELETE messages are locked first, and taken away when they are to be sent.
    names_partition: messages say of which fragment they are. found_nothing: the last look. is_slow: see above.
    """

    __slots__ = (
        "_asked", "_gives_back", "_host", "_mode", "_receiver_id", "_since_ms", "_sub_queue", "_trace", "_tracer",
        "_user", "_wait", "found_nothing", "id_prefix", "is_slow", "kept", "link", "names_partition", "place", "state",
        "takes_first",
    )  # fmt: skip

    def __init__(
        self,
        user: PartUser,
        host: NodeHost,
        place: FragmentPlace,
        sub_queue: SubQueue,
        mode: ReceiveMode,
        *,
        takes_first: bool = False,
        names_partition: bool = False,
    ) -> None:
        self.place = place
        self.state = PartState.OPENING
        self.found_nothing = False
        self.is_slow = False
        self._since_ms = 0  # when an answer was asked for that comes at once
        self.kept = KeptMessages()
        self._user = user
        self.link = user.link
        self._host = host
        self._sub_queue = sub_queue
        self._mode = mode
        self.takes_first = takes_first
        self.names_partition = names_partition
        self.id_prefix = place.id_prefix
        self._wait = ""  # for a session, while it is opened
        self._receiver_id = -1
        self._asked = 0  # by the receive that is outstanding; 0 when it was cancelled
        self._gives_back = False  # what that still brings: messages in front of it were given back
        self._tracer = host.gateway.process.tracer
        self._trace: Trace | None = None  # of what is kept, where clients trace messages of it

    # Its receiver

    def open(self, wish: SessionWish | None) -> None:
        """Ask for a receiver: `part_opened` or `part_away` follows."""
        self.state = PartState.OPENING
        self._wait = "" if wish is None else self._host.env.new_id()
        command = OpenReceiver(
            self.place.log_id,
            self._host.owner,
            self._sub_queue,
            ReceiveMode.PEEK_LOCK if self.takes_first else self._mode,
            with_session=wish is not None,
            session_id=None if wish is None else wish.session_id,
            wait_ms=0 if wish is None else wish.wait_ms,
            wait=self._wait,
        )
        self.place.broker.submit(command, self._opened)

    def _opened(self, answer: Answer) -> None:
        if not isinstance(answer, ReceiverOpened):
            self._lose(error_of(answer))
        elif self.state is PartState.OVER:
            self._submit(CloseReceiver(self.place.log_id, answer.receiver_id))
        else:
            self._receiver_id, self.state = answer.receiver_id, PartState.IDLE
            if answer.session_id is not None:
                self._host.joint.expect(self._receiver_id, self)
            self._user.part_opened(self, answer)

    def is_receiver(self, broker: BrokerClient, receiver_id: int) -> bool:
        """Whether its receiver is the one that a broker names so."""
        return self.place.broker is broker and self._receiver_id == receiver_id

    def receiver_ended(self) -> None:
        """The broker ended its receiver."""
        self._host.joint.forget(self._receiver_id, self.place)
        self._receiver_id = -1

    def broker_gone(self, error: ServiceError) -> None:
        """Its broker went away, and with it the receiver, whose number may be another's when it is back."""
        if self._receiver_id >= 0:
            self.receiver_ended()
            self._lose(error)

    def close(self) -> None:
        """The link is over, or receives from another part alone. What was not sent is given back."""
        was, self.state = self.state, PartState.OVER
        self.release()
        self._host.joint.forget(self._receiver_id, self.place)
        self._host.settlements.hand_over()  # before its session is another's
        if self._host.is_over:
            return  # the end of a connection closes all of its receivers with one command
        if was is PartState.OPENING and self._wait:
            self._submit(GiveUpSession(self.place.log_id, self._wait))
        self._close_receiver()

    def _close_receiver(self) -> None:
        if self._receiver_id >= 0:
            self._submit(CloseReceiver(self.place.log_id, self._receiver_id))
            self.receiver_ended()

    def _lose(self, error: ServiceError) -> None:
        """It has no receiver (any more)."""
        if self.state is not PartState.OVER:
            self.state, self.is_slow = PartState.AWAY, False
            self.release()
            self._close_receiver()
            self._user.part_away(self, error)

    # Receiving

    @property
    def is_asked(self) -> bool:
        """Whether a receive is outstanding."""
        return self.state in ASKED

    @property
    def may_look(self) -> bool:
        """Whether it can be asked: it has a receiver, is asked for nothing, and keeps nothing."""
        return self.state is PartState.IDLE and not self.kept.count

    @property
    def is_due(self) -> bool:
        """Whether an answer is outstanding that comes at once, where the broker is well."""
        return self.state is PartState.LOOKING or (self.is_asked and not self._asked) or self.kept.is_taking

    def waits_within(self, credit: int) -> bool:
        """Whether it waits for no more messages than that, and keeps none."""
        return self.state is PartState.WAITING and self._asked <= credit and not self.kept.count

    def note_slow(self, limit_ms: int) -> None:
        """It is slow when an answer has been due for so long."""
        if self.is_due and self._host.env.monotonic_ms() - self._since_ms >= limit_ms:
            self.is_slow = True

    def _due_from_now(self) -> None:
        self._since_ms, self.is_slow = self._host.env.monotonic_ms(), False

    def look(self, count: int) -> None:
        """Ask for at most so many messages that are there now: `part_answered` follows soon, or `part_away`."""
        self._due_from_now()
        self._receive(PartState.LOOKING, count)

    def wait(self, count: int) -> None:
        """Ask for at most so many messages, as soon as there is one."""
        self._receive(PartState.WAITING, count)

    def _receive(self, state: PartState, count: int) -> None:
        self.state, self._asked, self.found_nothing, self._gives_back = state, count, False, False
        waits, most_bytes = state is PartState.WAITING, self._host.link_settings.read_bytes
        command = ReceiveMessages(self.place.log_id, self._receiver_id, count, most_bytes, waits)
        self.place.broker.submit(command, self._received)

    def ask_for_less(self, credit: int) -> None:
        """Give up what is asked for when that is more than this credit; of a look, which ends soon, when there is none.

        What comes all the same is kept.
        """
        if self._asked > credit and (self.state is PartState.WAITING or not credit):
            self._asked = 0
            self._due_from_now()
            self._submit(CancelReceive(self.place.log_id, self._receiver_id))

    def _received(self, answer: Answer) -> None:
        if not isinstance(answer, MessagesReceived):
            self._lose(error_of(answer))
            return
        rows = array("q", answer.rows)
        if rows:
            if self.names_partition:
                name_partition(rows, self.place.number)
            are_taken = self._mode is ReceiveMode.RECEIVE_AND_DELETE and not self.takes_first
            self.kept.put(answer.run, rows, are_taken=are_taken)
            if self._tracer is not None:
                self._trace = self._tracer.delivers(self.place.entity, answer.run)
        if self.state is PartState.OVER:
            self.release()
            return
        self.found_nothing = not rows and self.state is PartState.LOOKING
        self.state, self._asked, self.is_slow = PartState.IDLE, 0, False
        self._user.part_answered()

    # What it is given while it waits, in a session (joint_deliveries.py)

    def session_for(self, count: int) -> Session | None:
        """See GivenPart. Who is traced sends messages itself."""
        link = self.link
        if self.kept.count or self._tracer is not None or self._gives_back or not link.takes(count):
            return None
        return link.session

    def passed_on(self, count: int) -> None:
        """See GivenPart."""
        self._asked -= count

    def keep(self, run: bytes, rows: array[int]) -> None:
        """See GivenPart."""
        self._asked -= len(rows) // MESSAGE_WIDTH
        if self._tracer is not None and not self.kept.count:
            self._trace = self._tracer.delivers(self.place.entity, run)
        self.kept.add(run, rows)
        if self._gives_back:
            self.release()
        else:
            self._user.part_answered()

    # What was received

    @property
    def is_ready(self) -> bool:
        """Whether the next message may be sent; otherwise `take_next` comes first."""
        return not self.takes_first or self.kept.is_taken

    @property
    def reserved(self) -> int:
        """How much of the link's credit is for messages that it takes away first."""
        return self.kept.reserved if self.takes_first else 0

    def take_next(self, count: int) -> None:
        """Take at most so many of the next messages away for good; `part_answered` follows, or `part_away`."""
        self._due_from_now()
        command = SettleMessages(self.place.log_id, self.kept.taking(count), SettleOutcome.COMPLETE)
        self.place.broker.submit(command, self._took)

    def _took(self, answer: Answer) -> None:
        if not isinstance(answer, MessagesSettled):
            self.kept.not_taken()
            self._lose(error_of(answer))  # whether they are in the queue or gone: this link sends none of them
            return
        self.kept.took(answer.codes)
        self.is_slow = False
        if self.state is not PartState.OVER:
            self._user.part_answered()

    def send(self, link: SenderLink, sent: SentTokens, max_bytes: int) -> SendProgress:
        """Send messages that are ready, as many as may go; sent: gets their tokens, where they are to be settled."""
        tokens = sent if self._mode is ReceiveMode.PEEK_LOCK else None
        progress = self.kept.send(
            link, self.id_prefix, takes=self.takes_first, sent=tokens, max_bytes=max_bytes
        )  # fmt: skip
        if self._trace is not None and not self.kept.count:
            self._trace.ended()
            self._trace = None
        return progress

    def release(self) -> None:
        """Let others have what is kept and locked."""
        if self.kept.count and self.kept.are_locked:
            self._gives_back = self.is_asked
            self._submit(SettleMessages(self.place.log_id, self.kept.release(), SettleOutcome.RELEASE))

    def _submit(self, command: CancelReceive | CloseReceiver | GiveUpSession | SettleMessages) -> None:
        """Have something ended, of which nobody waits to hear."""
        self.place.broker.submit(command, nobody_waits)
