"""Rows of one target as batches for the wire: data sections, each batch as large as the link takes or as rows last."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from hubweir.kernels import event_batches
from hubweir.kernels.columns_contract import ROWS_MALFORMED, ROWS_TOO_LARGE, Variable
from hubweir.spark.errors import IllegalRow
from hubweir.spark.row_targets import EventRows


def encoded_batches(
    rows: EventRows, keys: Variable | None, order: array[int], first: int, last: int, max_bytes: int
) -> Iterator[tuple[bytes, int, int]]:
    """(data sections, first place, place behind the last) of each batch of the rows order[first:last].

    IllegalRow when a row alone is over max_bytes.
    """
    while first < last:
        out = bytearray()
        place, _, status = event_batches(rows.body, keys, rows.properties, order, first, last, max_bytes, b"", out)
        if status == ROWS_TOO_LARGE:
            raise IllegalRow(
                f"row {rows.first_number + order[place]} of the task is too large: its event, with its properties, is "
                f"over the {max_bytes} bytes that the event hub takes at once; make it smaller, or filter it out"
            )
        if status == ROWS_MALFORMED:
            raise malformed(rows, order[place])
        yield bytes(out), first, place
        first = place


def malformed(rows: EventRows, row: int) -> IllegalRow:
    """Not of a user's making."""
    return IllegalRow(
        f"row {rows.first_number + row} of the task came damaged from Spark: its Arrow buffers contradict each other"
    )
