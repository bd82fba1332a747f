"""Idempotent producers of one partition: which sends are new, which were stored before, and which are out of order.

A producer numbers its events from 1 without gaps; a transfer carries the number of its first event. What comes is

| numbers                     | answer |
|-----------------------------|--------|
| begin right behind the last | stored |
| all at or below the last    | accepted, not stored, once the original is as durable as the hub says (rule R8) |
| anything else               | OUT_OF_ORDER_SEQUENCE: a gap, or partly stored before; nothing of it is stored |

So whatever follows a refused transfer is out of order too. A producer is held by one link: whoever opens it with an
equal or higher epoch takes it over, and the sends of the one before are refused with PRODUCER_EPOCH_STOLEN.

State is in the log: every batch has a producer block, and a control batch says who was expired. After a crash it is
the newest snapshot and the replay of what follows it; who was opened and never sent is forgotten, and comes back with
the numbers that it names. A producer is expired when it is not held and stored nothing for LIFETIME_MS, or when
PRODUCERS_MAX others stand and a new one comes: then the one that is silent for longest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from hubweir.errors import (
    ARGUMENT_OUT_OF_RANGE,
    OUT_OF_ORDER_SEQUENCE,
    PRODUCER_EPOCH_STOLEN,
    RESOURCE_LIMIT,
    ServiceError,
)
from hubweir.messaging_store.log import Appended, Refused

# Longer than any client retries one send; it costs 100 bytes a producer.
LIFETIME_MS = 7 * 24 * 3_600_000
# Of one partition. A snapshot of all of them is 280 KB.
PRODUCERS_MAX = 10_000
# The types on the wire: long, short, int.
ID_MAX, EPOCH_MAX, NUMBER_MAX = 2**63 - 1, 2**15 - 1, 2**31 - 1

OnSent = Callable[[Appended | Refused | None], None]
Append = Callable[[Callable[[Appended | Refused], None]], Appended]


class Judgement(IntEnum):
    """What a transfer's numbers say."""

    NEW = 1
    DUPLICATE = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """A producer as the log has it: what a snapshot says of it. time_ms: enqueued time of its last batch."""

    producer_id: int
    epoch: int
    last: int
    time_ms: int


@dataclass(frozen=True, slots=True)
class Opened:
    """What the attach is answered: as named, and what was left out filled in. number: of the last event."""

    producer_id: int
    epoch: int
    number: int


@dataclass(slots=True)
class _Producer:
    """kept: as the log has it, None before the first batch. last: of what was appended, durable or not.

    round: grows when appends were refused, so that what was on its way then is told from what comes later.
    """

    epoch: int
    last: int
    durable: int  # every number up to here is as durable as promised
    kept: Kept | None = None
    opening: int | None = None
    round: int = 0
    waiting: list[tuple[int, OnSent]] = field(default_factory=list)


