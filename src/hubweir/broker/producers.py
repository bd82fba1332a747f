"""Idempotent producers at their partitions' owner: which link holds which, and their sends.

What is new and what is a duplicate decides event_hub/producer_sequence.py. Here a producer is opened for a link once
its partition has a snapshot of producers (producer_log.py says why) and the fence that it needs is durable, the end of
an owner closes what it held, and the sweep expires producers and takes new snapshots, so that a start replays little
and retention may trim.
After a crash all openings are gone: links attach anew, and producers are what the log says. An open that was answered
keeps older epochs and rounds out for as long as the producer is known.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from hubweir.broker.capping import charge
from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered, OpenProducer, ProducerOpened
from hubweir.broker.hosted_partitions import HostedPartition
from hubweir.broker.refusals import refusal_of
from hubweir.counters import Counters
from hubweir.env import Env
from hubweir.errors import DETACH_FORCED, ENTITY_MOVED, INTERNAL_ERROR, HubweirError, ServiceError, StoreError
from hubweir.event_hub.producer_log import EXPIRED, encode_snapshot, fence_body, note_key, producer_notes
from hubweir.event_hub.producer_state import AttachedProducer, NumberedSend
from hubweir.messaging_store.log import Appended, Note, Refused
from hubweir.messaging_store.record import Producer, headers_of, producer_of
from hubweir.messaging_store.trusted_clock import TrustedClock

OnAnswer = Callable[[Answer], None]

# Of the ids that are given here. JavaScript clients have no integers but those that a double holds.
ID_BITS = 53

CLOSED_BEFORE_OPEN = "the producer was closed before it was open: attach again"

# A start replays at most about this many events of a partition that has producers.
EVENTS_PER_SNAPSHOT = 100_000
# Retention trims up to the older of two snapshots: a partition that gets little is not held back for long.
SNAPSHOT_EVERY_MS = 600_000


@dataclass(frozen=True, slots=True)
class _HeldProducer:
    hosted: HostedPartition
    owner: Owner


class Producers:
    """All openings of a broker. Ids are never used twice in its life."""

    def __init__(self, env: Env, clock: TrustedClock, counters: Counters) -> None:
        self._env = env
        self._clock = clock
        self._counters = counters
        self._last_id = 0
        self._openings: dict[int, _HeldProducer] = {}
        # Openings that wait for their partition's first snapshot, by the partition's log id.
        self._waiting: dict[str, list[tuple[OpenProducer, OnAnswer]]] = {}
        self._saved_at_ms: dict[str, int] = {}
        self._saving: set[str] = set()
        self._settled: set[str] = set()  # both snapshots cover the same index

    def open(self, command: OpenProducer, hosted: HostedPartition, on_answer: OnAnswer) -> None:
        """Answers ProducerOpened or Refusal; the first time in a partition, when its snapshot is durable."""
        if hosted.producers_saved_at is not None:
            self._open(command, hosted, on_answer)
            return
        waiting = self._waiting.setdefault(hosted.log.log_id, [])
        waiting.append((command, on_answer))
        if len(waiting) > 1:
            return

        def saved(outcome: Refused | None) -> None:
            for held, answer in self._waiting.pop(hosted.log.log_id, []):
                if outcome is not None:
                    answer(refusal_of(outcome.error))
                else:
                    self._open(held, hosted, answer)

        self._save(hosted, saved)

    def _open(self, command: OpenProducer, hosted: HostedPartition, on_answer: OnAnswer) -> None:
        self._last_id += 1
        opening_id = self._last_id
        try:
            opened = hosted.producers.open(
                opening_id,
                producer_id=command.producer_id,
                epoch=command.epoch,
                number=command.sequence_number,
                round=0 if command.round is None else command.round + 1,
                new_id=lambda: int.from_bytes(self._env.random_bytes(8), "big") >> 64 - ID_BITS,
                expire=lambda producer_ids: self._write_expired(hosted, producer_ids, self._clock.stamp_ms()),
            )
        except (ServiceError, StoreError) as error:
            on_answer(refusal_of(error))
            return
        self._openings[opening_id] = _HeldProducer(hosted, command.owner)
        if opened.needs_fence:
            self._fence(command, hosted, opening_id, opened, on_answer)
        else:
            on_answer(_answer(opening_id, opened))

    def _fence(
        self,
        command: OpenProducer,
        hosted: HostedPartition,
        opening_id: int,
        opened: AttachedProducer,
        on_answer: OnAnswer,
    ) -> None:
        """Write that older epochs and rounds are over; answer when that is as durable as the hub says."""
        round_number = 0 if command.round is None else command.round + 1

        def fenced(outcome: Note | Refused) -> None:
            if isinstance(outcome, Refused):
                self.close(opening_id)
                on_answer(refusal_of(outcome.error))  # the fence may be there: that keeps no one out who may come in
                return
            self._counters.add("broker.producers_fenced")
            answer = hosted.producers.fenced(
                opened, number=command.sequence_number, round=round_number, time_ms=outcome.time_ms
            )
            if opening_id in self._openings:
                on_answer(_answer(opening_id, answer))
            else:
                on_answer(refusal_of(ServiceError(DETACH_FORCED, CLOSED_BEFORE_OPEN)))

        body = fence_body(opened.epoch, round_number, begins=opened.begins)
        now_ms = self._clock.stamp_ms()
        try:
            hosted.log.note(note_key(opened.producer_id), body, now_ms=now_ms, on_done=fenced)
        except StoreError as error:
            self.close(opening_id)
            on_answer(refusal_of(error))
        else:
            hosted.producers.fencing(opened, round=round_number, time_ms=now_ms)

    def close(self, opening_id: int) -> None:
        """The link is gone. Does nothing when it is closed."""
        opening = self._openings.pop(opening_id, None)
        if opening is not None:
            opening.hosted.producers.close(opening_id)

    def close_owner(self, owner: Owner) -> None:
        """Close what this owner holds: of one connection, or with connection -1 of its whole process."""

        def is_his(other: Owner) -> bool:
            return other == owner or (owner.connection == -1 and other.process == owner.process)

        for opening_id in [key for key, opening in self._openings.items() if is_his(opening.owner)]:
            self.close(opening_id)
        for log_id, waiting in list(self._waiting.items()):
            gone = [entry for entry in waiting if is_his(entry[0].owner)]
            self._waiting[log_id] = [entry for entry in waiting if not is_his(entry[0].owner)]
            for _, on_answer in gone:
                on_answer(refusal_of(ServiceError(DETACH_FORCED, CLOSED_BEFORE_OPEN)))

    def end_partition(self, hosted: HostedPartition) -> None:
        """The partition is deleted: its producers are gone."""
        for opening_id in [key for key, opening in self._openings.items() if opening.hosted is hosted]:
            del self._openings[opening_id]
        self._saved_at_ms.pop(hosted.log.log_id, None)
        self._settled.discard(hosted.log.log_id)

    def append(self, command: AppendNumbered, on_answer: OnAnswer) -> None:
        """Store one numbered delivery, or find that it is stored."""
        opening = self._openings.get(command.opening_id)
        if opening is None:
            raise ServiceError(ENTITY_MOVED, "the producer is not open here any more: attach again")
        sent = _transfer_of(command.run)
        size, partition = len(command.run), opening.hosted.partition
        charged = charge(opening.hosted, command.size_bytes, command.events, self._env)

        def append(on_stored: Callable[[Appended | Refused], None]) -> Appended:
            return partition.log.append(command.run, now_ms=self._clock.stamp_ms(), on_done=on_stored)

        def done(outcome: Appended | Refused | None) -> None:
            if outcome is None or (isinstance(outcome, Refused) and outcome.known):
                charged.give_back(self._env.monotonic_ms())
            match outcome:
                case None:
                    self._counters.add("broker.duplicates_accepted")
                    on_answer(AlreadyAppended())
                case Refused():
                    self._counters.add("broker.appends_refused")
                    on_answer(refusal_of(outcome.error, known=outcome.known))
                case Appended():
                    self._counters.add("broker.events_appended", outcome.next_index - outcome.first_index)
                    self._counters.add("broker.bytes_appended", size)
                    on_answer(EventsAppended(outcome.first_index, outcome.next_index))

        try:
            opening.hosted.producers.send(command.opening_id, sent, append, done)
        except HubweirError:
            charged.give_back(self._env.monotonic_ms())
            raise

    # By the clock

    def sweep(self, hosted: HostedPartition, now_ms: int) -> None:
        """Expire the producers of a partition whose time is over, and take a snapshot when it is due."""
        if hosted.producers_saved_at is None:
            return
        # A producer is known by the stamp of its newest event: neither clock may make it older than the other does.
        expired = hosted.producers.expired(min(now_ms, self._clock.stamp_ms()))
        if expired:
            try:
                self._write_expired(hosted, expired, now_ms)
            except StoreError:
                return  # they stay until the log takes writes again
            hosted.producers.drop(expired)
            self._counters.add("broker.producers_expired", len(expired))
        behind = hosted.log.bounds.next_index - hosted.producers_saved_at
        age_ms = self._env.monotonic_ms() - self._saved_at_ms.setdefault(hosted.log.log_id, self._env.monotonic_ms())
        is_behind = behind > 0 or hosted.log.log_id not in self._settled
        if behind >= EVENTS_PER_SNAPSHOT or (is_behind and age_ms >= SNAPSHOT_EVERY_MS):
            self._save(hosted, _whatever)

    def _write_expired(self, hosted: HostedPartition, producer_ids: list[int], now_ms: int) -> None:
        for producer_id in producer_ids:
            hosted.log.note(note_key(producer_id), EXPIRED, now_ms=now_ms, on_done=_whatever)

    def _save(self, hosted: HostedPartition, on_done: Callable[[Refused | None], None]) -> None:
        """Take a snapshot; one at a time for a partition."""
        log_id = hosted.log.log_id
        if log_id in self._saving:
            return
        self._saving.add(log_id)
        index = hosted.log.bounds.next_index

        def saved(outcome: Refused | None) -> None:
            self._saving.discard(log_id)
            if outcome is None:
                if index == hosted.producers_saved_at:
                    self._settled.add(log_id)
                else:
                    self._settled.discard(log_id)
                if hosted.producers_saved_at is not None:
                    self._forget_expired(hosted, hosted.producers_saved_at)
                hosted.producers_saved_at = index
                self._saved_at_ms[log_id] = self._env.monotonic_ms()
            on_done(outcome)

        hosted.log.save_snapshot(encode_snapshot(hosted.producers), saved)

    def _forget_expired(self, hosted: HostedPartition, covered: int) -> None:
        """Both snapshots were taken at this index or behind it: who was expired before is in neither."""
        gone = [note for note in producer_notes(hosted.log.notes.values()) if note.body == EXPIRED]
        with suppress(StoreError):  # the next snapshot forgets them
            for note in gone:
                if note.index < covered:
                    hosted.log.note(note.key, None, now_ms=self._clock.stamp_ms(), on_done=_whatever)


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


def _whatever(outcome: Note | Refused | None) -> None:
    """A snapshot that was not saved is taken at a later sweep; who is not noted as expired is, at the next one."""
