"""The transactions of one connection: declared, filled with what its links do, and discharged.

What a link does in a transaction is gathered here and answered at once; nobody else sees any of it. At the commit what
concerns one log goes to its broker in one command, and is done there in one step, or not at all; over several logs
transaction_endings.py does all of it or nothing. A rollback forgets it: locks stay as they are until they end, or their
messages are settled.

A transaction ends without a commit when its controller says so, when its control link or the connection ends, and
TRANSACTION_MS behind the first thing that was done in it. Its id is never another's, and means nothing on another
connection. (contract "Service Bus", section 8)

A send that is refused spoils its transaction: to commit it is refused, too, with the same text. A settlement that is
refused does not.

Memory: what is gathered counts against two limits, of the connection and of all connections together; what would go
over one is refused. After a crash of this process no transaction is open.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.process import Refusal
from hubweir.env import Env, Timer
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
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.destinations import Way
from hubweir.gateway.directory import FragmentPlace
from hubweir.gateway.transaction_endings import LogPart, TransactionEndings
from hubweir.queue.settle_outcome import TOKEN_BYTES, SettleDetails, SettleOutcome
from hubweir.queue.transaction import TransactedSettlement, Undelivered

TRANSACTION_MS = 120_000
# Messages that are sent, and, ours, messages that are settled or cancelled: some batches of a receiver.
SENT_LIMIT, SETTLED_LIMIT = 100, 4_096
# Of one connection. Official clients have one or two.
OPEN_LIMIT = 64
# Ids of transactions that took too long, which is told when they are used.
REMEMBERED = 64


class TransactionHost(Protocol):
    """What the transactions of a connection need of it."""

    env: Env


@dataclass(slots=True, eq=False)
class LogWork:
    """What a transaction does in one log. place: of the entity that it came for first.

    came: run of what comes by way of other entities; left: of what goes to others, and they do not take it; messages:
    how many are in these two.
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
    sent: int = 0
    settled: int = 0
    held_bytes: int = 0
    timer: Timer | None = None
    spoilt: ServiceError | None = None


# Told how a discharge ended; known: a refusal of which nothing was done.
OnDischarged = Callable[[ServiceError | None, bool], None]


class Transactions:
    """See the module's text."""

    def __init__(
        self, host: TransactionHost, *, limit_bytes: int, process: ProcessBudget, endings: TransactionEndings
    ) -> None:
        """limit_bytes: of this connection. process: the limit of all connections together."""
        self._host = host
        self._limit_bytes = limit_bytes
        self._process = process
        self._endings = endings
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
        self, txn_id: bytes, place: FragmentPlace, data: memoryview, rows: array[int], *, way: Way | None = None
    ) -> None:
        """One delivery (a row), which its entity takes, is part of the transaction. way: by which it goes to place.

        Raises ServiceError as `get`; RESOURCE_LIMIT or SERVER_BUSY over a limit; and for what is no legal message. The
        transaction is then as it was; the caller spoils it.
        """
        transaction = self.get(txn_id)
        run = OpenRun(names_keys=False)
        added = run.add(data, rows, 0, 1)
        if not added.row:
            if added.status is AddStatus.PROPERTIES:
                raise properties_too_large(place.entity)
            raise ServiceError(DECODE_ERROR, f"A delivery for '{place.entity}' is no legal AMQP message.")
        if transaction.sent + added.events > SENT_LIMIT:
            text = (
                f"Can't send more than {SENT_LIMIT} messages in a single transaction: "
                "commit this one, and send the rest in another."
            )
            raise ServiceError(RESOURCE_LIMIT, text)
        self._hold(transaction, len(data))
        self._begun(transaction)
        work = self._work(transaction, place) if way is None else _way_work(transaction, way, place)
        again = work.run.add(data, rows, 0, 1)
        assert again.row == 1
        transaction.sent += added.events
        work.size_bytes += len(data)

    def settle(
        self, txn_id: bytes, place: FragmentPlace, tokens: bytes, outcome: SettleOutcome, details: SettleDetails | None
    ) -> None:
        """Messages are settled in the transaction. Raises as `send`."""
        transaction = self.get(txn_id)
        size_bytes = len(tokens) + (0 if details is None else _size_of(details))
        self._count_settled(transaction, len(tokens) // TOKEN_BYTES, size_bytes)
        settlements = self._work(transaction, place).settlements
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
        self._work(transaction, place).cancelled.extend(numbers)

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

    def _work(self, transaction: Transaction, place: FragmentPlace) -> LogWork:
        work = transaction.works.get(place.stored_in)
        if work is None:
            work = transaction.works[place.stored_in] = LogWork(place)
        return work

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
            self._go(transaction)
        except ServiceError as refusal:
            self._close(transaction)
            raise ServiceError(TRANSACTION_ROLLED_BACK, f"The transaction was rolled back: {refusal.text}") from None
        self._stop(transaction)
        works = [_part_of(work) for work in transaction.works.values()]
        if not works:
            self._give_back(transaction)
            on_done(None, True)
            return

        def answered(answer: Answer) -> None:
            self._give_back(transaction)
            if isinstance(answer, Refusal):
                text = f"The transaction was rolled back: {answer.text} ({answer.condition.symbol})"
                on_done(ServiceError(TRANSACTION_ROLLED_BACK, text), answer.known)
            else:
                on_done(None, True)

        first, *others = sorted(works, key=lambda work: not work.messages)
        if others:
            self._endings.commit(txn_id, first, others, answered)
        else:
            first.broker.submit(first.commit(), answered)

    def _go(self, transaction: Transaction) -> None:
        """What goes by way of other entities arrives, or is left there. Raises as Way.undeliverable."""
        for sent in transaction.ways.values():
            why = sent.way.undeliverable()
            work = self._work(transaction, sent.place if why is None else sent.way.via)
            messages, run = sent.run.events, sent.run.take()
            work.messages += messages
            work.size_bytes += sent.size_bytes
            if why is None:
                work.came += run
            else:
                work.left += run
                work.undelivered.append(Undelivered(messages, len(run), why.reason, why.description))

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


def _way_work(transaction: Transaction, way: Way, place: FragmentPlace) -> WayWork:
    return transaction.ways.setdefault((way.via.log_id, place.log_id), WayWork(way, place))


def _part_of(work: LogWork) -> LogPart:
    messages = work.messages + work.run.events
    return LogPart(
        work.place.broker,
        work.place.stored_in,
        tuple(work.settlements),
        work.cancelled.tobytes(),
        tuple(work.undelivered),
        messages,
        work.size_bytes,
        work.left + work.run.take() + work.came,
    )


def _size_of(details: SettleDetails) -> int:
    return len(details.properties) + len(details.reason or "") + len(details.description or "")
