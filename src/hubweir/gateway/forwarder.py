"""Moves what entities forward: messages to ForwardTo, dead letters to ForwardDeadLetteredMessagesTo.

A *forward* is a sub-queue of an entity that forwards it. Its steps repeat: take a transfer at the broker of the source,
have it stored at the broker of the destination, end it at the source (broker/commands/forwarding.py). Nothing is kept
here: what is on its way is in the logs of both, so a crash of anybody moves no message twice and loses none (promise
P13). All is done by commands to places, whichever brokers have them.

Where a message goes is looked up when it is taken. What is in transfer moves on when the operator ends the forward;
what comes later stays. A destination that is gone, or takes nothing because of its status, refuses for good: its
messages become transfer dead letters of the source, which say why. One that is full, or away, is tried again, and
the messages wait in the source as long as they live.

Each fragment of a source is a forward of its own. Where the destination has several fragments, a transfer has a part
for each of them that gets some of its messages (transfer_parts.py), all under its number, and is over when all parts
are stored. As long as some are and others are not, it is tried again: its messages stay together.

A namespace may have several gateways; each forwards what lies at brokers of its own process. Were there two for one
source, the one that asked last would be given the transfer: who is passed over asks again after a while.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.forwarding import (
    EndTransfer,
    ListOpenTransfers,
    OpenTransfersListed,
    StoreTransfer,
    TakeTransfer,
    TransferOpen,
    TransferPlace,
    TransferTaken,
)
from hubweir.broker.commands.process import Done
from hubweir.env import Env, Timer
from hubweir.errors import RESOURCE_LIMIT, TIMED_OUT, ServiceError
from hubweir.gateway.brokers import Brokers
from hubweir.gateway.destinations import Undeliverable, undeliverable
from hubweir.gateway.directory import Directory
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.transfer_parts import HALF_MOVED, Stored, parts_of, stored_of
from hubweir.namespace.availability import check_may_receive
from hubweir.namespace.entity import Entity
from hubweir.namespace.forward_address import forward_name
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.resource_path import fold
from hubweir.queue.forwarding import TransferEnd
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.traced_step import Step, StepTracer, Trace

logger = logging.getLogger(__name__)

# A destination that is full or away is not asked more often.
FIRST_RETRY_MS, LAST_RETRY_MS = 1_000, 10_000
# Entities come by the thousand when a deployment makes them, and logs that are opened late by as many: one look is for
# all of this time. What ends a forward, or turns it elsewhere, is seen at once.
GATHER_MS = 100


class Forwarder:
    """Of one namespace. Begins with the gateway that it is made for; owner: of what it asks brokers."""

    def __init__(self, env: Env, namespace: Namespace, directory: Directory, brokers: Brokers, owner: Owner) -> None:
        self.env = env
        self.namespace = namespace
        self.directory = directory
        self.owner = owner
        self.tracer: StepTracer | None = None  # of what clients trace; None: nothing is looked at
        self._brokers = brokers
        self._forwards: dict[tuple[str, SubQueue], _Forward] = {}  # by the source's log id, as commands name it
        # By the folded names on which it hangs whether they go on, and where to.
        self._by_name: dict[str, dict[_Forward, None]] = {}
        self._came: dict[str, None] = {}  # entities that changed, to be looked at
        self._open: set[TransferPlace] = set()  # to be gone on with, whatever forwards
        self._timer: Timer | None = None
        self.is_stopped = False

    def start(self) -> None:
        """Every log of the catalog was opened, or is to be opened late: go on with what was on its way."""
        for broker in filter(self._brokers.is_own, self._brokers):
            broker.submit(ListOpenTransfers(), self._listed)
        for entity in self.namespace.entities(MessagingDescription):
            self._begin_all(entity)

    def opened(self, push: TransferOpen) -> None:
        """A log was opened, and a transfer is open in it."""
        self._open.add(TransferPlace(push.log_id, push.sub_queue))
        self._look_soon()

    def catalog_changed(self) -> None:
        """An entity came, went, or forwards elsewhere: what hangs on its name is looked at, and nothing else."""
        name = self.namespace.newest
        if not name:
            return
        for forward in list(self._by_name.get(fold(name), ())):
            forward.look()
        self._came[name] = None
        self._look_soon()

    def _look_soon(self) -> None:
        if self._timer is None and not self.is_stopped:
            self._timer = self.env.call_later(GATHER_MS, self._look)

    def stop(self) -> None:
        """Begin nothing more. What is on its way goes on at the next start."""
        self.is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for forward in self._forwards.values():
            forward.stop()

    def drop(self, forward: _Forward) -> None:
        """It has nothing to do any more."""
        self._forwards.pop((forward.place.log_id, forward.sub_queue), None)
        self.watch(forward, ())

    def watch(self, forward: _Forward, names: tuple[str, ...]) -> None:
        """Have it look again when one of these entities changes, and no other."""
        for name in forward.watched:
            others = self._by_name[name]
            del others[forward]
            if not others:
                del self._by_name[name]
        forward.watched = tuple(dict.fromkeys(fold(name) for name in names if name))
        for name in forward.watched:
            self._by_name.setdefault(name, {})[forward] = None

    def destination(self, source: str, entity_id: str, sub_queue: SubQueue) -> bytes | None:
        """Where a sub-queue of an entity forwards to now; b"": nowhere. None: the entity is gone.

        The id of the destination and its name; the name alone where there is none.
        """
        found = self.namespace.find(source, MessagingDescription)
        if found is None or found.entity_id != entity_id:
            return None
        text = _forward_text(found.description, sub_queue)
        if not text or not _gives(found.description):
            return b""
        name = forward_name(text)
        there = self.namespace.find(name, MessagingDescription)
        return f"{'' if there is None else there.entity_id}/{name}".encode()

    def find(self, destination: bytes) -> Entity[MessagingDescription] | None:
        """The entity that a transfer goes to; None: it is gone."""
        entity_id, _, name = destination.decode().partition("/")
        found = self.namespace.find(name, MessagingDescription)
        return found if found is not None and found.entity_id == entity_id else None

    # Steps

    def _look(self) -> None:
        """Begin what forwards and is not forwarded yet, of what came."""
        self._timer = None
        came, self._came = self._came, {}
        places, self._open = self._open, set()
        if self.is_stopped:
            return
        for name in came:
            entity = self.namespace.find(name, MessagingDescription)
            if entity is not None:
                self._begin_all(entity)
        self._go_on(places)

    def _begin_all(self, entity: Entity[MessagingDescription]) -> None:
        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
            if _forward_text(entity.description, sub_queue):
                self._begin(entity, sub_queue)

    def _begin(self, entity: Entity[MessagingDescription], sub_queue: SubQueue) -> None:
        for place in self.directory.fragments(entity).places:
            self._begin_at(entity, place, sub_queue)

    def _begin_at(self, entity: Entity[MessagingDescription], place: FragmentPlace, sub_queue: SubQueue) -> None:
        if self._brokers.is_own(place.broker) and (place.log_id, sub_queue) not in self._forwards:
            forward = self._forwards[place.log_id, sub_queue] = _Forward(self, entity.entity_id, place, sub_queue)
            forward.look()

    def _listed(self, answer: Answer) -> None:
        if isinstance(answer, OpenTransfersListed) and not self.is_stopped:
            self._go_on(set(answer.places))

    def _go_on(self, places: set[TransferPlace]) -> None:
        """Transfers are open there: also of what forwards no more."""
        if not places:
            return
        for entity in self.namespace.entities(MessagingDescription):
            for place in self.directory.fragments(entity).places:
                for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
                    if TransferPlace(place.log_id, sub_queue) in places:
                        self._begin_at(entity, place, sub_queue)


class _Forward:
    """One sub-queue that forwards, or has a transfer that is open. One step of it is under way at a time."""

    def __init__(self, forwarder: Forwarder, entity_id: str, place: FragmentPlace, sub_queue: SubQueue) -> None:
        self._forwarder = forwarder
        self._entity_id = entity_id
        self._source = f"{place.log_id}/{sub_queue.value}".encode()
        self._asked: bytes | None = None  # where the transfer that is waited for goes to; None: none is
        self._takes = 0
        self._is_moving = False  # a transfer was taken, and is not over
        self._trace: Trace | None = None  # of what clients trace in it, until its destination has said what it does
        self._timer: Timer | None = None
        self._retry_ms = FIRST_RETRY_MS
        self.place = place
        self.sub_queue = sub_queue
        self.watched: tuple[str, ...] = ()  # folded names, kept by the forwarder

    def look(self) -> None:
        """Take a transfer to where the catalog says, when that is not done already."""
        if self._is_moving or self._timer is not None or self._forwarder.is_stopped:
            return
        wanted = self._forwarder.destination(self.place.entity, self._entity_id, self.sub_queue)
        if wanted is None:
            self._forwarder.drop(self)
            return
        self._forwarder.watch(self, (self.place.entity, self.place.topic or "", wanted.partition(b"/")[2].decode()))
        if wanted != self._asked:
            self._take(wanted)

    def stop(self) -> None:
        """Do nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _take(self, destination: bytes) -> None:
        self._asked, self._takes = destination, self._takes + 1
        command = TakeTransfer(self.place.log_id, self._forwarder.owner, self.sub_queue, destination)
        self.place.broker.submit(command, partial(self._taken, self._takes))

    def _taken(self, take: int, answer: Answer) -> None:
        if take != self._takes or self._forwarder.is_stopped:
            return  # another one was asked for meanwhile, and gets what is open
        asked, self._asked = self._asked, None
        if isinstance(answer, TransferTaken) and answer.transfer:
            self._is_moving = True
            if self._forwarder.tracer is not None and answer.messages:
                self._trace = self._forwarder.tracer.begins(Step.FORWARD, self.place.entity, answer.run)
            self._store(answer)
        elif isinstance(answer, TransferTaken) and not asked:
            self._forwarder.drop(self)  # nothing is open
        else:
            self._later()

    def _store(self, taken: TransferTaken) -> None:
        there = self._forwarder.find(taken.destination)
        why = undeliverable(there, taken.destination.partition(b"/")[2].decode())
        if there is None:
            self._end(taken, TransferEnd.REFUSED, why)
            return
        parts = parts_of(
            taken.run,
            taken.origins,
            taken.messages,
            self._forwarder.directory.fragments(there),
            transfer=taken.transfer,
            takes_ids=storage_of(there.description).requires_duplicate_detection,
        )
        asks = why is not None or not taken.messages
        left, answers = len(parts), []

        def answered(answer: Answer) -> None:
            nonlocal left
            left -= 1
            answers.append(answer)
            if not left:
                self._stored(taken, why, answers)

        for part in parts:
            command = StoreTransfer(
                part.place.log_id,
                self._source,
                taken.attempt,
                taken.transfer,
                0 if asks else part.messages,
                b"" if asks else part.origins,
                bytearray() if asks else bytearray(part.run),
            )
            part.place.broker.submit(command, answered)

    def _stored(self, taken: TransferTaken, why: Undeliverable | None, answers: Sequence[Answer]) -> None:
        """What the destination says of all parts."""
        if self._forwarder.is_stopped:
            return
        stored = stored_of(answers)
        if stored is Stored.NOBODY_KNOWS or (stored is Stored.SOME and taken.messages):
            self._end_trace(TIMED_OUT.symbol)
            self._is_moving = False
            self._later()
        elif stored is Stored.ALL:
            self._end(taken, TransferEnd.STORED)
        elif stored is Stored.SOME or why is not None:
            self._end(taken, TransferEnd.REFUSED, HALF_MOVED if stored is Stored.SOME else why)
        else:
            self._end(taken, TransferEnd.RETURNED)

    def _end(self, taken: TransferTaken, how: TransferEnd, why: Undeliverable | None = None) -> None:
        reason, description = ("", "") if why is None else (why.reason, why.description)
        self._end_trace(RESOURCE_LIMIT.symbol if how is TransferEnd.RETURNED else reason)
        if how is TransferEnd.REFUSED:
            logger.warning("%d messages of '%s' are not forwarded: %s", taken.messages, self.place.entity, description)
        command = EndTransfer(
            self.place.log_id, self.sub_queue, taken.transfer, taken.attempt, how, reason, description
        )  # fmt: skip
        self.place.broker.submit(command, partial(self._ended, how, bool(taken.messages)))

    def _end_trace(self, refused: str) -> None:
        trace, self._trace = self._trace, None
        if trace is not None:
            trace.ended(refused)

    def _ended(self, how: TransferEnd, could_be_read: bool, answer: Answer) -> None:
        self._is_moving = False
        if self._forwarder.is_stopped:
            return
        if not isinstance(answer, Done) or (how is TransferEnd.RETURNED and could_be_read):
            self._later()
            return
        self._retry_ms = FIRST_RETRY_MS
        self.look()

    def _later(self) -> None:
        """Go on after a while."""
        if self._timer is None and not self._forwarder.is_stopped:
            self._timer = self._forwarder.env.call_later(self._retry_ms, self._try_again)
            self._retry_ms = min(2 * self._retry_ms, LAST_RETRY_MS)

    def _try_again(self) -> None:
        self._timer = None
        self.look()


def _forward_text(description: MessagingDescription, sub_queue: SubQueue) -> str:
    delivery = delivery_of(description)
    return delivery.forward_to if sub_queue is SubQueue.MAIN else delivery.forward_dead_letters_to


def _gives(description: MessagingDescription) -> bool:
    """Whether its status lets messages out."""
    try:
        check_may_receive(description)
    except ServiceError:
        return False
    return True
