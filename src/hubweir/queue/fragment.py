"""One fragment of a queue or of a subscription on its log: enqueues, locks, settles, expires, dead-letters.

A fragment does nothing by itself. Its owner calls it, hands in the time, and is asked by `wake` for a `turn` at the end
of its loop's turn: there the fragment does what time and appends made due, gives messages to receivers that wait, and
appends all operations of the turn as one run. So the owner's part is: `wake` → once, at the end of this turn of the
loop, `turn(times)`; and behind every turn one deadline at `next_deadline_ms`, which calls `turn` again.

A state is what the log says (fragment_state.py), and every change is answered when it is durable. Locks live in memory
alone. After a crash a fragment is its snapshot and what the log holds behind it; every message that was locked is
active again and counts as delivered once more.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Log, Refused
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

T = TypeVar("T")
# An answer: what was asked for; or why not, of the store (known: nothing was stored) or of the fragment's rules.
OnDone = Callable[[T | Refused | ServiceError], None]


class Times(Struct, frozen=True):
    """Now, on two clocks. stamp_ms: TrustedClock.stamp_ms, for enqueued times, time to live and schedules.

    monotonic_ms: Env.monotonic_ms, for the ends of locks and for waits.
    """

    stamp_ms: int
    monotonic_ms: int


class NumberRange(Struct, frozen=True):
    """Sequence numbers, end exclusive."""

    first_number: int
    next_number: int


class ReceivedMessages(Struct, frozen=True):
    """Records of messages, and a message row (kernels/contract.py, Q_…) for each, in the order of delivery.

    run: rows say where in it the records lie. rows: never changed any more.
    """

    run: bytes | memoryview
    rows: array[int]


class FragmentCounts(Struct, frozen=True):
    """How many messages of each kind there are; locked ones are active. size_bytes: of all their records."""

    active: int
    dead_lettered: int
    scheduled: int
    deferred: int
    transfer_dead_lettered: int
    size_bytes: int


class FragmentReceiver:
    """Who receives from a sub-queue; made by `open_receiver` and `accept_session`. Its owner keeps it until it closes.

    session_id, locked_until_ms (wall clock): of its session; None without one. on_lost: what is told once when the
    session's lock ended or the fragment does; the receiver is closed then.
    """

    sub_queue: SubQueue
    mode: ReceiveMode
    session_id: str | None
    locked_until_ms: int | None


class SessionWait:
    """Somebody who waits for the next free session."""

    def cancel(self) -> None:
        """It is not answered. Twice, or too late, does nothing."""
        raise NotImplementedError


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
    ) -> None:
        """On its log, which was just opened.

        entity: for people. secret: 16 bytes, drawn anew for each opening. wake: asks for a turn, once until it comes;
        may be called from any call and callback.
        """
        self.log = log
        self.settings = settings
        self.entity = entity
        self.fragment_number = fragment_number
        # When `turn` has something to do next, on the monotonic clock; None: not before somebody calls.
        self.next_deadline_ms: int | None = None

    # Opening and ending

    def load(self, times: Times, on_done: Callable[[Refused | None], None]) -> None:
        """Become what the log says, before anything else is called; on_done when it is, and settings are durable.

        Refused: with the store's error, also where damage hides operations (CorruptStore).
        """
        raise NotImplementedError

    def change(self, settings: FragmentSettings, times: Times, on_done: OnDone[None]) -> None:
        """Have other settings. They hold for what is enqueued from now on; lock duration and quota at once."""
        raise NotImplementedError

    def turn(self, times: Times) -> None:
        """Do what is due; see the module's text."""
        raise NotImplementedError

    def maintain(self, times: Times) -> None:
        """Save a snapshot, trim, move stragglers, as far as that is worth it. For the sweep, every some seconds."""
        raise NotImplementedError

    def end(self, error: ServiceError) -> None:
        """The entity is gone, or the broker stops: refuse what waits with error, tell receivers; forget `wake`.

        Nothing is called behind it. The log is the owner's to close.
        """
        raise NotImplementedError

    # Senders

    def enqueue(self, run: bytearray, messages: int, times: Times, on_done: OnDone[NumberRange]) -> None:
        """Store a run of sealed batches of messages; the log keeps run. on_done when they are durable and visible.

        Raises ServiceError RESOURCE_LIMIT over the quota of the entity's size, or when the window of duplicate
        detection is full; NOT_ALLOWED for a message without a session id where sessions are required; StoreError.
        Nothing is stored then.
        After a crash: all messages of the run are there, or none; all for certain once on_done said so in DURABLE.
        """
        raise NotImplementedError

    def cancel_scheduled(self, numbers: array[int], on_done: OnDone[None]) -> None:
        """Remove scheduled messages, all or none. Raises ServiceError MESSAGE_NOT_FOUND, with the first that is none.

        Durable once on_done said so; they are not activated meanwhile.
        """
        raise NotImplementedError

    # Receivers

    def open_receiver(self, sub_queue: SubQueue, mode: ReceiveMode) -> FragmentReceiver:
        """Receive without a session. Raises ServiceError NOT_ALLOWED for the main sub-queue of one with sessions."""
        raise NotImplementedError

    def accept_session(
        self,
        session_id: str | None,
        mode: ReceiveMode,
        times: Times,
        *,
        wait_ms: int,
        on_done: OnDone[FragmentReceiver],
        on_lost: Callable[[FragmentReceiver, ServiceError], None],
    ) -> SessionWait | None:
        """Hold a session and receive from it: the named one, or with None the free one whose message is the oldest.

        None: answered already. A SessionWait: no session is free; TIMED_OUT after wait_ms. Raises ServiceError
        NOT_ALLOWED where sessions are not required, SESSION_CANNOT_BE_LOCKED when another receiver holds it.
        After a crash no session is held.
        """
        raise NotImplementedError

    def close_receiver(self, receiver: FragmentReceiver, times: Times) -> None:
        """It receives no more; what it waits for is answered empty. Its session is free, and its messages active.

        Locks of messages without a session stay until they end. Twice does nothing.
        """
        raise NotImplementedError

    def receive(
        self, receiver: FragmentReceiver, *, max_count: int, max_bytes: int, on_done: OnDone[ReceivedMessages]
    ) -> None:
        """The receiver's next messages, once there is one. on_done comes in a turn, once; one outstanding a receiver.

        PEEK_LOCK: each is locked from the turn on that gave it. RECEIVE_AND_DELETE: on_done comes when their removal
        is durable, and nobody gets them again. max_bytes: of records, but for the first message.
        """
        raise NotImplementedError

    def cancel_receive(self, receiver: FragmentReceiver) -> None:
        """Answer the outstanding receive empty, or, when messages are being read for it, with these as planned."""
        raise NotImplementedError

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

        ABANDON without properties, and RELEASE, need not be durable and are answered in the call. Raises ServiceError
        ARGUMENT_ERROR when tokens are no whole ones, or properties no map.
        After a crash: a message whose token was answered SETTLED is as it was settled; the others are active.
        """
        raise NotImplementedError

    def renew(self, tokens: bytes, times: Times) -> array[int]:
        """Lock their messages for the lock duration from now on; when each lock ends (wall clock), 0 for a lost one."""
        raise NotImplementedError

    # By number

    def peek(
        self,
        sub_queue: SubQueue,
        from_number: int,
        *,
        max_count: int,
        max_bytes: int,
        times: Times,
        on_done: OnDone[ReceivedMessages],
        session_id: str | None = None,
    ) -> None:
        """Messages of any state from this number on; nothing is locked or changed. One at least when there is any."""
        raise NotImplementedError

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

        Then none is locked. Otherwise as `receive`; an abandoned one stays deferred.
        """
        raise NotImplementedError

    def delete_messages(
        self,
        sub_queue: SubQueue,
        *,
        max_count: int,
        before_ms: int,
        times: Times,
        on_done: OnDone[int],
        session_id: str | None = None,
    ) -> None:
        """Delete the first active messages that were enqueued before a time; on_done with how many, when durable."""
        raise NotImplementedError

    def counts(self) -> FragmentCounts:
        """As it is now."""
        raise NotImplementedError

    # Sessions

    def renew_session(self, session_id: str, times: Times) -> int:
        """Lock a session from now on; when that ends (wall clock). Raises ServiceError SESSION_LOCK_LOST."""
        raise NotImplementedError

    def session_state(self, session_id: str) -> bytes | None:
        """As it was set. Raises ServiceError SESSION_LOCK_LOST when nobody holds the session."""
        raise NotImplementedError

    def set_session_state(self, session_id: str, state: bytes | None, times: Times, on_done: OnDone[None]) -> None:
        """Keep a session's state, None: none. on_done when that is durable. Raises as session_state."""
        raise NotImplementedError

    def list_sessions(self, *, updated_after_ms: int | None, skip: int, top: int) -> tuple[str, ...]:
        """Sessions in the order in which they first had a message or a state.

        updated_after_ms: those whose state was set behind this time; None: with active messages or a state.
        """
        raise NotImplementedError
