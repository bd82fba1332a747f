"""Checks that every twin makes of a call, in plain Python: ranges lie in buffers, and rows in tables."""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal

MASK_64 = 2**64 - 1


def check_range(start: int, end: int, size: int) -> None:
    """Refuse a range that does not lie in a buffer of size bytes."""
    if not 0 <= start <= end <= size:
        raise KernelRefusal(f"bytes {start} to {end} do not lie in a buffer of {size}")


def check_rows(table: array[int], width: int, first: int, last: int) -> None:
    """Refuse rows that do not lie in a table."""
    if not 0 <= first <= last <= len(table) // width:
        raise KernelRefusal(f"rows {first} to {last} do not lie in a table of {len(table) // width}")


def signed(number: int) -> int:
    """The 64 bits of number as a table holds them: two's complement."""
    number &= MASK_64
    return number - 2**64 if number >= 2**63 else number
