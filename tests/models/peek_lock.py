"""A fragment of a queue: messages that receivers lock and settle. Promises P7, P8, P9, and P1 of its sends.

The model. The fragment has one log of operations. Appended operations form the tail until they are synced, the oldest
first. Each message has a state that the synced operations make (`Stored`), and a lock in memory (`Lock`). Two
receivers lock messages, settle them, die, and keep tokens that are over. There are no times: the time of a lock may
be over at any moment, and the fragment's timer comes at any moment behind that.

Atomic steps. A request is its check and the append of its operation, in one step. A sync makes the oldest operation
of the tail durable: from then on others see its effect, and the client that waits for it is answered. A lock is the
exception: its operation is appended, and the message leaves before any sync, so a power cut may forget the lock. A
message that is taken (receive-and-delete) leaves behind the sync of its removal.

A crash. A kill loses the memory and keeps the tail; the start syncs the tail before anything else. A power cut keeps
some of the tail's oldest operations (if it keeps all, it is as a kill). Then every lock that the log left open is
over, and counted. The start notes that in the log before all else, so that the next start comes to the same counts. A
token holds the number of the start. A sync that fails takes the whole tail back: sends and settlements are refused,
locks go on, and their operations are appended again.

Promises that must hold.
P1  An answered send is there.
P7  Each operation fits the state that its message is in, so each message is in one of these states: not sent,
    scheduled, active, locked, deferred, dead-lettered, gone. At most one receiver has the token of a lock. The effect
    of an answered settlement stays. No token is good when its time is over, or behind a restart. A message that
    anybody was shown is there.
P8  The count rises by one for each abandon, each lock that runs out, and each lock that a crash ends. It does not
    rise for a release, nor in the dead-letter queue. A kill forgets no count; a power cut may forget that it ended a
    lock. The operation that brings the count to its limit dead-letters the message, too.
P9  A message that is taken leaves at most once, and is gone by then.

One limit of P8: a power cut that loses a release which nobody was answered, and not its lock, counts that delivery.

Left out: renewal (it only puts off the end of a lock), time to live, several messages in one request.

Long because one specification is easiest to check in one piece; its text and its planted mistakes are a fifth of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

# Where a message is, if it is not locked. No operation leads back: a client that was told one counts on "at least".
NOT_SENT, SCHEDULED, ACTIVE, DEFERRED, DEAD, GONE = range(6)

# Operations of the log.
(SEND, SCHEDULE, ACTIVATE, CANCEL, LOCK, COMPLETE, ABANDON, DEFER, DEAD_LETTER, RELEASE, RUN_OUT, TAKE) = range(1, 13)

SETTLEMENTS = {
    "complete": COMPLETE, "abandon": ABANDON, "defer": DEFER, "dead-letter": DEAD_LETTER, "release": RELEASE,
}  # fmt: skip

# Where a message is at least, when somebody was answered that the operation is done.
PROMISED = {
    SEND: ACTIVE, SCHEDULE: SCHEDULED, ACTIVATE: ACTIVE, CANCEL: GONE, COMPLETE: GONE, DEFER: DEFERRED,
    DEAD_LETTER: DEAD,
}  # fmt: skip


class Stored(NamedTuple):
    """One message as the log has it. count: of failed deliveries. is_locked: by the log, so before a restart maybe."""

    place: int
    count: int
    is_locked: int


class Operation(NamedTuple):
    kind: int
    message: int


class Lock(NamedTuple):
    """In memory. token: 0 where there is no lock. is_over: its time has passed; the timer has not come yet."""

    token: int
    is_over: int


class Receiver(NamedTuple):
    """A client, as it knows itself: its message, its token, the operation that it waits for; 0: none.

    is_stale: known to us, not to the client: its time is over, or the broker has restarted.
    """

    message: int
    token: int
    waits_for: int
    is_stale: int


class State(NamedTuple):
    """told: the place that somebody was answered or shown. failed: deliveries that failed. taken: how often it left."""

    stored: tuple[Stored, ...]
    tail: tuple[Operation, ...]
    locks: tuple[Lock, ...]
    receivers: tuple[Receiver, ...]
    told: tuple[int, ...]
    failed: tuple[int, ...]
    taken: tuple[int, ...]
    faults: int
    wrong: str


FREE = Lock(0, 0)
AT_REST = Receiver(0, 0, 0, 0)


class Unfit(Exception):
    """An operation in the log does not fit the state that its message is in."""


def applied(stored: Stored, kind: int, count_limit: int) -> Stored:
    """Return the message behind an operation. This is the whole meaning of the log. Raises Unfit."""
    place, count, is_locked = stored
    if kind == LOCK and not is_locked and place in (ACTIVE, DEFERRED, DEAD):
        return Stored(place, count, 1)
    if is_locked:
        if kind == COMPLETE:
            return Stored(GONE, count, 0)
        if kind == RELEASE:
            return Stored(place, count, 0)
        if kind in (ABANDON, RUN_OUT):
            return failed_delivery(stored, count_limit)
        if kind == DEFER and place != DEAD:
            return Stored(DEFERRED, count, 0)
        if kind == DEAD_LETTER and place != DEAD:
            return Stored(DEAD, count, 0)
    elif kind == TAKE and place in (ACTIVE, DEAD):
        return Stored(GONE, count, 0)
    elif kind == SEND and place == NOT_SENT:
        return Stored(ACTIVE, 0, 0)
    elif kind == SCHEDULE and place == NOT_SENT:
        return Stored(SCHEDULED, 0, 0)
    elif kind == ACTIVATE and place == SCHEDULED:
        return Stored(ACTIVE, 0, 0)
    elif kind == CANCEL and place == SCHEDULED:
        return Stored(GONE, 0, 0)
    raise Unfit


def failed_delivery(stored: Stored, count_limit: int) -> Stored:
    """A deferred message stays deferred. One that reaches the limit is dead-lettered; its count stands still then."""
    if stored.place == DEAD:
        return Stored(DEAD, stored.count, 0)
    count = stored.count + 1
    return Stored(DEAD if count >= count_limit else stored.place, count, 0)


@dataclass(frozen=True, slots=True)
class PeekLock:
    """The model; behind its bounds, mistakes to plant. scheduled: the messages that are sent for later."""

    messages: int = 2
    receivers: int = 2
    count_limit: int = 2
    tail_limit: int = 2
    faults: int = 1
    scheduled: tuple[int, ...] = ()
    takes: bool = True

    settle_after_expiry: bool = False  # the timer alone ends a lock
    answer_before_durable: bool = False  # settlements are answered when they are appended
    deliver_unsynced: bool = False  # a message goes out before its send is synced
    tokens_without_start: bool = False  # a restart counts tokens from the beginning
    locks_not_written: bool = False  # locks are in memory only
    locks_not_noted_again: bool = False  # behind a failed sync
    take_before_durable: bool = False  # receive-and-delete sends the bytes, then syncs
    run_out_while_settling: bool = False  # the timer does not look for a settlement in flight
    release_counts: bool = False

    FAULTS = ("kill", "power_cut", "sync_fails")

    def start(self) -> State:
        zeros = (0,) * self.messages
        return State(
            stored=(Stored(NOT_SENT, 0, 0),) * self.messages, tail=(), locks=(FREE,) * self.messages,
            receivers=(AT_REST,) * self.receivers, told=zeros, failed=zeros, taken=zeros, faults=0, wrong="",
        )  # fmt: skip

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        if len(state.tail) < self.tail_limit:
            yield from self._requests(state)
        for message, lock in enumerate(state.locks):
            if lock.token and not lock.is_over:
                yield ("time_over", message), self._time_over(state, message)
        for name, receiver in enumerate(state.receivers):
            if receiver.token and not receiver.waits_for:
                yield ("die", name), state._replace(receivers=put(state.receivers, name, AT_REST))
        if state.tail:
            yield ("sync",), self._synced(state)
        if state.faults < self.faults:
            yield from self._faults(state)

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        try:
            ahead = self._after_tail(state)
        except Unfit:
            return "P7: an operation in the log does not fit"
        for stored, told, taken in zip(ahead, state.told, state.taken, strict=True):
            if stored.place < told:
                return "P1, P7, P9: a state that was answered or shown is not there"
            if taken > 1:
                return "P9: a message left twice"
        for stored, failed in zip(state.stored, state.failed, strict=True):
            if stored.count != failed:
                return "P8: the count is not that of the failed deliveries"
            if stored.place in (ACTIVE, DEFERRED) and stored.count >= self.count_limit:
                return "P8: the limit is reached and the message is not dead-lettered"
        tokens = [receiver.token for receiver in state.receivers if receiver.token and not receiver.is_stale]
        if len(tokens) != len(set(tokens)):
            return "P7: two receivers have the token of one lock"
        return None

    def is_quiet(self, state: State) -> bool:
        is_over = all(stored.place == GONE for stored in state.stored)
        return is_over and not state.tail and state.locks == (FREE,) * self.messages

    def view(self, state: State) -> list[tuple[str, int]]:
        """Each message as a peek shows it: where it is, and its count."""
        names = ("not sent", "scheduled", "active", "deferred", "dead-lettered", "gone")
        return [
            ("locked" if lock.token else names[stored.place], stored.count)
            for stored, lock in zip(state.stored, state.locks, strict=True)
        ]

    def _requests(self, state: State) -> Iterator[tuple[Action, State]]:
        yield from self._of_sender_and_timer(state)
        for name, receiver in enumerate(state.receivers):
            if receiver.waits_for:
                continue
            if not receiver.token:
                yield from self._received(state, name)
                continue
            for how, kind in SETTLEMENTS.items():
                if state.stored[receiver.message].place != DEAD or kind not in (DEFER, DEAD_LETTER):
                    yield self._settled(state, name, how, kind)

    def _of_sender_and_timer(self, state: State) -> Iterator[tuple[Action, State]]:
        for message, (stored, lock) in enumerate(zip(state.stored, state.locks, strict=True)):
            if is_decided(state, message):
                if self.run_out_while_settling and lock.is_over:
                    yield ("run_out", message), appended(state, RUN_OUT, message)
            elif stored.place == NOT_SENT:
                name, kind = ("schedule", SCHEDULE) if message in self.scheduled else ("send", SEND)
                yield (name, message), appended(state, kind, message)
                return  # one after the other: the messages behind it are not sent either
            elif stored.place == SCHEDULED:
                yield ("activate", message), appended(state, ACTIVATE, message)
                yield ("cancel", message), appended(state, CANCEL, message)
            elif lock.is_over:
                yield ("run_out", message), appended(state, RUN_OUT, message)

    def _received(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        """A link gets the first message of the queue, or of the dead-letter queue; a deferred one is asked for."""
        seen = self._after_tail(state) if self.deliver_unsynced else state.stored
        for place in (ACTIVE, DEAD, DEFERRED):
            for message, stored in enumerate(seen):
                if stored.place != place or state.locks[message].token:
                    continue
                if is_decided(state, message) and not self.deliver_unsynced:
                    continue
                yield ("lock", name, message), self._locked(state, name, message)
                if self.takes and place == ACTIVE:
                    yield ("take", name, message), self._taken(state, name, message)
                break

    def _locked(self, state: State, name: int, message: int) -> State:
        used = {lock.token for lock in state.locks}
        if not self.tokens_without_start:
            used |= {receiver.token for receiver in state.receivers}
        token = min(token for token in range(1, len(used) + 2) if token not in used)
        place = max(state.told[message], ACTIVE)
        return state._replace(
            tail=state.tail if self.locks_not_written else (*state.tail, Operation(LOCK, message)),
            locks=put(state.locks, message, Lock(token, 0)),
            receivers=put(state.receivers, name, Receiver(message, token, 0, 0)),
            told=put(state.told, message, place),
        )

    def _taken(self, state: State, name: int, message: int) -> State:
        after = appended(state, TAKE, message)
        if self.take_before_durable:
            return left(after, message)
        return after._replace(receivers=put(state.receivers, name, Receiver(message, 0, TAKE, 0)))

    def _settled(self, state: State, name: int, how: str, kind: int) -> tuple[Action, State]:
        receiver = state.receivers[name]
        lock = state.locks[receiver.message]
        is_good = lock.token == receiver.token and (self.settle_after_expiry or not lock.is_over)
        if not is_good or is_decided(state, receiver.message):
            return ("settle", name, how, "lost"), state._replace(receivers=put(state.receivers, name, AT_REST))
        after = appended(state, kind, receiver.message)
        if receiver.is_stale:
            after = after._replace(wrong="P7: a token that is over was good for a settlement")
        if self.answer_before_durable:
            return ("settle", name, how, "done"), told(
                after._replace(receivers=put(state.receivers, name, AT_REST)), Operation(kind, receiver.message)
            )
        waiting = receiver._replace(waits_for=kind)
        return ("settle", name, how, "waits"), after._replace(receivers=put(state.receivers, name, waiting))

    def _time_over(self, state: State, message: int) -> State:
        """A settlement that is in flight wins: it was asked in time."""
        lock = state.locks[message]
        receivers = tuple(
            receiver._replace(is_stale=1) if receiver.token == lock.token else receiver for receiver in state.receivers
        )
        return state._replace(locks=put(state.locks, message, Lock(lock.token, 1)), receivers=receivers)

    def _synced(self, state: State) -> State:
        """The oldest operation is durable: others see its effect, and the client that waits for it is answered."""
        operation = state.tail[0]
        kind, message = operation
        stored = self._applied(state.stored, operation)
        after = state._replace(stored=stored, tail=state.tail[1:])
        if kind == LOCK:
            return after
        if kind in (ABANDON, RUN_OUT):
            is_counted = state.stored[message].place != DEAD
            after = after._replace(failed=put(state.failed, message, state.failed[message] + is_counted))
        if kind == TAKE:
            after = after if self.take_before_durable else left(after, message)
            receivers = (
                AT_REST if receiver.waits_for == TAKE and receiver.message == message else receiver
                for receiver in state.receivers
            )
            return after._replace(receivers=tuple(receivers))
        token = state.locks[message].token
        receivers = (
            AT_REST if token and receiver.token == token and receiver.waits_for else receiver
            for receiver in state.receivers
        )
        after = after._replace(locks=put(state.locks, message, FREE), receivers=tuple(receivers))
        return told(after, operation)

    def _faults(self, state: State) -> Iterator[tuple[Action, State]]:
        yield ("kill",), self._restarted(state, len(state.tail))
        for kept in range(len(state.tail)):
            yield ("power_cut", kept), self._restarted(state, kept, is_cut=True)
        if state.tail:
            yield ("sync_fails",), self._sync_failed(state)

    def _restarted(self, state: State, kept: int, *, is_cut: bool = False) -> State:
        stored = state.stored
        for operation in state.tail[:kept]:
            stored = self._applied(stored, operation)
        stored = tuple(failed_delivery(one, self.count_limit) if one.is_locked else one for one in stored)
        failed = state.failed
        wrong = ""
        for message, one in enumerate(stored):
            least, most = self._failed_by_crash(state, message)
            if not (failed[message] if is_cut else least) <= one.count <= most:
                wrong = "P8: the count behind a crash is not that of the failed deliveries"
            failed = put(failed, message, one.count)
        receivers = tuple(
            Receiver(receiver.message, receiver.token, 0, 1) if receiver.token else AT_REST
            for receiver in state.receivers
        )
        return State(
            stored, (), (FREE,) * self.messages, receivers, state.told, failed, state.taken, state.faults + 1, wrong
        )

    def _failed_by_crash(self, state: State, message: int) -> tuple[int, int]:
        """Failed deliveries of a message when a kill ends now, and when a power cut does: this many at the most."""
        failed = state.failed[message]
        if not state.locks[message].token or state.stored[message].place == DEAD:
            return failed, failed
        in_flight = [kind for kind, about in state.tail if about == message and kind != LOCK]
        return failed + (in_flight in ([], [ABANDON], [RUN_OUT])), failed + 1

    def _sync_failed(self, state: State) -> State:
        """Nothing of the tail is stored. Clients that wait are refused, and may ask again; locks are appended again."""
        again = tuple(operation for operation in state.tail if operation.kind == LOCK)
        receivers = (receiver._replace(waits_for=0) if receiver.token else AT_REST for receiver in state.receivers)
        return state._replace(
            tail=() if self.locks_not_noted_again else again, receivers=tuple(receivers), faults=state.faults + 1
        )

    def _applied(self, stored: tuple[Stored, ...], operation: Operation) -> tuple[Stored, ...]:
        kind, message = operation
        before = stored[message]
        if self.locks_not_written and kind in (*SETTLEMENTS.values(), RUN_OUT):
            before = before._replace(is_locked=1)
        if self.release_counts and kind == RELEASE:
            kind = ABANDON
        return put(stored, message, applied(before, kind, self.count_limit))

    def _after_tail(self, state: State) -> tuple[Stored, ...]:
        stored = state.stored
        for operation in state.tail:
            stored = self._applied(stored, operation)
        return stored


def appended(state: State, kind: int, message: int) -> State:
    return state._replace(tail=(*state.tail, Operation(kind, message)))


def is_decided(state: State, message: int) -> bool:
    """An operation that decides about the message is in flight. A lock decides nothing."""
    return bool([kind for kind, about in state.tail if about == message and kind != LOCK])


def told(state: State, operation: Operation) -> State:
    """Somebody is answered that the operation is done."""
    kind, message = operation
    return state._replace(told=put(state.told, message, max(state.told[message], PROMISED.get(kind, NOT_SENT))))


def left(state: State, message: int) -> State:
    """The bytes of a taken message are on their way."""
    return state._replace(
        told=put(state.told, message, GONE), taken=put(state.taken, message, state.taken[message] + 1)
    )
