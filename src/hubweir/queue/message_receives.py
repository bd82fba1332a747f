"""Receivers of a fragment: what they wait for, and what they are given.

A receive is answered in the turn in which there is a message, and one that does not wait in the next turn, whatever
there is; receivers of one sub-queue are served in the order in which they asked. In PEEK_LOCK mode the messages are
locked, LOCKED is logged and not waited for, and the records are read; in RECEIVE_AND_DELETE mode they are read, SETTLED
is logged, and the answer waits for it. Holders of sessions may be many: what they are given in a turn is locked
together.
"""

from __future__ import annotations

from array import array
from functools import partial

from msgspec import Struct

from hubweir.errors import NOT_ALLOWED, CorruptStore, ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCKED_UNTIL_MS
from hubweir.kernels.queue_contract import (
    LOCKED,
    M_INDEX,
    M_LOCK,
    M_STATE,
    SETTLING,
    SUB_QUEUE_BITS,
)
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore, OnLogged
from hubweir.queue.fragment_receiver import FragmentReceiver
from hubweir.queue.fragment_values import OnDone, ReceivedMessages, Times
from hubweir.queue.message_page import NEVER
from hubweir.queue.message_session import MessageSession
from hubweir.queue.operation import LOCKED as LOGGED_LOCKED
from hubweir.queue.operation import RELEASED, SETTLED
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# Of one answer; what a receiver wants beyond it comes with its next receive.
RECEIVE_LIMIT = 5_000


class _Wanted(Struct, frozen=True):
    max_count: int
    max_bytes: int
    waits: bool
    on_done: OnDone[ReceivedMessages]


class _Given(Struct, frozen=True):
    """Messages that are being read. counts: theirs; is_counted: a delivery of each was."""

    counts: array[int]
    rows: array[int]
    mode: ReceiveMode
    is_counted: bool
    on_done: OnDone[ReceivedMessages]
    receiver: FragmentReceiver | None = None
    wanted: _Wanted | None = None


