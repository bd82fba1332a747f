"""One message session in a fragment: its holder, the order of its messages, its state. P10, and P7, P8 of its messages.

The model. The session's messages are there from the start. A receiver asks for the session by its name, or for the next
one that has a message that is ready. It is given messages in order, several at a time, completes or abandons each, and
sets the session's state. Its hold ends when its time is over, when it closes its link, or by a crash. It may be given
the session again, and still have messages of an earlier hold. There are no times: the time of a hold may be over at any
moment; the fragment's timer, or a request to the session, ends such a hold before anything else comes.

The fragment has one log (peek_lock.py tells of deliveries that are counted, and of runs). An abandon says nothing in
it, and holds at once. One that changes properties (MODIFY) is an operation: until it is decided nothing behind its
message is given. The session's state is an operation. Who holds the session is in memory alone.

The end of a hold. Messages that were given in it are active again, and their deliveries failed; those at their limit
are dead-lettered by an operation (OVER). A message of which a settlement is in flight has no lock any more, and the log
decides what becomes of it. The session is *ending*, and nobody's, until every run that was appended by then is decided.
Who asks for it meanwhile waits, and so does who asks for the next session while there is none.

Atomic steps. A request is its check and the append of its run. A sync makes the oldest run durable, and answers who
waits for it. A delivery is seen before any sync.

A crash. A kill keeps the tail, a power cut some of its oldest runs. Nobody holds the session then, and nobody waits for
it. A sync that fails takes the tail back: requests are refused, counts and dead-lettered messages are noted again.

Promises that must hold.
P7   An answered completion stays. No token is good when its hold is over, also for the receiver that has the session
     again.
P8   The count of deliveries is that of those that failed, and of the one under way; a message whose count comes to its
     limit is dead-lettered, and nobody gets it before.
P10  No two receivers hold the session. A message is not delivered behind a later one that left while the first was
     ready, was being given back, or was another holder's: also over abandon, loss and crash; but a crash gives what is
     not gone again, in order. An answered state of the session stays. Nothing that was asked under one hold is decided
     under another one.

One limit of P10: the session's state and its renewal are asked for by the session's name (contract, 6.2.7, 6.2.8). So
a receiver that has lost the session sets its state as long as another one holds it, as if that had asked.

Left out: what a receiver is reading when its hold ends, other settlements (peek_lock.py), several sessions: what they
share is the log. tests/models/play_session_lock.py plays walks of this model to a fragment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

# Operations of the log. SET is about no message.
LOCK, COMPLETE, MODIFY, SET, OVER = range(5)

ACTIVE, DEAD, GONE = range(3)  # where a message is, as the log has it

# A receiver has the session or a message by the hold that counts, or by one that is over; a message also by both.
NOTHING, CURRENT, STALE = 0, 1, 2

# A message in memory. UNLOCKED: its hold is over, and a settlement of it is in flight.
FREE, LOCKED, UNLOCKED = range(3)


class Stored(NamedTuple):
    """One message as the log has it. count: of deliveries."""

    place: int
    count: int


class Operation(NamedTuple):
    """by: the receiver that waits for it; NOBODY where none does. is_old: it was asked under a hold that is over."""

    kind: int
    about: int
    by: int
    is_old: int


class Receiver(NamedTuple):
    """A client's session and messages, as it believes. We know that one is stale, the client does not."""

    session: int
    messages: tuple[int, ...]


class Wait(NamedTuple):
    """A receiver that asked for the session by its name, or for the next one."""

    receiver: int
    is_named: int


class State(NamedTuple):
    """value: the session's state as synced; each set makes it one larger.

    holder: the receiver that the fragment takes for it, from 1; 0: none. is_over: its time is over, and the fragment
    has not looked. ending: so many of the oldest runs of the tail have to be decided before the session is free.
    failed: deliveries that failed. told: completions that were answered; told_value: the newest state that was
    answered. passed: of each message, the later ones that left while it had to come first, a bit each.
    """

    stored: tuple[Stored, ...]
    value: int
    tail: tuple[tuple[Operation, ...], ...]
    holder: int
    is_over: int
    ending: int
    locks: tuple[int, ...]
    receivers: tuple[Receiver, ...]
    waits: tuple[Wait, ...]
    failed: tuple[int, ...]
    told: tuple[int, ...]
    told_value: int
    passed: tuple[int, ...]
    faults: int
    wrong: str


