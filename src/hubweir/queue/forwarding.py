"""Forwarding, at the source: a fragment gives messages of a sub-queue away, exactly once each.

The forwarder (gateway/forwarder.py) asks the source for a transfer (`take_transfer`), has the destination store it
(transfer_intake.py), and tells the source how that ended (`end`). It keeps nothing: one that is gone leaves a transfer
open, which the source gives to the next one. What transfers are, and why none is stored twice, says transfers.py.

A transfer ends in one of three ways (TransferEnd): the destination has the messages; it refuses them for good, and they
go to the transfer dead letters; or it cannot store them now, and they stay for another transfer. Each time that a
transfer is given out it has a higher *attempt*, and the last two ends are believed of the last attempt alone.

A message that has made all its hops is not given away: it becomes a dead letter, or, if it is one, a transfer dead
letter.
"""

from __future__ import annotations

from array import array
from enum import IntEnum
from functools import partial

from msgspec import Struct

from hubweir.errors import SERVER_BUSY, CorruptStore, ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_ENQUEUE_NUMBER, Q_EXPIRES_MS, Q_ID_NUMBER
from hubweir.kernels.contract import Q_SEQUENCE_NUMBER as Q_NUMBER
from hubweir.kernels.queue_contract import M_INDEX, SETTLING
from hubweir.messaging_store.log import Refused
from hubweir.queue.changed_properties import dead_letter_properties
from hubweir.queue.forward_origin import HOP_LIMIT, hops_of, next_origins
from hubweir.queue.forwarded_run import forwarded_run
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import OnDone, Times
from hubweir.queue.given_id import id_prefix_of
from hubweir.queue.operation import (
    DEAD_LETTERED,
    MODIFIED,
    RETURNED,
    TRANSFERRED,
    TRANSFERRING,
    Operation,
)
from hubweir.queue.receive_values import changes_of
from hubweir.queue.sub_queue import SubQueue

# Of one transfer, the first message aside: a forwarder may hold one of each of a thousand sources.
TRANSFER_MESSAGES, TRANSFER_BYTES = 1_024, 256 * 1024
# Numbers of transfers and attempts: the writer's epoch above, so that a crash never leads to one twice.
_EPOCH_SHIFT = 32
_TOO_MANY_HOPS = (
    "MaxTransferHopCountExceeded",
    "The maximum number of allowed hops when forwarding between queues has been exceeded. "
    f"A message is forwarded {HOP_LIMIT} times at most.",
)


class TransferEnd(IntEnum):
    """STORED: the destination has the messages. REFUSED: it never will. RETURNED: not now."""

    STORED = 0
    REFUSED = 1
    RETURNED = 2


class OpenTransfer(Struct, frozen=True):
    """A transfer as it is offered. run: sealed batches of its messages, one chain. firsts, ends_ms: see RECEIVED.

    No messages: there is none, or its records are damaged; then number is not 0, and to end it as RETURNED leaves those
    aside that cannot be read.
    """

    number: int
    attempt: int
    destination: bytes
    run: bytearray
    firsts: array[int]
    ends_ms: array[int]


NO_TRANSFER = OpenTransfer(0, 0, b"", bytearray(), array("q"), array("q"))


class _WantedTransfer(Struct, frozen=True):
    destination: bytes
    on_done: OnDone[OpenTransfer]


