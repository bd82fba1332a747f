"""The columns of events (event_columns.py) in Arrow: record batches over the buffers that kernels fill.

Columns cost more than rows: two instead of nine read nearly twice as fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pyarrow as pa

from hubweir.kernels.columns_contract import (
    COLUMN_BODY,
    COLUMN_BUFFERS,
    COLUMN_ENQUEUED_TIME,
    COLUMN_OFFSET,
    COLUMN_PARTITION_KEY,
    COLUMN_PROPERTIES,
    COLUMN_PUBLISHER,
    COLUMN_SEQUENCE_NUMBER,
    COLUMN_SYSTEM_PROPERTIES,
    MAP_BUFFERS,
    NUMBER_BUFFERS,
    TEXT_BUFFERS,
)
from hubweir.spark.event_columns import COLUMN_NAMES

_MAP = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")
# In the order of COLUMN_NAMES: Arrow's type, the kernels' column (None: ours, the same in every row).
_KINDS: tuple[tuple[pa.DataType, int | None], ...] = (
    (pa.binary(), COLUMN_BODY),
    (pa.string(), None),
    (pa.string(), COLUMN_OFFSET),
    (pa.int64(), COLUMN_SEQUENCE_NUMBER),
    (_TIME, COLUMN_ENQUEUED_TIME),
    (pa.string(), COLUMN_PUBLISHER),
    (pa.string(), COLUMN_PARTITION_KEY),
    (_MAP, COLUMN_PROPERTIES),
    (_MAP, COLUMN_SYSTEM_PROPERTIES),
)
_COLUMNS = dict(zip(COLUMN_NAMES, _KINDS, strict=True))


@cache
def arrow_schema(names: tuple[str, ...]) -> pa.Schema:
    """The columns in Arrow, exactly as Spark compares them with its own: same order, types and nullability."""
    return pa.schema([pa.field(name, _COLUMNS[name][0]) for name in names])


def mask_of(names: Iterable[str]) -> int:
    """The kernels' mask for these columns."""
    wanted = (_COLUMNS[name][1] for name in names)
    return sum(1 << column for column in wanted if column is not None)


def fresh_columns() -> list[bytearray]:
    """Empty buffers for the kernels to append to."""
    return [bytearray() for _ in range(COLUMN_BUFFERS)]


def record_batch(columns: list[bytearray], rows: int, names: tuple[str, ...], partition_id: str) -> pa.RecordBatch:
    """The rows of the kernels' buffers as a record batch, without a copy. The buffers belong to it from now on."""
    arrays = [_array(name, columns, rows, partition_id) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(names))


def _array(name: str, columns: list[bytearray], rows: int, partition_id: str) -> pa.Array:
    kind, column = _COLUMNS[name]
    if column is None:
        return pa.repeat(pa.scalar(partition_id, pa.string()), rows)
    if column in TEXT_BUFFERS:
        return _text(kind, columns, rows, *TEXT_BUFFERS[column])
    if column in NUMBER_BUFFERS:
        return pa.Array.from_buffers(kind, rows, [None, _buffer(columns[NUMBER_BUFFERS[column]])])
    return _map(columns, rows, *MAP_BUFFERS[column])


def _buffer(data: bytearray, *, is_offsets: bool = False) -> pa.Buffer:
    return pa.py_buffer(data or (bytes(4) if is_offsets else b""))


def _text(
    kind: pa.DataType, columns: list[bytearray], rows: int, offsets: int, content: int, validity: int | None = None
) -> pa.Array:
    present = None if validity is None else _buffer(columns[validity])
    return pa.Array.from_buffers(
        kind, rows, [present, _buffer(columns[offsets], is_offsets=True), _buffer(columns[content])]
    )


def _map(columns: list[bytearray], rows: int, offsets: int, keys: tuple[int, int], values: tuple[int, int]) -> pa.Array:
    entries = max(0, len(columns[keys[0]]) // 4 - 1)
    key_array = _text(pa.string(), columns, entries, *keys)
    value_array = _text(pa.string(), columns, entries, *values)
    pairs = pa.StructArray.from_arrays([key_array, value_array], fields=[_MAP.key_field, _MAP.item_field])
    return pa.Array.from_buffers(_MAP, rows, [None, _buffer(columns[offsets], is_offsets=True)], children=[pairs])
