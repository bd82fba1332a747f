"""The transactions of one connection: declared, filled with what its links do, and discharged.

What a link does in a transaction is gathered here and answered at once; nobody else sees any of it. At the commit what
concerns one log goes to its broker in one command, and is done there in one step, or not at all; over several logs
transaction_endings.py does all of it or nothing. A rollback forgets it: locks stay as they are until they end, or their
messages are settled.

A transaction ends without a commit when its controller says so, when its control link or the connection ends, and
TRANSACTION_MS behind the first thing that was done in it. Its id is never another's, and means nothing on another
connection.

A send that is refused spoils its transaction: to commit it is refused, too, with the same text. A settlement that is
refused does not.

Memory: what is gathered counts against two limits, of the connection and of all connections together; what would go
over one is refused. After a crash of this process no transaction is open.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.process import Refusal
from hubweir.env import Env
from hubweir.errors import (
    DECODE_ERROR,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    TRANSACTION_ROLLED_BACK,
    TRANSACTION_TIMED_OUT,
    TRANSACTION_UNKNOWN,
    ServiceError,
)
from hubweir.event_hub.event_properties import properties_too_large
from hubweir.event_hub.open_run import AddStatus, OpenRun
from hubweir.gateway.amqp.open_transaction import Transaction
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.destinations import Way
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.transaction_endings import LogPart, TransactionEndings
from hubweir.queue.settle_outcome import TOKEN_BYTES, SettleDetails, SettleOutcome
from hubweir.queue.traced_step import Step, StepTracer, Trace
from hubweir.queue.transaction import Reserved, TransactedSettlement

TRANSACTION_MS = 120_000
# Ours, of messages that are settled or cancelled: some batches of a receiver.
SETTLED_LIMIT = 4_096
# Of one connection. Official clients have one or two.
OPEN_LIMIT = 64
# Ids of transactions that took too long, which is told when they are used.
REMEMBERED = 64


class TransactionHost(Protocol):
    """What the transactions of a connection need of it."""

    env: Env


# Told how a discharge ended; known: a refusal of which nothing was done.
OnDischarged = Callable[[ServiceError | None, bool], None]


class Transactions:
    """See the module's text."""

    def __init__(
        self,
        host: TransactionHost,
        *,
        limit_bytes: int,
        process: ProcessBudget,
        endings: TransactionEndings,
        tracer: StepTracer | None = None,
    ) -> None:
        """limit_bytes: of this connection. process: the limit of all connections together. tracer: None where nothing
        is traced.
        """
        self._host = host
        self._limit_bytes = limit_bytes
        self._process = process
        self._endings = endings
        self._tracer = tracer
        self._held_bytes = 0
        self._open: dict[bytes, Transaction] = {}
        self._timed_out: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def declare(self, control: object) -> bytes:
        """Open a transaction for a control link; its id. Raises ServiceError RESOURCE_LIMIT."""
        if len(self._open) >= OPEN_LIMIT:
            text = f"{OPEN_LIMIT} transactions of this connection are open: discharge one before you declare another."
            raise ServiceError(RESOURCE_LIMIT, text)
        transaction = Transaction(UUID(self._host.env.new_id()).bytes, control)
        self._open[transaction.txn_id] = transaction
        return transaction.txn_id

    def get(self, txn_id: bytes) -> Transaction:
        """An open transaction. Raises ServiceError TRANSACTION_UNKNOWN, or TRANSACTION_TIMED_OUT."""
        transaction = self._open.get(txn_id)
        if transaction is not None:
            return transaction
        if txn_id in self._timed_out:
            seconds = TRANSACTION_MS // 1_000
            text = f"The transaction took more than {seconds} s from its first operation on and was rolled back."
            raise ServiceError(TRANSACTION_TIMED_OUT, text)
        text = "No transaction of this id is open on this connection: it was discharged, or never declared here."
        raise ServiceError(TRANSACTION_UNKNOWN, text)

    # What links do

    def send(
        self,
        txn_id: bytes,
        place: FragmentPlace,
        data: memoryview,
        rows: array[int],
        *,
        key: bytes | None = None,
        way: Way | None = None,
    ) -> None:
        """One delivery (a row), which its entity takes, is part of the transaction. way: by which it goes to place.

        key: of its messages, where the entity has several fragments. Raises ServiceError as `get`; RESOURCE_LIMIT or
        SERVER_BUSY over a limit; NOT_ALLOWED for a second key of one entity; and for what is no legal message. The
        transaction is then as it was; the caller spoils it.
        """
        transaction = self.get(txn_id)
        transaction.check_key(place.entity, key)
        run = OpenRun(names_keys=False)
        added = run.add_deliveries(data, rows, 0, 1)
        if not added.row:
            if added.status is AddStatus.PROPERTIES:
                raise properties_too_large(place.entity)
            raise ServiceError(DECODE_ERROR, f"A delivery for '{place.entity}' is no legal AMQP message.")
        transaction.check_sent(added.events)
        self._hold(transaction, len(data))
        self._begun(transaction)
        work = transaction.work(place) if way is None else transaction.way_work(way, place)
        again = work.run.add_deliveries(data, rows, 0, 1)
        assert again.row == 1
        transaction.sent += added.events
        work.size_bytes += len(data)
        transaction.note_key(place.entity, key)

    def check_schedules(self, txn_id: bytes, messages: int) -> None:
        """So many may be scheduled in the transaction, as far as can be told. Raises as `send`."""
        self.get(txn_id).check_sent(messages)

    def schedule(
        self, txn_id: bytes, place: FragmentPlace, run: bytearray, reserved: Reserved, *, key: bytes | None = None
    ) -> None:
        """Messages (run: their sealed batches) are scheduled in the transaction. key: see `send`; raises as that."""
        transaction = self.get(txn_id)
        transaction.check_key(place.entity, key)
        transaction.check_sent(reserved.messages)
        self._hold(transaction, len(run))
        self._begun(transaction)
        work = transaction.work(place)
        work.scheduled += run
        work.reserved.append(reserved)
        work.messages += reserved.messages
        work.size_bytes += len(run)
        transaction.sent += reserved.messages
        transaction.note_key(place.entity, key)

    def settle(
        self, txn_id: bytes, place: FragmentPlace, tokens: bytes, outcome: SettleOutcome, details: SettleDetails | None
    ) -> None:
        """Messages are settled in the transaction. Raises as `send`."""
        transaction = self.get(txn_id)
        size_bytes = len(tokens) + (0 if details is None else _size_of(details))
        self._count_settled(transaction, len(tokens) // TOKEN_BYTES, size_bytes)
        settlements = transaction.work(place).settlements
        settlement = TransactedSettlement(place.log_id, tokens, outcome, details)
        last = settlements[-1] if settlements else None
        if last is not None and (last.resident_id, last.outcome, last.details) == (place.log_id, outcome, details):
            settlements[-1] = TransactedSettlement(place.log_id, last.tokens + tokens, outcome, details)
        else:
            settlements.append(settlement)

    def cancel(self, txn_id: bytes, place: FragmentPlace, numbers: array[int]) -> None:
        """Scheduled messages are taken back in the transaction, by their sequence numbers. Raises as `send`."""
        transaction = self.get(txn_id)
        self._count_settled(transaction, len(numbers), len(numbers) * numbers.itemsize)
        transaction.work(place).cancelled.extend(numbers)

    def _count_settled(self, transaction: Transaction, many: int, size_bytes: int) -> None:
        if transaction.settled + many > SETTLED_LIMIT:
            text = f"More than {SETTLED_LIMIT} messages cannot be settled in one transaction: commit this one first."
            raise ServiceError(RESOURCE_LIMIT, text)
        self._hold(transaction, size_bytes)
        self._begun(transaction)
        transaction.settled += many

    def spoil(self, txn_id: bytes, error: ServiceError) -> None:
        """Something of the transaction was refused, and perhaps nobody heard it: it can only be rolled back."""
        transaction = self._open.get(txn_id)
        if transaction is not None and transaction.spoilt is None:
            transaction.spoilt = error
            self._begun(transaction)

    def _hold(self, transaction: Transaction, size_bytes: int) -> None:
        if self._held_bytes + size_bytes > self._limit_bytes:
            text = (
                f"The open transactions of this connection may hold {self._limit_bytes} bytes and have "
                f"{self._held_bytes}: commit what you have before you send more."
            )
            raise ServiceError(RESOURCE_LIMIT, text)
        if self._process.is_full:
            text = "The open transactions of all connections hold as many bytes as they may: try again in a moment."
            raise ServiceError(SERVER_BUSY, text)
        self._process.take_bytes(size_bytes)
        self._held_bytes += size_bytes
        transaction.held_bytes += size_bytes

    def _begun(self, transaction: Transaction) -> None:
        """Something was done in it: from the first time on its time runs."""
        if transaction.timer is None:
            transaction.timer = self._host.env.call_later(TRANSACTION_MS, lambda: self._time_out(transaction))

    # Ends

    def roll_back(self, txn_id: bytes) -> None:
        """Forget what was done in it. Raises as `get`."""
        self._close(self.get(txn_id))

    def roll_back_all(self, control: object) -> None:
        """A control link is over: so is each transaction that it declared, unless it is being committed."""
        for transaction in [each for each in self._open.values() if each.control is control]:
            self._close(transaction)

    def commit(self, txn_id: bytes, on_done: OnDischarged) -> None:
        """Do all that was done in it. Raises as `get`, and TRANSACTION_ROLLED_BACK where nothing else can be."""
        transaction = self.get(txn_id)
        if transaction.spoilt is not None:
            self._close(transaction)
            raise ServiceError(TRANSACTION_ROLLED_BACK, f"The transaction was rolled back: {transaction.spoilt.text}")
        try:
            transaction.go_ways()
        except ServiceError as refusal:
            self._close(transaction)
            raise ServiceError(TRANSACTION_ROLLED_BACK, f"The transaction was rolled back: {refusal.text}") from None
        self._stop(transaction)
        entities = [work.place.entity for work in transaction.works.values()]
        works = [work.part() for work in transaction.works.values()]
        if not works:
            self._give_back(transaction)
            on_done(None, True)
            return

        traces = self._begun_traces(entities, works)

        def answered(answer: Answer) -> None:
            self._give_back(transaction)
            for trace in traces:
                trace.ended(answer.condition.symbol if isinstance(answer, Refusal) else "")
            if not isinstance(answer, Refusal):
                on_done(None, True)
            elif not answer.known:
                on_done(answer.error, False)
            else:
                text = f"The transaction was rolled back: {answer.text} ({answer.condition.symbol})"
                on_done(ServiceError(TRANSACTION_ROLLED_BACK, text), True)

        first, *others = sorted(works, key=lambda work: not work.messages)
        if others:
            self._endings.commit(txn_id, first, others, answered)
        else:
            first.broker.submit(first.commit(), answered)

    def _begun_traces(self, entities: Sequence[str], works: Sequence[LogPart]) -> list[Trace]:
        """Of what is sent to each log, if anything of it is traced."""
        tracer = self._tracer
        if tracer is None:
            return []
        sent = ((entity, work) for entity, work in zip(entities, works, strict=True) if work.messages)
        traces = (tracer.begins(Step.DISCHARGE, entity, work.run) for entity, work in sent)
        return [trace for trace in traces if trace is not None]

    def _time_out(self, transaction: Transaction) -> None:
        transaction.timer = None
        self._close(transaction)
        self._timed_out[transaction.txn_id] = None
        if len(self._timed_out) > REMEMBERED:
            del self._timed_out[next(iter(self._timed_out))]

    def _stop(self, transaction: Transaction) -> None:
        """It is open no more."""
        del self._open[transaction.txn_id]
        if transaction.timer is not None:
            transaction.timer.cancel()
            transaction.timer = None

    def _close(self, transaction: Transaction) -> None:
        self._stop(transaction)
        self._give_back(transaction)

    def _give_back(self, transaction: Transaction) -> None:
        self._process.give_back_bytes(transaction.held_bytes)
        self._held_bytes -= transaction.held_bytes
        transaction.held_bytes = 0
        transaction.works.clear()
        transaction.ways.clear()


def _size_of(details: SettleDetails) -> int:
    return len(details.properties) + len(details.reason or "") + len(details.description or "")
