"""Rows of one target as batches for the wire: data sections, each batch as large as the link takes or as rows last."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from hubweir.kernels import event_batches
from hubweir.kernels.columns_contract import ROWS_MALFORMED, ROWS_TOO_LARGE, Variable
from hubweir.spark.errors import IllegalRow
from hubweir.spark.sink.row_targets import EventRows


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """payload: the data sections of the rows at the places first … end - 1. name: what an error calls these rows."""

    payload: bytes
    first: int
    end: int
    name: str


def encoded_batches(
    rows: EventRows, keys: Variable | None, order: array[int], first: int, last: int, max_bytes: int
) -> Iterator[EncodedBatch]:
    """The rows order[first:last] in batches. IllegalRow when a row alone is over max_bytes."""
    while first < last:
        out = bytearray()
        place, _, status = event_batches(rows.body, keys, rows.properties, order, first, last, max_bytes, b"", out)
        if status == ROWS_TOO_LARGE:
            raise IllegalRow(
                f"{rows.name(order[place])} is too large: its event, with its properties, is over the {max_bytes} "
                "bytes that the event hub takes at once; make its body smaller, or filter it out"
            )
        if status == ROWS_MALFORMED:
            raise malformed(rows, order[place])
        name = f"rows {rows.first_number + order[first]} to {rows.first_number + order[place - 1]} of task {rows.task}"
        yield EncodedBatch(bytes(out), first, place, name)
        first = place


def malformed(rows: EventRows, row: int) -> IllegalRow:
    """Not of a user's making."""
    return IllegalRow(f"{rows.name(row)} came damaged from Spark: its Arrow buffers contradict each other")
