"""Arithmetic of numbers that wrap at 2**32: delivery ids, transfer ids, delivery counts (RFC 1982; part 2, 2.8.10).

A plain int from 0 to 2**32 - 1 holds one. Half of the circle lies ahead of each number and half behind it, so two
numbers can be compared as long as they are less than 2**31 apart, which every window and limit of ours sees to.

What runs once a frame or a batch writes `% MODULUS` itself: add_serial would be one more Python call there.
"""

from __future__ import annotations

MODULUS = 1 << 32
_HALF = 1 << 31


def add_serial(number: int, count: int) -> int:
    """The serial number count steps after number; count may be negative."""
    return (number + count) % MODULUS


def distance(later: int, earlier: int) -> int:
    """How many steps lead from earlier to later: -2**31 to 2**31 - 1, negative when later comes first."""
    return (later - earlier + _HALF) % MODULUS - _HALF


def unwrap(number: int, near: int) -> int:
    """The integer without end that number stands for, given one that is less than 2**31 away from it."""
    return near + (number - near + _HALF) % MODULUS - _HALF
