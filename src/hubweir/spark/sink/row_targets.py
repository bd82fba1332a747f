"""Routes the rows of a record batch: to a partition, chosen by the hub's own hash, or to a publisher's address.

The writer chooses, not the gateway: a repeated batch has to send the same rows to the same partitions. Rows without any
target go to all partitions in turn, by their number in the task, however Spark cuts a task's rows into record batches.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from hubweir.kernels import rows_by_partition
from hubweir.kernels.columns_contract import (
    ROWS_NO_PARTITION,
    ROWS_OK,
    ROWS_TWO_TARGETS,
    MapColumn,
    Variable,
)
from hubweir.spark.errors import IllegalRow
from hubweir.spark.sink.row_limits import check_limits
from hubweir.spark.sink.sink_columns import SinkColumns, body_column, map_column, text_column, variable


@dataclass(frozen=True, slots=True)
class EventRows:
    """Rows as the kernels take them. For errors: task, and first_number of row 0 among the task's rows, from 1."""

    count: int
    body: Variable
    keys: Variable | None
    properties: MapColumn | None
    first_number: int
    task: int = 0

    def name(self, row: int) -> str:
        """What an error calls a row."""
        return f"row {self.first_number + row} of task {self.task}"


@dataclass(frozen=True, slots=True)
class TargetedRows:
    """order: row numbers, those of partition n at starts[n] to starts[n + 1]. publishers: rows of each, in order."""

    rows: EventRows
    order: array[int]
    starts: array[int]
    publishers: dict[str, array[int]]


def targeted_rows(
    batch: pa.RecordBatch, columns: SinkColumns, *, partitions: int, first_number: int, task: int
) -> TargetedRows:
    """The rows of a record batch by where they go. first_number, task: see EventRows; the first row of a task that has
    no target goes to the partition of the task's number.

    IllegalRow when a row has two targets, a partition that the hub does not have, or more than check_limits lets it.
    """
    keys, ids = _text(batch, columns.partition_key), _text(batch, columns.partition_id)
    publishers = _text(batch, columns.publisher)
    by_publisher: dict[str, array[int]] = {}
    if publishers is not None:
        by_publisher = _rows_of_publishers(publishers)
    given = ids
    if columns.partition is not None:
        ids = _otherwise(ids, keys, _text(batch, columns.partition))
    properties = None if columns.properties is None else batch.column(columns.properties)
    rows = EventRows(
        batch.num_rows,
        variable(body_column(batch.column(columns.body))),
        None if keys is None or keys.null_count == len(keys) else variable(keys),
        None if properties is None else map_column(properties),
        first_number,
        task,
    )
    if publishers is not None:
        _check_publishers(publishers, keys, given, rows)
    check_limits(keys, publishers, properties, rows.name)
    order, starts = _zeros(batch.num_rows), _zeros(partitions + 1)
    row, status = rows_by_partition(
        rows.keys,
        None if ids is None or ids.null_count == len(ids) else variable(ids),
        0,
        batch.num_rows,
        partitions,
        (task + first_number - 1) % partitions,
        order,
        starts,
    )
    if status != ROWS_OK:
        raise IllegalRow(f"{rows.name(row)} {_refused(status, ids, given, row, partitions)}")
    if by_publisher:
        order, starts = _without(order, starts, _given(publishers))
    return TargetedRows(rows, order, starts, by_publisher)


def _text(batch: pa.RecordBatch, place: int | None) -> pa.Array | None:
    return None if place is None else text_column(batch.column(place))


def _zeros(count: int) -> array[int]:
    return array("q", bytes(8 * count))


def _given(found: pa.Array) -> pa.Array:
    """Which rows have a value that is not empty."""
    return pc.fill_null(pc.not_equal(found, ""), False)


def _otherwise(ids: pa.Array | None, keys: pa.Array | None, partition: pa.Array) -> pa.Array:
    """Ids where they are given; else, for rows without a key, the partition."""
    if keys is not None and keys.null_count < len(keys):
        partition = pc.if_else(_given(keys), pa.scalar(None, pa.string()), partition)
    if ids is not None and ids.null_count < len(ids):
        partition = pc.if_else(_given(ids), ids, partition)
    return partition


def _check_publishers(publishers: pa.Array, keys: pa.Array | None, ids: pa.Array | None, rows: EventRows) -> None:
    if publishers.null_count == len(publishers):
        return
    published = _given(publishers)
    for other, wrong in (
        (ids, None if ids is None else _given(ids)),
        (keys, None if keys is None else pc.and_(_given(keys), pc.fill_null(pc.not_equal(keys, publishers), False))),
    ):
        if other is None or wrong is None:
            continue
        both = pc.and_(published, wrong)
        if pc.any(both).as_py():
            name = "partitionId" if other is ids else "partitionKey"
            raise IllegalRow(
                f"{rows.name(pc.index(both, True).as_py())} has a publisher and a {name}: a row has one target, set "
                "the others to null"
            )


def _rows_of_publishers(publishers: pa.Array) -> dict[str, array[int]]:
    """The rows of each, as they stood. In Python once a publisher, not once a row."""
    if publishers.null_count == len(publishers):
        return {}
    coded = publishers.dictionary_encode()
    rows = _numbers(pc.array_sort_indices(coded.indices))  # stable, rows without a publisher last
    found: dict[str, array[int]] = {}
    first = 0
    for name, count in _counts(coded):
        if name:
            found[name] = rows[first : first + count]
        first += count
    return found


def _counts(coded: pa.DictionaryArray) -> list[tuple[str, int]]:
    """Every publisher with how many rows it has, in the order of the codes."""
    counted = {each["values"]: each["counts"] for each in pc.value_counts(coded.indices).to_pylist()}
    return [(name, counted.get(code, 0)) for code, name in enumerate(coded.dictionary.to_pylist())]


def _without(order: array[int], starts: array[int], published: pa.Array) -> tuple[array[int], array[int]]:
    """The rows that no publisher has; published: of every row, whether one has it."""
    rows = pa.array(order, pa.int64())
    gone = published.take(rows)
    before = array("q", [0]) + _numbers(pc.cumulative_sum(gone.cast(pa.int64())))
    return _numbers(rows.filter(pc.invert(gone))), array("q", [start - before[start] for start in starts])


def _numbers(found: pa.Array) -> array[int]:
    """Integers without nulls as an array of our own."""
    if not len(found):
        return array("q")
    numbers = memoryview(found.cast(pa.int64()).buffers()[1]).cast("B").cast("q")
    return array("q", numbers[found.offset : found.offset + len(found)].tobytes())


def _refused(status: int, ids: pa.Array | None, given: pa.Array | None, row: int, partitions: int) -> str:
    """ids: what counts; given: of the column partitionId alone."""
    if status == ROWS_TWO_TARGETS:
        return "has a partitionId and a partitionKey: a row has one target, set the other to null"
    if status == ROWS_NO_PARTITION:
        text = "" if ids is None else str(ids[row].as_py())[:64]
        known = f"and the event hub has 0 to {partitions - 1}"
        if given is not None and given[row].as_py():
            return f"names partition '{text}' in partitionId, {known}: name one of these, or none"
        return f"names partition '{text}' in partition, {known}: drop this column, or give a partitionId"
    return "came damaged from Spark: its Arrow buffers contradict each other"
