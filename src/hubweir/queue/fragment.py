"""One fragment of a queue or of a subscription on its log: enqueues, locks, settles, expires, dead-letters.

A fragment does nothing by itself. Its owner calls it, hands in the time, and is asked by `wake` for a `turn` at the end
of its loop's turn: there the fragment does what time and appends made due, gives messages to receivers that wait, and
appends all operations of the turn as one run. So the owner's part is: `wake` → once, at the end of this turn of the
loop, `turn(times)`; and behind every turn one deadline at `next_deadline_ms`, which calls `turn` again.

A state is what the log says (fragment_state.py), and every change is answered when it is durable. Locks live in memory
alone. After a crash a fragment is its snapshot and what the log holds behind it; every message that was locked is
active again and counts as delivered once more, but for deliveries of the last moment (FragmentCore.flush).

Long because this page is what owners read: each call says what it promises, and hands it to the part that does it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from hubweir.errors import MESSAGE_NOT_FOUND, NOT_ALLOWED, RESOURCE_LIMIT, ServiceError
from hubweir.kernels import read_fields
from hubweir.kernels.queue_contract import (
    I_SESSION,
    INCOMING_WIDTH,
    M_STATE,
    SCHEDULED,
    SETTLING,
    STATE_BITS,
    T_ACTIVE,
    T_DEAD,
    T_DEFERRED,
    T_SCHEDULED,
    T_TRANSFER_DEAD,
)
from hubweir.messaging_store.log import Appended, Log, Refused
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.record import chain_batches, headers_of
from hubweir.queue.due_messages import DueMessages
from hubweir.queue.forwarding import Forwarding
from hubweir.queue.forwarding import OpenTransfer as OpenTransfer
from hubweir.queue.forwarding import TransferEnd as TransferEnd
from hubweir.queue.fragment_core import FragmentCore, OnLogged
from hubweir.queue.fragment_receiver import FragmentReceiver as FragmentReceiver
from hubweir.queue.fragment_receiver import GivenMessages as GivenMessages
from hubweir.queue.fragment_receiver import OnGiven as OnGiven
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.fragment_snapshot import decode_snapshot, encode_snapshot
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.fragment_values import FragmentCounts as FragmentCounts
from hubweir.queue.fragment_values import ListedSessions as ListedSessions
from hubweir.queue.fragment_values import NumberRange as NumberRange
from hubweir.queue.fragment_values import OnDone as OnDone
from hubweir.queue.fragment_values import ReceivedMessages as ReceivedMessages
from hubweir.queue.fragment_values import Times as Times
from hubweir.queue.log_replay import load_state
from hubweir.queue.message_receives import MessageReceives
from hubweir.queue.numbered_messages import NumberedMessages
from hubweir.queue.operation import SETTINGS, SETTLED, SKIPPED, Operation, encode_operation, logged_settings
from hubweir.queue.session_holds import SessionHolds
from hubweir.queue.session_holds import SessionWait as SessionWait
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.settlements import Settlements
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.transaction import Effects as Effects
from hubweir.queue.transaction import Part as Part
from hubweir.queue.transaction_decisions import TransactionDecisions
from hubweir.queue.transaction_parts import TransactionParts
from hubweir.queue.transfer_intake import TransferIntake
from hubweir.queue.upkeep import Upkeep
from hubweir.queue.window_clock import SLACK_MS, WindowClock


class Fragment:
    """See the module's text. All calls are made on the owner's loop; callbacks come there, maybe within the call."""

    def __init__(
        self,
        log: Log,
        settings: FragmentSettings,
        *,
        entity: str,
        secret: bytes,
        wake: Callable[[], None],
        fragment_number: int = 0,
        log_prefix: bytes = b"",
    ) -> None:
        """On its log, which was just opened.

        entity: for people. secret: 16 bytes, drawn anew for each opening. wake: asks for a turn, once until it comes;
        may be called from any call and callback. log_prefix: see FragmentCore; whoever shares its log among fragments
        loads their states (`adopt`) and does the upkeep.
        """
        self._core = FragmentCore(
            log,
            settings,
            entity=entity,
            secret=secret,
            wake=wake,
            fragment_number=fragment_number,
            log_prefix=log_prefix,
        )
        self._receives = MessageReceives(self._core)
        self._numbered = NumberedMessages(self._core, self._receives.giving)
        self._settlements = Settlements(self._core)
        self._holds = SessionHolds(self._core, self._receives)
        self._due = DueMessages(self._core)
        self._forwarding = Forwarding(self._core)
        self._intake = TransferIntake(self._core, self._store_transfer)
        self.upkeep = Upkeep(log, lambda: [self._core], self._snapshot, self._apply)
        self.transactions = TransactionParts(self._core, self._settlements, self._scheduled, self)
        self.decisions = TransactionDecisions(self._core)
        self._window_clock = WindowClock()
        self._messages_under_way = self._skipped_under_way_ms = 0  # appended, not visible yet
        # When `turn` has something to do next, on the monotonic clock; None: not before somebody calls.
        self.next_deadline_ms: int | None = None

    @property
    def log(self) -> Log:
        return self._core.log

    @property
    def settings(self) -> FragmentSettings:
        return self._core.settings

    @property
    def core(self) -> FragmentCore:
        """For whoever shares one log among fragments."""
        return self._core

    # Opening and ending

    def load(self, times: Times, on_done: Callable[[Refused | None], None]) -> None:
        """Become what the log says, before anything else is called; on_done when it is, and settings are durable.

        Refused: see load_state.
        """

        def loaded(state: FragmentState | Refused) -> None:
            if isinstance(state, Refused):
                on_done(state)
            else:
                self.adopt(state, times, on_done)

        load_state(self.log, self.upkeep, self._core.state, decode_snapshot, loaded)

    def adopt(self, state: FragmentState, times: Times, on_done: Callable[[Refused | None], None]) -> None:
        """Have this state, which is what the log says; on_done when the settings are durable, too."""
        self._core.state = state
        self._forwarding.adopt()
        newest_ms = state.duplicates.newest_ms
        self._window_clock.begin(times.stamp_ms if newest_ms is None else newest_ms, times.monotonic_ms)
        self.transactions.opened()
        self._core.dead_letter_over(state.messages.delivered_often(self.settings.max_delivery_count))
        self._log_settings(times, on_done)

    def _snapshot(self) -> bytes:
        return encode_snapshot(self._core.state, self._core.operations_under_way())

    def _apply(self, run: bytearray) -> None:
        self._core.state.apply_run(run, is_replay=False)

    def _log_settings(self, times: Times, on_done: Callable[[Refused | None], None]) -> None:
        """Have the settings in the log as they are."""
        said = logged_settings(self.settings)
        if self._core.state.settings == said:
            on_done(None)
        else:
            self._core.gather([Operation(SETTINGS, settings=said)], on_done)
            self._core.flush(times)

    def change(self, settings: FragmentSettings, times: Times, on_done: OnDone[None]) -> None:
        """Have other settings. They hold for what is enqueued from now on; lock duration and quota at once."""
        self._core.settings = settings
        self._log_settings(times, on_done)

    def turn(self, times: Times) -> None:
        """Do what is due; see the module's text."""
        core = self._core
        core.begin_turn()
        self._holds.expire(times)
        self._due.turn(times)
        self._forwarding.serve(times)
        self._holds.serve(times)
        self._receives.serve(times)
        core.flush(times)
        dues = (
            self._due.next_ms(times), self._holds.next_due_ms(), self._forwarding.next_ms(times), core.unawaited_ms,
        )  # fmt: skip
        self.next_deadline_ms = min((each for each in dues if each is not None), default=None)

    def maintain(self, times: Times) -> None:
        """Save a snapshot, trim, move stragglers, as far as that is worth it. For the sweep, every some seconds."""
        self.upkeep.maintain(times)

    def end(self, error: ServiceError, times: Times) -> None:
        """The entity is gone, or the broker stops: refuse what waits with error, tell receivers; forget `wake`.

        What is gathered is appended; nothing is called behind it. The log is the owner's to close.
        """
        self._core.end(times)
        self._receives.end(error)
        self._holds.end(error)
        self._forwarding.end_all(error)

    def let_go(self) -> None:
        """Behind `end`, of an entity that is gone: forget the parts that know it, so that it is freed at once.

        Collections look at nothing old (drivers/garbage_collector.py): it would stay for as long as the process lives.
        What is on its way still finds the parts that wait for it.
        """
        del self._intake, self.upkeep, self.transactions

    # Senders

    def enqueue(self, run: bytearray, messages: int, times: Times, on_done: OnDone[NumberRange]) -> None:
        """Store a run of sealed batches of messages; the log keeps run. on_done when they are durable and visible.

        Raises ServiceError RESOURCE_LIMIT over the quota of the entity's size, or when the window of duplicate
        detection is full; NOT_ALLOWED for a message without a session id where sessions are required; StoreError.
        Nothing is stored then.
        After a crash: all messages of the run are there, or none; all for certain once on_done said so in DURABLE.
        """
        self._check_takes(run)
        self._append_messages(run, messages, [], times, on_done)

    def _check_takes(self, run: bytearray) -> None:
        """Raise ServiceError for messages that are not taken; see enqueue."""
        self._core.check_room(len(run))
        if self.settings.requires_session:
            self._check_sessions(run)

    def _append_messages(
        self, run: bytearray, messages: int, operations: list[bytes], times: Times, on_done: OnDone[NumberRange]
    ) -> None:
        """Append messages that are taken, behind operations that stand in one chain with them."""
        skipped_ms = self._admit(messages, times)
        if operations:
            run = pack_operations(operations, continues=True) + run
        if skipped_ms:
            run = pack_operations([encode_operation(Operation(SKIPPED, time_ms=skipped_ms))]) + run
        self._core.append(run, times, partial(self._enqueued, run, messages, skipped_ms, on_done))

    def _admit(self, messages: int, times: Times) -> int:
        """Messages are on their way until `decided`; what the clock skipped before them. RESOURCE_LIMIT: no room."""
        skipped_ms, window_ms = 0, self.settings.duplicate_window_ms
        if window_ms is not None:
            skipped_ms = self._skipped_ms(messages, window_ms, times)
        self._messages_under_way += messages
        self._skipped_under_way_ms += skipped_ms
        return skipped_ms

    # Of transactions (transaction_parts.py, Senders)

    def take_on(self, run: bytearray, messages: int, times: Times) -> int:
        """As `_admit`, of messages of a transaction. Raises as enqueue."""
        self._check_takes(run)
        return self._admit(messages, times)

    def reserve(self, run: bytearray, messages: int, times: Times) -> int:
        """There is room for these. Raises as enqueue; the log says nothing of the clock yet, so 0."""
        self._check_takes(run)
        window_ms = self.settings.duplicate_window_ms
        if window_ms is not None:
            times = self._stamped(times)
            self._check_room(messages, self._oldest_ms(times, self._window_clock.skipped_ms(times), window_ms))
        self._messages_under_way += messages
        return 0

    def store_held(self, run: bytearray, operation: Operation, times: Times, on_done: OnLogged) -> None:
        """Append messages that have room, behind an operation; on_done when the state has both."""
        skipped_ms = self._admit(0, times)
        operations = [operation, Operation(SKIPPED, time_ms=skipped_ms)] if skipped_ms else [operation]
        chain = pack_operations(self._core.encoded(operations)) + run
        chain_batches(chain)

        def appended(outcome: Appended | Refused) -> None:
            is_refused = isinstance(outcome, Refused)
            self.decided(0, skipped_ms, is_refused=is_refused)
            if not is_refused:
                self._core.locks.end(self._core.state.apply_run(chain, is_replay=False))
            on_done(outcome if isinstance(outcome, Refused) else None)

        self._core.append(chain, times, appended)

    def decided(self, messages: int, skipped_ms: int, *, is_refused: bool) -> None:
        """Messages that were on their way are visible, or refused."""
        self._messages_under_way -= messages
        self._skipped_under_way_ms -= skipped_ms
        if is_refused:
            self._window_clock.refused(skipped_ms)

    def _enqueued(
        self,
        run: bytearray,
        messages: int,
        skipped_ms: int,
        on_done: OnDone[NumberRange],
        outcome: Appended | Refused,
    ) -> None:
        core = self._core
        self.decided(messages, skipped_ms, is_refused=isinstance(outcome, Refused))
        if isinstance(outcome, Refused):
            on_done(outcome)
            return
        first = core.state.messages.next_count
        core.state.apply_run(run, is_replay=False)
        core.wake()
        on_done(NumberRange(core.number_base + first, core.number_base + core.state.messages.next_count))

    def _skipped_ms(self, messages: int, window_ms: int, times: Times) -> int:
        """What the clock skipped before these messages, which have room in the window."""
        clock = self._window_clock
        times = self._stamped(times)
        if not len(self._core.state.duplicates) + self._messages_to_come:
            clock.begin(times.stamp_ms, times.monotonic_ms)
        skipped_ms = clock.skipped_ms(times)
        self._check_room(messages, self._oldest_ms(times, skipped_ms, window_ms))
        clock.logged(times, skipped_ms)
        return skipped_ms

    def _stamped(self, times: Times) -> Times:
        """The enqueued time of what is appended now, too."""
        # A clock that was ahead while something else was logged, and is set back, leaves it ahead.
        return Times(max(times.stamp_ms, self._core.newest_ms), times.monotonic_ms)

    def _oldest_ms(self, times: Times, skipped_ms: int, window_ms: int) -> int:
        """Ids that are older may be forgotten."""
        return times.stamp_ms - skipped_ms - self._skipped_under_way_ms - window_ms - SLACK_MS

    @property
    def _messages_to_come(self) -> int:
        """Messages that were taken, and are not in the table yet."""
        return self._messages_under_way + self._core.state.transactions.held_messages

    def _check_room(self, messages: int, oldest_ms: int) -> None:
        duplicates = self._core.state.duplicates
        over = len(duplicates) + self._messages_to_come + messages - duplicates.limit
        if over > 0 and over > duplicates.due(oldest_ms):
            text = (
                f"'{self._core.entity}' detects duplicates and holds {len(duplicates)} message ids of its window, "
                f"of {duplicates.limit} at most: send less, or make the window shorter"
            )
            raise ServiceError(RESOURCE_LIMIT, text)

    def _check_sessions(self, run: bytearray) -> None:
        for header in headers_of(run):
            fields = array("q", bytes(8 * INCOMING_WIDTH * header.count))
            read_fields(run, header.position, fields)
            if min(fields[I_SESSION::INCOMING_WIDTH], default=0) < 0:
                text = f"'{self._core.entity}' requires sessions: a message without a session id is refused"
                raise ServiceError(NOT_ALLOWED, text)

    def cancel_scheduled(self, numbers: array[int], on_done: OnDone[None]) -> None:
        """Remove scheduled messages, all or none. Raises ServiceError MESSAGE_NOT_FOUND, with the first that is none.

        Durable once on_done said so; they are not activated meanwhile.
        """
        counts = self._scheduled(numbers)
        self._core.gather(self._core.ranged(SETTLED, counts), partial(self._cancelled, counts, on_done))

    def _scheduled(self, numbers: array[int]) -> array[int]:
        """Mark scheduled messages as being settled; their counts. Raises MESSAGE_NOT_FOUND, and marks none."""
        core, counts = self._core, array("q")
        for number in dict.fromkeys(numbers):
            found = core.state.messages.find(core.count_of(number))
            if found is None or found[0].rows[found[1] + M_STATE] & (STATE_BITS | SETTLING) != SCHEDULED:
                text = f"'{core.entity}' has no scheduled message of sequence number {number} (any more)"
                raise ServiceError(MESSAGE_NOT_FOUND, text)
            counts.append(core.count_of(number))
        core.state.messages.mark_settling(counts)
        return counts

    def _cancelled(self, counts: array[int], on_done: OnDone[None], refused: Refused | None) -> None:
        self._core.unmark(counts, refused)
        on_done(refused)

    # Receivers

    def open_receiver(self, sub_queue: SubQueue, mode: ReceiveMode) -> FragmentReceiver:
        """Receive without a session. Raises ServiceError NOT_ALLOWED for the main sub-queue of one with sessions."""
        return self._receives.open(sub_queue, mode)

    def accept_session(
        self,
        session_id: str | None,
        mode: ReceiveMode,
        times: Times,
        *,
        wait_ms: int,
        on_done: OnDone[FragmentReceiver],
        on_lost: Callable[[FragmentReceiver, ServiceError], None],
        on_given: OnGiven | None = None,
    ) -> SessionWait | None:
        """Hold a session and receive from it: the named one, or with None the free one whose message is the oldest.

        on_given: told of messages that come while a receive waits, of all receivers with the same one together; the
        receive is then answered without messages, once as many came as it asked for (session_receives.py).
        None: answered already. A SessionWait: no session is free; TIMED_OUT after wait_ms. Raises ServiceError
        NOT_ALLOWED where sessions are not required, SESSION_CANNOT_BE_LOCKED when another receiver holds it.
        After a crash no session is held.
        """
        return self._holds.accept(
            session_id, mode, times, wait_ms=wait_ms, on_done=on_done, on_lost=on_lost, on_given=on_given
        )

    def close_receiver(self, receiver: FragmentReceiver) -> None:
        """It receives no more; what it waits for is answered empty. Its session is free, and its messages active.

        Locks of messages without a session stay until they end. Twice does nothing.
        """
        self._receives.close(receiver)
        self._holds.free(receiver)

    def receive(
        self,
        receiver: FragmentReceiver,
        *,
        max_count: int,
        max_bytes: int,
        waits: bool = True,
        on_done: OnDone[ReceivedMessages],
    ) -> None:
        """The receiver's next messages, once there is one. on_done comes in a turn, once; one outstanding a receiver.

        waits: False where it is to come in the next turn, without messages when none is ready.
        PEEK_LOCK: each is locked from the turn on that gave it. RECEIVE_AND_DELETE: on_done comes when their removal
        is durable, and nobody gets them again. max_bytes: of records, but for the first message.
        """
        self._receives.receive(receiver, max_count=max_count, max_bytes=max_bytes, waits=waits, on_done=on_done)

    def cancel_receive(self, receiver: FragmentReceiver) -> None:
        """Answer the outstanding receive empty, or, when messages are being read for it, with these as planned."""
        self._receives.cancel(receiver)

    # Settling

    def settle(
        self,
        tokens: bytes,
        outcome: SettleOutcome,
        times: Times,
        on_done: OnDone[bytes],
        *,
        details: SettleDetails | None = None,
    ) -> None:
        """Settle the messages of these tokens; on_done with a code for each (settle_outcome.py), when it is durable.

        ABANDON without properties is answered in the call: it says what a crash would, too. What is released is active
        at once, and answered when its delivery cannot count any more. Raises ServiceError ARGUMENT_ERROR when tokens
        are no whole ones, or properties no map.
        After a crash: a message whose token was answered SETTLED is as it was settled; the others are active.
        """
        self._holds.expire(times)
        self._settlements.settle(tokens, outcome, times, on_done, details)

    def renew(self, tokens: bytes, times: Times) -> array[int]:
        """Lock their messages for the lock duration from now on; when each lock ends (wall clock), 0 for a lost one."""
        self._holds.expire(times)
        return self._settlements.renew(tokens, times)

    # Transactions

    def transact(self, effects: Effects, times: Times) -> Part:
        """This fragment's part of a transaction, to be appended in this turn (transaction.py).

        Raises ServiceError for an effect that cannot be, as `settle`, `cancel_scheduled` and `enqueue` do, and
        MESSAGE_LOCK_LOST or SESSION_LOCK_LOST when one of the locks is lost: nothing is marked then.
        """
        self._holds.expire(times)
        return self.transactions.part(effects, times)

    def prepare(self, transaction: bytes, coordinator: str, effects: Effects, times: Times) -> Part:
        """As `transact`, of a transaction that another log decides: from when the part is visible its effects are in
        doubt, through any crash, until `end_transaction`. coordinator: the id of that log.
        """
        self._holds.expire(times)
        return self.transactions.prepare(transaction, coordinator, effects, times)

    def end_transaction(self, transaction: bytes, *, is_committed: bool, times: Times, on_done: OnDone[None]) -> None:
        """What was prepared is done, or not, in this call; on_done when the log says so.

        Where messages are sent all of it is done when they are visible. One that is not prepared here (any more):
        nothing. Raises ServiceError where the window of duplicate detection is full: it stays prepared.
        """
        self.transactions.end(transaction, is_committed=is_committed, times=times, on_done=on_done)

    # By number

    def peek(
        self,
        sub_queue: SubQueue,
        from_number: int,
        *,
        max_count: int,
        max_bytes: int,
        on_done: OnDone[ReceivedMessages],
        session_id: str | None = None,
    ) -> None:
        """Messages of any state from this number on; nothing is locked or changed. One at least when there is any."""
        self._numbered.peek(
            sub_queue, from_number, max_count=max_count, max_bytes=max_bytes, on_done=on_done, session_id=session_id
        )

    def receive_deferred(
        self,
        sub_queue: SubQueue,
        numbers: array[int],
        mode: ReceiveMode,
        times: Times,
        on_done: OnDone[ReceivedMessages],
        *,
        session_id: str | None = None,
    ) -> None:
        """Deferred messages, in the order of numbers. Raises ServiceError MESSAGE_NOT_FOUND when one is none or locked.

        RESOURCE_LIMIT where they are too much for one answer (numbered_messages.py). Then none is locked. Otherwise as
        `receive`; an abandoned one stays deferred, or is a dead letter.
        """
        self._holds.expire(times)
        self._due.end_locks(times)
        self._numbered.deferred(sub_queue, numbers, mode, times, on_done, session_id)

    def delete_messages(
        self,
        sub_queue: SubQueue,
        *,
        max_count: int,
        before_ms: int,
        on_done: OnDone[int],
        session_id: str | None = None,
    ) -> None:
        """Delete the first active messages that were enqueued before a time; on_done with how many, when durable."""
        self._numbered.delete(
            sub_queue, max_count=max_count, before_ms=before_ms, on_done=on_done, session_id=session_id
        )

    @property
    def was_sent_to(self) -> bool:
        """Whether any message ever came, whatever became of it."""
        return self._core.state.messages.next_count > 1

    def counts(self) -> FragmentCounts:
        """As it is now."""
        tally = self._core.state.messages.tally
        return FragmentCounts(
            tally[T_ACTIVE],
            tally[T_DEAD],
            tally[T_SCHEDULED],
            tally[T_DEFERRED],
            tally[T_TRANSFER_DEAD],
            self._core.stored_bytes,
        )

    # Forwarding

    def take_transfer(self, sub_queue: SubQueue, destination: bytes, on_done: OnDone[OpenTransfer]) -> None:
        """The open transfer of a sub-queue, or else, once a message is ready, a new one to this destination.

        b"": no new one; answered without messages where none is open. Whoever waited before is answered so, too. The
        messages are nobody else's until `end_transfer`, after a crash as well.
        """
        self._forwarding.take_transfer(sub_queue, destination, on_done)

    def cancel_transfer(self, sub_queue: SubQueue) -> None:
        """Answer whoever waits for a transfer without messages."""
        self._forwarding.cancel(sub_queue)

    @property
    def open_transfers(self) -> list[SubQueue]:
        """The sub-queues of which a transfer is open."""
        return self._forwarding.open_in

    def end_transfer(
        self,
        sub_queue: SubQueue,
        number: int,
        attempt: int,
        how: TransferEnd,
        on_done: OnDone[None],
        *,
        reason: str = "",
        description: str = "",
    ) -> None:
        """A transfer is over; on_done when that is durable. One that is over already: nothing. See TransferEnd.

        reason, description: of transfer dead letters. Raises ServiceError SERVER_BUSY when this is no open transfer, or
        it was given to somebody else meanwhile.
        """
        self._forwarding.end(sub_queue, number, attempt, how, (reason, description), on_done)

    def store_transfer(
        self,
        source: bytes,
        attempt: int,
        number: int,
        run: bytearray,
        firsts: array[int],
        ends_ms: array[int],
        times: Times,
        on_done: OnDone[bool],
    ) -> None:
        """Store the messages of a transfer, as `enqueue` does, unless they were stored before; on_done when they are.

        source: names the sub-queue that they come from, never another one's. Without messages this asks: on_done with
        whether they were stored; where not, they never will be by an attempt before this one.
        Raises as enqueue, but a message without a session id becomes a dead letter where sessions are required. A
        transfer that was offered anew: SERVER_BUSY.
        """
        self._intake.store(source, attempt, number, run, firsts, ends_ms, times, on_done)

    def _store_transfer(
        self, run: bytearray, messages: int, operations: list[bytes], times: Times, on_done: OnDone[NumberRange]
    ) -> None:
        self._core.check_room(len(run))
        self._append_messages(run, messages, operations, times, on_done)

    # Sessions

    def renew_session(self, session_id: str, times: Times) -> int:
        """Lock a session from now on; when that ends (wall clock). Raises ServiceError SESSION_LOCK_LOST."""
        return self._holds.renew(session_id, times)

    def session_state(self, session_id: str) -> bytes | None:
        """As it was set.

        Raises ServiceError SESSION_LOCK_LOST when nobody holds the session, and STORE_OFFLINE while it is
        undecided: it was set, that ended unknown, and nothing that was logged since is visible.
        """
        return self._holds.state_of(session_id)

    def set_session_state(self, session_id: str, state: bytes | None, times: Times, on_done: OnDone[None]) -> None:
        """Keep a session's state, None: none. on_done when that is durable.

        Raises ServiceError SESSION_LOCK_LOST when nobody holds the session, and RESOURCE_LIMIT for a state that is
        larger than before, over the quota of the entity's size.
        """
        self._holds.set_state(session_id, state, times, on_done)

    def list_sessions(self, *, updated_after_ms: int | None, skip: int, top: int) -> ListedSessions:
        """Sessions in the order in which they first had a message or a state.

        updated_after_ms: those whose state was set behind this time; None: with active messages or a state.
        """
        return self._holds.listed(updated_after_ms=updated_after_ms, skip=skip, top=top)
