"""A message that moves from one entity to another: forwarded, or dead-lettered with a forward. Promise P13.

The model. There are two entities with a log each. In a chain the first entity forwards to the second, where receivers
consume. In a ring each forwards to the other one, until a message has made its hops and is dead-lettered. A transfer
has one message here. Its source writes into its log which message the transfer takes, with the next number; when that
is synced, nobody receives the message there any more, and it is offered under that number. The destination keeps the
highest number that it stored. It stores a message and its number by one operation, and answers when that is synced; a
number that is not higher is stored already. Then the source removes its message. The destination may also be asked
without the message, and may refuse it: either way it answers that it does not have it, and the source ends the
transfer: the message stays, or becomes a dead letter.

Attempts. Each offer has a higher attempt than those before, through crashes too. The destination takes none that is
lower than one that it heard of. The source believes that its message is absent of the last attempt alone; that it is
stored it believes of any.

Atomic steps. A send, the begin of a transfer, an offer, its arrival, an answer: each with the append that it makes. A
sync of the oldest operation of one log. Offers and answers travel, and overtake each other; two at most of a source.

A crash. Either entity may crash at any point, also one directly behind the other. A kill keeps the tail of its log, a
power cut some of its oldest operations. Everything that was on its way to the crashed entity is lost, and so are its
answers. But offers that a source sent before its crash may still arrive. A sync that fails takes the tail of one log
back: senders are refused, and who waits is asked again.

Promises that must hold.
P1   A message whose send was answered is in an entity for good, or was consumed, or dead-lettered.
P13  No message is there twice for receivers, or again behind its end, however often it was offered. None is lost on
     its way. No message makes more hops than are allowed.

Also modelled: the operator ends the forward while a message is in transfer: it moves on, later messages stay.

Left out: several messages of one transfer, which are one operation's; a topic's fan-out (one operation of one log).

Long because one specification is easiest to check in one piece; its text and its planted mistakes are a fifth of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

FIRST, SECOND = range(2)

# Operations of a log. BEGIN, REMOVE, RETURN and GIVE_UP are of a transfer.
STORE, BEGIN, REMOVE, RETURN, GIVE_UP, CONSUME, DEAD_LETTER = range(7)

# Answers to an offer.
ABSENT, STORED = range(2)

# Offers of one source that are on their way, or whose answers are.
TRAVELLING = 2


class Held(NamedTuple):
    """A message in an entity. number: in its log, from 1. origin: which message it is; known to us alone."""

    number: int
    origin: int
    hops: int


class Operation(NamedTuple):
    """transfer: the number of the transfer that begins, or with which the message came; 0: it was sent here.

    attempts: those that are answered when it is synced.
    """

    kind: int
    held: Held
    transfer: int = 0
    attempts: tuple[int, ...] = ()


class Offer(NamedTuple):
    """On its way to the other entity. asks: without the message."""

    transfer: int
    held: Held
    attempt: int
    asks: int


class Entity(NamedTuple):
    """Of the log, synced: messages, the number of the one in transfer (0: none is), the newest transfer's number, the
    highest that was stored here, the next number of a message, how many ended here (by origin).

    In memory: the last attempt, the highest that was heard of. On the way: offers from here; answers to here, as number
    of the transfer, attempt, and STORED or ABSENT.
    """

    messages: tuple[Held, ...]
    moving: int
    begun: int
    received: int
    next_number: int
    ended: tuple[int, ...]
    tail: tuple[Operation, ...]
    attempt: int
    heard: int
    offers: tuple[Offer, ...]
    answers: tuple[tuple[int, int, int], ...]


class State(NamedTuple):
    """forwards: whether each entity does. sent: how many sends were begun. told: those that were answered."""

    entities: tuple[Entity, Entity]
    forwards: tuple[int, int]
    sent: int
    told: tuple[int, ...]
    refusals: int
    faults: int


@dataclass(frozen=True, slots=True)
class EntityTransfer:
    """The model; behind its bounds, mistakes to plant."""

    messages: int = 1
    is_ring: bool = False
    hop_limit: int = 1
    tail_limit: int = 2
    refusals: int = 1
    faults: int = 2
    ends_forward: bool = True

    answer_before_durable: bool = False  # the destination says "stored" when it has appended
    offer_unsynced: bool = False  # the source offers a message whose transfer is not synced
    number_in_memory: bool = False  # numbers of transfers begin anew at a start
    received_in_memory: bool = False  # a destination forgets at a start what it stored
    old_offers_arrive: bool = False  # nobody looks at the attempts of offers
    old_answers_count: bool = False  # "absent" is believed of any attempt
    ask_beside_store: bool = False  # "absent" is said while the message is being stored
    give_up_unknown: bool = False  # the source gives up when an answer does not come
    forward_by_setting: bool = False  # the setting of now decides whether a message is in transfer
    unlimited_hops: bool = False

    FAULTS = ("kill", "power_cut", "sync_fails", "refuse", "ask", "end_forward")

    def start(self) -> State:
        none = (0,) * self.messages
        empty = Entity((), 0, 0, 0, 1, none, (), 0, 0, (), ())
        return State((empty, empty), (1, int(self.is_ring)), sent=0, told=none, refusals=0, faults=0)

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        for action, after in self._steps(state):
            yield action, ranked(after)

    def _steps(self, state: State) -> Iterator[tuple[Action, State]]:
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
        return not any(each.messages or each.tail or each.offers or each.answers for each in state.entities)

    def view(self, state: State) -> list[list[tuple[int, bool]]]:
        """Of each entity, the messages that are in it, and whether receivers see them."""
        return [
            [(held.origin, self._is_seen(state, here, held)) for held in entity.messages]
            for here, entity in enumerate(state.entities)
        ]

    def _places(self, state: State, origin: int) -> list[bool]:
        """For each place where a message lies, whether receivers see it there, or may."""
        return [
            self._is_seen(state, here, held)
            for here in (FIRST, SECOND)
            for held in state.entities[here].messages
            if held.origin == origin
        ]

    def _is_seen(self, state: State, here: int, held: Held) -> bool:
        is_moving = state.entities[here].moving == held.number
        return not (is_moving and (state.forwards[here] or not self.forward_by_setting))

    def _has_room(self, state: State, here: int) -> bool:
        return len(state.entities[here].tail) < self.tail_limit

    # The source.

    def _of_source(self, state: State, here: int) -> Iterator[tuple[Action, State]]:
        entity = state.entities[here]
        has_room = self._has_room(state, here)
        for held in entity.messages:
            if in_flight(entity, held) or not self._is_seen(state, here, held) or not has_room:
                continue  # it is about to leave, or in transfer
            if not state.forwards[here]:
                yield ("consume", here, held.number), appended(state, here, Operation(CONSUME, held))
            elif held.hops == self.hop_limit and not self.unlimited_hops:
                yield ("dead_letter", here, held.number), appended(state, here, Operation(DEAD_LETTER, held))
            elif not entity.moving and not in_tail(state, here, BEGIN):
                begun = Operation(BEGIN, held, entity.begun + 1)
                yield ("begin", here, held.number), appended(state, here, begun)
        open_one = self._open(entity)
        if open_one is not None and not self._is_ending(entity):
            yield from self._offered(state, here, *open_one)
            if self.give_up_unknown and has_room:
                yield ("give_up", here), appended(state, here, Operation(GIVE_UP, open_one[1]))
        for place in range(len(entity.answers)):
            yield from self._answered(state, here, place)

    def _open(self, entity: Entity) -> tuple[int, Held] | None:
        """The number of the transfer that is open, and its message."""
        for held in entity.messages:
            if held.number == entity.moving:
                return entity.begun, held
        if self.offer_unsynced:
            for operation in entity.tail:
                if operation.kind == BEGIN:
                    return operation.transfer, operation.held
        return None

    def _is_ending(self, entity: Entity) -> bool:
        return any(operation.kind in (REMOVE, RETURN, GIVE_UP) for operation in entity.tail)

    def _offered(self, state: State, here: int, transfer: int, held: Held) -> Iterator[tuple[Action, State]]:
        entity = state.entities[here]
        waiting = sum(len(operation.attempts) for operation in state.entities[1 - here].tail)
        if len(entity.offers) + len(entity.answers) + waiting >= TRAVELLING:
            return
        attempt = entity.attempt + 1

        def with_offer(asks: int) -> State:
            offers = (*entity.offers, Offer(transfer, held, attempt, asks))
            return changed(state, here, offers=offers, attempt=attempt)

        yield ("offer", here, transfer), with_offer(0)
        if state.refusals < self.refusals:
            yield ("ask", here, transfer), with_offer(1)._replace(refusals=state.refusals + 1)

    def _answered(self, state: State, here: int, place: int) -> Iterator[tuple[Action, State]]:
        entity = state.entities[here]
        transfer, attempt, answer = entity.answers[place]
        after = changed(state, here, answers=(*entity.answers[:place], *entity.answers[place + 1 :]))
        open_one = self._open(entity)
        is_believed = answer == STORED or attempt == entity.attempt or self.old_answers_count
        if open_one is None or open_one[0] != transfer or self._is_ending(entity) or not is_believed:
            yield ("answered", here, place, "too late"), after
        elif self._has_room(state, here):
            for kind in (REMOVE,) if answer == STORED else (RETURN, GIVE_UP):
                yield ("answered", here, place, kind), appended(after, here, Operation(kind, open_one[1]))

    # The destination.

    def _of_destination(self, state: State, here: int) -> Iterator[tuple[Action, State]]:
        source = 1 - here
        offers = state.entities[source].offers
        for place, offer in enumerate(offers):
            after = changed(state, source, offers=(*offers[:place], *offers[place + 1 :]))
            if offer.attempt < state.entities[here].heard and not self.old_offers_arrive:
                yield ("arrive", source, place, "overtaken"), after
            else:
                heard = max(offer.attempt, state.entities[here].heard)
                yield from self._arrived(changed(after, here, heard=heard), here, offer, place)

    def _arrived(self, state: State, here: int, offer: Offer, place: int) -> Iterator[tuple[Action, State]]:
        """state: without the offer, which is here now."""
        source, entity = 1 - here, state.entities[here]
        transfer, held, attempt, asks = offer
        for at, operation in enumerate(entity.tail):
            if operation.kind == STORE and operation.transfer and not (asks and self.ask_beside_store):
                again = operation._replace(attempts=(*operation.attempts, attempt))
                yield ("arrive", source, place, "in flight"), changed(state, here, tail=put(entity.tail, at, again))
                return
        if transfer <= entity.received:
            yield ("arrive", source, place, "stored before"), answered(state, source, transfer, attempt, STORED)
        elif asks:
            yield ("arrive", source, place, "asked"), answered(state, source, transfer, attempt, ABSENT)
        elif self._has_room(state, here):
            waiting = () if self.answer_before_durable else (attempt,)
            after = self._stored_later(state, here, held.origin, held.hops + 1, transfer, waiting)
            if self.answer_before_durable:
                after = answered(after, source, transfer, attempt, STORED)
            yield ("arrive", source, place, "waits"), after
            if state.refusals < self.refusals:
                refused = state._replace(refusals=state.refusals + 1)
                yield ("refuse", source, place), answered(refused, source, transfer, attempt, ABSENT)

    def _stored_later(
        self, state: State, here: int, origin: int, hops: int, transfer: int = 0, attempts: tuple[int, ...] = ()
    ) -> State:
        number = state.entities[here].next_number + in_tail(state, here, STORE)
        return appended(state, here, Operation(STORE, Held(number, origin, hops), transfer, attempts))

    # The log.

    def _synced(self, state: State, here: int) -> State:
        entity = state.entities[here]
        operation = entity.tail[0]
        after = changed(state, here, **self._applied(entity, operation), tail=entity.tail[1:])
        if operation.kind == STORE and not operation.transfer:
            after = after._replace(told=put(after.told, operation.held.origin, 1))
        for attempt in operation.attempts:
            after = answered(after, 1 - here, operation.transfer, attempt, STORED)
        return after

    def _applied(self, entity: Entity, operation: Operation) -> dict[str, tuple[object, ...] | int]:
        """Return the fields of an entity that an operation changes. This is the whole meaning of the log."""
        kind, held, transfer, _ = operation
        if kind == STORE:
            stored = {"messages": (*entity.messages, held), "next_number": held.number + 1}
            return {**stored, "received": max(transfer, entity.received)}
        if kind == BEGIN:
            return {"moving": held.number, "begun": transfer}
        if kind == RETURN:
            return {"moving": 0}
        left: dict[str, tuple[object, ...] | int] = {
            "messages": tuple(other for other in entity.messages if other != held)
        }
        if kind in (REMOVE, GIVE_UP):
            left["moving"] = 0
        if kind != REMOVE:
            left["ended"] = put(entity.ended, held.origin, entity.ended[held.origin] + 1)
        return left

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
        begun = 0 if self.number_in_memory and not entity.moving else entity.begun
        received = 0 if self.received_in_memory else entity.received
        entity = entity._replace(tail=(), heard=0, answers=(), begun=begun, received=received)
        tail = tuple(operation._replace(attempts=()) for operation in other.tail)
        other = other._replace(tail=tail, offers=(), answers=())
        entities = (entity, other) if here == FIRST else (other, entity)
        return state._replace(entities=entities, faults=state.faults + 1)

    def _sync_failed(self, state: State, here: int) -> State:
        """A sender is refused, and asks again."""
        sends = sum(operation.kind == STORE and not operation.transfer for operation in state.entities[here].tail)
        return changed(state, here, tail=())._replace(faults=state.faults + 1, sent=state.sent - sends)


def ranked(state: State) -> State:
    """The same with the least attempts: what counts of them is which is higher."""
    for here in (FIRST, SECOND):
        source, there = state.entities[here], state.entities[1 - here]
        used = {0, source.attempt, there.heard}
        used.update(offer.attempt for offer in source.offers)
        used.update(attempt for _, attempt, _ in source.answers)
        used.update(attempt for operation in there.tail for attempt in operation.attempts)
        rank = {attempt: place for place, attempt in enumerate(sorted(used))}
        if all(attempt == place for attempt, place in rank.items()):
            continue
        state = changed(
            state,
            here,
            attempt=rank[source.attempt],
            offers=tuple(offer._replace(attempt=rank[offer.attempt]) for offer in source.offers),
            answers=tuple((transfer, rank[attempt], answer) for transfer, attempt, answer in source.answers),
        )
        tail = tuple(each._replace(attempts=tuple(rank[attempt] for attempt in each.attempts)) for each in there.tail)
        state = changed(state, 1 - here, heard=rank[there.heard], tail=tail)
    return state


def changed(state: State, here: int, **fields: object) -> State:
    return state._replace(entities=put(state.entities, here, state.entities[here]._replace(**fields)))


def appended(state: State, here: int, operation: Operation) -> State:
    return changed(state, here, tail=(*state.entities[here].tail, operation))


def answered(state: State, source: int, transfer: int, attempt: int, answer: int) -> State:
    answers = (*state.entities[source].answers, (transfer, attempt, answer))
    return changed(state, source, answers=answers)


def in_tail(state: State, here: int, kind: int) -> int:
    """How many operations of a kind are in flight."""
    return sum(operation.kind == kind for operation in state.entities[here].tail)


def in_flight(entity: Entity, held: Held) -> bool:
    """Whether something that becomes of a message is in flight."""
    return any(operation.held == held and operation.kind != STORE for operation in entity.tail)