NOBODY = -1


@dataclass(frozen=True, slots=True)
class SessionLock:
    """The model; behind its bounds, mistakes to plant.

    keepers: so many receivers keep what they had under a hold that is over; the others forget it. values: how often the
    session's state is set.
    """

    messages: int = 2
    receivers: int = 2
    keepers: int = 1
    values: int = 1
    count_limit: int = 2
    tail_limit: int = 2
    faults: int = 1
    modifies: bool = True

    free_before_decided: bool = False  # the next holder has the session while the last one's operations are in flight
    deliver_past_abandon: bool = False  # a message is passed while an abandon that changes it is in flight
    answer_state_before_durable: bool = False
    receiver_is_enough: bool = False  # a settlement is checked by receiver and message, not by hold
    timer_alone_ends: bool = False  # a hold whose time is over is good until the timer has come
    next_holder_goes_on: bool = False  # behind the messages that the last one was given
    locks_not_noted_again: bool = False  # behind a failed sync
    undone_stays: bool = False  # a refused settlement leaves a message at its limit, if its hold is over, where it is
    name_is_enough: bool = False  # who asks by name is given the session, whoever holds it

    FAULTS = ("kill", "power_cut", "sync_fails")

    def start(self) -> State:
        zeros = (0,) * self.messages
        return State(
            stored=(Stored(ACTIVE, 0),) * self.messages, value=0, tail=(), holder=0, is_over=0, ending=0, locks=zeros,
            receivers=(Receiver(NOTHING, zeros),) * self.receivers, waits=(), failed=zeros, told=zeros, told_value=0,
            passed=zeros, faults=0, wrong="",
        )  # fmt: skip

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        has_room = len(state.tail) < self.tail_limit
        for name, receiver in enumerate(state.receivers):
            if receiver.session != CURRENT and not any(wait.receiver == name for wait in state.waits):
                yield from self._accepts(state, name)
            if has_room:
                yield from self._requests(state, name)
        if state.is_over:
            yield ("lose",), self._served(self._ended(state))
        elif state.holder:
            yield ("time_over",), state._replace(is_over=1, receivers=self._lost_by(state))
            yield ("close", state.holder - 1), self._served(self._ended(state))
        if state.tail and not state.is_over:
            yield ("sync",), self._served(self._synced(state))
        if state.faults < self.faults:
            yield ("kill",), self._restarted(state, len(state.tail))
            for kept in range(len(state.tail)):
                yield ("power_cut", kept), self._restarted(state, kept)
            if state.tail:
                yield ("sync_fails",), self._served(self._sync_failed(state))

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        if sum(receiver.session == CURRENT for receiver in state.receivers) > 1:
            return "P10: two receivers hold the session"
        ahead, value = self._after(state, state.tail)
        if value < state.told_value:
            return "P10: an answered state of the session is gone"
        for message, (stored, is_told) in enumerate(zip(ahead, state.told, strict=True)):
            if is_told and stored.place != GONE:
                return "P7: an answered completion is gone"
            if stored.place != GONE and stored.count != state.failed[message] + bool(state.locks[message]):
                return "P8: the count is not that of the failed deliveries"
            is_free = not state.locks[message]
            if stored.place == ACTIVE and is_free and stored.count >= self.count_limit:
                return "P8: the limit is reached and the message is not dead-lettered"
        return None

    def is_quiet(self, state: State) -> bool:
        return not state.tail and not state.holder and all(stored.place != ACTIVE for stored in state.stored)

    def view(self, state: State) -> tuple[list[tuple[str, int]], int]:
        """Each message as a peek shows it, with its count of deliveries; and the state that the session shows."""
        names = ("active", "dead-lettered", "gone")
        ahead, _ = self._after(state, state.tail)
        shown = [
            ("locked" if lock == LOCKED else names[stored.place], later.count)
            for lock, stored, later in zip(state.locks, state.stored, ahead, strict=True)
        ]
        return shown, state.value

    # Who holds the session

    def _accepts(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        for is_named, action in enumerate(("accept_next", "accept")):
            now = self._on_time(state)
            if is_named and now.holder and not self.name_is_enough:
                yield (action, name, "refused"), self._served(now)
                continue
            if is_named and self.name_is_enough and not now.ending:
                yield (action, name, "granted"), self._granted(now, name)
                continue
            after = self._served(now._replace(waits=(*now.waits, Wait(name, is_named))))
            answer = "waits" if Wait(name, is_named) in after.waits else "refused"
            yield (action, name, "granted" if after.holder == name + 1 else answer), after

    def _served(self, state: State) -> State:
        """Who waits is given the session, when it is free and, for the next one, has a message that is ready."""
        for wait in state.waits:
            if state.holder and wait.is_named:
                state = without(state, wait)
            elif not state.holder and not state.ending and (wait.is_named or self.first_ready(state) is not None):
                state = self._granted(without(state, wait), wait.receiver)
        return state

    def _granted(self, state: State, name: int) -> State:
        receivers = put(state.receivers, name, state.receivers[name]._replace(session=CURRENT))
        return state._replace(holder=name + 1, is_over=0, receivers=receivers)

    def _on_time(self, state: State) -> State:
        """A hold whose time is over has ended."""
        return self._ended(state) if state.is_over else state

    def _ended(self, state: State) -> State:
        """The session has no holder any more."""
        locked = [message for message, lock in enumerate(state.locks) if lock == LOCKED]
        settling = [message for message in locked if in_flight(state, message)]
        for message in settling:
            state = state._replace(locks=put(state.locks, message, UNLOCKED))
        state = self._failed(state, tuple(message for message in locked if message not in settling))
        tail = tuple(tuple(each._replace(is_old=1) for each in run) for run in state.tail)
        return state._replace(
            tail=tail,
            holder=0,
            is_over=0,
            ending=0 if self.free_before_decided else len(tail),
            receivers=self._all_lost(state),
        )

    def _failed(self, state: State, messages: tuple[int, ...], first: tuple[Operation, ...] = ()) -> State:
        """Deliveries of these failed: they are active again, or at their limit. first: of the run that says so."""
        run = list(first)
        for message in messages:
            state = state._replace(
                failed=put(state.failed, message, state.failed[message] + 1),
                locks=put(state.locks, message, FREE),
            )
            if self._count(state, message, run) >= self.count_limit:
                run.append(Operation(OVER, message, NOBODY, 0))
        return state._replace(tail=(*state.tail, tuple(run))) if run else state

    def _count(self, state: State, message: int, run: list[Operation]) -> int:
        return self._after(state, (*state.tail, tuple(run)))[0][message].count

    def _lost_by(self, state: State) -> tuple[Receiver, ...]:
        """The session is its holder's no more. Messages are its own until the hold ends in the fragment."""
        name = state.holder - 1
        session = STALE if name < self.keepers else NOTHING
        return put(state.receivers, name, state.receivers[name]._replace(session=session))

    def _all_lost(self, state: State) -> tuple[Receiver, ...]:
        """No hold goes on."""
        forgot = Receiver(NOTHING, (0,) * self.messages)
        return tuple(
            Receiver(min(each.session, 1) * STALE, tuple(min(mine, 1) * STALE for mine in each.messages))
            if name < self.keepers
            else forgot
            for name, each in enumerate(state.receivers)
        )

    # What receivers ask

    def _requests(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        receiver = state.receivers[name]
        for message, mine in enumerate(receiver.messages):
            for hold in (STALE, CURRENT):
                if mine & hold and not (hold == CURRENT and in_flight(state, message)):
                    yield from self._settlements(state, name, message, hold)
        if receiver.session:
            yield from self._of_session(state, name)
        if state.holder == name + 1 and not state.is_over:
            message = self.first_ready(state)
            if message is not None:
                yield ("receive", name, message), self._delivered(state, name, message)

    def first_ready(self, state: State) -> int | None:
        """The next message that a holder is given; none while an earlier one may be about to come back."""
        start = 0
        if self.next_holder_goes_on:
            start = max((message for message, failed in enumerate(state.failed) if failed), default=-1) + 1
        for message in range(start, self.messages):
            kinds = in_flight(state, message)
            if MODIFY in kinds and not self.deliver_past_abandon:
                return None
            if state.stored[message].place == ACTIVE and not state.locks[message] and not kinds:
                return message
        return None

    def _delivered(self, state: State, name: int, message: int) -> State:
        passed = state.passed
        for earlier in range(message):
            if state.stored[earlier].place == ACTIVE and not self._is_with_holder(state, name, earlier):
                passed = put(passed, earlier, passed[earlier] | 1 << message)
        receiver = state.receivers[name]
        mine = put(receiver.messages, message, receiver.messages[message] | CURRENT)
        return state._replace(
            tail=(*state.tail, (Operation(LOCK, message, NOBODY, 0),)),
            locks=put(state.locks, message, LOCKED),
            receivers=put(state.receivers, name, receiver._replace(messages=mine)),
            passed=passed,
            wrong="P10: a message left behind a later one" if state.passed[message] else "",
        )

    def _is_with_holder(self, state: State, name: int, message: int) -> bool:
        """The message left under this hold, and was not given back: its receiver had it first."""
        is_here = state.receivers[name].messages[message] & CURRENT
        return bool(is_here) and MODIFY not in in_flight(state, message)

    def _settlements(self, state: State, name: int, message: int, hold: int) -> Iterator[tuple[Action, State]]:
        """hold: the one under which the message was delivered that the receiver means."""
        is_known_over = hold == STALE or state.is_over
        now = state if self.timer_alone_ends else self._on_time(state)
        is_good = hold == CURRENT or (self.receiver_is_enough and now.holder == name + 1)
        is_good = is_good and now.locks[message] == LOCKED and not in_flight(now, message)
        is_good = is_good and bool(now.receivers[name].messages[message] & CURRENT)
        receiver = now.receivers[name]
        which = "stale" if hold == STALE else "current"
        # What the client forgets with this token; if the hold has just ended, it is a stale one by now.
        spent = STALE if hold == STALE or (state.is_over and now is not state) else CURRENT
        rest = receiver._replace(messages=put(receiver.messages, message, receiver.messages[message] & ~spent))
        at_rest = put(now.receivers, name, rest)
        for how, kind in (("complete", COMPLETE), ("abandon", -1), ("modify", MODIFY)):
            if kind == MODIFY and not self.modifies:
                continue
            if not is_good:
                yield ("settle", name, message, how, which, "lost"), self._served(now._replace(receivers=at_rest))
                continue
            wrong = "P7: a token of a hold that is over was good for a settlement" if is_known_over else ""
            if how == "abandon":
                after = self._failed(now._replace(receivers=at_rest), (message,))
                yield ("settle", name, message, how, which, "done"), after._replace(wrong=wrong)
            else:
                after = now._replace(tail=(*now.tail, (Operation(kind, message, name, 0),)), wrong=wrong)
                yield ("settle", name, message, how, which, "waits"), after

    def _of_session(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        """Its lock is renewed, its state is set: by its name."""
        now = state if self.timer_alone_ends else self._on_time(state)
        receiver = now.receivers[name]
        if not now.holder:
            lost = now._replace(receivers=put(now.receivers, name, receiver._replace(session=NOTHING)))
            yield ("renew", name, "lost"), self._served(lost)
            if self._may_set(state):
                yield ("set_state", name, "lost"), self._served(lost)
            return
        yield ("renew", name, "held"), now
        if self._may_set(state):
            after = now._replace(tail=(*now.tail, (Operation(SET, 0, name, 0),)))
            if state.is_over:
                after = after._replace(wrong="P10: the state was set under a hold that is over")
            if self.answer_state_before_durable:
                after = after._replace(told_value=self._after(after, after.tail)[1])
            yield ("set_state", name, "waits"), after

    def _may_set(self, state: State) -> bool:
        return self._after(state, state.tail)[1] < self.values

    # The log

    def _synced(self, state: State) -> State:
        run = state.tail[0]
        stored, value = self._after(state, (run,))
        after = state._replace(stored=stored, value=value, tail=state.tail[1:], ending=max(0, state.ending - 1))
        failed: tuple[int, ...] = ()
        for kind, about, name, is_old in run:
            if kind == SET:
                after = after._replace(told_value=max(after.told_value, value))
            if kind in (COMPLETE, MODIFY):
                spent = STALE if is_old else CURRENT
                receiver = after.receivers[name]
                rest = receiver._replace(messages=put(receiver.messages, about, receiver.messages[about] & ~spent))
                after = after._replace(receivers=put(after.receivers, name, rest))
            if kind == COMPLETE:
                after = after._replace(locks=put(after.locks, about, FREE), told=put(after.told, about, 1))
            if kind == MODIFY:
                failed = (*failed, about)
            if kind in (SET, COMPLETE, MODIFY) and is_old and state.holder:
                after = after._replace(wrong="P10: something was decided under another hold than it was asked under")
        return self._failed(after, failed)

    def _sync_failed(self, state: State) -> State:
        """Nothing of the tail is stored. Clients that wait are refused; what others have seen is appended again."""
        lost = [operation for run in state.tail for operation in run]
        again = tuple(
            each._replace(is_old=0)
            for each in lost
            if each.kind == OVER or (each.kind == LOCK and not self.locks_not_noted_again)
        )
        undone = tuple(message for message, lock in enumerate(state.locks) if lock == UNLOCKED)
        after = state._replace(tail=(), ending=0, faults=state.faults + 1)
        if self.undone_stays:
            for message in undone:
                after = after._replace(
                    locks=put(after.locks, message, FREE), failed=put(after.failed, message, after.failed[message] + 1)
                )
            undone = ()
        locked = tuple(message for message, lock in enumerate(state.locks) if lock == LOCKED) if state.is_over else ()
        after = self._failed(after, (*undone, *locked), again)
        if state.is_over:
            decides = any(len(run) > len(again) for run in after.tail)  # the messages at their limit
            after = after._replace(holder=0, is_over=0, ending=int(decides), receivers=self._all_lost(after))
        return after

    def _restarted(self, state: State, kept: int) -> State:
        stored, value = self._after(state, state.tail[:kept])
        over = tuple(
            Operation(OVER, message, NOBODY, 0)
            for message, one in enumerate(stored)
            if one.place == ACTIVE and one.count >= self.count_limit
        )
        gone = sum(1 << message for message, one in enumerate(stored) if one.place == GONE)
        return State(
            stored=stored, value=value, tail=(over,) if over else (), holder=0, is_over=0, ending=0,
            locks=(FREE,) * self.messages, receivers=self._all_lost(state), waits=(),
            failed=tuple(one.count for one in stored), told=state.told, told_value=state.told_value,
            passed=tuple(later & gone for later in state.passed), faults=state.faults + 1, wrong="",
        )  # fmt: skip

    def _after(self, state: State, tail: tuple[tuple[Operation, ...], ...]) -> tuple[tuple[Stored, ...], int]:
        """The messages and the session's state behind these runs. This is the whole meaning of the log."""
        stored, value = state.stored, state.value
        for kind, about, _, _ in (each for run in tail for each in run):
            place, count = stored[about]
            if kind == LOCK:
                stored = put(stored, about, Stored(place, count + 1))
            elif kind in (COMPLETE, OVER):
                stored = put(stored, about, Stored(GONE if kind == COMPLETE else DEAD, count))
            value += kind == SET
        return stored, value


def without(state: State, wait: Wait) -> State:
    return state._replace(waits=tuple(each for each in state.waits if each != wait))


def in_flight(state: State, message: int) -> list[int]:
    """The kinds of the operations in flight that decide about a message."""
    decides = (COMPLETE, MODIFY, OVER)
    return [each.kind for run in state.tail for each in run if each.about == message and each.kind in decides]
