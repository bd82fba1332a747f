"""Transfers as a log says them: messages on their way from one entity to another, which are moved exactly once.

A *transfer* is some messages of one sub-queue with a number and a destination. One at a time is open a sub-queue, and
later ones have higher numbers, also when a crash took the newest away (the number begins with the writer's epoch). The
source says which messages go (TRANSFERRING) before anybody is offered them, so every offer of a number is the same
messages. The destination keeps of each source the highest number that it stored: what comes under that number or a
lower one is there already, and makes nothing. Then the source lets its messages go (TRANSFERRED). A crash at either end
leaves the open transfer with the source, which offers it again, and the answer is the same.

A destination keeps a number of each sub-queue that ever forwarded to it: some 80 bytes, for good.
"""

from __future__ import annotations

import struct
from array import array

from msgspec import Struct

from hubweir.errors import CorruptStore
from hubweir.queue.operation import TRANSFERRING, Operation, counts_in, decode_operation, encode_operation

_COUNT = struct.Struct(">I")
_SIZE = struct.Struct(">I")
_KNOWN = struct.Struct(">QH")


class SentTransfer(Struct, frozen=True):
    """The newest of a sub-queue. ranges: its messages; none when it is over. destination: as the source was told."""

    number: int
    destination: bytes
    ranges: array[int]

    @property
    def counts(self) -> array[int]:
        """Its messages, one by one."""
        return counts_in(self.ranges)


class Arrivals(Struct, frozen=True):
    """Messages of one batch that come from elsewhere. is_new: they were not stored before. See RECEIVED."""

    firsts: array[int]
    ends_ms: array[int]
    is_new: bool


class Transfers:
    """Of one fragment. sent: by sub-queue. received: by source, the highest number that was stored."""

    def __init__(self) -> None:
        self.sent: dict[int, SentTransfer] = {}
        self.received: dict[bytes, int] = {}
        self._arriving: Operation | None = None
        self._arrived = 0  # of its messages
        self._is_new = False

    def begin(self, operation: Operation) -> None:
        """TRANSFERRING."""
        self.sent[operation.sub_queue] = SentTransfer(operation.number, operation.name, operation.ranges)

    def end(self, sub_queue: int, number: int) -> array[int]:
        """TRANSFERRED and RETURNED: the ranges of the transfer, which is over; none where another one is open."""
        open_one = self.sent.get(sub_queue)
        if open_one is None or open_one.number != number:
            return array("q")
        self.sent[sub_queue] = SentTransfer(number, open_one.destination, array("q"))
        return open_one.ranges

    def expect(self, operation: Operation) -> None:
        """RECEIVED: the next records are these messages."""
        self._is_new = operation.number > self.received.get(operation.name, 0)
        if self._is_new:
            self.received[operation.name] = operation.number
        self._arriving, self._arrived = (operation if operation.firsts else None), 0

    def arrive(self, messages: int) -> Arrivals | None:
        """What the next batch of so many messages is; None: what clients sent. CorruptStore: more than were named."""
        operation, at = self._arriving, self._arrived
        if operation is None:
            return None
        end = self._arrived = at + messages
        if end > len(operation.firsts):
            raise CorruptStore(f"a batch of {messages} has messages of a transfer that nobody named")
        if end == len(operation.firsts):
            self._arriving = None
        return Arrivals(operation.firsts[at:end], operation.ends_ms[at:end], self._is_new)

    # Snapshots: how many were sent 4, for each 4 + its TRANSFERRING; how many sources 4, for each number 8, 2 + name

    def encode(self) -> bytes:
        """All of it."""
        out = bytearray(_COUNT.pack(len(self.sent)))
        for sub_queue, each in self.sent.items():
            record = encode_operation(
                Operation(TRANSFERRING, each.ranges, sub_queue, number=each.number, name=each.destination)
            )
            out += _SIZE.pack(len(record)) + record
        out += _COUNT.pack(len(self.received))
        for name, number in self.received.items():
            out += _KNOWN.pack(number, len(name)) + name
        return bytes(out)

    def restore(self, data: memoryview, at: int) -> int:
        """Have what was encoded; where it ends. Raises struct.error, ValueError or CorruptStore for what is none."""
        (many,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        for _ in range(many):
            (size,) = _SIZE.unpack_from(data, at)
            at += _SIZE.size
            operation = decode_operation(data[at : at + size])
            if operation.code != TRANSFERRING:
                raise ValueError("no transfer")
            self.begin(operation)
            at += size
        (many,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        for _ in range(many):
            number, size = _KNOWN.unpack_from(data, at)
            at += _KNOWN.size
            if at + size > len(data):
                raise ValueError("it ends early")
            self.received[bytes(data[at : at + size])] = number
            at += size
        return at
