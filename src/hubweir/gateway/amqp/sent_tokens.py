"""The lock tokens of what one link has sent and nobody has settled, by delivery id: in stretches, as they were sent.

A stretch is what one send wrote: its first delivery id and the tokens back to back, so that the settlement of a range
is a slice and never a step for each message. All of a stretch came from one fragment, which its tokens name. Ids are
serial numbers of 32 bits of a session, which wrap.
"""

from __future__ import annotations

from msgspec import Struct

from hubweir.amqp.transport.serial_number import MODULUS, add_serial, distance
from hubweir.queue.settle_outcome import TOKEN_BYTES


class _Stretch(Struct, gc=False):
    """count: how many deliveries it began with; left: how many of them are not settled."""

    first_id: int
    tokens: bytes
    count: int
    left: int


class SentRange(Struct, frozen=True, gc=False):
    """Deliveries that were sent together: first_id to last_id, both included, and their tokens."""

    first_id: int
    last_id: int
    tokens: bytes


class SentTokens:
    """Those of one link."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = []  # in the order they were sent

    def add(self, first_id: int, tokens: bytes) -> None:
        """Deliveries first_id and following were sent with these tokens."""
        count = len(tokens) // TOKEN_BYTES
        if count:
            self._stretches.append(_Stretch(first_id, tokens, count, count))

    def take_ranges(self, first_id: int, last_id: int) -> list[SentRange]:
        """Deliveries first_id to last_id, both included, in their order; each is asked for once.

        All of them were sent on this link and were not settled before, as the engine reports settlements.
        """
        count = (last_id - first_id) % MODULUS + 1
        oldest = self._stretches[0] if self._stretches else None
        if oldest is not None and oldest.first_id == first_id and oldest.left == oldest.count == count:
            del self._stretches[0]  # it is settled whole, as nearly always
            return [SentRange(first_id, last_id, oldest.tokens)]
        found: list[SentRange] = []
        missing, is_used_up = count, False
        for stretch in self._stretches:
            place = distance(first_id, stretch.first_id)
            begin, end = max(0, place), min(stretch.count, place + count)
            if begin < end:
                tokens = stretch.tokens[begin * TOKEN_BYTES : end * TOKEN_BYTES]
                ids = add_serial(stretch.first_id, begin), add_serial(stretch.first_id, end - 1)
                found.append(SentRange(*ids, tokens))
                stretch.left -= end - begin
                missing -= end - begin
                is_used_up = is_used_up or not stretch.left
                if not missing:
                    break
        if is_used_up:
            self._stretches = [stretch for stretch in self._stretches if stretch.left]
        return found