class MessageReceives:
    """See the module's text."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core
        self._waiting: dict[FragmentReceiver, _Wanted] = {}  # without a session, in the order they came
        # With one. In a turn only those are looked at that may have a message that is ready, or ask and do not wait.
        self._in_sessions: dict[FragmentReceiver, _Wanted] = {}
        self._just_asked: list[FragmentReceiver] = []

    # Receivers

    def open(self, sub_queue: SubQueue, mode: ReceiveMode) -> FragmentReceiver:
        """See Fragment.open_receiver."""
        if sub_queue is SubQueue.MAIN and self._core.settings.requires_session:
            text = (
                "It is not possible for an entity that requires sessions to create a non-sessionful message receiver. "
                f"'{self._core.entity}' requires sessions: accept one."
            )
            raise ServiceError(NOT_ALLOWED, text)
        return FragmentReceiver(sub_queue, mode)

    def close(self, receiver: FragmentReceiver) -> None:
        """It receives no more; what it waits for is answered empty, and what is being read for it becomes free."""
        receiver.is_open = False
        self.cancel(receiver)

    def receive(
        self,
        receiver: FragmentReceiver,
        *,
        max_count: int,
        max_bytes: int,
        waits: bool,
        on_done: OnDone[ReceivedMessages],
    ) -> None:
        """See Fragment.receive."""
        if not receiver.is_open or receiver in self._waiting_as(receiver) or receiver.reading:
            raise ServiceError(NOT_ALLOWED, f"a receiver of '{self._core.entity}' is closed, or receives already")
        self._wait(receiver, _Wanted(max(1, min(max_count, RECEIVE_LIMIT)), max_bytes, waits, on_done))

    def _wait(self, receiver: FragmentReceiver, wanted: _Wanted) -> None:
        session = receiver.session
        if session is None:
            self._waiting[receiver] = wanted
        else:
            self._in_sessions[receiver] = wanted
            if wanted.waits and not session.may_have_ready:
                return  # the session is stirred when it has
            self._just_asked.append(receiver)
        self._core.wake()

    def _waiting_as(self, receiver: FragmentReceiver) -> dict[FragmentReceiver, _Wanted]:
        """Those who wait as this one would."""
        return self._waiting if receiver.session is None else self._in_sessions

    def cancel(self, receiver: FragmentReceiver) -> None:
        """Answer what it waits for empty; what is being read for it is answered as planned."""
        wanted = self._waiting_as(receiver).pop(receiver, None)
        if wanted is not None:
            wanted.on_done(nothing_received())

    def end(self, error: ServiceError) -> None:
        """Refuse all that wait."""
        waiting = self._waiting | self._in_sessions
        self._waiting, self._in_sessions, self._just_asked = {}, {}, []
        for receiver, wanted in waiting.items():
            receiver.is_open = False
            wanted.on_done(error)

    def serve(self, times: Times) -> None:
        """Give to those who wait what is ready."""
        messages, empty = self._core.state.messages, set[SubQueue]()
        self._core.reads.begin_turn()
        for receiver, wanted in list(self._waiting.items()):
            sub_queue = receiver.sub_queue
            if sub_queue in empty:
                self._pass_over(receiver, wanted)
                continue
            room = array("q", bytes(8 * wanted.max_count))
            many, _ = messages.select(sub_queue, times.stamp_ms, room, wanted.max_count, wanted.max_bytes)
            if many:
                self._give(receiver, room[:many], times)
            else:
                empty.add(sub_queue)
                self._pass_over(receiver, wanted)
        self._serve_sessions(times)
        self._core.reads.end_turn()

    def _serve_sessions(self, times: Times) -> None:
        """Give to holders of sessions what is ready there: messages of all of them are locked and logged together."""
        messages, stamp_ms, in_sessions = self._core.state.messages, times.stamp_ms, self._in_sessions
        just_asked, self._just_asked = self._just_asked, []
        holders = [session.holder for session in self._core.state.sessions.take_stirred()]
        locking: list[tuple[FragmentReceiver, _Wanted, array[int]]] = []
        for receiver in dict.fromkeys(just_asked + holders):
            wanted = in_sessions.get(receiver)
            if wanted is None or receiver.session is None:
                continue
            counts = receiver.session.select(messages, stamp_ms, wanted.max_count, wanted.max_bytes)
            if not counts:
                self._pass_over(receiver, wanted)
            elif receiver.mode is ReceiveMode.PEEK_LOCK:
                receiver.reading = counts
                locking.append((receiver, in_sessions.pop(receiver), counts))
            else:
                self._give(receiver, counts, times)
        if locking:
            self._lock_in_sessions(locking, times)

    def _pass_over(self, receiver: FragmentReceiver, wanted: _Wanted) -> None:
        """There is nothing for it in this turn."""
        if not wanted.waits:
            self.cancel(receiver)

    def _give(self, receiver: FragmentReceiver, counts: array[int], times: Times) -> None:
        """Answer what it waits for with these."""
        wanted = self._waiting_as(receiver).pop(receiver, None)
        if wanted is not None:  # it was not cancelled meanwhile
            receiver.reading = counts
            self.give(counts, receiver.mode, receiver.sub_queue, times, wanted.on_done, receiver, wanted)

    # Giving

    def give(
        self,
        counts: array[int],
        mode: ReceiveMode,
        sub_queue: SubQueue,
        times: Times,
        on_done: OnDone[ReceivedMessages],
        receiver: FragmentReceiver | None = None,
        wanted: _Wanted | None = None,
        session: MessageSession | None = None,
    ) -> None:
        """Mark ready messages as the mode says, then read them."""
        core = self._core
        session = session if receiver is None else receiver.session
        locks = mode is ReceiveMode.PEEK_LOCK
        is_counted = locks and sub_queue is SubQueue.MAIN
        until_ms = times.monotonic_ms + core.settings.lock_duration_ms if session is None else session.until_ms
        lock_ends_ms = until_ms if session is None else NEVER
        told_ms = times.stamp_ms + until_ms - times.monotonic_ms
        indexes, rows = self._marked(
            counts, lock_ends_ms=lock_ends_ms if locks else None, told_ms=told_ms, is_counted=is_counted
        )
        if session is not None:
            session.last_given = max(session.last_given, *counts)
        given = _Given(counts, rows, mode, is_counted, on_done, receiver, wanted)
        core.reads.begin(indexes, rows, changes_of(core, counts), partial(self._read, given))

    def _marked(
        self, counts: array[int], *, lock_ends_ms: int | None, told_ms: int, is_counted: bool
    ) -> tuple[array[int], array[int]]:
        """Mark ready messages, and log that they are delivered where that counts; their log indexes and message rows.

        lock_ends_ms: when their locks do, on the monotonic clock; NEVER: with their sessions; None: no locks.
        told_ms: the end that receivers are told.
        """
        core, many, locks = self._core, len(counts), lock_ends_ms is not None
        indexes, rows = array("q", bytes(8 * many)), array("q", bytes(8 * MESSAGE_WIDTH * many))
        core.state.messages.give(
            counts,
            many,
            marks=LOCKED if locks else SETTLING,
            delivered=int(is_counted),
            lock_number=core.locks.next_number if locks else 0,
            secret=core.locks.secret,
            until_ms=told_ms if locks else -1,
            number_base=core.number_base,
            partition=-1,
            indexes=indexes,
            out=rows,
        )
        core.tell_origins(rows)
        if lock_ends_ms is not None:
            core.locks.lock(counts, many, lock_ends_ms)
        if is_counted:
            core.gather_joined(LOGGED_LOCKED, counts)
        return indexes, rows

    def _lock_in_sessions(self, receivers: list[tuple[FragmentReceiver, _Wanted, array[int]]], times: Times) -> None:
        """Lock messages of several sessions, which their holders wait for, then read and answer one after the other."""
        core, counts = self._core, array("q")
        for receiver, _, its in receivers:
            assert receiver.session is not None
            receiver.session.last_given = max(receiver.session.last_given, its[-1])  # as `select` picks them: in order
            counts += its
        # Sessions are held until different times, which each receiver is told below.
        indexes, rows = self._marked(counts, lock_ends_ms=NEVER, told_ms=-1, is_counted=True)
        at, later_ms = 0, times.stamp_ms - times.monotonic_ms
        for receiver, wanted, its in receivers:
            assert receiver.session is not None
            first, at = at, at + len(its)
            changes = changes_of(core, its) if core.state.changed else {}
            found = None if changes else core.reads.read_of_turn(indexes, first, at, rows)
            own = rows[first * MESSAGE_WIDTH : at * MESSAGE_WIDTH]
            own[Q_LOCKED_UNTIL_MS::MESSAGE_WIDTH] = array("q", (receiver.session.until_ms + later_ms,)) * len(its)
            if found is not None and receiver.is_open:
                receiver.reading = array("q")
                wanted.on_done(ReceivedMessages(memoryview(found), own))
                continue
            given = _Given(its, own, ReceiveMode.PEEK_LOCK, True, wanted.on_done, receiver, wanted)
            if found is not None:
                self._read(given, found)
            else:
                core.reads.begin(indexes[first:at], own, changes, partial(self._read, given))

    def _read(self, given: _Given, answer: bytearray | Refused) -> None:
        receiver = given.receiver
        if receiver is not None:
            receiver.reading = array("q")
        if isinstance(answer, Refused):
            self._not_read(given, answer)
        elif receiver is not None and not receiver.is_open:
            self._take_back(given, given.counts)
            given.on_done(nothing_received())
        elif given.mode is ReceiveMode.PEEK_LOCK:
            given.on_done(ReceivedMessages(memoryview(answer), given.rows))
        else:
            received = ReceivedMessages(memoryview(answer), given.rows)
            self._core.gather_joined(SETTLED, given.counts, partial(self._removed, given, received))

    def _removed(self, given: _Given, received: ReceivedMessages, refused: Refused | None) -> None:
        self._core.unmark(given.counts, refused)
        given.on_done(received if refused is None else refused)

    def _not_read(self, given: _Given, refused: Refused) -> None:
        """The messages are as before. Those whose records are damaged keep their mark: nobody waits for them."""
        error, counts, lost = refused.error, array("q", given.counts), False
        if isinstance(error, CorruptStore) and error.first_index is not None and error.resume_index is not None:
            for place, count in enumerate(given.counts):
                found = self._core.state.messages.find(count)
                if found is not None and error.first_index <= found[0].rows[found[1] + M_INDEX] < error.resume_index:
                    found[0].rows[found[1] + M_STATE] |= SETTLING
                    counts[place], lost = 0, True
        self._take_back(given, counts)
        receiver = given.receiver
        if lost and receiver is not None and given.wanted is not None and receiver.is_open:
            self._wait(receiver, given.wanted)
        else:
            given.on_done(refused)

    def _take_back(self, given: _Given, counts: array[int]) -> None:
        """They were not delivered."""
        core = self._core
        if given.mode is ReceiveMode.RECEIVE_AND_DELETE:
            core.unlock(counts, marks=SETTLING, change=0)
            return
        # A lock that ended while its message was read counts, and the message may have another one by now.
        locks, its = locks_of(core, counts), given.rows[Q_LOCK::MESSAGE_WIDTH]
        held = array("q", [count if lock == own else 0 for count, lock, own in zip(counts, locks, its, strict=True)])
        core.locks.end(array("q", [own for own, count in zip(its, counts, strict=True) if count]))
        release_messages(core, held)


def nothing_received() -> ReceivedMessages:
    """The answer of a receive without messages."""
    return ReceivedMessages(b"", array("q"))


def locks_of(core: FragmentCore, counts: array[int]) -> array[int]:
    """The numbers of the locks on these messages, 0 where there is none."""
    found = (core.state.messages.find(count) if count else None for count in counts)
    return array("q", [0 if each is None else each[0].rows[each[1] + M_LOCK] for each in found])


def release_messages(core: FragmentCore, counts: array[int], on_done: OnLogged | None = None) -> None:
    """These locked messages are active again at once, as if they had not been delivered.

    on_done: when the log says so, too, or why not. Where it was refused, that is tried again.
    """
    main = array("q", [count if _is_main(core, count) else 0 for count in counts])
    if any(main):
        core.gather(core.ranged(RELEASED, main), on_done)
    core.unlock(counts, marks=LOCKED | SETTLING, change=-1)
    if on_done is not None and not any(main):
        on_done(None)


def _is_main(core: FragmentCore, count: int) -> bool:
    found = core.state.messages.find(count) if count else None
    return found is not None and not found[0].rows[found[1] + M_STATE] & SUB_QUEUE_BITS


def changes_of(core: FragmentCore, counts: array[int]) -> dict[int, bytes]:
    """Changed properties by place."""
    changed = core.state.changed
    if not changed:
        return {}
    return {place: changed[count] for place, count in enumerate(counts) if count in changed}
