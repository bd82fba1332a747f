"""Transactions of messages: what one does to the fragments of one log, committed in one step.

A log is named by the id of its queue or its topic. Effects come together when a transaction is discharged: a broker
keeps nothing of one that is open.
"""

from __future__ import annotations

from hubweir.broker.commands.command import LogCommand, command
from hubweir.broker.commands.process import Done
from hubweir.queue.transaction import TransactedSettlement


class TransactionEffects(LogCommand, frozen=True):
    """What a transaction does in one log.

    settlements: of messages of the queue, or of subscriptions of the topic. cancelled: numbers of scheduled messages,
    in bytes of array('q'). run: of the messages that are sent, as in EnqueueMessages; maybe none. messages, size_bytes:
    how many; the bytes of their deliveries.
    """

    settlements: tuple[TransactedSettlement, ...]
    cancelled: bytes
    messages: int
    size_bytes: int
    run: bytearray


@command(63, Done)
class CommitTransaction(TransactionEffects, frozen=True):
    """Do all of it, or refuse it and do nothing. Answered when it is durable."""
