"""Transactions: what they do to the messages of one log, all of it or nothing.

Effects are gathered elsewhere until a transaction is discharged. Then each fragment that they concern makes its *part*:
it checks that every lock is good, every message may be sent, and there is room, and marks what is to be settled, so
that nobody else does it. The parts of one log are appended as one chain of batches; when it is visible, every fragment
takes its part in, in the same step. So after a crash all effects are there, or none. A part that cannot be made undoes
those made before: nothing happened then.

A rollback needs nothing of a fragment. Locks stay as they are until they end, or until their messages are settled.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import Struct

from hubweir.messaging_store.log import Appended, Refused
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.record import chain_batches
from hubweir.queue.arrived_records import Data
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import Times
from hubweir.queue.settle_outcome import SettleDetails, SettleOutcome


@dataclass(frozen=True, slots=True)
class TransactedSettlement:
    """Locked messages that are settled. resident_id: of the queue's fragment, or the subscription, that they are of.

    outcome: no RELEASE, which is none of what a transaction may do.
    """

    resident_id: str
    tokens: bytes
    outcome: SettleOutcome
    details: SettleDetails | None = None


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Messages that were sent by way of this entity, to one that does not take them: transfer dead letters from the
    start. size_bytes: of their batches; reason, description: why.
    """

    messages: int
    size_bytes: int
    reason: str
    description: str


@dataclass(frozen=True, slots=True)
class Reserved:
    """Messages whose sequence numbers were reserved, from this one on."""

    first_number: int
    messages: int


class Effects(Struct, frozen=True):
    """What a transaction does to one fragment.

    cancelled: numbers of scheduled messages. run: sealed batches of messages that are sent, not completed; messages:
    how many. undelivered, then reserved: what the first of them are, in their order; none of a batch with others.
    """

    settlements: Sequence[TransactedSettlement] = ()
    cancelled: array[int] = array("q")
    run: bytearray = bytearray()
    messages: int = 0
    undelivered: Sequence[Undelivered] = ()
    reserved: Sequence[Reserved] = ()

    @property
    def taken_messages(self) -> int:
        """How many are sent to this entity itself."""
        return self.messages - sum(each.messages for each in self.undelivered)

    @property
    def taken_run(self) -> bytearray:
        """Their batches."""
        return self.run[sum(each.size_bytes for each in self.undelivered) :] if self.undelivered else self.run


# Told once that a part is visible, with its run as it was stored, or why it is not: then it undoes its marks.
PartDone = Callable[[Data | Refused], None]


class Part(Struct, frozen=True):
    """One fragment's part. records: of its operations, as its log has them. run: of the messages that are sent."""

    records: list[bytes]
    run: bytearray
    on_done: PartDone


def commit_parts(
    core: FragmentCore, parts: Sequence[Part], times: Times, on_done: Callable[[Refused | None], None]
) -> None:
    """Append parts as one chain, and tell each of them how that ended; then on_done. One of them may have a run.

    core: of any of the fragments, which share one log.
    """
    records = [record for part in parts for record in part.records]
    chain = pack_operations(records)
    behind = len(chain)
    for part in parts:
        assert not part.run or len(chain) == behind, "messages go to one fragment of a log"
        chain += part.run
    chain_batches(chain)

    def appended(outcome: Appended | Refused | None) -> None:
        stored = memoryview(chain)
        for part in parts:
            if isinstance(outcome, Refused):
                part.on_done(outcome)
            else:
                part.on_done(stored[behind:] if part.run else b"")
        on_done(outcome if isinstance(outcome, Refused) else None)

    if chain:
        core.append(chain, times, appended)
    else:
        appended(None)  # to abandon alone says what a crash would say, too
