"""The lock tokens of what one link has sent and nobody has settled, by delivery id: in stretches, as they were sent.

A stretch is what one send wrote: its first delivery id and the tokens back to back, so that the settlement of a range
is a slice and never a step for each message. Ids are serial numbers of 32 bits of a session, which wrap.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from sys import byteorder

from hubweir.amqp.transport.serial_number import add_serial, distance
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK
from hubweir.queue.settle_outcome import TOKEN_BYTES


@dataclass(slots=True)
class _Stretch:
    """left: how many of its deliveries are not settled."""

    first_id: int
    tokens: bytes
    left: int

    @property
    def count(self) -> int:
        return len(self.tokens) // TOKEN_BYTES


class SentTokens:
    """Those of one link."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = []  # in the order they were sent

    def __len__(self) -> int:
        """How many deliveries are not settled."""
        return sum(stretch.left for stretch in self._stretches)

    def add(self, first_id: int, tokens: bytes) -> None:
        """Deliveries first_id and following were sent with these tokens."""
        if tokens:
            self._stretches.append(_Stretch(first_id, tokens, len(tokens) // TOKEN_BYTES))

    def take(self, first_id: int, last_id: int) -> bytes:
        """The tokens of deliveries first_id to last_id, both included, in their order; each is asked for once.

        All of them were sent on this link and were not settled before, as the engine reports settlements.
        """
        found = []
        for stretch in self._stretches:
            begin = max(0, distance(first_id, stretch.first_id))
            end = min(stretch.count, distance(add_serial(last_id, 1), stretch.first_id))
            if begin < end:
                found.append(stretch.tokens[begin * TOKEN_BYTES : end * TOKEN_BYTES])
                stretch.left -= end - begin
        if any(not stretch.left for stretch in self._stretches):
            self._stretches = [stretch for stretch in self._stretches if stretch.left]
        return b"".join(found)


def tokens_of(rows: array[int], first_row: int, last_row: int) -> bytes:
    """The lock tokens of message rows, back to back, as brokers take them."""
    start, end = first_row * MESSAGE_WIDTH, last_row * MESSAGE_WIDTH
    tokens = array("q", bytes(TOKEN_BYTES * (last_row - first_row)))
    tokens[0::2] = rows[start + Q_LOCK : end : MESSAGE_WIDTH]
    tokens[1::2] = rows[start + Q_LOCK_CHECK : end : MESSAGE_WIDTH]
    if byteorder == "little":
        tokens.byteswap()
    return tokens.tobytes()
