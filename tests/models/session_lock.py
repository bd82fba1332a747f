"""One message session in a fragment: its holder, the order of its messages, its state. Promise P10, and P7 of its lock.

The model. The session's messages are stored from the start. A receiver is granted the session, gets messages in
order, several at a time, completes or abandons each, and sets the session's state. It loses the session when the
lock's time is over (at any moment; the timer comes at any moment behind that), when it closes its link, or by a
crash. It may be granted the session again, and still have messages of the earlier grant. Every operation goes to the
fragment's one log, which has a tail that is not synced yet (see peek_lock.py). Grants are in memory only: no crash
leaves one.

Atomic steps. A request is its check and the append of its operation. A sync makes the oldest operation of the tail
durable: others see its effect, and the client that waits for it is answered. A delivery appends its lock, and the
message leaves before any sync. A loss is one operation, which ends the grant and every lock in it; the session is
free when that operation is synced, and not before. So every operation of the grant, which lies before it in the log,
is decided by then.

A crash. A kill keeps the tail, a power cut some of its oldest operations. No receiver holds the session then, and all
messages that are not completed wait. A sync that fails takes the tail back: requests are refused and their messages
are held as before, locks are appended again, a loss is tried again.

Promises that must hold.
P7   An answered completion stays. A message that was delivered under an earlier grant cannot be settled under that
     grant, also by the receiver that has the session again.
P10  No two receivers hold the session. A message is not delivered behind a later one that left while the first
     waited, or while the first was being given back, or while an earlier grant had not ended: also over abandon, loss
     and crash. An answered state of the session stays, and changes by requests of its holder alone.

Left out: delivery counts (peek_lock.py), a second session (it shares nothing but the log), renewal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

# Operations of the log. SET and LOSE are about no message.
LOCK, COMPLETE, ABANDON, SET, LOSE = range(5)

WAITING, GONE = range(2)  # a message, as the log has it

# A receiver has the session or a message by the grant that counts, or by one that is over; a message also by both.
NOTHING, CURRENT, STALE = 0, 1, 2


class Operation(NamedTuple):
    kind: int
    about: int
    receiver: int


class Receiver(NamedTuple):
    """A client's session and messages, as it believes. We know that one is stale, the client does not."""

    session: int
    messages: tuple[int, ...]


class State(NamedTuple):
    """stored: of each message. value: the session's state; each set makes it one larger. Both as synced.

    holder: the receiver that the fragment takes for it, from 1; 0: none. is_over: its time is over, the timer has not
    come. held: the messages that left under this grant, and are not settled. told: completions that were answered;
    told_value: the newest state that was answered. passed: a later message left, and should not have.
    """

    stored: tuple[int, ...]
    value: int
    tail: tuple[Operation, ...]
    holder: int
    is_over: int
    held: tuple[int, ...]
    receivers: tuple[Receiver, ...]
    told: tuple[int, ...]
    told_value: int
    passed: tuple[int, ...]
    faults: int
    wrong: str


