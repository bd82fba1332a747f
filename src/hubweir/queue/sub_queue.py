"""The sub-queues of a queue or a subscription, and the two modes of its receivers."""

from __future__ import annotations

from enum import IntEnum


class SubQueue(IntEnum):
    """Where a message lies. It keeps its sequence number when it is dead-lettered.

    MAIN: what was sent. DEAD_LETTERS: what could not be handled. TRANSFER_DEAD_LETTERS: what could not be forwarded.
    """

    MAIN = 0
    DEAD_LETTERS = 1
    TRANSFER_DEAD_LETTERS = 2


class ReceiveMode(IntEnum):
    """PEEK_LOCK: received messages are locked until they are settled, or the lock ends. RECEIVE_AND_DELETE: they are
    gone before their bytes leave."""

    PEEK_LOCK = 0
    RECEIVE_AND_DELETE = 1
