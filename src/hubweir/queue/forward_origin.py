"""The origin of a forwarded message: its sequence number where it was first, and how often it was forwarded since.

Both stand in one number, in the column M_FIRST of a message's row, where a message that was sent here has the count
that it got first: bit 62 says that it was forwarded; bits 59 to 61 are its hops; the rest is the sequence number, whose
16 bits of fragment never need more than 11. Copies of a topic keep the column, so they keep this, too.
"""

from __future__ import annotations

from array import array

from hubweir.kernels.contract import FORWARDED_BIT

FORWARDED = 1 << FORWARDED_BIT
_HOPS_SHIFT = 59
_HOPS_MASK = 7
_NUMBER_MASK = (1 << _HOPS_SHIFT) - 1

# A message is forwarded four times; the fifth time it is dead-lettered.
HOP_LIMIT = 4


def origin(number: int, hops: int) -> int:
    """Of a message that had this sequence number where it was sent, and was forwarded so often."""
    assert 0 < number <= _NUMBER_MASK and 0 < hops <= HOP_LIMIT, f"message {number} cannot have made {hops} hops"
    return FORWARDED | hops << _HOPS_SHIFT | number


def hops_of(first: int) -> int:
    """How often a message was forwarded."""
    return first >> _HOPS_SHIFT & _HOPS_MASK if first >= FORWARDED else 0


def number_of(first: int) -> int:
    """The sequence number that it had where it was sent; of one that was sent here the count that it got first."""
    return first & _NUMBER_MASK if first >= FORWARDED else first


def next_origins(firsts: array[int], numbers: array[int]) -> array[int]:
    """What messages were first, once they are forwarded. numbers: theirs, where they were never forwarded before.

    None may have made all its hops.
    """
    if max(firsts, default=0) < FORWARDED:
        start = FORWARDED | 1 << _HOPS_SHIFT
        return array("q", [start | number for number in numbers])
    return array(
        "q",
        [
            first + (1 << _HOPS_SHIFT) if first >= FORWARDED else origin(number, 1)
            for first, number in zip(firsts, numbers, strict=True)
        ],
    )
