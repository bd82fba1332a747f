"""State of one idempotent producer: its log's note, its sends, the answer to its attach; and its limits.

How these are judged and changed is producer_sequence.py; how they stand on disk, producer_log.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, PRODUCER_EPOCH_STOLEN, ServiceError
from hubweir.messaging_store.log import Appended, Refused

# Longer than any client retries one send; it costs 100 bytes a producer.
LIFETIME_MS = 7 * 24 * 3_600_000
# A pipeline may stand still over holidays, and must not begin to store rows twice then.
RESUMING_LIFETIME_MS = 30 * 24 * 3_600_000
# Of one partition. A snapshot of all of them is 440 KB.
PRODUCERS_LIMIT = 10_000
# The types on the wire: long, short, int.
ID_LIMIT, EPOCH_LIMIT, NUMBER_LIMIT = 2**63 - 1, 2**15 - 1, 2**31 - 1
# Longs, too; a round is one more here than its sink says.
ROUND_LIMIT = DIGEST_LIMIT = 2**63 - 1

OnSent = Callable[[Appended | Refused | None], None]


@dataclass(frozen=True, slots=True)
class Kept:
    """A producer as the log has it: what a snapshot says of it. time_ms: enqueued time of its last batch or fence.

    last: 0 when nothing of it was stored in this round.
    """

    producer_id: int
    epoch: int
    last: int
    time_ms: int
    round: int = 0
    digest: int = 0


@dataclass(frozen=True, slots=True)
class NumberedSend:
    """One send of a producer: the events first_number .. last. digest: behind the last one, 0 without a round."""

    producer_id: int
    epoch: int
    first_number: int
    count: int
    round: int = 0
    digest: int = 0

    @property
    def last(self) -> int:
        """Number of the last event."""
        return self.first_number + self.count - 1


@dataclass(frozen=True, slots=True)
class AttachedProducer:
    """The answer to an attach: the values that it named, and those that it left out. number: of the last event.

    needs_fence: note a fence and call `fencing`; call `fenced` when it is durable, and answer with what that returns.
    begins: what the fence says of the round (producer_log.py).
    """

    producer_id: int
    epoch: int
    number: int
    needs_fence: bool = False
    digest: int = 0
    begins: bool = False


@dataclass(slots=True)
class ProducerState:
    """kept: as the log has it, None before the first batch or fence. last: of what was appended, durable or not.

    fencing: epoch and time of the newest fence of this round that was written and is not known to be durable.

    refusals: grows when appends were refused, so that what was on its way then is told from what comes later.
    One object a round: what is on its way of an older round ends at the object of that.
    """

    epoch: int
    last: int
    durable: int  # every number up to here is as durable as promised
    kept: Kept | None = None
    opening: int | None = None
    round: int = 0
    refusals: int = 0
    waiting: list[tuple[int, OnSent]] = field(default_factory=list)
    fencing: tuple[int, int] | None = None

    @property
    def has_stored(self) -> bool:
        """Whether the log has an event of it, in its round."""
        return self.kept is not None and self.kept.last > 0

    @property
    def is_settled(self) -> bool:
        """Nothing of it is on its way."""
        return self.last == self.durable


def check_range(what: str, value: int | None, most: int) -> None:
    """Raise ServiceError ARGUMENT_OUT_OF_RANGE for a value that is not 0 to most; None is one to assign."""
    if value is not None and not 0 <= value <= most:
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"The producer's {what} is {value}; 0 to {most} are allowed.")


def stolen(producer_id: int, epoch: int, held: int | None) -> ServiceError:
    """The refusal of a link that lost its producer. held: the epoch of who holds it; None: it was expired."""
    by = "was expired" if held is None else f"is held by another link, with epoch {held}"
    text = f"Producer {producer_id} with epoch {epoch} may not send any more: it {by}. Attach anew with a higher epoch."
    return ServiceError(PRODUCER_EPOCH_STOLEN, text)


def of_an_older_round(producer_id: int, round: int, known: int) -> ServiceError:
    """The refusal of a round that is over. round: 0 for none; known: the newest, both counted from 1."""
    # As the sink counts them, from 0; without a round there is nothing to name.
    named = f"round {round - 1}" if round else "no round"
    text = f"Producer {producer_id} was attached with {named} and is in round {known - 1} by now: it may send no more."
    return ServiceError(PRODUCER_EPOCH_STOLEN, text)
