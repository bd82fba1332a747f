"""Transactions of messages: what one does to the fragments of one log, committed in one step; and over several logs.

A log is named by the id of its queue or its topic. Effects come together when a transaction is discharged: a broker
keeps nothing of one that is open. Over several logs (queue/logged_transactions.py) a gateway asks one to begin, the
others to prepare, the first to commit, and the others to end; then the first forgets.
"""

from __future__ import annotations

from hubweir.broker.commands.command import (
    Answer,
    LogCommand,
    OwnedCommand,
    Owner,
    Push,
    answer,
    command,
    push,
)
from hubweir.broker.commands.fragment import MessagesEnqueued
from hubweir.broker.commands.process import Done
from hubweir.queue.transaction import Reserved, TransactedSettlement, Undelivered
from hubweir.queue.transaction_decisions import Fate


class TransactionEffects(LogCommand, frozen=True):
    """What a transaction does in one log.

    settlements: of messages of the queue, or of subscriptions of the topic. cancelled: numbers of scheduled messages,
    in bytes of array('q'). run: of the messages that are sent, as in EnqueueMessages; maybe none. messages, size_bytes:
    how many; the bytes of their deliveries. undelivered, then reserved: what the first of them are.
    """

    settlements: tuple[TransactedSettlement, ...]
    cancelled: bytes
    undelivered: tuple[Undelivered, ...]
    reserved: tuple[Reserved, ...]
    messages: int
    size_bytes: int
    run: bytearray


@command(63, Done)
class CommitTransaction(TransactionEffects, frozen=True):
    """Do all of it, or refuse it and do nothing. Answered when it is durable.

    transaction: an id of 16 bytes, where other logs take part: this is the coordinator's log then, where BeginDecision
    came first, and what it says decides for all. logs: the ids of the others. b"" and none: of this log alone.
    """

    transaction: bytes = b""
    logs: tuple[str, ...] = ()


@command(22, Done)
class PrepareTransaction(TransactionEffects, frozen=True):
    """Make all of it durable and keep it in doubt until EndTransaction, or refuse it.

    coordinator: the id of the log that decides.
    """

    transaction: bytes
    coordinator: str


@command(23, Done)
class EndTransaction(LogCommand, frozen=True):
    """Do what was prepared, or drop it. Answered when that is durable; Done, too, for what was never prepared.

    What it sends is there when it is answered, everything else at once.
    """

    transaction: bytes
    is_committed: bool


@answer(126)
class TransactionFate(Answer, frozen=True):
    """What the coordinator's log says."""

    fate: Fate


@command(24, TransactionFate)
class AskTransaction(LogCommand, frozen=True):
    """What became of a transaction that this log decides. One that can still be decided is given up by that."""

    transaction: bytes


@command(25, Done)
class BeginDecision(OwnedCommand, frozen=True):
    """This log is to decide a transaction; the others are prepared now. The end of the owner gives it up."""

    transaction: bytes


@command(26, Done)
class ForgetTransaction(LogCommand, frozen=True):
    """All logs that took part know that it is committed: its decision is no longer kept."""

    transaction: bytes


@command(27, MessagesEnqueued)
class ReserveNumbers(LogCommand, frozen=True):
    """Sequence numbers for messages that a transaction may schedule: nobody else's, and nobody's if it does not.

    Answered when that is durable, as if the messages were enqueued.
    """

    messages: int


ANYBODY = Owner(-1, -1)


@push(190)
class TransactionOpen(Push, frozen=True):
    """A transaction has not ended in this log: whoever hears of it is to see to that.

    coordinator: the log that decides, where it is in doubt here; "": it was decided here, and `logs` took part.
    """

    log_id: str
    transaction: bytes
    coordinator: str
    logs: tuple[str, ...]
