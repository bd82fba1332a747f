"""Finds the partition that a row goes to, in plain Python: rows_by_partition."""

from __future__ import annotations

from array import array

from hubweir.errors import KernelRefusal
from hubweir.kernels.columns.arrow import VariableColumn
from hubweir.kernels.columns_contract import (
    ROWS_MALFORMED,
    ROWS_NO_PARTITION,
    ROWS_OK,
    ROWS_TWO_TARGETS,
    Variable,
)
from hubweir.kernels.keys.keys import hash_key
from hubweir.kernels.messages.sections import Malformed

# More digits than these are no partition of any hub.
_MOST_DIGITS = 9


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
            groups[abs(hash_key(bytes(key))) % partitions].append(row)
        else:
            groups[(spread + row) % partitions].append(row)
    at = 0
    for partition, group in enumerate(groups):
        starts[partition] = at
        order[at : at + len(group)] = array("q", group)
        at += len(group)
    starts[partitions] = at
    return last, ROWS_OK
