"""Idempotent producers of one partition: which sends are new, which were stored before, and which are out of order.

A producer numbers its events from 1 without gaps; a transfer carries the number of its first event. What comes is

| numbers                     | answer |
|-----------------------------|--------|
| begin right behind the last | stored |
| all at or below the last    | accepted, not stored, once the original is as durable as the hub says (rule R8) |
| anything else               | OUT_OF_ORDER_SEQUENCE: a gap, or partly stored before; nothing of it is stored |

So whatever follows a refused transfer is out of order too. A producer is held by one link: whoever opens it with an
equal or higher epoch takes it over, and the sends of the one before are refused with PRODUCER_EPOCH_STOLEN.

A sink that repeats its work after a failure opens its producer for a *round*, counted from 1 here:

| round      | the attach is answered with |
|------------|-----------------------------|
| the known  | the next epoch, the last number of the round and the digest that came with it: the sink goes on behind |
| a higher   | epoch 0, number 0, digest 0: numbers begin at 1 again |
| a lower    | PRODUCER_EPOCH_STOLEN |

Producers without rounds have round 0. The digest is the sink's, of all its rows of the round so far; it is only kept.

State is in the log: every batch has a producer block, a *fence* in the log's notes says who was opened with which round
and epoch, and another note says who was expired. An open is answered when its fence is durable: so no crash lets an
older epoch or round in again, and what is told of the last number is durable. Who opens with epoch 0 and no round needs
none: nobody is older. After a crash the state is the newest snapshot and the replay of what follows it; who never
stored anything comes back with the numbers that it names. A producer is expired when it is not held and stored nothing
for its lifetime; when PRODUCERS_LIMIT stand and a new one comes the one without rounds goes that is silent for longest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum

from hubweir.errors import ARGUMENT_ERROR, OUT_OF_ORDER_SEQUENCE, RESOURCE_LIMIT, ServiceError
from hubweir.event_hub.producer_state import (
    DIGEST_LIMIT,
    EPOCH_LIMIT,
    ID_LIMIT,
    LIFETIME_MS,
    NUMBER_LIMIT,
    PRODUCERS_LIMIT,
    RESUMING_LIFETIME_MS,
    ROUND_LIMIT,
    AttachedProducer,
    Kept,
    NumberedSend,
    OnSent,
    ProducerState,
    check_range,
    of_an_older_round,
    stolen,
)
from hubweir.messaging_store.log import Appended, Refused

Append = Callable[[Callable[[Appended | Refused], None]], Appended]


class Judgement(IntEnum):
    """What a send is, by its numbers."""

    NEW = 1
    DUPLICATE = 2


class ProducerSequences:
    """See the module's text. Opening ids are the caller's, never used twice."""

    def __init__(
        self,
        *,
        producers_limit: int = PRODUCERS_LIMIT,
        lifetime_ms: int = LIFETIME_MS,
        resuming_lifetime_ms: int = RESUMING_LIFETIME_MS,
    ) -> None:
        self._producers: dict[int, ProducerState] = {}
        self._held: dict[int, int] = {}  # opening -> producer id
        self._limit = producers_limit
        self._lifetime_ms = lifetime_ms
        self._resuming_lifetime_ms = resuming_lifetime_ms

    def __len__(self) -> int:
        return len(self._producers)

    # -- links

    def open(
        self,
        opening: int,
        *,
        producer_id: int | None,
        epoch: int | None,
        number: int | None,
        new_id: Callable[[], int],
        expire: Callable[[list[int]], None],
        round: int = 0,
    ) -> AttachedProducer:
        """Let a link hold a producer, in the place of the one that holds it. None: assign it. round: 0 for none.

        expire: called with producers that have to go to make room; it writes that to the log, and may raise.
        Raises ServiceError ARGUMENT_OUT_OF_RANGE, ARGUMENT_ERROR (a round and a number), PRODUCER_EPOCH_STOLEN (a
        higher epoch or round exists), RESOURCE_LIMIT.
        """
        check_range("id", producer_id, ID_LIMIT)
        check_range("epoch", epoch, EPOCH_LIMIT)
        check_range("sequence number", number, NUMBER_LIMIT)
        check_range("round", round, ROUND_LIMIT)
        if round and number is not None:
            text = "An attach that names a round leaves its sequence number null: the service tells the last one."
            raise ServiceError(ARGUMENT_ERROR, text)
        if producer_id is None:
            producer_id = new_id()
            while producer_id in self._producers:
                producer_id = new_id()
        known = self._producers.get(producer_id)
        if known is None:
            self._make_room(expire)
            known = self._producers[producer_id] = ProducerState(epoch or 0, number or 0, number or 0, round=round)
        elif round < known.round:
            raise of_an_older_round(producer_id, round, known.round)
        elif round > known.round:
            known = self._begin_round(producer_id, known, round, epoch or 0)
        else:
            self._take_over(producer_id, known, epoch, number)
        if known.opening is not None:
            del self._held[known.opening]
        known.opening = opening
        self._held[opening] = producer_id
        in_log = (0, 0) if known.kept is None else (known.kept.round, known.kept.epoch)
        # What was told of a last number must be durable, and a fence comes behind all that is on its way.
        needs_fence = (round, known.epoch) != in_log or bool(round) or not known.is_settled
        last = known.last if number is None else number
        has_stored = known.kept is not None and known.kept.round == round and known.kept.last > 0
        begins = needs_fence and known.is_settled and not has_stored
        return AttachedProducer(producer_id, known.epoch, last, needs_fence, begins=begins)

    def _begin_round(self, producer_id: int, known: ProducerState, round: int, epoch: int) -> ProducerState:
        begun = ProducerState(epoch, 0, 0, known.kept, known.opening, round)
        self._producers[producer_id] = begun
        return begun

    def _take_over(self, producer_id: int, known: ProducerState, epoch: int | None, number: int | None) -> None:
        if epoch is not None and epoch < known.epoch:
            raise stolen(producer_id, epoch, known.epoch)
        if epoch is None and known.round and known.epoch >= EPOCH_LIMIT:
            text = (
                f"Producer {producer_id} was opened {EPOCH_LIMIT} times in one round: that is the limit; begin another."
            )
            raise ServiceError(RESOURCE_LIMIT, text)
        if number is not None and not known.has_stored and known.is_settled:
            known.last = known.durable = number  # nothing of it was ever stored: its word counts
        if epoch is not None:
            known.epoch = epoch
        elif known.round or known.opening is not None:
            # Names none and takes over: the other one can tell. In a round any link before may still live somewhere.
            known.epoch = min(known.epoch + 1, EPOCH_LIMIT)

    def fencing(self, opened: AttachedProducer, *, round: int, time_ms: int) -> None:
        """The fence of an open is on its way: a snapshot that is taken from now on says what it says."""
        producer = self._producers.get(opened.producer_id)
        if producer is not None and producer.round == round:
            producer.fencing = opened.epoch, time_ms

    def fenced(self, opened: AttachedProducer, *, number: int | None, round: int, time_ms: int) -> AttachedProducer:
        """The fence of an open is as durable as the hub says, and with it all that was sent before; what to answer.

        number: as the attach named it.
        """
        producer = self._producers.get(opened.producer_id)
        if producer is None or (producer.round, producer.epoch) < (round, opened.epoch):
            return opened  # dropped meanwhile: its first send tells
        kept = producer.kept
        if kept is None or kept.round != round:
            kept = Kept(opened.producer_id, opened.epoch, 0, time_ms, round)
        producer.kept = replace(kept, epoch=opened.epoch, time_ms=time_ms)
        if producer.fencing is not None and producer.fencing[0] <= opened.epoch:
            producer.fencing = None
        if number is None and producer.round == round:
            opened = replace(opened, number=producer.durable, digest=kept.digest)
        return opened

    def close(self, opening: int) -> None:
        """The link is gone. Does nothing when another took its producer over."""
        producer_id = self._held.pop(opening, None)
        if producer_id is not None:
            producer = self._producers[producer_id]
            producer.opening = None
            if producer.kept is None and producer.is_settled:
                del self._producers[producer_id]  # it stored nothing, so nobody has to know it

    # -- sends

    def judge(self, opening: int, sent: NumberedSend) -> Judgement:
        """What to do with a transfer. Raises PRODUCER_EPOCH_STOLEN, OUT_OF_ORDER_SEQUENCE, ARGUMENT_OUT_OF_RANGE."""
        producer_id, first, last = sent.producer_id, sent.first_number, sent.last
        producer = self._producers.get(producer_id)
        if producer is None or self._held.get(opening) != producer_id or sent.epoch != producer.epoch:
            raise stolen(producer_id, sent.epoch, None if producer is None else producer.epoch)
        if sent.round != producer.round:
            raise of_an_older_round(producer_id, sent.round, producer.round)
        check_range("digest", sent.digest, DIGEST_LIMIT)
        if first == producer.last + 1 and last <= NUMBER_LIMIT:
            return Judgement.NEW
        if first >= 1 and last <= producer.last:
            return Judgement.DUPLICATE
        raise ServiceError(
            OUT_OF_ORDER_SEQUENCE,
            f"Producer {producer_id} sent events {first} to {last}; the last one taken is {producer.last}, so the next "
            f"one is {producer.last + 1}. Nothing of this was stored. Send what is missing first, or attach anew.",
        )

    def send(self, opening: int, sent: NumberedSend, append: Append, on_done: OnSent) -> None:
        """Judge a send and append it when it is new.

        on_done is called once: with the append's outcome, or with None for a duplicate of a durable send. A duplicate
        of a send in flight gets that send's outcome.

        Raises what judge and append raise; then nothing changed.
        """
        if self.judge(opening, sent) is Judgement.DUPLICATE:
            self._answer_duplicate(self._producers[sent.producer_id], sent.last, on_done)
            return
        producer = self._producers[sent.producer_id]
        sent_after = producer.refusals

        def done(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Appended):
                kept = Kept(
                    sent.producer_id, sent.epoch, sent.last, outcome.enqueued_time_ms, sent.round, sent.digest
                )  # fmt: skip
                self._stored(producer, kept)
            elif sent_after == producer.refusals:
                self._refused(sent.producer_id, producer, outcome)
            on_done(outcome)

        append(done)
        producer.last = sent.last

    def _answer_duplicate(self, producer: ProducerState, last: int, on_done: OnSent) -> None:
        if last <= producer.durable:
            on_done(None)
        else:
            producer.waiting.append((last, on_done))

    def _stored(self, producer: ProducerState, kept: Kept) -> None:
        # The producer may have been opened with a newer round meanwhile; its fence follows this batch in the log.
        self._producers.get(kept.producer_id, producer).kept = producer.kept = kept
        producer.durable = kept.last
        ready = [on_done for last, on_done in producer.waiting if last <= kept.last]
        producer.waiting = [entry for entry in producer.waiting if entry[0] > kept.last]
        for on_done in ready:
            on_done(None)

    def _refused(self, producer_id: int, producer: ProducerState, refused: Refused) -> None:
        """What waits behind a refused append in the log is refused too (Log.append): go back to what is stored."""
        producer.refusals += 1
        producer.last = producer.durable
        if producer.opening is None and producer.kept is None and self._producers.get(producer_id) is producer:
            del self._producers[producer_id]  # its link is gone, and nothing of it was stored
        waiting, producer.waiting = producer.waiting, []
        for _, on_done in waiting:
            on_done(refused)

    # -- expiry

    def expired(self, now_ms: int) -> list[int]:
        """The producers whose time is over, at most a thousand at once. The caller writes it, then drops them."""
        over = [
            producer_id
            for producer_id, producer in self._producers.items()
            if producer.opening is None
            and producer.kept is not None
            and producer.is_settled
            and producer.kept.time_ms < now_ms - self._lifetime_of(producer.kept)
        ]
        return over[:1_000]

    def _lifetime_of(self, kept: Kept) -> int:
        return self._resuming_lifetime_ms if kept.round else self._lifetime_ms

    def drop(self, producer_ids: Iterable[int]) -> None:
        """Forget producers: a control batch says so. Ids that are not there do nothing."""
        for producer_id in producer_ids:
            producer = self._producers.pop(producer_id, None)
            if producer is not None and producer.opening is not None:
                del self._held[producer.opening]

    def _make_room(self, expire: Callable[[list[int]], None]) -> None:
        if len(self._producers) < self._limit:
            return
        silent = [
            (producer.kept.time_ms, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.opening is None and producer.kept is not None and producer.is_settled and not producer.round
        ]
        if not silent:
            text = (
                f"{self._limit} idempotent producers hold links to this partition or may resume, which is the limit; "
                "close some, or wait until those that resume are forgotten."
            )
            raise ServiceError(RESOURCE_LIMIT, text)
        oldest = [min(silent)[1]]
        expire(oldest)
        self.drop(oldest)

    # -- state in the log (producer_log.py)

    def kept(self) -> list[Kept]:
        """Every producer that has events or a fence in the log, as of what is visible, and of fences on their way.

        A fence that is not stored after all was not answered either: it keeps no one out who may come in.
        """
        every = (_kept(producer_id, producer) for producer_id, producer in self._producers.items())
        return [kept for kept in every if kept is not None]

    def restore(self, kept: Kept) -> None:
        """A batch, or a snapshot, says this. For start-up, in the order of the log."""
        self._producers[kept.producer_id] = ProducerState(kept.epoch, kept.last, kept.last, kept, round=kept.round)

    def restore_fence(self, producer_id: int, round: int, epoch: int, time_ms: int, *, begins: bool = False) -> None:
        """A fence says this. begins: whatever was known. Else one that a snapshot holds changes nothing."""
        known = self._producers.get(producer_id)
        before = None if known is None else known.kept
        if begins or before is None or round > before.round:
            self.restore(Kept(producer_id, epoch, 0, time_ms, round))
        elif (round, epoch) > (before.round, before.epoch):
            self.restore(replace(before, epoch=epoch, time_ms=time_ms))


def _kept(producer_id: int, producer: ProducerState) -> Kept | None:
    """What a snapshot says of a producer."""
    kept = producer.kept
    if producer.fencing is None:
        return kept
    epoch, time_ms = producer.fencing
    if kept is None or kept.round != producer.round:
        return Kept(producer_id, epoch, 0, time_ms, producer.round)
    return replace(kept, epoch=max(epoch, kept.epoch), time_ms=max(time_ms, kept.time_ms))
