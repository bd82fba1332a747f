"""The number of a fragment in what it numbers: the highest 16 bits of sequence numbers and of the numbers of locks.

Whoever has such a number knows the fragment without a look anywhere.
"""

from __future__ import annotations

# Below the fragment's number a sequence number has a count of 48 bits, and a lock's number its place among locks.
NUMBER_SHIFT = 48
# Of a number as a token begins with it, big-endian.
NUMBER_BYTES = 8


def first_number(fragment_number: int) -> int:
    """What the fragment's numbers begin at."""
    return fragment_number << NUMBER_SHIFT


def fragment_of(number: int) -> int:
    """The fragment that gave this sequence number, or lock; below 0 where none did."""
    return number >> NUMBER_SHIFT
