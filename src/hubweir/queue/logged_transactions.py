"""Transactions over several logs, as one fragment's log has them: what is in doubt here, and what was decided here.

One of the logs is the coordinator's. In each of the others stands PREPARED with all that the transaction does there;
then the coordinator's log says DECIDED, in one chain with what is done there: this record alone is the commit. The
others note ENDED, and when all have, the coordinator's notes FORGOTTEN. Where DECIDED is not, the answer is no.

Messages that are sent stand behind PREPARED and are none yet: their batches are kept as they are, in memory and in
snapshots, and stored once more behind the ENDED that commits. So what is in doubt has no sequence number and holds no
segment back.

Explored as a model: tests/models/transaction.py. After a crash whoever finds PREPARED without ENDED asks the
coordinator's log, and serves nobody before it knows.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, field

from hubweir.errors import CorruptStore
from hubweir.kernels.stored_batch import BatchHeader
from hubweir.queue.operation import (
    DECIDED,
    ENDED,
    HELD,
    PREPARED,
    Operation,
    counts_in,
    decode_operation,
    encode_operation,
)

_COUNT = struct.Struct(">I")


@dataclass(slots=True)
class PreparedTransaction:
    """What is in doubt. record: as it was said; operations: those that are done when it is committed.

    messages: how many are sent; run: sealed batches of them.
    """

    record: Operation
    operations: list[Operation] = field(default_factory=list)
    messages: int = 0
    run: bytearray = field(default_factory=bytearray)

    @property
    def coordinator(self) -> str:
        """The id of the coordinator's log."""
        return self.record.logs[0].decode()

    @property
    def counts(self) -> array[int]:
        """Of all messages of this fragment that are in doubt; those that are sent have none."""
        return counts_in(self.record.ranges)


class LoggedTransactions:
    """By id. decided: the ids of the logs that have to hear of it."""

    def __init__(self) -> None:
        self.prepared: dict[bytes, PreparedTransaction] = {}
        self.decided: dict[bytes, tuple[str, ...]] = {}
        self._newest: PreparedTransaction | None = None  # more of its operations are to come
        self._holder: PreparedTransaction | None = None  # more of its messages are to come
        self._left = 0  # so many

    @property
    def held_messages(self) -> int:
        """How many messages are in doubt that are sent."""
        return sum(each.messages for each in self.prepared.values())

    @property
    def held_bytes(self) -> int:
        """The bytes of their batches."""
        return sum(len(each.run) for each in self.prepared.values())

    def gathers(self, operation: Operation) -> bool:
        """Whether this operation is one that is in doubt: it is kept, and not done."""
        newest = self._newest
        if newest is None:
            return False
        newest.operations.append(operation)
        if operation.code == HELD:
            newest.messages = self._left = operation.many
            self._holder = newest
        if len(newest.operations) == newest.record.many:
            self._newest = None
        return True

    def holds(self, data: bytes | bytearray | memoryview, header: BatchHeader) -> bool:
        """Whether the messages of a batch are in doubt: it is kept, and they are none yet. CorruptStore: too many."""
        holder = self._holder
        if holder is None:
            return False
        self._left -= header.count
        if self._left < 0:
            raise CorruptStore(f"the batch of index {header.first_index} has messages of a transaction too many")
        holder.run += memoryview(data)[header.position : header.end]
        if not self._left:
            self._holder = None
        return True

    def say(self, operation: Operation) -> list[Operation]:
        """One of the four operations; those that are done now. Twice says nothing more."""
        if operation.code == PREPARED:
            made = self.prepared[operation.transaction] = PreparedTransaction(operation)
            self._newest = made if operation.many else None
        elif operation.code == DECIDED:
            self.decided[operation.transaction] = tuple(each.decode() for each in operation.logs)
        elif operation.code == ENDED:
            ended = self.prepared.pop(operation.transaction, None)
            if ended is not None and operation.is_committed:
                return [each for each in ended.operations if each.code != HELD]
        else:
            self.decided.pop(operation.transaction, None)
        return []

    # Snapshots: how many prepared 4; of each its operations, PREPARED first, and behind HELD its batches; how many
    # decided 4; DECIDED of each. An operation has its length in front, 4, and so have the batches together.

    def encode(self) -> bytes:
        """All of it as bytes."""
        out = bytearray(_COUNT.pack(len(self.prepared)))
        for each in self.prepared.values():
            for operation in (each.record, *each.operations):
                out += _framed(operation)
            if each.messages:
                out += _COUNT.pack(len(each.run)) + each.run
        out += _COUNT.pack(len(self.decided))
        for transaction, logs in self.decided.items():
            names = tuple(each.encode() for each in logs)
            out += _framed(Operation(DECIDED, transaction=transaction, logs=names))
        return bytes(out)

    def restore(self, data: memoryview, at: int) -> int:
        """Become what `encode` made bytes of; where these end. Raises struct.error, or CorruptStore."""
        for _ in range(2):
            (many,) = _COUNT.unpack_from(data, at)
            at += _COUNT.size
            for _ in range(many):
                at = self._take(data, at)
                while self._newest is not None:
                    at = self._take(data, at)
                if self._holder is not None:
                    at = self._take_run(data, at, self._holder)
        return at

    def _take_run(self, data: memoryview, at: int, holder: PreparedTransaction) -> int:
        size: int = _COUNT.unpack_from(data, at)[0]
        at += _COUNT.size
        holder.run += data[at : at + size]
        if len(holder.run) != size:
            raise CorruptStore("the messages of a transaction end early")
        self._holder, self._left = None, 0
        return at + size

    def _take(self, data: memoryview, at: int) -> int:
        size: int = _COUNT.unpack_from(data, at)[0]
        at += _COUNT.size
        operation = decode_operation(data[at : at + size])
        if not self.gathers(operation):
            self.say(operation)
        return at + size


def _framed(operation: Operation) -> bytes:
    record = encode_operation(operation)
    return _COUNT.pack(len(record)) + record
