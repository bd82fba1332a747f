"""Which partition a row goes to, in plain Python: hash_key, rows_by_partition."""

from __future__ import annotations

from array import array
from struct import Struct

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns_contract import (
    ROWS_MALFORMED,
    ROWS_NO_PARTITION,
    ROWS_OK,
    ROWS_TWO_TARGETS,
    Variable,
)
from hubweir.kernels.pure_arrow import VariableColumn
from hubweir.kernels.pure_batches import Readable
from hubweir.kernels.pure_values import Malformed

_MASK = 0xFFFFFFFF
_WORDS = Struct("<III")
_MIX, _FINISH = (4, 6, 8, 16, 19, 4), (14, 11, 25, 16, 4, 14, 24)
# More digits than these are no partition of any hub.
_MOST_DIGITS = 9


def hash_key(key: Readable) -> int:
    """lookup3 of a key, folded to 16 signed bits; see columns_contract.py."""
    octets = bytes(key)
    a = b = c = (0xDEADBEEF + len(octets)) & _MASK
    if octets:
        # The last 1 to 12 bytes are finished, not mixed.
        tail = (len(octets) - 1) // 12 * 12
        for at in range(0, tail, 12):
            x, y, z = _WORDS.unpack_from(octets, at)
            a, b, c = (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK
            for bits in _MIX:
                a, c = ((a - c) & _MASK) ^ _rotated(c, bits), (c + b) & _MASK
                a, b, c = b, c, a  # the next line of the round works on these
        x, y, z = _WORDS.unpack(octets[tail:].ljust(12, b"\0"))
        a, b, c = (a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK
        for bits in _FINISH:
            c = ((c ^ b) - _rotated(b, bits)) & _MASK
            a, b, c = b, c, a  # c ^= b, a ^= c, b ^= a, and again
    # Seven turns of three names: the results c and b stand in b and a now.
    low = (a ^ b) & 0xFFFF
    return low - 0x10000 if low >= 0x8000 else low


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def rows_by_partition(
    keys: Variable | None,
    ids: Variable | None,
    first: int,
    last: int,
    partitions: int,
    spread: int,
    order: array[int],
    starts: array[int],
) -> tuple[int, int]:
    """Group rows by partition; see columns_contract.py."""
    if not 0 <= first <= last or partitions < 1 or spread < 0:
        raise KernelRefusal(f"rows {first} to {last}, {partitions} partitions and start {spread} are no call")
    if len(order) < last - first or len(starts) < partitions + 1:
        raise KernelRefusal(f"tables of {len(order)} and {len(starts)} are too small")
    key_column = None if keys is None else VariableColumn(keys)
    id_column = None if ids is None else VariableColumn(ids)
    groups: list[list[int]] = [[] for _ in range(partitions)]
    for row in range(first, last):
        try:
            key = None if key_column is None else key_column[row]
            wanted = None if id_column is None else id_column[row]
        except Malformed:
            return row, ROWS_MALFORMED
        if key and wanted:
            return row, ROWS_TWO_TARGETS
        if wanted:
            if len(wanted) > _MOST_DIGITS or not wanted.isdigit() or int(wanted) >= partitions:
                return row, ROWS_NO_PARTITION
            groups[int(wanted)].append(row)
        elif key:
            groups[abs(hash_key(key)) % partitions].append(row)
        else:
            groups[(spread + row) % partitions].append(row)
    at = 0
    for partition, group in enumerate(groups):
        starts[partition] = at
        order[at : at + len(group)] = array("q", group)
        at += len(group)
    starts[partitions] = at
    return last, ROWS_OK
