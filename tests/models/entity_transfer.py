"""A message that moves from one entity to another: forwarded, or dead-lettered with a forward. Promise P13.

The model. There are two entities with a log each. The operation that stores a message in an entity that forwards says
so: the message is in transfer, and nobody receives it there. In a chain the first entity forwards to the second,
where receivers consume. In a ring each forwards to the other one, until the hops are used up, and the message is
dead-lettered as it arrives. The source offers the message under a transfer id: its own name and the message's number
in its log. The id is the same for each try and needs no record. The destination stores message and id by one
operation. When that is synced it answers; the source removes its message; when the removal is synced, the destination
may forget the id. The destination asks for that, so the source need not remember whom to tell.

Atomic steps. A send, the arrival of an offer, an answer, a question: each with the append that it makes. A sync of
the oldest operation of one log. Offers and answers travel. A start of the source has one offer of a message under
way.

A crash. Either entity may crash at any point, also one directly behind the other. A kill keeps the tail of its log, a
power cut some of its oldest operations. Everything that was on its way to the crashed entity is lost, and so are its
answers. But offers that a source sent before its crash may still arrive, as offers of an earlier start. The
destination refuses those from the first word on that it has from the new start, be it an offer or the answer to a
question. A sync that fails takes the tail of one log back: a sender or a source that waits is refused. The source
offers a message again when its removal was taken back, but not while an answer about it is on its way.

Promises that must hold.
P1   A message whose send was answered is in an entity for good, or was consumed, or dead-lettered.
P13  No message is there twice for receivers, or again behind its end, however often it was offered. None is lost on
     its way. No message makes more hops than are allowed.

Also modelled: the destination refuses an offer (no room, disabled), and the source puts the message into its own dead
letters; the operator ends the forward while messages are in transfer: those move on, later messages stay.

Left out: a topic's fan-out (one operation of one log).

Long because one specification is easiest to check in one piece; its text and its planted mistakes are a fifth of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

FIRST, SECOND = range(2)

# Operations of a log.
STORE, REMOVE, CONSUME, GIVE_UP, FORGET = range(5)

# Answers to an offer.
REFUSED, STORED = range(2)


class Held(NamedTuple):
    """A message in an entity. number: in its log, from 1. origin: which message it is; known to us alone."""

    number: int
    origin: int
    hops: int
    is_in_transfer: int


class Operation(NamedTuple):
    """transfer: the id under which the message came, or that is forgotten; 0: it was sent here.

    awaited: the number under which the present start of the source waits for the answer; 0: it does not.
    """

    kind: int
    held: Held
    transfer: int = 0
    awaited: int = 0


class Offer(NamedTuple):
    """On its way to the other entity. is_old: from an earlier start of its source."""

    held: Held
    is_old: int


class Entity(NamedTuple):
    """Of the log, synced: messages, remembered transfer ids, the next number, how many ended here (by origin).

    In memory: offered, the numbers that are not to be offered now. On the way: offers from here, answers to here (a
    number each, and STORED or REFUSED).
    """

    messages: tuple[Held, ...]
    remembered: tuple[int, ...]
    next_number: int
    ended: tuple[int, ...]
    tail: tuple[Operation, ...]
    offered: tuple[int, ...]
    offers: tuple[Offer, ...]
    answers: tuple[tuple[int, int], ...]


class State(NamedTuple):
    """forwards: whether each entity does. sent: how many sends were begun. told: those that were answered."""

    entities: tuple[Entity, Entity]
    forwards: tuple[int, int]
    sent: int
    told: tuple[int, ...]
    refusals: int
    faults: int


NO_MESSAGE = Held(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class EntityTransfer:
    """The model; behind its bounds, mistakes to plant."""

    messages: int = 1
    is_ring: bool = False
    hop_limit: int = 2
    tail_limit: int = 2
    refusals: int = 1
    faults: int = 2
    ends_forward: bool = True

    answer_before_durable: bool = False  # the destination says "stored" when it has appended
    offer_unsynced: bool = False  # the source offers messages of its tail
    id_of_the_message: bool = False  # the transfer id is the message's own, not that of its place in the source
    forget_with_message: bool = False  # the operation that consumes a message takes transfer ids along
    forget_early: bool = False  # an id is forgotten when the removal is appended
    old_offers_arrive: bool = False  # nobody looks from which start an offer comes
    offer_beside_answer: bool = False  # a failed sync of the source has everything offered again
    give_up_unknown: bool = False  # the source gives up when an answer does not come
    forward_by_setting: bool = False  # the setting of now decides whether a message is in transfer
    unlimited_hops: bool = False

    FAULTS = ("kill", "power_cut", "sync_fails", "refuse", "end_forward")

    def start(self) -> State:
        none = (0,) * self.messages
        empty = Entity((), (), 1, none, (), (), (), ())
        return State((empty, empty), (1, int(self.is_ring)), sent=0, told=none, refusals=0, faults=0)

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.sent < self.messages and self._has_room(state, FIRST):
            yield ("send", state.sent), self._stored_later(state, FIRST, state.sent, 0)._replace(sent=state.sent + 1)
        if self.ends_forward and state.forwards[FIRST]:
            yield ("end_forward",), state._replace(forwards=put(state.forwards, FIRST, 0))
        for here in (FIRST, SECOND):
            yield from self._of_source(state, here)
            yield from self._of_destination(state, here)
            if state.entities[here].tail:
                yield ("sync", here), self._synced(state, here)
            if state.faults < self.faults:
                yield from self._faults(state, here)

    def broken(self, state: State) -> str | None:
        for origin, told in enumerate(state.told):
            ended = sum(entity.ended[origin] for entity in state.entities)
            places = self._places(state, origin)
            if ended + sum(places) > 1:
                return "P13: a message is there twice, or again behind its end"
            if told and not ended and not places:
                return "P1, P13: a message is lost"
        if any(held.hops > self.hop_limit for entity in state.entities for held in entity.messages):
            return "P13: a message made too many hops"
        return None

    def is_quiet(self, state: State) -> bool:
        if state.sent < self.messages:
            return False
        for entity in state.entities:
            if entity.messages or entity.tail or entity.remembered or entity.offers or entity.answers:
                return False
        return True

    def view(self, state: State) -> list[list[tuple[int, bool]]]:
        """Of each entity, the messages that are in it, and whether receivers see them."""
        return [
            [(held.origin, self._is_seen(state, here, held)) for held in entity.messages]
            for here, entity in enumerate(state.entities)
        ]

    def _places(self, state: State, origin: int) -> list[bool]:
        """For each place where a message lies, whether receivers see it there."""
        return [
            self._is_seen(state, here, held)
            for here in (FIRST, SECOND)
            for held in state.entities[here].messages
            if held.origin == origin
        ]

    def _is_seen(self, state: State, here: int, held: Held) -> bool:
        return not (state.forwards[here] if self.forward_by_setting else held.is_in_transfer)

    def _transfer_of(self, source: int, held: Held) -> int:
        """The source's name and the number in its log, as one number from 1 on."""
        return held.origin + 1 if self.id_of_the_message else 2 * held.number + source

    def _has_room(self, state: State, here: int) -> bool:
        return len(state.entities[here].tail) < self.tail_limit

    # The source.

    def _of_source(self, state: State, here: int) -> Iterator[tuple[Action, State]]:
        entity = state.entities[here]
        messages = entity.messages
        if self.offer_unsynced:
            messages += tuple(operation.held for operation in entity.tail if operation.kind == STORE)
        has_room = self._has_room(state, here)
        for held in messages:
            if any(operation.held == held and operation.kind != STORE for operation in entity.tail):
                continue  # it is about to leave
            if self._is_seen(state, here, held):
                if has_room:
                    yield ("consume", here, held.number), appended(state, here, Operation(CONSUME, held))
            elif held.number not in entity.offered:
                yield (
                    ("offer", here, held.number),
                    changed(
                        state, here, offers=(*entity.offers, Offer(held, 0)), offered=(*entity.offered, held.number)
                    ),
                )
            elif self.give_up_unknown and has_room:
                yield ("give_up", here, held.number), appended(state, here, Operation(GIVE_UP, held))
        if entity.answers and has_room:
            yield self._answered(state, here)

    def _answered(self, state: State, here: int) -> tuple[Action, State]:
        (number, answer), *rest = state.entities[here].answers
        after = changed(state, here, answers=tuple(rest))
        for held in state.entities[here].messages:
            if held.number == number and not any(operation.held == held for operation in state.entities[here].tail):
                kind = REMOVE if answer == STORED else GIVE_UP
                return ("answered", here, number, answer), appended(after, here, Operation(kind, held))
        return ("answered", here, number, "too late"), after

    # The destination.

    def _of_destination(self, state: State, here: int) -> Iterator[tuple[Action, State]]:
        source = 1 - here
        offers = state.entities[source].offers
        for place, (held, is_old) in enumerate(offers):
            after = changed(state, source, offers=(*offers[:place], *offers[place + 1 :]))
            if not is_old:
                after = self._without_old_offers(after, source)
            yield from self._arrived(after, here, held, place, is_old=is_old)
        if self._has_room(state, here):
            for transfer in state.entities[here].remembered:
                yield from self._asked(state, here, transfer)

    def _arrived(
        self, state: State, here: int, held: Held, place: int, *, is_old: int
    ) -> Iterator[tuple[Action, State]]:
        """state: without the offer, which is here now. An earlier start of the source is answered by nothing."""
        source, entity = 1 - here, state.entities[here]
        transfer = self._transfer_of(source, held)
        if transfer in entity.remembered:
            after = state if is_old else answered(state, source, held.number, STORED)
            yield ("arrive", source, place, "stored before"), after
            return
        for at, operation in enumerate(entity.tail):
            if operation.kind == STORE and operation.transfer == transfer:
                again = operation if is_old else operation._replace(awaited=held.number)
                yield ("arrive", source, place, "in flight"), changed(state, here, tail=put(entity.tail, at, again))
                return
        if not self._has_room(state, here):
            return
        after = self._stored_later(state, here, held.origin, held.hops + 1, transfer, 0 if is_old else held.number)
        if self.answer_before_durable and not is_old:
            after = answered(after, source, held.number, STORED)
        yield ("arrive", source, place, "waits"), after
        if state.refusals < self.refusals and not is_old:
            refused = state._replace(refusals=state.refusals + 1)
            yield ("refuse", source, place), answered(refused, source, held.number, REFUSED)

    def _stored_later(
        self, state: State, here: int, origin: int, hops: int, transfer: int = 0, awaited: int = 0
    ) -> State:
        entity = state.entities[here]
        number = entity.next_number + in_tail(state, here, STORE)
        held = Held(number, origin, hops, state.forwards[here])
        return appended(state, here, Operation(STORE, held, transfer, awaited))

    def _asked(self, state: State, here: int, transfer: int) -> Iterator[tuple[Action, State]]:
        """The destination asks whether the message is removed for good. The answer is a word of the new start, too."""
        source = 1 - here
        is_there = any(self._transfer_of(source, held) == transfer for held in state.entities[source].messages)
        if self.forget_early and in_tail(state, source, REMOVE):
            is_there = False
        forgotten = Operation(FORGET, NO_MESSAGE, transfer)
        if not is_there and forgotten not in state.entities[here].tail:
            yield ("forget", here, transfer), appended(self._without_old_offers(state, source), here, forgotten)

    def _without_old_offers(self, state: State, source: int) -> State:
        offers = state.entities[source].offers
        if self.old_offers_arrive or not any(offer.is_old for offer in offers):
            return state
        return changed(state, source, offers=tuple(offer for offer in offers if not offer.is_old))

    # The log.

    def _synced(self, state: State, here: int) -> State:
        entity = state.entities[here]
        operation = entity.tail[0]
        kind, held, transfer, awaited = operation
        after = changed(state, here, **self._applied(entity, operation), tail=entity.tail[1:])
        if kind == STORE and not transfer:
            after = after._replace(told=put(after.told, held.origin, 1))
        if awaited and not self.answer_before_durable:
            after = answered(after, 1 - here, awaited, STORED)
        return after

    def _applied(self, entity: Entity, operation: Operation) -> dict[str, tuple[object, ...] | int]:
        """Return the fields of an entity that an operation changes. This is the whole meaning of the log."""
        kind, held, transfer, _ = operation
        rest = tuple(other for other in entity.messages if other != held)
        if kind == FORGET:
            return {"remembered": tuple(other for other in entity.remembered if other != transfer)}
        if kind == REMOVE:
            return {"messages": rest}
        ended = put(entity.ended, held.origin, entity.ended[held.origin] + 1)
        if kind == CONSUME and self.forget_with_message:
            return {"messages": rest, "ended": ended, "remembered": ()}
        if kind in (CONSUME, GIVE_UP):
            return {"messages": rest, "ended": ended}
        remembered = (*entity.remembered, transfer) if transfer else entity.remembered
        stored = {"remembered": remembered, "next_number": held.number + 1}
        if held.is_in_transfer and held.hops == self.hop_limit and not self.unlimited_hops:
            return {**stored, "ended": ended}
        return {**stored, "messages": (*entity.messages, held)}

    # Faults.

    def _faults(self, state: State, here: int) -> Iterator[tuple[Action, State]]:
        tail = state.entities[here].tail
        yield ("kill", here), self._restarted(state, here, len(tail))
        for kept in range(len(tail)):
            yield ("power_cut", here, kept), self._restarted(state, here, kept)
        if tail:
            yield ("sync_fails", here), self._sync_failed(state, here)

    def _restarted(self, state: State, here: int, kept: int) -> State:
        entity, other = state.entities[here], state.entities[1 - here]
        for operation in entity.tail[:kept]:
            entity = entity._replace(**self._applied(entity, operation))
        offers = tuple(Offer(held, 1) for held, _ in entity.offers)
        entity = entity._replace(tail=(), offered=(), offers=offers, answers=())
        tail = tuple(operation._replace(awaited=0) for operation in other.tail)
        other = other._replace(tail=tail, offered=(), offers=(), answers=())
        entities = (entity, other) if here == FIRST else (other, entity)
        return state._replace(entities=entities, faults=state.faults + 1)

    def _sync_failed(self, state: State, here: int) -> State:
        """A sender or a source that waits is refused, and asks again."""
        after = state._replace(faults=state.faults + 1)
        for kind, held, transfer, awaited in state.entities[here].tail:
            if kind in (REMOVE, GIVE_UP):
                after = self._offered_again(after, here, held.number)
            if awaited:
                after = self._offered_again(after, 1 - here, awaited)
            if kind == STORE and not transfer:
                after = after._replace(sent=after.sent - 1)
        if self.offer_beside_answer:
            after = changed(after, here, offered=())
        return changed(after, here, tail=())

    def _offered_again(self, state: State, source: int, number: int) -> State:
        offered = tuple(other for other in state.entities[source].offered if other != number)
        return changed(state, source, offered=offered)


def changed(state: State, here: int, **fields: object) -> State:
    return state._replace(entities=put(state.entities, here, state.entities[here]._replace(**fields)))


def appended(state: State, here: int, operation: Operation) -> State:
    return changed(state, here, tail=(*state.entities[here].tail, operation))


def answered(state: State, source: int, number: int, answer: int) -> State:
    return changed(state, source, answers=(*state.entities[source].answers, (number, answer)))


def in_tail(state: State, here: int, kind: int) -> int:
    """How many operations of a kind are in flight."""
    return sum(operation.kind == kind for operation in state.entities[here].tail)


def old_offers(state: State) -> int:
    return sum(offer.is_old for offer in state.entities[FIRST].offers)