@dataclass(frozen=True, slots=True)
class SessionLock:
    """The model; behind its bounds, mistakes to plant."""

    messages: int = 3
    receivers: int = 2
    values: int = 1  # how often the session's state is set
    tail_limit: int = 2
    faults: int = 1

    free_before_loss_is_synced: bool = (
        False  # the next receiver is granted while the last grant's operations are in flight
    )
    deliver_past_abandon: bool = False  # an abandoned message is passed while its abandon is in flight
    answer_state_before_durable: bool = False
    receiver_is_enough: bool = False  # a settlement is checked by receiver and message, not by grant
    timer_alone_ends: bool = False  # a lock whose time is over is good until the timer has come
    loss_forgets_locks: bool = False  # the next grant goes on behind the messages of the last one

    FAULTS = ("kill", "power_cut", "sync_fails")

    def start(self) -> State:
        zeros = (0,) * self.messages
        return State(
            stored=zeros, value=0, tail=(), holder=0, is_over=0, held=zeros,
            receivers=(Receiver(NOTHING, zeros),) * self.receivers, told=zeros, told_value=0, passed=zeros, faults=0,
            wrong="",
        )  # fmt: skip

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        for name in range(self.receivers):
            yield from self._requests(state, name)
        if state.holder:
            yield from self._loss(state)
        if state.tail:
            yield ("sync",), self._synced(state)
        if state.faults < self.faults:
            yield ("kill",), self._restarted(state, len(state.tail))
            for kept in range(len(state.tail)):
                yield ("power_cut", kept), self._restarted(state, kept)
            if state.tail:
                yield ("sync_fails",), self._sync_failed(state)

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        if sum(receiver.session == CURRENT for receiver in state.receivers) > 1:
            return "P10: two receivers hold the session"
        ahead, value = self._after_tail(state)
        if value < state.told_value:
            return "P10: an answered state of the session is gone"
        for place, is_told in zip(ahead, state.told, strict=True):
            if is_told and place != GONE:
                return "P7: an answered completion is gone"
        return None

    def is_quiet(self, state: State) -> bool:
        return not state.tail and not state.holder and WAITING not in state.stored

    def view(self, state: State) -> tuple[list[str], int]:
        """Each message as a peek shows it, and the state that the session shows."""
        names = [
            "gone" if place == GONE else "locked" if held else "active"
            for place, held in zip(state.stored, state.held, strict=True)
        ]
        return names, state.value

    def _requests(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        receiver = state.receivers[name]
        if receiver.session != CURRENT:
            if state.holder:
                yield ("accept", name, "refused"), state
            else:
                yield ("accept", name, "granted"), self._granted(state, name)
        if len(state.tail) == self.tail_limit:
            return
        is_good = state.holder == name + 1 and not self._is_ending(state)
        is_good = is_good and (self.timer_alone_ends or not state.is_over)
        for message, mine in enumerate(receiver.messages):
            if mine & STALE:
                yield from self._settlements(state, name, message, "stale", is_good=is_good and self.receiver_is_enough)
            if mine & CURRENT and not in_flight(state, message):
                yield from self._settlements(state, name, message, "current", is_good=is_good)
        if receiver.session and state.value + len(kinds_of(state, SET)) < self.values:
            yield from self._sets(state, name, is_good=is_good)
        if is_good and not state.is_over:
            yield from self._deliveries(state, name)

    def _granted(self, state: State, name: int) -> State:
        receivers = put(state.receivers, name, state.receivers[name]._replace(session=CURRENT))
        return state._replace(holder=name + 1, is_over=0, receivers=receivers)

    def _deliveries(self, state: State, name: int) -> Iterator[tuple[Action, State]]:
        """The first message that waits; none while an earlier one may be about to come back."""
        for message, place in enumerate(state.stored):
            abandoned = Operation(ABANDON, message, name) in state.tail
            if abandoned and not self.deliver_past_abandon:
                return
            if place == WAITING and not state.held[message] and not in_flight(state, message):
                yield ("deliver", message), self._delivered(state, name, message)
                return

    def _delivered(self, state: State, name: int, message: int) -> State:
        passed = state.passed
        for earlier in range(message):
            if state.stored[earlier] == WAITING and not self._is_with_holder(state, name, earlier):
                passed = put(passed, earlier, 1)
        receiver = state.receivers[name]
        mine = receiver.messages[message]
        return state._replace(
            tail=(*state.tail, Operation(LOCK, message, name)),
            held=put(state.held, message, 1),
            receivers=put(
                state.receivers, name, receiver._replace(messages=put(receiver.messages, message, mine | CURRENT))
            ),
            passed=passed,
            wrong="P10: a message left behind a later one" if state.passed[message] else "",
        )

    def _is_with_holder(self, state: State, name: int, message: int) -> bool:
        """The message left under this grant, and was not given back: its receiver had it first."""
        is_here = state.receivers[name].messages[message] & CURRENT
        return bool(is_here) and Operation(ABANDON, message, name) not in state.tail

    def _settlements(
        self, state: State, name: int, message: int, grant: str, *, is_good: bool
    ) -> Iterator[tuple[Action, State]]:
        """grant: the one under which the message was delivered that the receiver means."""
        receiver = state.receivers[name]
        is_good = is_good and state.held[message] == 1 and not in_flight(state, message)
        for how, kind in (("complete", COMPLETE), ("abandon", ABANDON)):
            if not is_good:
                left = receiver.messages[message] & (CURRENT if grant == "stale" else STALE)
                rest = receiver._replace(messages=put(receiver.messages, message, left))
                answer, after = "lost", state._replace(receivers=put(state.receivers, name, rest))
            else:
                answer, after = "waits", state._replace(tail=(*state.tail, Operation(kind, message, name)))
                if grant == "stale" or receiver.session != CURRENT:
                    after = after._replace(wrong="P7: a message of a grant that is over was settled")
            yield ("settle", name, message, how, grant, answer), after

    def _sets(self, state: State, name: int, *, is_good: bool) -> Iterator[tuple[Action, State]]:
        receiver = state.receivers[name]
        if not is_good:
            rest = receiver._replace(session=NOTHING)
            yield ("set_state", name, "lost"), state._replace(receivers=put(state.receivers, name, rest))
            return
        after = state._replace(tail=(*state.tail, Operation(SET, 0, name)))
        if receiver.session == STALE:
            after = after._replace(wrong="P10: a receiver that has lost the session set its state")
        if self.answer_state_before_durable:
            after = after._replace(told_value=state.value + len(kinds_of(after, SET)))
        yield ("set_state", name, "waits"), after

    def _is_ending(self, state: State) -> bool:
        """The grant's end is in flight."""
        return not self.free_before_loss_is_synced and bool(kinds_of(state, LOSE))

    def _loss(self, state: State) -> Iterator[tuple[Action, State]]:
        is_lost = self._is_ending(state)
        if not state.is_over:
            yield ("time_over",), over(state)
        elif not is_lost and len(state.tail) < self.tail_limit:
            yield ("lose",), self._lost(state)
        name = state.holder - 1
        if not is_lost and not state.is_over and len(state.tail) < self.tail_limit:
            yield ("close", name), self._lost(over(state))

    def _lost(self, state: State) -> State:
        after = state._replace(tail=(*state.tail, Operation(LOSE, 0, state.holder - 1)))
        if self.free_before_loss_is_synced:
            return stale(after._replace(holder=0, is_over=0, held=(0,) * self.messages))
        return after

    def _synced(self, state: State) -> State:
        kind, about, name = state.tail[0]
        after = state._replace(tail=state.tail[1:])
        if kind == COMPLETE:
            after = after._replace(stored=put(state.stored, about, GONE), told=put(state.told, about, 1))
        if kind == SET:
            after = after._replace(value=state.value + 1, told_value=max(state.told_value, state.value + 1))
            if state.holder and state.holder != name + 1:
                after = after._replace(wrong="P10: the session's state changed under another holder")
        if kind in (COMPLETE, ABANDON):
            receiver = state.receivers[name]
            left = NOTHING if kind == COMPLETE else receiver.messages[about] & STALE
            rest = receiver._replace(messages=put(receiver.messages, about, left))
            held = state.held if state.holder != name + 1 else put(state.held, about, 0)
            after = after._replace(receivers=put(state.receivers, name, rest), held=held)
        if kind == LOSE and not self.free_before_loss_is_synced:
            held = state.held if self.loss_forgets_locks else (0,) * self.messages
            after = stale(after._replace(holder=0, is_over=0, held=held))
        return after

    def _restarted(self, state: State, kept: int) -> State:
        stored, value = self._after_tail(state._replace(tail=state.tail[:kept]))
        zeros = (0,) * self.messages
        return stale(
            state._replace(
                stored=stored, value=value, tail=(), holder=0, is_over=0, held=zeros, faults=state.faults + 1
            )
        )

    def _sync_failed(self, state: State) -> State:
        again = tuple(operation for operation in state.tail if operation.kind == LOCK)
        return state._replace(tail=again, faults=state.faults + 1)

    def _after_tail(self, state: State) -> tuple[tuple[int, ...], int]:
        stored, value = state.stored, state.value
        for kind, about, _ in state.tail:
            if kind == COMPLETE:
                stored = put(stored, about, GONE)
            value += kind == SET
        return stored, value


def over(state: State) -> State:
    """The holder has the session no longer; its grant goes on until the fragment ends it."""
    receiver = state.receivers[state.holder - 1]
    return state._replace(is_over=1, receivers=put(state.receivers, state.holder - 1, receiver._replace(session=STALE)))


def stale(state: State) -> State:
    """All grants are over."""
    receivers = (
        Receiver(min(receiver.session, 1) * STALE, tuple(min(mine, 1) * STALE for mine in receiver.messages))
        for receiver in state.receivers
    )
    return state._replace(receivers=tuple(receivers))


def kinds_of(state: State, kind: int) -> list[Operation]:
    """The operations of one kind that are in flight."""
    return [operation for operation in state.tail if operation.kind == kind]


def in_flight(state: State, message: int) -> bool:
    """Whether an operation that decides about the message is in flight."""
    return bool([kind for kind, about, _ in state.tail if about == message and kind in (COMPLETE, ABANDON)])
