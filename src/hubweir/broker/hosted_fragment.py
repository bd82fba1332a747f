"""A fragment of a queue, or of a subscription, at its owner: a resident, with its receivers.

The fragment decides (queue/fragment.py); here commands become its calls, it gets its turn at the end of the loop's
turn and when its next deadline is due, and the end of a gateway or of a connection closes its receivers.
Long because each of some twenty commands has its method here, and its line in one table.
After a crash a fragment is its log, its receivers are gone, and no token of before is good any more.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar

from hubweir.broker.commands.command import Answer, LogCommand, OnAnswer, Owner
from hubweir.broker.commands.forwarding import (
    EndTransfer,
    StoreTransfer,
    TakeTransfer,
    TransferOpen,
    TransferStored,
    TransferTaken,
)
from hubweir.broker.commands.fragment import (
    AskFragmentInfo,
    CancelReceive,
    CancelScheduled,
    ChangeFragment,
    CloseReceiver,
    CreateFragment,
    DeleteMessages,
    EnqueueMessages,
    FragmentInfo,
    GetSessionState,
    GiveUpSession,
    ListSessions,
    LocksRenewed,
    MessagesDeleted,
    MessagesEnqueued,
    MessagesGiven,
    MessagesReceived,
    MessagesSettled,
    OpenReceiver,
    PeekMessages,
    ReceiveDeferred,
    ReceiveMessages,
    ReceiverOpened,
    RenewLocks,
    RenewSession,
    SessionLost,
    SessionRenewed,
    SessionsListed,
    SessionStateRead,
    SetSessionState,
    SettleMessages,
)
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.transaction import ANYBODY
from hubweir.broker.deadlines import Deadline
from hubweir.broker.fragment_tools import FragmentTools
from hubweir.broker.hosted_transactions import HostedTransactions, TransactionStep
from hubweir.broker.openings import STOPPING
from hubweir.broker.refusals import refusal_of
from hubweir.broker.residents import Handler
from hubweir.errors import NOT_FOUND, STORE_OFFLINE, TIMED_OUT, ServiceError
from hubweir.messaging_store.log import Log, Refused
from hubweir.metrics import (
    ACTIVE_MESSAGES,
    DEADLETTERED_MESSAGES,
    DEFERRED_MESSAGES,
    INCOMING_BYTES,
    INCOMING_MESSAGES,
    RECEIVERS,
    SCHEDULED_MESSAGES,
    SIZE,
    TRANSFER_DEADLETTERED_MESSAGES,
    Samples,
)
from hubweir.queue.fragment import (
    Fragment,
    FragmentReceiver,
    GivenMessages,
    NumberRange,
    OnGiven,
    OpenTransfer,
    ReceivedMessages,
    SessionWait,
    Times,
)
from hubweir.queue.sub_queue import SubQueue

T = TypeVar("T")

SECRET_BYTES = 16


@dataclass(frozen=True, slots=True)
class _Opened:
    """A receiver that is open, and whose it is."""

    owner: Owner
    receiver: FragmentReceiver


@dataclass(frozen=True, slots=True)
class _SessionSeeker:
    """Somebody who waits for a session, and is to be answered."""

    owner: Owner
    wait: SessionWait
    on_answer: OnAnswer


def _as_use(handler: Handler) -> Handler:
    """A handler of a command by which somebody uses the fragment."""

    def handle(fragment: HostedFragment, command: LogCommand, on_answer: OnAnswer) -> None:
        fragment.transactions.check_serves()
        fragment.note_use()
        handler(fragment, command, on_answer)

    return handle


def _in_transactions(step: TransactionStep) -> Handler:
    """A handler that leaves a command to what the fragment's log has of transactions."""

    def handle(fragment: HostedFragment, command: LogCommand, on_answer: OnAnswer) -> None:
        step(fragment.transactions, command, on_answer)

    return handle


