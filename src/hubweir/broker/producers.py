"""The idempotent producers of one partition at its owner: which link holds which, and their sends.

What is new and what is a duplicate decides event_hub/producer_sequence.py. Here a producer is opened for a link once
the partition has a snapshot of producers (producer_snapshots.py) and the fence that it needs is durable, the end of an
owner closes what it held, and the sweep expires producers and takes new snapshots.
After a crash all openings are gone: links attach anew, and producers are what the log says. An open that was answered
keeps older epochs and rounds out for as long as the producer is known.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hubweir.broker.capping import Capping
from hubweir.broker.commands.command import OnAnswer, Owner
from hubweir.broker.commands.producer import AppendNumbered, OpenProducer, ProducerOpened
from hubweir.broker.partition_tools import PartitionTools
from hubweir.broker.pending_store import PendingStore
from hubweir.broker.producer_snapshots import ProducerSnapshots, whatever
from hubweir.broker.refusals import refusal_of
from hubweir.errors import DETACH_FORCED, ENTITY_MOVED, INTERNAL_ERROR, HubweirError, ServiceError, StoreError
from hubweir.event_hub.producer_log import EXPIRED, fence_body, note_key
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import AttachedProducer, NumberedSend
from hubweir.messaging_store.log import Appended, Log, Note, Refused
from hubweir.messaging_store.record import Producer, headers_of, producer_of

logger = logging.getLogger(__name__)


# Of the ids that are given here. JavaScript clients have no integers but those that a double holds.
ID_BITS = 53

CLOSED_BEFORE_OPEN = "the producer was closed before it was open: attach again"


class Producers:
    """Those of one partition. Ids of openings are never used twice in the broker's life."""

    def __init__(self, tools: PartitionTools, log: Log, capping: Capping) -> None:
        self._tools = tools
        self._env = tools.env
        self._clock = tools.clock
        self._counters = tools.counters
        self._ids = tools.opening_ids
        self._log = log
        self._capping = capping
        self.sequences = ProducerSequences()
        self.snapshots = ProducerSnapshots(tools.env, tools.clock, log, self.sequences)
        self._owners: dict[int, Owner] = {}  # of the openings
        # Openings that wait for the partition's first snapshot.
        self._waiting: list[tuple[OpenProducer, OnAnswer]] = []

    def open(self, command: OpenProducer, on_answer: OnAnswer) -> None:
        """Answers ProducerOpened or Refusal; the first time in a partition, when its snapshot is durable."""
        if self.snapshots.saved_at is not None:
            self._open(command, on_answer)
            return
        self._waiting.append((command, on_answer))

        def saved(outcome: Refused | None) -> None:
            waiting, self._waiting = self._waiting, []
            for held, answer in waiting:
                if outcome is not None:
                    answer(refusal_of(outcome.error))
                else:
                    self._open(held, answer)

        # While one is on its way, this does nothing: its end answers all that wait.
        self.snapshots.save(saved)

    def _open(self, command: OpenProducer, on_answer: OnAnswer) -> None:
        opening_id = next(self._ids)
        try:
            opened = self.sequences.open(
                opening_id,
                producer_id=command.producer_id,
                epoch=command.epoch,
                number=command.sequence_number,
                round=0 if command.round is None else command.round + 1,
                new_id=lambda: int.from_bytes(self._env.random_bytes(8), "big") >> 64 - ID_BITS,
                expire=lambda producer_ids: self._write_expired(producer_ids, self._clock.stamp_ms()),
            )
        except (ServiceError, StoreError) as error:
            on_answer(refusal_of(error))
            return
        self._owners[opening_id] = command.owner
        if opened.needs_fence:
            self._fence(command, opening_id, opened, on_answer)
        else:
            on_answer(_answer(opening_id, opened))

    def _fence(self, command: OpenProducer, opening_id: int, opened: AttachedProducer, on_answer: OnAnswer) -> None:
        """Write that older epochs and rounds are over; answer when that is as durable as the hub says."""
        round_number = 0 if command.round is None else command.round + 1

        def fenced(outcome: Note | Refused) -> None:
            if isinstance(outcome, Refused):
                self.close(opening_id)
                on_answer(refusal_of(outcome.error))  # the fence may be there: that keeps no one out who may come in
                return
            self._counters["broker.producers_fenced"] += 1
            answer = self.sequences.fenced(
                opened, number=command.sequence_number, round=round_number, time_ms=outcome.time_ms
            )
            if opening_id in self._owners:
                on_answer(_answer(opening_id, answer))
            else:
                on_answer(refusal_of(ServiceError(DETACH_FORCED, CLOSED_BEFORE_OPEN)))

        body = fence_body(opened.epoch, round_number, begins=opened.begins)
        now_ms = self._clock.stamp_ms()
        try:
            self._log.note(note_key(opened.producer_id), body, now_ms=now_ms, on_done=fenced)
        except StoreError as error:
            self.close(opening_id)
            on_answer(refusal_of(error))
        else:
            self.sequences.fencing(opened, round=round_number, time_ms=now_ms)

    def close(self, opening_id: int) -> None:
        """The link is gone. Does nothing when it is closed."""
        if self._owners.pop(opening_id, None) is not None:
            self.sequences.close(opening_id)

    def owner_gone(self, owner: Owner) -> None:
        """Close what this owner holds."""
        for opening_id in [key for key, its in self._owners.items() if owner.covers(its)]:
            self.close(opening_id)
        gone = [entry for entry in self._waiting if owner.covers(entry[0].owner)]
        self._waiting = [entry for entry in self._waiting if not owner.covers(entry[0].owner)]
        self._refuse(gone, ServiceError(DETACH_FORCED, CLOSED_BEFORE_OPEN))

    def end(self, error: ServiceError) -> None:
        """The partition is gone, and its producers with it; who waits is refused with error."""
        self._owners.clear()
        gone, self._waiting = self._waiting, []
        self._refuse(gone, error)

    def _refuse(self, gone: list[tuple[OpenProducer, OnAnswer]], error: ServiceError) -> None:
        for _, on_answer in gone:
            try:
                on_answer(refusal_of(error))
            except Exception:  # of a gateway's: the others wait as well
                logger.exception("a fault of the service: a link could not be told that its producer will not open")

    def append(self, command: AppendNumbered, on_answer: OnAnswer) -> None:
        """Store one numbered delivery, or find that it is stored."""
        if command.opening_id not in self._owners:
            raise ServiceError(ENTITY_MOVED, "the producer is not open here any more: attach again")
        sent = _transfer_of(command.run)
        charged = self._capping.charge(command.size_bytes, command.events)
        pending = PendingStore(self._tools, command, charged, on_answer)

        def append(on_stored: Callable[[Appended | Refused], None]) -> Appended:
            return self._log.append(command.run, now_ms=self._clock.stamp_ms(), on_done=on_stored)

        try:
            self.sequences.send(command.opening_id, sent, append, pending.ended)
        except HubweirError:
            pending.give_back()
            raise

    def sweep(self, now_ms: int) -> None:
        """Expire the producers whose time is over, and take a snapshot when it is due."""
        if self.snapshots.saved_at is None:
            return
        # A producer is known by the stamp of its newest event: neither clock may make it older than the other does.
        expired = self.sequences.expired(min(now_ms, self._clock.stamp_ms()))
        if expired:
            try:
                self._write_expired(expired, now_ms)
            except StoreError:
                return  # they stay until the log takes writes again
            self.sequences.drop(expired)
            self._counters["broker.producers_expired"] += len(expired)
        self.snapshots.save_if_due()

    def _write_expired(self, producer_ids: list[int], now_ms: int) -> None:
        for producer_id in producer_ids:
            self._log.note(note_key(producer_id), EXPIRED, now_ms=now_ms, on_done=whatever)


def _answer(opening_id: int, opened: AttachedProducer) -> ProducerOpened:
    return ProducerOpened(opening_id, opened.producer_id, opened.epoch, opened.number, opened.digest)


def _transfer_of(run: bytearray) -> NumberedSend:
    """Who numbered a run, and which events it has. ServiceError when it is not the chain of one delivery."""
    first: Producer | None = None
    count = 0
    for header in headers_of(run):
        producer = producer_of(run, header)
        if producer is None or (first is not None and producer.first_number != first.first_number + count):
            raise ServiceError(INTERNAL_ERROR, "a numbered run has a batch that is not numbered on; nothing was stored")
        first = first or producer
        count += header.count
    if first is None:
        raise ServiceError(INTERNAL_ERROR, "a numbered run is empty; nothing was stored")
    return NumberedSend(first.producer_id, first.epoch, first.first_number, count, first.round, first.digest)