class ProducerSequences:
    """See the module's text. Opening ids are the caller's, never used twice."""

    def __init__(self, *, producers_max: int = PRODUCERS_MAX, lifetime_ms: int = LIFETIME_MS) -> None:
        self._producers: dict[int, _Producer] = {}
        self._held: dict[int, int] = {}  # opening -> producer id
        self._max = producers_max
        self._lifetime_ms = lifetime_ms

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
    ) -> Opened:
        """Let a link hold a producer, in the place of the one that holds it. None: assign it.

        expire: called with producers that have to go to make room; it writes that to the log, and may raise.
        Raises ServiceError ARGUMENT_OUT_OF_RANGE, PRODUCER_EPOCH_STOLEN (a higher epoch exists), RESOURCE_LIMIT.
        """
        _check_range("id", producer_id, ID_MAX)
        _check_range("epoch", epoch, EPOCH_MAX)
        _check_range("sequence number", number, NUMBER_MAX)
        if producer_id is None:
            producer_id = new_id()
            while producer_id in self._producers:
                producer_id = new_id()
        known = self._producers.get(producer_id)
        if known is None:
            self._make_room(expire)
            known = self._producers[producer_id] = _Producer(epoch or 0, number or 0, number or 0)
        elif epoch is not None and epoch < known.epoch:
            raise _stolen(producer_id, epoch, known.epoch)
        elif number is not None and known.kept is None and known.last == known.durable:
            known.last = known.durable = number  # nothing of it was ever stored: its word counts
        if epoch is not None:
            known.epoch = epoch
        elif known.opening is not None:
            known.epoch = min(known.epoch + 1, EPOCH_MAX)  # names none and takes over: the other one can tell
        if known.opening is not None:
            del self._held[known.opening]
        known.opening = opening
        self._held[opening] = producer_id
        return Opened(producer_id, known.epoch, known.last if number is None else number)

    def close(self, opening: int) -> None:
        """The link is gone. Does nothing when another took its producer over."""
        producer_id = self._held.pop(opening, None)
        if producer_id is not None:
            producer = self._producers[producer_id]
            producer.opening = None
            if producer.kept is None and producer.last == producer.durable:
                del self._producers[producer_id]  # it stored nothing, so nobody has to know it

    # -- sends

    def judge(self, opening: int, producer_id: int, epoch: int, first: int, count: int) -> Judgement:
        """What to do with events first .. first + count - 1. Raises PRODUCER_EPOCH_STOLEN, OUT_OF_ORDER_SEQUENCE."""
        producer = self._producers.get(producer_id)
        if producer is None or self._held.get(opening) != producer_id or epoch != producer.epoch:
            raise _stolen(producer_id, epoch, None if producer is None else producer.epoch)
        last = first + count - 1
        if first == producer.last + 1 and last <= NUMBER_MAX:
            return Judgement.NEW
        if first >= 1 and last <= producer.last:
            return Judgement.DUPLICATE
        raise ServiceError(
            OUT_OF_ORDER_SEQUENCE,
            f"Producer {producer_id} sent events {first} to {last}; the last one taken is {producer.last}, so the next "
            f"one is {producer.last + 1}. Nothing of this was stored. Send what is missing first, or attach anew.",
        )

    def send(
        self, opening: int, producer_id: int, epoch: int, first: int, count: int, append: Append, on_done: OnSent
    ) -> None:
        """Judge a transfer and append it when it is new. on_done: once, with what the append said, or None for a
        duplicate whose original is durable; a duplicate ends as refused when its original does.

        Raises what judge and append raise; then nothing changed.
        """
        last = first + count - 1
        if self.judge(opening, producer_id, epoch, first, count) is Judgement.DUPLICATE:
            self._answer_duplicate(self._producers[producer_id], last, on_done)
            return
        producer = self._producers[producer_id]
        sent_in = producer.round

        def done(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Appended):
                self._stored(producer, Kept(producer_id, epoch, last, outcome.enqueued_time_ms))
            elif sent_in == producer.round:
                self._refused(producer_id, producer, outcome)
            on_done(outcome)

        append(done)
        producer.last = last

    def _answer_duplicate(self, producer: _Producer, last: int, on_done: OnSent) -> None:
        if last <= producer.durable:
            on_done(None)
        else:
            producer.waiting.append((last, on_done))

    def _stored(self, producer: _Producer, kept: Kept) -> None:
        producer.kept = kept
        producer.durable = kept.last
        ready = [on_done for last, on_done in producer.waiting if last <= kept.last]
        producer.waiting = [entry for entry in producer.waiting if entry[0] > kept.last]
        for on_done in ready:
            on_done(None)

    def _refused(self, producer_id: int, producer: _Producer, refused: Refused) -> None:
        """What waits behind a refused append in the log is refused too (Log.append): go back to what is stored."""
        producer.round += 1
        producer.last = producer.durable
        if producer.opening is None and producer.kept is None:
            self._producers.pop(producer_id, None)  # its link is gone, and nothing of it was stored
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
            and producer.last == producer.durable
            and producer.kept.time_ms < now_ms - self._lifetime_ms
        ]
        return over[:1_000]

    def drop(self, producer_ids: Iterable[int]) -> None:
        """Forget producers: a control batch says so. Ids that are not there do nothing."""
        for producer_id in producer_ids:
            producer = self._producers.pop(producer_id, None)
            if producer is not None and producer.opening is not None:
                del self._held[producer.opening]

    def _make_room(self, expire: Callable[[list[int]], None]) -> None:
        if len(self._producers) < self._max:
            return
        silent = [
            (producer.kept.time_ms, producer_id)
            for producer_id, producer in self._producers.items()
            if producer.opening is None and producer.kept is not None and producer.last == producer.durable
        ]
        if not silent:
            text = f"{self._max} idempotent producers hold links to this partition, which is the limit; close some."
            raise ServiceError(RESOURCE_LIMIT, text)
        oldest = [min(silent)[1]]
        expire(oldest)
        self.drop(oldest)

    # -- state in the log (producer_log.py)

    def kept(self) -> list[Kept]:
        """Every producer that has events in the log, as of what is visible."""
        return [producer.kept for producer in self._producers.values() if producer.kept is not None]

    def restore(self, kept: Kept) -> None:
        """A batch, or a snapshot, says this. For start-up, in the order of the log."""
        self._producers[kept.producer_id] = _Producer(kept.epoch, kept.last, kept.last, kept)


def _check_range(what: str, value: int | None, most: int) -> None:
    if value is not None and not 0 <= value <= most:
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"The producer's {what} is {value}; 0 to {most} are allowed.")


def _stolen(producer_id: int, epoch: int, held: int | None) -> ServiceError:
    by = "was expired" if held is None else f"is held by another link, with epoch {held}"
    text = f"Producer {producer_id} with epoch {epoch} may not send any more: it {by}. Attach anew with a higher epoch."
    return ServiceError(PRODUCER_EPOCH_STOLEN, text)
