"""A topic's messages become messages of its subscriptions, where that is too much for one operation. Promise P13.

The model. A topic has one log for itself and for its subscriptions, which have numbers. A message that was sent lies
with the topic. Fan-out appends chains, one at a time, and each chain is there whole or not at all. A chain has room for
so many copies. Where messages fit whole, it holds all their copies, and their removal from the topic. Else it holds a
part of the copies of one message, and its next place: the subscription and how many of its copies there are. The
last part removes the message. An action of a rule may make several copies for one subscription, so a place may lie
within a subscription. Receivers consume copies. Subscriptions end and begin at any time; a new one has a new number.

Atomic steps. A send; the append of a chain; the end or beginning of a subscription; a consumed copy; a snapshot; a
sync of the oldest operation. What is synced is visible.

A crash. A kill keeps the tail, a power cut some of its oldest operations. What the topic had planned is gone; it is
what its snapshot and its log say. A sync that fails takes the tail back; the sender that waits is refused, and the
chain is made again.

Promises that must hold.
P1   A message whose send was answered is with the topic, or was copied.
P13  A subscription that was there from the send on has each copy of a message once it has left the topic, and a
     subscription that came or went meanwhile has all of them or none. No copy is there twice, or again behind its end.
     The copies of a subscription stand in the order of the sends.

Left out: rules that change between two parts (the second part is made by those of its time), messages that leave the
topic by their time to live, and a log that stores what it refused in front of what it takes later: the segment engine
never does (failed_sync.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

# Operations of the log.
SEND, CHAIN, ADD, REMOVE, CONSUME = range(5)

# A message that is with the topic has a place, from 0 on.
UNSENT, LEFT = -2, -1


class Copy(NamedTuple):
    """message, which: the copy among those that one subscription gets of it. is_consumed: a receiver completed it."""

    message: int
    which: int
    is_consumed: int = 0


class Part(NamedTuple):
    """The copies of a message that one chain makes. first, next: places; a place is number * copies + made."""

    message: int
    first: int
    next: int  # LEFT: these are the last


class Operation(NamedTuple):
    """subject: of a message, of a subscription, or the place of a copy among those of the subscription `number`."""

    kind: int
    subject: int = 0
    number: int = 0
    parts: tuple[Part, ...] = ()


class State(NamedTuple):
    """places: of each message. There is a tuple of copies, and the order of its beginning, for each number.

    had_begun: the subscriptions that were there when a message came, as bits. is_under_way: a chain was appended and is
    not decided. saved: places, as a mistake has them in its snapshot or its memory.
    """

    places: tuple[int, ...]
    is_there: tuple[int, ...]
    copies: tuple[tuple[Copy, ...], ...]
    had_begun: tuple[int, ...]
    tail: tuple[Operation, ...]
    is_under_way: int
    told: tuple[int, ...]
    saved: tuple[int, ...]
    faults: int
    wrong: str


@dataclass(frozen=True, slots=True)
class FanOut:
    """The model; behind its bounds, mistakes to plant. room: copies of one chain. numbers: subscriptions in all."""

    messages: int = 2
    begun: int = 2  # subscriptions that are there from the start
    numbers: int = 3
    copies: int = 2  # that each subscription gets of a message
    room: int = 3
    tail_limit: int = 2
    faults: int = 1

    removed_with_first_part: bool = False  # the first part removes the message from the topic
    place_left_out_of_snapshot: bool = False
    place_counts_before_sync: bool = False  # the next part begins where an unsynced one ends, also when that failed
    place_counts_those_there: bool = False  # a place tells subscriptions by their rank among those that are there
    numbers_used_again: bool = False  # a new subscription takes the number of one that ended
    two_chains_unchecked: bool = False  # a turn does not wait for the chain under way, and nobody looks at places

    FAULTS = ("kill", "power_cut", "sync_fails")

    def start(self) -> State:
        none = (0,) * self.messages
        there = tuple(int(number < self.begun) for number in range(self.numbers))
        return State(
            places=(UNSENT,) * self.messages, is_there=there, copies=((),) * self.numbers, had_begun=none, tail=(),
            is_under_way=0, told=none, saved=(UNSENT,) * self.messages, faults=0, wrong="",
        )  # fmt: skip

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        if len(state.tail) < self.tail_limit:
            yield from self._requests(state)
            yield from self._turn(state)
        if self.place_left_out_of_snapshot and any(place > 0 for place in state.places):
            yield ("save_snapshot",), state._replace(saved=tuple(min(place, 0) for place in state.places))
        if state.tail:
            yield ("sync",), self._synced(state)
        if state.faults < self.faults:
            yield from self._faults(state)

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        for is_told, place in zip(state.told, state.places, strict=True):
            if is_told and place == UNSENT:
                return "P1: a send was answered, and its message is nowhere"
        for number in range(self.numbers):
            if state.is_there[number]:
                text = self._broken_copies(state, number)
                if text:
                    return text
        return None

    def is_quiet(self, state: State) -> bool:
        return not state.tail and all(place in (UNSENT, LEFT) for place in state.places)

    def view(self, state: State) -> tuple[list[int], list[list[Copy]]]:
        """The messages that are with the topic, and the copies that wait in each subscription."""
        own = [message for message, place in enumerate(state.places) if place >= 0]
        waiting = ([copy for copy in its if not copy.is_consumed] for its in state.copies)
        return own, list(waiting)

    def _broken_copies(self, state: State, number: int) -> str | None:
        has = [(copy.message, copy.which) for copy in state.copies[number]]
        if len(set(has)) < len(has):
            return "P13: a copy is there twice"
        if has != sorted(has):
            return "P13: copies stand in another order than their messages came"
        for message, place in enumerate(state.places):
            count = sum(copy[0] == message for copy in has)
            if place == LEFT and count < self.copies:
                if state.had_begun[message] >> number & 1:
                    return "P13: a message has left the topic, and not all its copies are there"
                if count:
                    return "P13: a subscription has a part of a message"
        return None

    def _requests(self, state: State) -> Iterator[tuple[Action, State]]:
        on_its_way = {(operation.kind, operation.subject, operation.number) for operation in state.tail}
        kinds = [operation.kind for operation in state.tail]
        if UNSENT in state.places and SEND not in kinds:
            message = state.places.index(UNSENT)
            yield ("send", message), appended(state, Operation(SEND, message))
        if ADD not in kinds:
            number = state.is_there.index(0) if 0 in state.is_there else self.numbers
            is_new = number < self.numbers and number >= self._next_number(state)
            if is_new or (number < self.numbers and self.numbers_used_again):
                yield ("add", number), appended(state, Operation(ADD, number))
        for number, is_there in enumerate(state.is_there):
            if not is_there:
                continue
            if REMOVE not in kinds and sum(state.is_there) > 1:
                yield ("remove", number), appended(state, Operation(REMOVE, number))
            for place, copy in enumerate(state.copies[number]):
                if not copy.is_consumed and (CONSUME, place, number) not in on_its_way:
                    yield ("consume", number, place), appended(state, Operation(CONSUME, place, number))
                    break  # the first that is left: the order of receivers is not what is modelled

    def _next_number(self, state: State) -> int:
        """A number that nobody had: copies stay with the number of a subscription that ended, as a mark."""
        return max((number + 1 for number in range(self.numbers) if self._was_there(state, number)), default=0)

    def _was_there(self, state: State, number: int) -> bool:
        return bool(number < self.begun or state.is_there[number] or state.copies[number])

    def _turn(self, state: State) -> Iterator[tuple[Action, State]]:
        """Append a chain of what is active: of whole messages, or of a part of the first."""
        if state.is_under_way and not self.two_chains_unchecked:
            return
        parts: list[Part] = []
        room = self.room
        for message, place in enumerate(state.places):
            if place < 0:
                continue
            if self.place_counts_before_sync:
                place = max(place, state.saved[message])
            wanted = self._wanted(state, place)
            if len(wanted) <= room and (not parts or parts[-1].next == LEFT):
                parts.append(Part(message, place, LEFT))
                room -= len(wanted)
            elif not parts:
                parts.append(Part(message, place, wanted[room]))
                break
            else:
                break
        if parts:
            after = appended(state, Operation(CHAIN, parts=tuple(parts)))._replace(is_under_way=1)
            if self.place_counts_before_sync and parts[0].next != LEFT:
                after = after._replace(saved=put(after.saved, parts[0].message, parts[0].next))
            yield ("copy", *(part.message for part in parts), parts[-1].next), after

    def _wanted(self, state: State, place: int) -> list[int]:
        """The places of the copies that are to be made, from a place on."""
        there = [number for number in range(self.numbers) if state.is_there[number]]
        named = range(len(there)) if self.place_counts_those_there else there
        places = [number * self.copies + made for number in named for made in range(self.copies)]
        return [each for each in places if each >= place]

    def _synced(self, state: State) -> State:
        operation = state.tail[0]
        after = applied(self, state._replace(tail=state.tail[1:]), operation)
        if operation.kind == SEND:
            after = after._replace(told=put(after.told, operation.subject, 1))
        elif operation.kind == CHAIN:
            after = after._replace(is_under_way=int(any(each.kind == CHAIN for each in after.tail)))
        return after

    def _faults(self, state: State) -> Iterator[tuple[Action, State]]:
        yield ("kill",), self._restarted(state, len(state.tail))
        for kept in range(len(state.tail)):
            yield ("power_cut", kept), self._restarted(state, kept)
        if state.tail:
            yield ("sync_fails",), state._replace(tail=(), is_under_way=0, faults=state.faults + 1)

    def _restarted(self, state: State, kept: int) -> State:
        """The topic is what its log says."""
        after = state._replace(tail=(), is_under_way=0, faults=state.faults + 1)
        if self.place_left_out_of_snapshot:
            places = (
                0 if saved == 0 and place > 0 else place for saved, place in zip(after.saved, after.places, strict=True)
            )
            after = after._replace(places=tuple(places))
        for operation in state.tail[:kept]:
            after = applied(self, after, operation)
        return after


def appended(state: State, operation: Operation) -> State:
    return state._replace(tail=(*state.tail, operation))


def applied(model: FanOut, state: State, operation: Operation) -> State:
    """The state behind an operation of the log, by which a start makes it again, too."""
    kind, subject = operation.kind, operation.subject
    if kind == SEND:
        bits = sum(is_there << number for number, is_there in enumerate(state.is_there))
        return state._replace(places=put(state.places, subject, 0), had_begun=put(state.had_begun, subject, bits))
    if kind == ADD:
        cleared = put(state.copies, subject, ())
        return state._replace(is_there=put(state.is_there, subject, 1), copies=cleared)
    if kind == REMOVE:
        # Nobody has them any more; one that is consumed stays as a mark that the number was somebody's.
        kept = put(state.copies, subject, (Copy(-1, 0, 1),))
        gone = tuple(bits & ~(1 << subject) for bits in state.had_begun)
        return state._replace(is_there=put(state.is_there, subject, 0), copies=kept, had_begun=gone)
    if kind == CONSUME:
        if not state.is_there[operation.number]:
            return state  # its subscription ended first
        its = state.copies[operation.number]
        consumed = put(its, subject, its[subject]._replace(is_consumed=1))
        return state._replace(copies=put(state.copies, operation.number, consumed))
    for part in operation.parts:
        state = copied(model, state, part)
    return state


def copied(model: FanOut, state: State, part: Part) -> State:
    """Make the copies of a part; nothing where the message is at another place."""
    if state.places[part.message] != part.first and not (model.two_chains_unchecked or model.place_counts_before_sync):
        return state
    there = [number for number in range(model.numbers) if state.is_there[number]]
    copies = state.copies
    for rank, number in enumerate(there):
        name = rank if model.place_counts_those_there else number
        for which in range(model.copies):
            place = name * model.copies + which
            if part.first <= place and (part.next == LEFT or place < part.next):
                copies = put(copies, number, (*copies[number], Copy(part.message, which)))
    following = LEFT if model.removed_with_first_part else part.next
    return state._replace(copies=copies, places=put(state.places, part.message, following))