class Forwarding:
    """Of one fragment."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core
        self._wanted: dict[SubQueue, _WantedTransfer] = {}
        self._busy: set[SubQueue] = set()  # an operation on its transfer is on its way, or its records are read
        self._attempt = core.log.lease.writer_epoch << _EPOCH_SHIFT
        self._given: dict[SubQueue, int] = {}  # the last attempt of the open transfer
        self._damaged: dict[SubQueue, array[int]] = {}  # messages of the open transfer that cannot be read

    def adopt(self) -> None:
        """The state was loaded: what is in transfer is nobody's."""
        for each in self._core.state.transfers.sent.values():
            self._core.state.messages.mark_settling(each.counts)

    @property
    def open_in(self) -> list[SubQueue]:
        """The sub-queues of which a transfer is open."""
        return [SubQueue(each) for each, transfer in self._core.state.transfers.sent.items() if transfer.ranges]

    def take_transfer(self, sub_queue: SubQueue, destination: bytes, on_done: OnDone[OpenTransfer]) -> None:
        """See Fragment.take_transfer."""
        self.cancel(sub_queue)
        self._wanted[sub_queue] = _WantedTransfer(destination, on_done)
        self._core.wake()

    def cancel(self, sub_queue: SubQueue) -> None:
        """Whoever waits for a transfer gets none."""
        wanted = self._wanted.pop(sub_queue, None)
        if wanted is not None:
            wanted.on_done(NO_TRANSFER)

    def end_all(self, error: ServiceError) -> None:
        """Refuse all that wait."""
        wanted, self._wanted = self._wanted, {}
        for each in wanted.values():
            each.on_done(error)

    def serve(self, times: Times) -> None:
        """Give to those who wait what is there."""
        sent = self._core.state.transfers.sent
        for sub_queue, wanted in list(self._wanted.items()):
            if sub_queue in self._busy:
                continue
            if sub_queue in sent and sent[sub_queue].ranges:
                self._give(sub_queue)
            elif not wanted.destination:
                self.cancel(sub_queue)
            elif times.monotonic_ms >= self._core.retry_ms:
                self._begin(sub_queue, wanted.destination, times)

    def next_ms(self, times: Times) -> int | None:
        """When there is something to try again, on the monotonic clock; None: nothing is."""
        return self._core.retry_ms if self._wanted and times.monotonic_ms < self._core.retry_ms else None

    def _begin(self, sub_queue: SubQueue, destination: bytes, times: Times) -> None:
        """Open a transfer of the first messages that are ready."""
        core = self._core
        room = array("q", bytes(8 * TRANSFER_MESSAGES))
        many, _ = core.state.messages.select(sub_queue, times.stamp_ms, room, TRANSFER_MESSAGES, TRANSFER_BYTES)
        if not many:
            return
        counts = room[:many]
        rows, _ = self._rows_of(counts, marks=SETTLING)
        over = self._over(rows)
        if over:
            self._give_up(sub_queue, array("q", [counts[at] for at in over]))
            counts = array("q", [count for at, count in enumerate(counts) if at not in over])
            if not counts:
                return
        last = core.state.transfers.sent.get(sub_queue)
        first_number = core.log.lease.writer_epoch << _EPOCH_SHIFT
        number = max(first_number, 0 if last is None else last.number) + 1
        (going,) = core.ranged(TRANSFERRING, counts)
        self._busy.add(sub_queue)
        operation = Operation(TRANSFERRING, going.ranges, sub_queue, number=number, name=destination)
        core.gather([operation], partial(self._begun, sub_queue, counts))

    def _begun(self, sub_queue: SubQueue, counts: array[int], refused: Refused | None) -> None:
        self._busy.discard(sub_queue)
        self._core.unmark(counts, refused)
        self._core.wake()

    def _rows_of(self, counts: array[int], marks: int) -> tuple[array[int], array[int]]:
        """Message rows of these messages, and their log indexes; then they have the marks."""
        core, many = self._core, len(counts)
        indexes, rows = array("q", bytes(8 * many)), array("q", bytes(8 * MESSAGE_WIDTH * many))
        core.state.messages.give(
            counts, many, marks=marks, delivered=0, lock_number=0, secret=core.locks.secret, until_ms=-1,
            number_base=core.number_base, partition=-1, indexes=indexes, out=rows,
        )  # fmt: skip
        core.tell_origins(rows)
        return rows, indexes

    def _firsts(self, rows: array[int]) -> array[int]:
        base, firsts = self._core.number_base, rows[Q_ID_NUMBER::MESSAGE_WIDTH]
        return array("q", [first - base for first in firsts]) if base else firsts

    def _over(self, rows: array[int]) -> set[int]:
        """The places of messages that have made all their hops."""
        return {at for at, first in enumerate(self._firsts(rows)) if hops_of(first) >= HOP_LIMIT}

    def _give_up(self, sub_queue: SubQueue, counts: array[int]) -> None:
        """These are forwarded no more."""
        if sub_queue is SubQueue.MAIN:
            self._core.dead_letter(counts, *_TOO_MANY_HOPS, partial(self._given_up, counts))
        else:
            self._core.gather(self._refusals(counts, *_TOO_MANY_HOPS), partial(self._given_up, counts))

    def _given_up(self, counts: array[int], refused: Refused | None) -> None:
        self._core.unmark(counts, refused)
        self._core.wake()

    def _refusals(self, counts: array[int], reason: str, description: str) -> list[Operation]:
        properties = dead_letter_properties(reason, description)
        return [
            *self._core.ranged(MODIFIED, counts, properties=properties),
            *self._core.ranged(DEAD_LETTERED, counts, sub_queue=SubQueue.TRANSFER_DEAD_LETTERS),
        ]

    # An open transfer is given out

    def _give(self, sub_queue: SubQueue) -> None:
        core = self._core
        counts = core.state.transfers.sent[sub_queue].counts
        rows, indexes = self._rows_of(counts, marks=0)
        self._busy.add(sub_queue)
        changes = changes_of(core, counts)
        read = partial(self._read, sub_queue, counts, rows, bool(changes))
        core.reads.begin(indexes, rows, changes, read)

    def _read(
        self,
        sub_queue: SubQueue,
        counts: array[int],
        rows: array[int],
        has_changes: bool,
        answer: bytearray | Refused,
    ) -> None:
        self._busy.discard(sub_queue)
        wanted = self._wanted.pop(sub_queue, None)
        if wanted is None:
            return
        self._attempt = self._given[sub_queue] = self._attempt + 1
        transfer = self._core.state.transfers.sent[sub_queue]
        if isinstance(answer, Refused):
            damaged = self._damaged[sub_queue] = self._damaged_in(counts, answer)
            if not damaged:
                wanted.on_done(answer)
                return
            run, firsts, ends_ms = bytearray(), array("q"), array("q")
        else:
            numbers = rows[Q_ENQUEUE_NUMBER::MESSAGE_WIDTH]
            own = rows[Q_NUMBER::MESSAGE_WIDTH]
            numbers = array("q", [a if a >= 0 else b for a, b in zip(numbers, own, strict=True)])
            firsts = next_origins(self._firsts(rows), numbers)
            # A dead letter expired, or did not: its time to live begins anew where it goes.
            is_main = sub_queue is SubQueue.MAIN
            ends_ms = rows[Q_EXPIRES_MS::MESSAGE_WIDTH] if is_main else array("q", [-1]) * len(counts)
            source = None if is_main else self._core.entity.encode()
            prefix = id_prefix_of(self._core.log.log_id)
            run = forwarded_run(rows, answer, id_prefix=prefix, source=source, has_changes=has_changes)
        wanted.on_done(OpenTransfer(transfer.number, self._attempt, transfer.destination, run, firsts, ends_ms))

    def _damaged_in(self, counts: array[int], refused: Refused) -> array[int]:
        """The messages whose records cannot be read."""
        error, messages = refused.error, self._core.state.messages
        if not isinstance(error, CorruptStore) or error.first_index is None or error.resume_index is None:
            return array("q")
        found = array("q")
        for count in counts:
            there = messages.find(count)
            if there is not None and error.first_index <= there[0].rows[there[1] + M_INDEX] < error.resume_index:
                found.append(count)
        return found

    # How a transfer ended

    def end(
        self,
        sub_queue: SubQueue,
        number: int,
        attempt: int,
        how: TransferEnd,
        why: tuple[str, str],
        on_done: OnDone[None],
    ) -> None:
        """See Fragment.end_transfer."""
        core = self._core
        transfer = core.state.transfers.sent.get(sub_queue)
        if transfer is not None and (number < transfer.number or (number == transfer.number and not transfer.ranges)):
            on_done(None)
            return
        # A destination that has it has it. That it has not, only the word about the last attempt says for good.
        is_late = how is not TransferEnd.STORED and attempt != self._given.get(sub_queue)
        if transfer is None or number != transfer.number or is_late or sub_queue in self._busy:
            text = f"'{core.entity}' cannot end transfer {number} now: take it anew"
            raise ServiceError(SERVER_BUSY, text)
        counts = transfer.counts
        code = TRANSFERRED if how is TransferEnd.STORED else RETURNED
        operations = [Operation(code, sub_queue=sub_queue, number=number)]
        if how is TransferEnd.REFUSED:
            operations += self._refusals(counts, *why)
        self._busy.add(sub_queue)
        core.gather(operations, partial(self._ended, sub_queue, counts, how, on_done))

    def _ended(
        self, sub_queue: SubQueue, counts: array[int], how: TransferEnd, on_done: OnDone[None], refused: Refused | None
    ) -> None:
        core = self._core
        self._busy.discard(sub_queue)
        damaged = self._damaged.pop(sub_queue, array("q"))
        if refused is None and how is TransferEnd.RETURNED:
            back = array("q", [0 if count in damaged else count for count in counts]) if damaged else counts
            core.take_marks_away(back)
        core.wake()
        on_done(refused)
