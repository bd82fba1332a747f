"""One open transaction (transactions.py): what is done in it, log by log, and who declared it."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from hubweir.env import Timer
from hubweir.errors import RESOURCE_LIMIT, ServiceError
from hubweir.event_hub.open_run import OpenRun
from hubweir.gateway.destinations import Way
from hubweir.gateway.fragment_choice import several_keys
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.transaction_endings import LogPart
from hubweir.queue.transaction import Reserved, TransactedSettlement, Undelivered

# Messages that one transaction sends.
SENT_LIMIT = 100


@dataclass(slots=True, eq=False)
class LogWork:
    """What a transaction does in one log. place: of the entity that it came for first.

    came: run of what comes by way of other entities; left: of what goes to others, and they do not take it; scheduled:
    of messages whose numbers are reserved. messages: how many are in these three.
    """

    place: FragmentPlace
    settlements: list[TransactedSettlement] = field(default_factory=list)
    cancelled: array[int] = field(default_factory=lambda: array("q"))
    run: OpenRun = field(default_factory=lambda: OpenRun(names_keys=False))
    messages: int = 0
    size_bytes: int = 0
    came: bytearray = field(default_factory=bytearray)
    left: bytearray = field(default_factory=bytearray)
    undelivered: list[Undelivered] = field(default_factory=list)
    scheduled: bytearray = field(default_factory=bytearray)
    reserved: list[Reserved] = field(default_factory=list)

    def part(self) -> LogPart:
        """All of it, for its broker; its run is taken."""
        messages = self.messages + self.run.events
        return LogPart(
            self.place.broker,
            self.place.stored_in,
            tuple(self.settlements),
            self.cancelled.tobytes(),
            tuple(self.undelivered),
            tuple(self.reserved),
            messages,
            self.size_bytes,
            self.left + self.scheduled + self.run.take_run() + self.came,
        )


@dataclass(slots=True, eq=False)
class WayWork:
    """What a transaction sends by way of an entity. place: of the destination."""

    way: Way
    place: FragmentPlace
    run: OpenRun = field(default_factory=lambda: OpenRun(names_keys=False))
    size_bytes: int = 0


@dataclass(slots=True, eq=False)
class Transaction:
    """One that is open. control: the link that declared it. spoilt: it can only be rolled back, and why."""

    txn_id: bytes
    control: object
    works: dict[str, LogWork] = field(default_factory=dict)  # by the id of the log
    ways: dict[tuple[str, str], WayWork] = field(default_factory=dict)  # by the ids of the entity between, and the log
    keys: dict[str, bytes] = field(default_factory=dict)  # of what is sent to entities of several fragments
    sent: int = 0
    settled: int = 0
    held_bytes: int = 0
    timer: Timer | None = None
    spoilt: ServiceError | None = None

    def work(self, place: FragmentPlace) -> LogWork:
        """What is done in the log of a place."""
        work = self.works.get(place.stored_in)
        if work is None:
            work = self.works[place.stored_in] = LogWork(place)
        return work

    def way_work(self, way: Way, place: FragmentPlace) -> WayWork:
        """What is sent to a place by this way."""
        return self.ways.setdefault((way.via.log_id, place.log_id), WayWork(way, place))

    def check_sent(self, more: int) -> None:
        """Raise ServiceError RESOURCE_LIMIT where so many messages are too many for the transaction."""
        if self.sent + more > SENT_LIMIT:
            text = (
                f"Can't send more than {SENT_LIMIT} messages in a single transaction: "
                "commit this one, and send the rest in another."
            )
            raise ServiceError(RESOURCE_LIMIT, text)

    def check_key(self, entity: str, key: bytes | None) -> None:
        """Raise ServiceError NOT_ALLOWED where something with another key was sent to an entity. None: it has one
        fragment."""
        if key is not None and self.keys.get(entity, key) != key:
            raise several_keys(entity)

    def note_key(self, entity: str, key: bytes | None) -> None:
        """Something with this key is sent to an entity."""
        if key is not None:
            self.keys[entity] = key

    def go_ways(self) -> None:
        """What goes by way of other entities arrives, or is left there. Raises as Way.undeliverable."""
        for sent in self.ways.values():
            why = sent.way.undeliverable()
            work = self.work(sent.place if why is None else sent.way.via)
            messages, run = sent.run.events, sent.run.take_run()
            work.messages += messages
            work.size_bytes += sent.size_bytes
            if why is None:
                work.came += run
            else:
                work.left += run
                work.undelivered.append(Undelivered(messages, len(run), why.reason, why.description))
