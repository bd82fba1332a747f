"""A fragment of a queue: messages that receivers lock and settle. Promises P7, P8, P9, and P1 of its sends.

The model. The fragment has one log of operations. Appended runs form the tail until they are synced, the oldest first.
Each message has a state that the synced operations make (`Stored`), and a lock in memory (`Lock`). Two receivers lock
messages, settle them, die, and keep tokens that are over. There are no times: the time of a lock may be over at any
moment, and the fragment's timer comes before any other request but a settlement by that lock.

The log counts deliveries when they begin (LOCK), and takes back those that did not fail (RELEASE, DEFER, DEAD_LETTER).
So an abandon and the end of a lock's time say nothing that the log does not say already: they hold at once, and a crash
does the same. So does a release, but its client is answered when its operation is durable. In the dead-letter queue
nothing is counted, and no lock is logged.

Atomic steps. A request is its check and the append of its operation, in one step. A sync makes the oldest run of the
tail durable: from then on others see its effect, and the client that waits for it is answered. A lock and a release are
the exceptions: others see them before any sync, so a power cut may forget them. A message that is taken
(receive-and-delete) leaves behind the sync of its removal. A message whose count is at the limit is nobody's from then
on, and dead-lettered by an operation (OVER).

A crash. A kill loses the memory and keeps the tail; the start syncs the tail before anything else. A power cut keeps
some of the tail's oldest runs (if it keeps all, it is as a kill). Then every lock is over, and what was delivered too
often is dead-lettered. A token holds the number of the start. A sync that fails takes the whole tail back: sends and
settlements are refused; locks and releases go on, and their operations are appended again, in one run.

Promises that must hold.
P1  An answered send is there.
P7  Each operation fits the state that its message is in, so each message is in one of these states: not sent,
    scheduled, active, locked, deferred, dead-lettered, gone. At most one receiver has the token of a lock. The effect
    of an answered settlement stays. No token is good when its time is over, or behind a restart. A message that
    anybody was shown is there.
P8  The count rises by one for each abandon, each lock that runs out, and each lock that a crash ends. It does not
    rise for a release, nor in the dead-letter queue. A kill forgets no count; a power cut may forget the newest. A
    message whose count comes to its limit is dead-lettered, and nobody gets it before; a deferred one, too.
P9  A message that is taken leaves at most once, and is gone by then.

One limit of P8: a power cut that loses a release which nobody was answered, and not its lock, counts that delivery.

Left out: renewal (it only puts off the end of a lock), time to live, several messages in one request, and what is
deferred in the dead-letter queue. tests/models/play_peek_lock.py plays walks of this model to a fragment.

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
(SEND, SCHEDULE, ACTIVATE, CANCEL, LOCK, COMPLETE, DEFER, DEAD_LETTER, RELEASE, OVER, TAKE) = range(1, 12)

# What a settlement says in the log of a message that is no dead letter; an abandon says nothing.
SETTLEMENTS = {
    "complete": COMPLETE, "abandon": 0, "defer": DEFER, "dead-letter": DEAD_LETTER, "release": RELEASE,
}  # fmt: skip

# Where a message is at least, when somebody was answered that the operation is done.
PROMISED = {
    SEND: ACTIVE, SCHEDULE: SCHEDULED, ACTIVATE: ACTIVE, CANCEL: GONE, COMPLETE: GONE, DEFER: DEFERRED,
    DEAD_LETTER: DEAD, OVER: DEAD,
}  # fmt: skip
# They hold before they are durable, and decide nothing.
AT_ONCE = (LOCK, RELEASE)


class Stored(NamedTuple):
    """One message as the log has it. count: of deliveries. rank: messages became active in this order, from 1 on."""

    place: int
    count: int
    rank: int


class Operation(NamedTuple):
    """by: the receiver that waits for it; NOBODY where none does."""

    kind: int
    message: int
    by: int


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
    """tail: runs. told: the place that somebody was answered or shown. failed: deliveries that failed. taken: how often
    it left."""

    stored: tuple[Stored, ...]
    tail: tuple[tuple[Operation, ...], ...]
    locks: tuple[Lock, ...]
    receivers: tuple[Receiver, ...]
    told: tuple[int, ...]
    failed: tuple[int, ...]
    taken: tuple[int, ...]
    faults: int
    wrong: str


NOBODY = -1
FREE = Lock(0, 0)
AT_REST = Receiver(0, 0, 0, 0)


class Unfit(Exception):
    """An operation in the log does not fit the state that its message is in."""


def applied(messages: tuple[Stored, ...], operation: Operation) -> tuple[Stored, ...]:
    """Return the messages behind an operation. This is the whole meaning of the log. Raises Unfit."""
    kind, message, _ = operation
    place, count, rank = messages[message]
    is_open = place in (ACTIVE, DEFERRED)
    if kind == LOCK and is_open:
        after = Stored(place, count + 1, rank)
    elif kind in (RELEASE, DEFER, DEAD_LETTER) and is_open and count:
        after = Stored({DEFER: DEFERRED, DEAD_LETTER: DEAD}.get(kind, place), count - 1, rank)
    elif kind == OVER and is_open:
        after = Stored(DEAD, count, rank)
    elif (kind == COMPLETE and (is_open or place == DEAD)) or (kind == TAKE and is_open):
        after = Stored(GONE, count, rank)
    elif (kind == SEND and place == NOT_SENT) or (kind == ACTIVATE and place == SCHEDULED):
        after = Stored(ACTIVE, 0, 1 + max(each.rank for each in messages))
    elif kind == SCHEDULE and place == NOT_SENT:
        after = Stored(SCHEDULED, 0, 0)
    elif kind == CANCEL and place == SCHEDULED:
        after = Stored(GONE, 0, 0)
    else:
        raise Unfit
    return put(messages, message, after)


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
    over_not_noted_again: bool = False  # behind a failed sync a message at its limit stays where it is
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
        due = [message for message in range(self.messages) if self._is_due(state, message)]
        if due:
            yield from self._before_the_timer(state, due)
        else:
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
            yield from self._faults(state, is_due=bool(due))

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
        for message, stored in enumerate(state.stored):
            is_counted = state.locks[message].token and stored.place != DEAD
            if stored.place != GONE and counted(state, message) != state.failed[message] + bool(is_counted):
                return "P8: the count is not that of the failed deliveries"
            is_free = not state.locks[message].token and not is_decided(state, message)
            if stored.place in (ACTIVE, DEFERRED) and is_free and counted(state, message) >= self.count_limit:
                return "P8: the limit is reached and the message is not dead-lettered"
        tokens = [receiver.token for receiver in state.receivers if receiver.token and not receiver.is_stale]
        if len(tokens) != len(set(tokens)):
            return "P7: two receivers have the token of one lock"
        return None

    def is_quiet(self, state: State) -> bool:
        is_over = (stored.place == GONE for stored in state.stored)
        return all(is_over) and not state.tail and state.locks == (FREE,) * self.messages

    def view(self, state: State) -> list[tuple[str, int]]:
        """Each message as a peek shows it: where it is, and its count of deliveries, the one under way with them."""
        names = ("not sent", "scheduled", "active", "deferred", "dead-lettered", "gone")
        return [
            ("locked" if lock.token else names[stored.place], counted(state, message))
            for message, (stored, lock) in enumerate(zip(state.stored, state.locks, strict=True))
        ]

    def _is_due(self, state: State, message: int) -> bool:
        """The timer of a lock comes next."""
        return bool(state.locks[message].is_over) and (self.run_out_while_settling or not is_decided(state, message))

    def _before_the_timer(self, state: State, due: list[int]) -> Iterator[tuple[Action, State]]:
        for name, receiver in enumerate(state.receivers):
            has_room = not self.settle_after_expiry or len(state.tail) < self.tail_limit
            if receiver.token and not receiver.waits_for and receiver.message in due and has_room:
                yield from self._settlements(state, name)
        for message in due:
            yield ("run_out", message), self._failed(state, (message,))

    def _requests(self, state: State) -> Iterator[tuple[Action, State]]:
        yield from self._of_sender(state)
        for name, receiver in enumerate(state.receivers):
            if receiver.token and not receiver.waits_for:
                yield from self._settlements(state, name)
            elif not receiver.waits_for:
                yield from self._received(state, name)

    def _of_sender(self, state: State) -> Iterator[tuple[Action, State]]:
        for message, stored in enumerate(state.stored):
            if is_decided(state, message):
                continue
            if stored.place == NOT_SENT:
                name, kind = ("schedule", SCHEDULE) if message in self.scheduled else ("send", SEND)
                yield (name, message), appended(state, kind, message)
                return  # one after the other: the messages behind it are not sent either
            if stored.place == SCHEDULED:
                yield ("activate", message), appended(state, ACTIVATE, message)
                yield ("cancel", message), appended(state, CANCEL, message)

    def _received(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        """A link gets the first message of the queue, or of the dead-letter queue; a deferred one is asked for."""
        seen = self._after_tail(state) if self.deliver_unsynced else state.stored
        for place in (ACTIVE, DEAD, DEFERRED):
            for message in sorted(range(self.messages), key=lambda each: seen[each].rank):
                if seen[message].place != place or state.locks[message].token:
                    continue
                if is_decided(state, message) and not self.deliver_unsynced:
                    continue
                yield ("lock", name, message), self._locked(state, name, message)
                if self.takes and place != DEAD:
                    yield ("take", name, message), self._taken(state, name, message)
                break

    def _locked(self, state: State, name: int, message: int) -> State:
        used = {lock.token for lock in state.locks}
        if not self.tokens_without_start:
            used |= {receiver.token for receiver in state.receivers}
        token = min(token for token in range(1, len(used) + 2) if token not in used)
        after = state._replace(
            locks=put(state.locks, message, Lock(token, 0)),
            receivers=put(state.receivers, name, Receiver(message, token, 0, 0)),
            told=put(state.told, message, max(state.told[message], ACTIVE)),
        )
        if state.stored[message].place == DEAD or self.locks_not_written:
            return after
        return appended(after, LOCK, message)

    def _taken(self, state: State, name: int, message: int) -> State:
        after = appended(state, TAKE, message, name)
        if self.take_before_durable:
            return left(after, message)
        return after._replace(receivers=put(state.receivers, name, Receiver(message, 0, TAKE, 0)))

    def _settlements(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        for how, kind in SETTLEMENTS.items():
            if state.stored[state.receivers[name].message].place != DEAD or kind not in (DEFER, DEAD_LETTER):
                yield self._settled(state, name, how, kind)

    def _settled(self, state: State, name: int, how: str, kind: int) -> tuple[Action, State]:
        receiver = state.receivers[name]
        message = receiver.message
        lock = state.locks[message]
        is_good = lock.token == receiver.token and (self.settle_after_expiry or not lock.is_over)
        at_rest = state._replace(receivers=put(state.receivers, name, AT_REST))
        if not is_good or is_decided(state, message):
            return ("settle", name, how, "lost"), at_rest
        if receiver.is_stale:
            at_rest = state = state._replace(wrong="P7: a token that is over was good for a settlement")
        is_dead = state.stored[message].place == DEAD
        if how == "abandon":
            return ("settle", name, how, "done"), self._failed(at_rest, (message,))
        if how == "release":
            free = put(state.locks, message, FREE)
            if is_dead or self.release_counts:
                return ("settle", name, how, "done"), at_rest._replace(locks=free)
            state, at_rest = state._replace(locks=free), at_rest._replace(locks=free)
        if self.answer_before_durable:
            after = appended(at_rest, kind, message)
            return ("settle", name, how, "done"), told(after, Operation(kind, message, NOBODY))
        waiting = put(state.receivers, name, receiver._replace(waits_for=kind))
        return ("settle", name, how, "waits"), appended(state._replace(receivers=waiting), kind, message, name)

    def _failed(self, state: State, messages: tuple[int, ...], first: tuple[Operation, ...] = ()) -> State:
        """Deliveries of these failed: they are active again, or at their limit. first: of the run that says so."""
        run = list(first)
        for message in messages:
            if state.stored[message].place != DEAD:
                state = state._replace(failed=put(state.failed, message, state.failed[message] + 1))
            state = state._replace(locks=put(state.locks, message, FREE))
            count = counted(state, message) + sum(CHANGE.get(each.kind, 0) for each in first if each.message == message)
            if state.stored[message].place in (ACTIVE, DEFERRED) and count >= self.count_limit:
                run.append(Operation(OVER, message, NOBODY))
        return state._replace(tail=(*state.tail, tuple(run))) if run else state

    def _time_over(self, state: State, message: int) -> State:
        """A settlement that is in flight wins: it was asked in time."""
        lock = state.locks[message]
        receivers = tuple(
            receiver._replace(is_stale=1) if receiver.token == lock.token else receiver for receiver in state.receivers
        )
        return state._replace(locks=put(state.locks, message, Lock(lock.token, 1)), receivers=receivers)

    def _synced(self, state: State) -> State:
        """The oldest run is durable: others see its effect, and the clients that wait for it are answered."""
        run = state.tail[0]
        after = state._replace(tail=state.tail[1:])
        for operation in run:
            kind, message, by = operation
            after = after._replace(stored=applied(after.stored, operation))
            if kind == TAKE and not self.take_before_durable:
                after = left(after, message)
            if kind in (COMPLETE, DEFER, DEAD_LETTER):
                after = after._replace(locks=put(after.locks, message, FREE))
            if kind not in AT_ONCE:
                after = told(after, operation)
            if by != NOBODY:
                after = after._replace(receivers=put(after.receivers, by, AT_REST))
        return after

    def _faults(self, state: State, *, is_due: bool) -> Iterator[tuple[Action, State]]:
        yield ("kill",), self._restarted(state, len(state.tail))
        for kept in range(len(state.tail)):
            yield ("power_cut", kept), self._restarted(state, kept, is_cut=True)
        if state.tail and not is_due:
            yield ("sync_fails",), self._sync_failed(state)

    def _restarted(self, state: State, kept: int, *, is_cut: bool = False) -> State:
        stored = state.stored
        for operation in (each for run in state.tail[:kept] for each in run):
            stored = applied(stored, operation)
        wrong = ""
        for message, one in enumerate(stored):
            expected, most = self._failed_by_crash(state, message, kept)
            if one.place != GONE and not (0 if is_cut else expected) <= one.count <= most:
                wrong = "P8: the count behind a crash is not that of the failed deliveries"
        over = tuple(
            Operation(OVER, message, NOBODY)
            for message, one in enumerate(stored)
            if one.place in (ACTIVE, DEFERRED) and one.count >= self.count_limit
        )
        receivers = tuple(
            Receiver(receiver.message, receiver.token, 0, 1) if receiver.token else AT_REST
            for receiver in state.receivers
        )
        return State(
            stored, (over,) if over else (), (FREE,) * self.messages, receivers, state.told,
            tuple(one.count for one in stored), state.taken, state.faults + 1, wrong,
        )  # fmt: skip

    def _failed_by_crash(self, state: State, message: int, kept: int) -> tuple[int, int]:
        """Failed deliveries of a message when a kill ends now, and when a power cut does: this many at the most."""
        kinds = [each.kind for run in state.tail for each in run if each.message == message]
        lost = [each.kind for run in state.tail[kept:] for each in run if each.message == message]
        is_locked = bool(state.locks[message].token) and state.stored[message].place != DEAD
        failed = state.failed[message]
        is_excused = DEFER in kinds or DEAD_LETTER in kinds
        return failed + (is_locked and not is_excused), failed + is_locked + lost.count(RELEASE)

    def _sync_failed(self, state: State) -> State:
        """Nothing of the tail is stored. Clients that wait are refused, and may ask again, but for a release, which
        holds; what others have seen is appended again."""
        lost = [operation for run in state.tail for operation in run]
        again = tuple(each._replace(by=NOBODY) for each in lost if each.kind in AT_ONCE)
        if self.locks_not_noted_again:
            again = ()
        if not self.over_not_noted_again:
            again += tuple(each for each in lost if each.kind == OVER)
        receivers = tuple(
            AT_REST if receiver.waits_for in (TAKE, RELEASE) else receiver._replace(waits_for=0)
            for receiver in state.receivers
        )
        after = state._replace(tail=(), receivers=receivers, faults=state.faults + 1)
        return self._failed(after, tuple(each for each, lock in enumerate(state.locks) if lock.is_over), again)

    def _after_tail(self, state: State) -> tuple[Stored, ...]:
        stored = state.stored
        for operation in (each for run in state.tail for each in run):
            stored = applied(stored, operation)
        return stored


# What these do to a count at once.
CHANGE = {LOCK: 1, RELEASE: -1}


def appended(state: State, kind: int, message: int, by: int = NOBODY) -> State:
    return state._replace(tail=(*state.tail, (Operation(kind, message, by),)))


def counted(state: State, message: int) -> int:
    """Deliveries of a message as the memory has them."""
    under_way = (CHANGE.get(each.kind, 0) for run in state.tail for each in run if each.message == message)
    return state.stored[message].count + sum(under_way)


def is_decided(state: State, message: int) -> bool:
    """An operation that decides about the message is in flight."""
    return any(each.message == message and each.kind not in AT_ONCE for run in state.tail for each in run)


def told(state: State, operation: Operation) -> State:
    """Somebody is answered that the operation is done."""
    kind, message, _ = operation
    return state._replace(told=put(state.told, message, max(state.told[message], PROMISED.get(kind, NOT_SENT))))


def left(state: State, message: int) -> State:
    """The bytes of a taken message are on their way."""
    return state._replace(
        told=put(state.told, message, GONE), taken=put(state.taken, message, state.taken[message] + 1)
    )
