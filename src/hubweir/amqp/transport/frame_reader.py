"""Cuts reads into whole frames: the start of a frame at the end of a read waits here for the next read.

So the driver's receive buffer is free after each read, and a connection without a frame under way holds nothing.
A client keeps what it receives: with the start of its first frame in front, a read is one piece of bytes that it may
keep as they are. A server copies the one frame only.
"""

from __future__ import annotations

from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.frame import HEADER_SIZE
from hubweir.amqp.transport.read_frames import read_frames
from hubweir.amqp.transport.settings import Role

SIZE_FIELD = 4


class FrameReader:
    """Feeds a connection with whole frames. Holds at most one partial frame, which the size limit bounds."""

    __slots__ = ("_carry", "_connection")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._carry = bytearray()

    def feed(self, data: memoryview) -> None:
        """Handle all frames that are whole now; data must hold until the host has handled the events."""
        if self._connection.role is Role.CLIENT and self._is_completed_by(data):
            data = memoryview(b"".join((self._carry, data)))
            self._carry = bytearray()
        while self._carry and len(data):
            data = data[self._complete(data) :]
        if len(data) and self._connection.is_reading:
            self._carry += data[read_frames(self._connection, data) :]

    def _is_completed_by(self, data: memoryview) -> bool:
        """Whether the partial frame is whole with this read, so that it is joined with one read only."""
        carry = self._carry
        if len(carry) < SIZE_FIELD:
            return False
        return int.from_bytes(carry[:SIZE_FIELD], "big") <= len(carry) + len(data)

    def _complete(self, data: memoryview) -> int:
        """Add to the partial frame what belongs to it, handle it once it is whole; return how much was taken."""
        carry = self._carry
        # Looked at three times: when its size is known, when its header is, and when it is whole.
        wanted = next((length for length in (SIZE_FIELD, HEADER_SIZE) if len(carry) < length), 0)
        if not wanted:
            wanted = int.from_bytes(carry[:SIZE_FIELD], "big")
        part = data[: wanted - len(carry)]
        carry += part
        if len(carry) == wanted:
            whole = memoryview(carry)
            used = read_frames(self._connection, whole)
            if used:
                # Events may point into these bytes, so the next partial frame gets its own.
                self._carry = bytearray(whole[used:])
            else:
                whole.release()
        return len(part)
