"""The holders of message sessions: accepted, renewed, lost, and those who wait for the next free one.

A session is held for the lock duration from when it was granted or renewed, on the monotonic clock. Messages that are
locked in it are locked as long as it is held; then they are active again, delivered once more than before.

When a hold ends, something that its holder did may be on its way to the log: settlements, a state of the session, a
read. The session is *ending* until all of that is decided, and is given to nobody meanwhile. So the next holder sees
what the last one left, and neither a message behind one that comes back, nor a state that changes under it. A session
whose state is undecided (fragment_core.py) is ending, too.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush

from msgspec import Struct

from hubweir.errors import (
    NOT_ALLOWED,
    SESSION_CANNOT_BE_LOCKED,
    SESSION_LOCK_LOST,
    STORE_OFFLINE,
    TIMED_OUT,
    ServiceError,
)
from hubweir.kernels.queue_contract import LOCKED, M_LOCK, M_STATE, QUEUE_WIDTH, SETTLING
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_receiver import FragmentReceiver, OnGiven
from hubweir.queue.fragment_values import ListedSessions, OnDone, Times
from hubweir.queue.message_receives import MessageReceives
from hubweir.queue.message_session import MessageSession
from hubweir.queue.operation import SESSION_STATE, Operation
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

OnLost = Callable[[FragmentReceiver, ServiceError], None]


class _Ending(Struct, frozen=True, eq=False):
    """A session that is free when its last holder has read what it was reading, and the log has decided a run."""

    session: MessageSession
    receiver: FragmentReceiver
    run: int


class SessionWait:
    """Somebody who waits for the next free session, or for a named one that is ending."""

    __slots__ = ("mode", "on_done", "on_given", "on_lost", "session_id", "until_ms")

    def __init__(
        self,
        session_id: str | None,
        mode: ReceiveMode,
        until_ms: int,
        on_done: OnDone[FragmentReceiver],
        on_lost: OnLost,
        on_given: OnGiven | None,
    ) -> None:
        self.session_id = session_id
        self.mode = mode
        self.until_ms = until_ms
        self.on_done: OnDone[FragmentReceiver] | None = on_done
        self.on_lost = on_lost
        self.on_given = on_given

    def cancel(self) -> None:
        """It is not answered. Twice, or too late, does nothing."""
        self.on_done = None


class SessionHolds:
    """Of one fragment."""

    def __init__(self, core: FragmentCore, receives: MessageReceives) -> None:
        self._core = core
        self._receives = receives
        self._waits: list[SessionWait] = []  # in the order they came
        self._ends: list[tuple[int, int]] = []  # a heap of until_ms, number of the session; stale ones are passed over
        self._ending: list[_Ending] = []

    def accept(
        self,
        session_id: str | None,
        mode: ReceiveMode,
        times: Times,
        *,
        wait_ms: int,
        on_done: OnDone[FragmentReceiver],
        on_lost: OnLost,
        on_given: OnGiven | None,
    ) -> SessionWait | None:
        """See Fragment.accept_session."""
        core = self._core
        if not core.settings.requires_session:
            text = (
                "A sessionful message receiver cannot be created on an entity that does not require sessions. "
                f"'{core.entity}' does not."
            )
            raise ServiceError(NOT_ALLOWED, text)
        self.expire(times)
        if session_id is not None:
            session = core.state.sessions.get(session_id.encode())
            if session.holder is not None:
                raise self._is_not_free(session)
        wait = SessionWait(session_id, mode, times.monotonic_ms + wait_ms, on_done, on_lost, on_given)
        self._waits.append(wait)
        self.serve(times)
        core.wake()
        return wait if wait.on_done is not None else None

    def serve(self, times: Times) -> None:
        """Give free sessions to those who wait, in turn; refuse those who waited long enough."""
        self._free_decided()
        waits = [wait for wait in self._waits if wait.on_done is not None]
        left = []
        for wait in waits:
            session, error = self._found(wait, times)
            on_done = wait.on_done
            if on_done is None or (session is None and error is None):
                left.append(wait)
                continue
            wait.on_done = None
            if session is not None:
                on_done(self._grant(session, wait, times))
            elif error is not None:
                on_done(error)
        self._waits = [wait for wait in left if wait.on_done is not None]

    def _found(self, wait: SessionWait, times: Times) -> tuple[MessageSession | None, ServiceError | None]:
        """The session that a wait gets, or why it gets none; nothing of both: it goes on."""
        state, is_over = self._core.state, wait.until_ms <= times.monotonic_ms
        if wait.session_id is None:
            session = state.sessions.next_free(state.messages, times.stamp_ms)
            text = f"no session of '{self._core.entity}' with messages was free in time"
            return session, ServiceError(TIMED_OUT, text) if is_over else None
        session = state.sessions.get(wait.session_id.encode())
        if session.is_free:
            return session, None
        is_refused = is_over or session.holder is not None
        return None, self._is_not_free(session) if is_refused else None

    def _is_not_free(self, session: MessageSession) -> ServiceError:
        name = f"session '{session.session_id.decode()}' of '{self._core.entity}'"
        text = f"another receiver holds {name}"
        if session.holder is None:
            text = f"{name} is not free yet: what its last receiver did is still on its way to the messaging store"
        return ServiceError(SESSION_CANNOT_BE_LOCKED, text)

    def _free_decided(self) -> None:
        """Sessions of which all is decided are free."""
        ending, self._ending = self._ending, []
        sessions = self._core.state.sessions
        for each in ending:
            session = each.session
            if each.receiver.is_reading or not self._core.is_decided(each.run) or self._is_undecided(session):
                self._ending.append(each)
                continue
            session.is_ending = False
            if session.live:
                sessions.list(session, session.counts[0])
            sessions.forget(session)

    def _grant(self, session: MessageSession, wait: SessionWait, times: Times) -> FragmentReceiver:
        receiver = FragmentReceiver(SubQueue.MAIN, wait.mode, session, wait.on_lost, wait.on_given)
        session.holder = receiver
        self._hold(session, receiver, times)
        return receiver

    def _hold(self, session: MessageSession, receiver: FragmentReceiver, times: Times) -> int:
        duration_ms = self._core.settings.lock_duration_ms
        session.until_ms = times.monotonic_ms + duration_ms
        receiver.locked_until_ms = times.stamp_ms + duration_ms
        heappush(self._ends, (session.until_ms, session.number))
        return receiver.locked_until_ms

    def expire(self, times: Times) -> None:
        """End the holds whose time is over."""
        while self._ends and self._ends[0][0] <= times.monotonic_ms:
            until_ms, number = heappop(self._ends)
            session = self._core.state.sessions.by_number.get(number)
            if session is None or session.holder is None or session.until_ms != until_ms:
                continue
            receiver = session.holder
            text = f"the lock of session '{receiver.session_id}' of '{self._core.entity}' ended; accept it again"
            self._lose(receiver, ServiceError(SESSION_LOCK_LOST, text))

    def _lose(self, receiver: FragmentReceiver, error: ServiceError) -> None:
        self.free(receiver)
        receiver.is_open = False
        # Before its receive is answered empty: whoever hears that first asks again, and is told of a closed receiver.
        if receiver.on_lost is not None:
            receiver.on_lost(receiver, error)
        self._receives.close(receiver)

    def free(self, receiver: FragmentReceiver) -> None:
        """Nobody holds the receiver's session any more; messages that are locked in it are active again.

        Those that are being read for the receiver are so when they are read: they were never delivered.
        """
        session, core = receiver.session, self._core
        if session is None or session.holder is not receiver:
            return
        session.holder, last_given = None, session.last_given
        session.last_given = 0
        counts, locks, reading = array("q"), array("q"), set(receiver.reading)
        for page, at in session.messages_in(core.state.messages, 0):
            count = page.first + at // QUEUE_WIDTH
            if count > last_given:
                break
            bits = page.rows[at + M_STATE]
            if bits & LOCKED and count not in reading:
                locks.append(page.rows[at + M_LOCK])
                # What is being settled is decided by the log; its lock is over whatever becomes of it.
                if bits & SETTLING:
                    page.rows[at + M_STATE] &= ~LOCKED
                    page.rows[at + M_LOCK] = 0
                else:
                    counts.append(count)
        session.is_ending = True
        core.locks.end(locks)
        core.unlock(counts, marks=LOCKED, change=0)
        self._ending.append(_Ending(session, receiver, core.await_run()))
        self._free_decided()
        core.wake()

    def end(self, error: ServiceError) -> None:
        """Refuse those who wait, and tell those who hold a session."""
        waits, self._waits = self._waits, []
        for wait in waits:
            on_done, wait.on_done = wait.on_done, None
            if on_done is not None:
                on_done(error)
        for session in list(self._core.state.sessions.by_number.values()):
            receiver, session.holder = session.holder, None
            if receiver is not None:
                receiver.is_open = False
                if receiver.on_lost is not None:
                    receiver.on_lost(receiver, error)

    def next_due_ms(self) -> int | None:
        """When a hold or a wait may be over, on the monotonic clock."""
        ends = [self._ends[0][0]] if self._ends else []
        return min([*ends, *(wait.until_ms for wait in self._waits if wait.on_done is not None)], default=None)

    # Of one session

    def _held(self, session_id: str) -> MessageSession:
        session = self._core.state.sessions.by_id.get(session_id.encode())
        if session is None or session.holder is None:
            text = f"nobody holds session '{session_id}' of '{self._core.entity}' (any more)"
            raise ServiceError(SESSION_LOCK_LOST, text)
        return session

    def renew(self, session_id: str, times: Times) -> int:
        """See Fragment.renew_session."""
        self.expire(times)
        session = self._held(session_id)
        until_ms = self._hold(session, session.holder, times)
        self._core.wake()
        return until_ms

    def state_of(self, session_id: str) -> bytes | None:
        """See Fragment.session_state."""
        session = self._held(session_id)
        if self._is_undecided(session):
            text = (
                f"the state of session '{session_id}' of '{self._core.entity}' is not known until its messaging store "
                "can write again: it was set, and that ended without an answer; try again, or set it"
            )
            raise ServiceError(STORE_OFFLINE, text)
        return session.state

    def _is_undecided(self, session: MessageSession) -> bool:
        """Whether nobody knows its state."""
        return session.session_id in self._core.undecided_states

    def set_state(self, session_id: str, state: bytes | None, times: Times, on_done: OnDone[None]) -> None:
        """See Fragment.set_session_state."""
        self.expire(times)
        session = self._held(session_id)
        more = len(state or b"") - len(session.state or b"")
        if more > 0:
            self._core.check_room(more)
        operation = Operation(SESSION_STATE, session_id=session.session_id, state=state, time_ms=times.stamp_ms)
        self._core.gather([operation], partial(_told, on_done))

    def listed(self, *, updated_after_ms: int | None, skip: int, top: int) -> ListedSessions:
        """See Fragment.list_sessions."""
        found: list[str] = []
        passed = 0
        messages = self._core.state.messages
        for session in self._core.state.sessions.by_number.values():
            if updated_after_ms is None:
                wanted = session.state is not None or session.has_active(messages)
            else:
                wanted = session.state_ms > updated_after_ms
            if wanted and passed < skip:
                passed += 1
            elif wanted:
                found.append(session.session_id.decode())
                if len(found) == top:
                    break
        return ListedSessions(tuple(found), passed)


def _told(on_done: OnDone[None], refused: Refused | None) -> None:
    on_done(refused)
