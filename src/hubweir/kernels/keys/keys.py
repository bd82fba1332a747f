"""Partition keys in plain Python: their hash, the keys of many deliveries, deliveries by partition.

The hash is Bob Jenkins' lookup3 (hashlittle2, both seeds 0) over the key's UTF-8 bytes, folded to 16 signed bits.
"""

from __future__ import annotations

import struct
from array import array
from functools import lru_cache

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import check_rows
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    K_HASH,
    K_LENGTH,
    K_START,
    K_WHERE,
    KEY_MALFORMED,
    KEY_NONE,
    KEY_SCATTERED,
    KEY_TOO_LONG,
    KEY_WIDTH,
    Readable,
)
from hubweir.kernels.messages.ingest import find_key, read_delivery

# Keys come again and again; a hash costs some 10 µs in Python, a hit 0.1. Bounded: 64 Ki short keys are about 10 MB.
_REMEMBERED_KEYS = 65_536
_MASK = 0xFFFFFFFF
_THREE_WORDS = struct.Struct("<III")


@lru_cache(maxsize=_REMEMBERED_KEYS)
def hash_key(key: bytes) -> int:
    """The hash of a key, -32768 … 32767; see contract.py."""
    c, b = lookup3(key)
    low = (c ^ b) & 0xFFFF
    return low - 0x10000 if low >= 0x8000 else low


def find_keys(
    data: Readable, rows: array[int], first_row: int, last_row: int, most_characters: int, table: array[int]
) -> int:
    """One key row a delivery; see contract.py."""
    view = memoryview(data)
    check_rows(rows, DELIVERY_WIDTH, first_row, last_row)
    check_rows(table, KEY_WIDTH, 0, last_row - first_row)
    deliveries = [read_delivery(view, rows, row) for row in range(first_row, last_row)]
    without = 0
    for at, delivery in zip(range(0, len(table), KEY_WIDTH), deliveries, strict=False):
        start, length, where = find_key(view, *delivery)
        key = bytes(view[start : start + length])
        # Bytes 0x80 to 0xBF go on with a character; all others start one.
        if sum(byte & 0xC0 != 0x80 for byte in key) > most_characters:
            where = KEY_TOO_LONG
        without += where == KEY_NONE
        table[at + K_START], table[at + K_LENGTH], table[at + K_WHERE] = start, length, where
        table[at + K_HASH] = 0 if where in (KEY_NONE, KEY_MALFORMED, KEY_TOO_LONG) else hash_key(key)
    return without


def group_deliveries(
    rows: array[int], first_row: int, last_row: int, keys: array[int], turns: array[int], grouped: array[int],
    ends: array[int],
) -> None:  # fmt: skip
    """Delivery rows by partition; see contract.py."""
    count, partitions = last_row - first_row, len(ends) - 1
    check_rows(rows, DELIVERY_WIDTH, first_row, last_row)
    check_rows(keys, KEY_WIDTH, 0, count)
    check_rows(grouped, DELIVERY_WIDTH, 0, count)
    if partitions < 1 or any(not 0 <= turn <= partitions for turn in turns):
        raise KernelRefusal(f"a turn is none of {partitions} partitions")
    wheres = keys[K_WHERE : count * KEY_WIDTH : KEY_WIDTH]
    if wheres.count(KEY_NONE) > len(turns):
        raise KernelRefusal(f"{wheres.count(KEY_NONE)} deliveries have no key, {len(turns)} turns were given")
    groups: list[array[int]] = [array("q") for _ in ends]
    turn = iter(turns)
    for number, where in enumerate(wheres):
        at = (first_row + number) * DELIVERY_WIDTH
        if where == KEY_NONE:
            group = next(turn)
        elif where in (KEY_MALFORMED, KEY_TOO_LONG, KEY_SCATTERED):
            group = partitions
        else:
            group = abs(keys[number * KEY_WIDTH + K_HASH]) % partitions
        groups[group] += rows[at : at + DELIVERY_WIDTH]
    end = 0
    for number, group_rows in enumerate(groups):
        grouped[end * DELIVERY_WIDTH : end * DELIVERY_WIDTH + len(group_rows)] = group_rows
        end += len(group_rows) // DELIVERY_WIDTH
        ends[number] = end


def lookup3(key: bytes) -> tuple[int, int]:
    """hashlittle2 with both seeds 0: its two 32-bit results, c and b."""
    a = b = c = (0xDEADBEEF + len(key)) & _MASK
    if not key:
        return c, b
    # The last 1 to 12 bytes are finished, not mixed.
    tail = (len(key) - 1) // 12 * 12
    for at in range(0, tail, 12):
        x, y, z = _THREE_WORDS.unpack_from(key, at)
        a, b, c = _mix((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
    x, y, z = _THREE_WORDS.unpack(key[tail:].ljust(12, b"\0"))
    return _finish((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c & _MASK) ^ _rotate(c, bits)
        c = c + b & _MASK
        # The next line of the round works on (b, c, a).
        a, b, c = b, c, a
    return a, b, c


def _finish(a: int, b: int, c: int) -> tuple[int, int]:
    c = (c ^ b) - _rotate(b, 14) & _MASK
    a = (a ^ c) - _rotate(c, 11) & _MASK
    b = (b ^ a) - _rotate(a, 25) & _MASK
    c = (c ^ b) - _rotate(b, 16) & _MASK
    a = (a ^ c) - _rotate(c, 4) & _MASK
    b = (b ^ a) - _rotate(a, 14) & _MASK
    c = (c ^ b) - _rotate(b, 24) & _MASK
    return c, b
