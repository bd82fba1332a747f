"""Tables as few bytes, in plain Python: pack_rows, unpack_rows.

Column by column, a table is a list of differences (the first from 0, modulo 2**64), of which equal ones that follow
each other are one pair: the difference, zigzag as a varint, then how often it stands there, a varint. A varint has 7
bits in a byte, the least first; all bytes but the last have the highest bit.
"""

from __future__ import annotations

from array import array
from itertools import groupby

from hubweir.errors import KernelRefusal
from hubweir.kernels.buffers.tables import MASK_64, check_range, signed
from hubweir.kernels.contract import Readable


def pack_rows(rows: array[int], width: int, out: bytearray) -> None:
    """Write a table to out; see queue_contract.py."""
    _check_width(rows, width)
    for column in range(width):
        values = rows[column::width]
        differences = (signed(value - before) for value, before in zip(values, [0, *values], strict=False))
        for difference, equal in groupby(differences):
            _write_varint(out, (difference << 1 ^ difference >> 63) & MASK_64)
            _write_varint(out, sum(1 for _ in equal))


def unpack_rows(data: Readable, start: int, end: int, width: int, rows: array[int]) -> int:
    """Fill a table from what pack_rows wrote; see queue_contract.py."""
    _check_width(rows, width)
    check_range(start, end, len(data))
    at, count = start, len(rows) // width
    for column in range(width):
        row, value = 0, 0
        while row < count:
            zigzag, at = _read_varint(data, at, end)
            equal, at = _read_varint(data, at, end) if at >= 0 else (0, -1)
            if at < 0 or not 0 < equal <= count - row:
                return -1
            difference = zigzag >> 1 ^ -(zigzag & 1)
            for _ in range(equal):
                value = signed(value + difference)
                rows[row * width + column] = value
                row += 1
    return at


def _check_width(rows: array[int], width: int) -> None:
    if width < 1 or len(rows) % width:
        raise KernelRefusal(f"{len(rows)} numbers are no rows of {width}")


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _read_varint(data: Readable, at: int, end: int) -> tuple[int, int]:
    """The varint at `at`, and where it ends; -1 where there is none of 64 bits."""
    value = shift = 0
    while at < end and shift < 64:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return (value, at) if value <= MASK_64 else (0, -1)
        shift += 7
    return 0, -1