class HostedFragment:
    """One fragment at its owner. of_queue makes one that has its log for itself."""

    def __init__(
        self,
        tools: FragmentTools,
        resident_id: str,
        entity: str,
        make_fragment: Callable[[Callable[[], None]], Fragment],
        *,
        namespace: str,
    ) -> None:
        """make_fragment: makes the fragment; it gets its `wake`. namespace: whose entity it is."""
        self._tools = tools
        self.resident_id = resident_id
        self._entity = entity
        self._namespace = namespace
        self._messages_in = self._bytes_in = 0  # stored since it was opened
        self._is_due = False  # a turn is to come at the end of the loop's
        self._is_over = False
        self._deadline: Deadline | None = None
        self._receivers: dict[int, _Opened] = {}
        self._waiting: dict[str, _SessionSeeker] = {}  # for a session, by the names of the waits
        self._groups: dict[Owner, OnGiven] = {}  # of owners whose receivers are in sessions, until they are gone
        self._taking: dict[SubQueue, Owner] = {}  # who waits for a transfer, or did last
        self._forwards = False  # messages are taken away as they come: that is to receive them
        self._used_ms = tools.env.monotonic_ms()  # when somebody last used it, or else when it was hosted
        self.fragment = make_fragment(self._wake)  # a circle, which the fragment's end cuts
        self.transactions = HostedTransactions(tools, resident_id, entity, self)

    @classmethod
    def of_queue(cls, tools: FragmentTools, command: CreateFragment, log: Log) -> HostedFragment:
        """On its log, which was just opened."""

        def make_fragment(wake: Callable[[], None]) -> Fragment:
            return Fragment(
                log,
                command.settings,
                entity=command.entity,
                secret=tools.env.random_bytes(SECRET_BYTES),
                wake=wake,
                fragment_number=command.fragment_number,
            )

        return cls(tools, log.log_id, command.entity, make_fragment, namespace=command.namespace)

    @property
    def log(self) -> Log:
        return self.fragment.log

    def last_used_ms(self) -> int:
        """When somebody last used it, on the monotonic clock: now, while a receiver is open or waits for a session.

        And while its messages are forwarded, which is to receive them. A message that waits for its time is used until
        then. What happens by itself is no use.
        """
        if self._receivers or self._waiting or self._forwards or self.fragment.counts().scheduled:
            self.note_use()
        return self._used_ms

    def note_stored(self, messages: int, size_bytes: int) -> None:
        """These came by a transaction or a forward."""
        self._messages_in += messages
        self._bytes_in += size_bytes

    def note_use(self) -> None:
        """Somebody uses it."""
        self._used_ms = self._tools.env.monotonic_ms()

    # As a resident (residents.py)

    def settle(self, on_done: Callable[[Refused | None], None]) -> None:
        self.fragment.load(self._tools.times(), partial(self._loaded, on_done))

    def _loaded(self, on_done: Callable[[Refused | None], None], refused: Refused | None) -> None:
        if refused is not None:
            self._end(ServiceError(STORE_OFFLINE, f"'{self._entity}' could not be opened"))
        on_done(refused)

    def begin(self) -> None:
        self.note_use()
        self.transactions.begin()
        for sub_queue in self.fragment.open_transfers:
            self._tools.push(TransferOpen(ANYBODY, self.resident_id, sub_queue))
        self._wake()

    def measure(self, samples: Samples) -> None:
        counts, labels = self.fragment.counts(), (self._namespace, self._entity)
        samples[INCOMING_MESSAGES][labels] += self._messages_in
        samples[INCOMING_BYTES][labels] += self._bytes_in
        samples[SIZE][labels] += counts.size_bytes
        samples[ACTIVE_MESSAGES][labels] += counts.active
        samples[DEADLETTERED_MESSAGES][labels] += counts.dead_lettered
        samples[SCHEDULED_MESSAGES][labels] += counts.scheduled
        samples[DEFERRED_MESSAGES][labels] += counts.deferred
        samples[TRANSFER_DEADLETTERED_MESSAGES][labels] += counts.transfer_dead_lettered
        samples[RECEIVERS][labels] += len(self._receivers)

    def owner_gone(self, owner: Owner) -> None:
        self.transactions.owner_gone(owner)
        for name in [name for name, its in self._waiting.items() if owner.covers(its.owner)]:
            self._give_up(name)
        for receiver_id in [key for key, opened in self._receivers.items() if owner.covers(opened.owner)]:
            self._close(receiver_id)
        for sub_queue in [key for key, its in self._taking.items() if owner.covers(its)]:
            del self._taking[sub_queue]
            self._note_forward(sub_queue, b"")
            self.fragment.cancel_transfer(sub_queue)
        for its in [key for key in self._groups if owner.covers(key)]:
            del self._groups[its]

    def sweep(self, now_ms: int) -> None:
        self.fragment.maintain(self._tools.times())

    def due(self, key: None, now_ms: int) -> None:
        """The fragment has something to do by the clock."""
        self._deadline = None
        self.last_used_ms()  # what is scheduled may become active in this turn: it was waited for until now
        self._turn()

    def end(self, on_idle: Callable[[], None]) -> None:
        # Clients match the phrase: with it they take the entity for absent, without it the service for broken.
        text = f"The messaging entity '{self._entity}' could not be found: it was deleted"
        self._end(ServiceError(NOT_FOUND, text))
        self._let_go()
        on_idle()

    def stop(self, on_idle: Callable[[], None]) -> None:
        self._end(ServiceError(STORE_OFFLINE, STOPPING))
        on_idle()

    # Steps

    def _wake(self) -> None:
        if not self._is_due and not self._is_over:
            self._is_due = True
            self._tools.env.at_turn_end(self._turn)

    def _turn(self) -> None:
        """Give the fragment its turn, and see to the next one."""
        self._is_due = False
        if self._is_over:
            return
        try:
            self._take_turn(self._tools.times())
        except Exception as fault:  # of ours: it stops this log, and no other (rule R4)
            self.log.stop(fault)
        at_ms = self._next_deadline_ms
        if self._deadline is not None and self._deadline.at_ms != at_ms:
            self._tools.deadlines.cancel(self._deadline)
            self._deadline = None
        if self._deadline is None and at_ms is not None:
            self._deadline = self._tools.deadlines.arm(at_ms, self)

    def _take_turn(self, times: Times) -> None:
        self.fragment.turn(times)

    @property
    def _next_deadline_ms(self) -> int | None:
        return self.fragment.next_deadline_ms

    def _end(self, error: ServiceError) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._deadline is not None:
            self._tools.deadlines.cancel(self._deadline)
            self._deadline = None
        self._waiting.clear()
        self._groups.clear()
        self.transactions.stop()
        self.fragment.end(error, self._tools.times())
        self._receivers.clear()

    def _let_go(self) -> None:
        """See Fragment.let_go."""
        self.fragment.let_go()
        del self.transactions

    def _close(self, receiver_id: int) -> None:
        opened = self._receivers.pop(receiver_id, None)
        if opened is not None:
            self.note_use()
            self.fragment.close_receiver(opened.receiver)

    def _receiver(self, receiver_id: int) -> FragmentReceiver:
        opened = self._receivers.get(receiver_id)
        if opened is None:
            raise ServiceError(NOT_FOUND, f"receiver {receiver_id} is not open: it was closed, or its owner was")
        return opened.receiver

    # One method a command; a HubweirError that is raised is the refusal

    def _change(self, command: ChangeFragment, on_answer: OnAnswer) -> None:
        if self.log.durability != command.settings.durability:
            self.log.set_durability(command.settings.durability)
        self.fragment.change(command.settings, self._tools.times(), partial(answer_done, on_answer))

    def _enqueue(self, command: EnqueueMessages, on_answer: OnAnswer) -> None:
        stored = partial(self._stored, command.messages, command.size_bytes, on_answer)
        self.fragment.enqueue(command.run, command.messages, self._tools.times(), stored)

    def _stored(
        self, messages: int, size: int, on_answer: OnAnswer, outcome: NumberRange | Refused | ServiceError
    ) -> None:
        counters = self._tools.counters
        if isinstance(outcome, NumberRange):
            counters["broker.messages_enqueued"] += messages
            counters["broker.bytes_enqueued"] += size
            self._messages_in += messages
            self._bytes_in += size
        else:
            counters["broker.enqueues_refused"] += 1
        _answer(on_answer, outcome, lambda numbers: MessagesEnqueued(numbers.first_number, numbers.next_number))

    def _open_receiver(self, command: OpenReceiver, on_answer: OnAnswer) -> None:
        receiver_id, owner = next(self._tools.receiver_ids), command.owner
        if not command.with_session:
            self._opened(receiver_id, owner, on_answer, self.fragment.open_receiver(command.sub_queue, command.mode))
            return

        name = command.wait or str(receiver_id)

        def accepted(receiver: FragmentReceiver | Refused | ServiceError) -> None:
            self._waiting.pop(name, None)
            self.note_use()
            if isinstance(receiver, FragmentReceiver):
                self._opened(receiver_id, owner, on_answer, receiver)
            else:
                _refuse(on_answer, receiver)

        def lost(receiver: FragmentReceiver, error: ServiceError) -> None:
            self._receivers.pop(receiver_id, None)
            self.note_use()
            self._tools.push(SessionLost(owner, self.resident_id, receiver_id, error.condition, error.text))

        wait = self.fragment.accept_session(
            command.session_id,
            command.mode,
            self._tools.times(),
            wait_ms=command.wait_ms,
            on_done=accepted,
            on_lost=lost,
            on_given=self._groups.setdefault(owner, partial(self._given, owner)),
        )
        if wait is not None:
            self._waiting[name] = _SessionSeeker(owner, wait, on_answer)

    def _given(self, owner: Owner, given: GivenMessages) -> None:
        """Receivers of one owner have messages."""
        receivers = array("q", [receiver.number for receiver in given.receivers]) + given.counts
        self._tools.push(MessagesGiven(owner, self.resident_id, receivers.tobytes(), given.run, given.rows.tobytes()))

    def _give_up(self, name: str) -> None:
        """Whoever waits for a session under this name does so no longer."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            self.note_use()
            waiting.wait.cancel()
            text = f"nobody waits for a session of '{self._entity}' any more"
            waiting.on_answer(refusal_of(ServiceError(TIMED_OUT, text)))

    def _give_up_session(self, command: GiveUpSession, on_answer: OnAnswer) -> None:
        self._give_up(command.wait)
        on_answer(Done())

    def _opened(self, receiver_id: int, owner: Owner, on_answer: OnAnswer, receiver: FragmentReceiver) -> None:
        receiver.number = receiver_id
        self._receivers[receiver_id] = _Opened(owner, receiver)
        on_answer(ReceiverOpened(receiver_id, receiver.session_id, receiver.locked_until_ms))

    def _close_receiver(self, command: CloseReceiver, on_answer: OnAnswer) -> None:
        self._close(command.receiver_id)
        on_answer(Done())

    def _receive(self, command: ReceiveMessages, on_answer: OnAnswer) -> None:
        # Not noted as a use: a receiver that is open is one as long as it is. None is open while something is in doubt.
        self.fragment.receive(
            self._receiver(command.receiver_id),
            max_count=command.max_count,
            max_bytes=command.max_bytes,
            waits=command.waits,
            on_done=partial(_received, on_answer),
        )

    def _cancel_receive(self, command: CancelReceive, on_answer: OnAnswer) -> None:
        self.fragment.cancel_receive(self._receiver(command.receiver_id))
        on_answer(Done())

    def _settle(self, command: SettleMessages, on_answer: OnAnswer) -> None:
        self.fragment.settle(
            command.tokens,
            command.outcome,
            self._tools.times(),
            partial(_settled, on_answer),
            details=command.details,
        )

    def fragments(self) -> list[Fragment]:
        """All whose log this is."""
        return [self.fragment]

    def fragment_of(self, resident_id: str) -> Fragment:
        """One of them. Raises ServiceError NOT_FOUND."""
        if resident_id != self.resident_id:
            raise ServiceError(NOT_FOUND, f"'{self._entity}' has no subscription of the id {resident_id} (any more)")
        return self.fragment

    def _renew(self, command: RenewLocks, on_answer: OnAnswer) -> None:
        on_answer(LocksRenewed(self.fragment.renew(command.tokens, self._tools.times()).tobytes()))

    def _peek(self, command: PeekMessages, on_answer: OnAnswer) -> None:
        self.fragment.peek(
            command.sub_queue,
            command.from_number,
            max_count=command.max_count,
            max_bytes=command.max_bytes,
            on_done=partial(_received, on_answer),
            session_id=command.session_id,
        )

    def _receive_deferred(self, command: ReceiveDeferred, on_answer: OnAnswer) -> None:
        self.fragment.receive_deferred(
            command.sub_queue,
            array("q", command.numbers),
            command.mode,
            self._tools.times(),
            partial(_received, on_answer),
            session_id=command.session_id,
        )

    def _cancel_scheduled(self, command: CancelScheduled, on_answer: OnAnswer) -> None:
        self.fragment.cancel_scheduled(array("q", command.numbers), partial(answer_done, on_answer))

    def _delete_messages(self, command: DeleteMessages, on_answer: OnAnswer) -> None:
        self.fragment.delete_messages(
            command.sub_queue,
            max_count=command.max_count,
            before_ms=command.before_ms,
            on_done=partial(_deleted, on_answer),
            session_id=command.session_id,
        )

    def _info(self, command: AskFragmentInfo, on_answer: OnAnswer) -> None:
        counts = self.fragment.counts()
        on_answer(
            FragmentInfo(
                log_id=command.log_id,
                active=counts.active,
                dead_lettered=counts.dead_lettered,
                scheduled=counts.scheduled,
                deferred=counts.deferred,
                transfer_dead_lettered=counts.transfer_dead_lettered,
                size_bytes=counts.size_bytes,
                # Settings are written to the log too, but those of a queue that nobody used yet are no use of it.
                accessed_at_ms=self.log.bounds.last_time_ms if self.fragment.was_sent_to else None,
                unused_ms=self._tools.env.monotonic_ms() - self.last_used_ms(),
            )
        )

    def _renew_session(self, command: RenewSession, on_answer: OnAnswer) -> None:
        on_answer(SessionRenewed(self.fragment.renew_session(command.session_id, self._tools.times())))

    def _session_state(self, command: GetSessionState, on_answer: OnAnswer) -> None:
        on_answer(SessionStateRead(self.fragment.session_state(command.session_id)))

    def _set_session_state(self, command: SetSessionState, on_answer: OnAnswer) -> None:
        done = partial(answer_done, on_answer)
        self.fragment.set_session_state(command.session_id, command.state, self._tools.times(), done)

    def _list_sessions(self, command: ListSessions, on_answer: OnAnswer) -> None:
        found = self.fragment.list_sessions(
            updated_after_ms=command.updated_after_ms, skip=command.skip, top=command.top
        )
        on_answer(SessionsListed(found.session_ids, found.passed))

    # Transfers

    def _note_forward(self, sub_queue: SubQueue, destination: bytes) -> None:
        """To forward dead letters is no use of a queue: nobody receives its messages by that."""
        if sub_queue is SubQueue.MAIN:
            self.note_use()
            self._forwards = bool(destination)

    def _take_transfer(self, command: TakeTransfer, on_answer: OnAnswer) -> None:
        self._taking[command.sub_queue] = command.owner
        self._note_forward(command.sub_queue, command.destination)
        self.fragment.take_transfer(command.sub_queue, command.destination, partial(_taken, on_answer))

    def _end_transfer(self, command: EndTransfer, on_answer: OnAnswer) -> None:
        self.fragment.end_transfer(
            command.sub_queue,
            command.transfer,
            command.attempt,
            command.how,
            partial(answer_done, on_answer),
            reason=command.reason,
            description=command.description,
        )

    def _store_transfer(self, command: StoreTransfer, on_answer: OnAnswer) -> None:
        origins = array("q", command.origins)
        if command.messages:
            self.note_use()
        self.fragment.store_transfer(
            command.source,
            command.attempt,
            command.transfer,
            command.run,
            origins[: command.messages],
            origins[command.messages :],
            self._tools.times(),
            partial(self._transfer_stored, command.messages, len(command.run), on_answer),
        )

    def _transfer_stored(
        self, messages: int, size: int, on_answer: OnAnswer, outcome: bool | Refused | ServiceError
    ) -> None:
        if outcome is True:
            self._tools.counters["broker.messages_forwarded"] += messages
            self.note_stored(messages, size)
        _answer(on_answer, outcome, TransferStored)

    handlers: ClassVar[Mapping[type[LogCommand], Handler]] = {
        AskFragmentInfo: _info,
        CancelReceive: _as_use(_cancel_receive),
        CancelScheduled: _as_use(_cancel_scheduled),
        ChangeFragment: _as_use(_change),
        **{kind: _in_transactions(step) for kind, step in HostedTransactions.steps.items()},
        CloseReceiver: _as_use(_close_receiver),
        DeleteMessages: _as_use(_delete_messages),
        EndTransfer: _end_transfer,
        EnqueueMessages: _as_use(_enqueue),
        GetSessionState: _as_use(_session_state),
        GiveUpSession: _give_up_session,
        ListSessions: _as_use(_list_sessions),
        OpenReceiver: _as_use(_open_receiver),
        PeekMessages: _as_use(_peek),
        ReceiveDeferred: _as_use(_receive_deferred),
        ReceiveMessages: _receive,
        RenewLocks: _as_use(_renew),
        RenewSession: _as_use(_renew_session),
        SetSessionState: _as_use(_set_session_state),
        SettleMessages: _as_use(_settle),
        StoreTransfer: _store_transfer,
        TakeTransfer: _take_transfer,
    }


def _refuse(on_answer: OnAnswer, why: Refused | ServiceError) -> None:
    if isinstance(why, Refused):
        on_answer(refusal_of(why.error, known=why.known))
    else:
        on_answer(refusal_of(why))


def _answer(on_answer: OnAnswer, result: T | Refused | ServiceError, make: Callable[[T], Answer]) -> None:
    if isinstance(result, Refused | ServiceError):
        _refuse(on_answer, result)
    else:
        on_answer(make(result))


def answer_done(on_answer: OnAnswer, result: Refused | ServiceError | None) -> None:
    """Done, or why not."""
    _answer(on_answer, result, lambda _: Done())


def _received(on_answer: OnAnswer, result: ReceivedMessages | Refused | ServiceError) -> None:
    if isinstance(result, ReceivedMessages):
        on_answer(MessagesReceived(result.run, result.rows.tobytes()))
    else:
        _refuse(on_answer, result)


def _taken(on_answer: OnAnswer, result: OpenTransfer | Refused | ServiceError) -> None:
    def made(found: OpenTransfer) -> TransferTaken:
        origins = (found.firsts + found.ends_ms).tobytes()
        return TransferTaken(
            found.number, found.attempt, found.destination, len(found.firsts), origins, bytes(found.run)
        )

    _answer(on_answer, result, made)


def _settled(on_answer: OnAnswer, result: bytes | Refused | ServiceError) -> None:
    _answer(on_answer, result, MessagesSettled)


def _deleted(on_answer: OnAnswer, result: int | Refused | ServiceError) -> None:
    _answer(on_answer, result, MessagesDeleted)
