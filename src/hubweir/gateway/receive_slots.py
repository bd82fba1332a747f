"""Limits the receives over HTTP that one process has under way, and the bytes of answers that peers have yet to take.

A waiting receive holds a connection, a receiver at a broker and a task; an answer is held until its peer has read it.
Above either limit a further receive is refused at once; it holds nothing then.
"""

from __future__ import annotations

from hubweir.errors import SERVER_BUSY, ServiceError

# Each connection waits for one at a time. An answer is at most as large as the largest message.
RECEIVE_COUNT = 1_024
ANSWER_BYTES = 64 * 1024 * 1024


class ReceiveSlots:
    """Of one process."""

    def __init__(self, *, limit: int = RECEIVE_COUNT, limit_bytes: int = ANSWER_BYTES) -> None:
        self._limit = limit
        self._limit_bytes = limit_bytes
        self.used = 0
        self.used_bytes = 0

    def take_slot(self) -> ReceiveSlot:
        """A slot for one receive. Raises ServiceError SERVER_BUSY."""
        if self.used >= self._limit:
            text = f"{self._limit} receives wait over HTTP already, and more are not taken: receive again in a moment."
            raise ServiceError(SERVER_BUSY, text)
        if self.used_bytes >= self._limit_bytes:
            text = "Peers have yet to read what they received over HTTP before: receive again in a moment."
            raise ServiceError(SERVER_BUSY, text)
        return ReceiveSlot(self)


class ReceiveSlot:
    """Of one receive: held from its begin until its peer has taken the answer, or is gone."""

    __slots__ = ("_bytes", "_is_held", "_slots")

    def __init__(self, slots: ReceiveSlots) -> None:
        self._slots = slots
        self._bytes = 0
        self._is_held = True
        slots.used += 1

    def hold(self, size_bytes: int) -> None:
        """The answer has so many bytes. Once a slot."""
        self._bytes = size_bytes
        self._slots.used_bytes += size_bytes

    def give_back(self) -> None:
        """The second call does nothing."""
        if self._is_held:
            self._is_held = False
            self._slots.used -= 1
            self._slots.used_bytes -= self._bytes
