"""The columns of events (event_columns.py) in Arrow, and as the kernels fill them.

Columns cost more than rows: two instead of nine read nearly twice as fast.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import pyarrow as pa

from hubweir.kernels.columns_contract import (
    BODY_BYTES,
    BODY_OFFSETS,
    COLUMN_BODY,
    COLUMN_BUFFERS,
    COLUMN_ENQUEUED_TIME,
    COLUMN_OFFSET,
    COLUMN_PARTITION_KEY,
    COLUMN_PROPERTIES,
    COLUMN_PUBLISHER,
    COLUMN_SEQUENCE_NUMBER,
    COLUMN_SYSTEM_PROPERTIES,
    ENQUEUED_TIMES,
    OFFSET_BYTES,
    OFFSET_OFFSETS,
    PARTITION_KEY_BYTES,
    PARTITION_KEY_OFFSETS,
    PARTITION_KEY_VALIDITY,
    PROPERTIES_KEY_BYTES,
    PROPERTIES_KEY_OFFSETS,
    PROPERTIES_OFFSETS,
    PROPERTIES_VALUE_BYTES,
    PROPERTIES_VALUE_OFFSETS,
    PUBLISHER_BYTES,
    PUBLISHER_OFFSETS,
    PUBLISHER_VALIDITY,
    SEQUENCE_NUMBERS,
    SYSTEM_KEY_BYTES,
    SYSTEM_KEY_OFFSETS,
    SYSTEM_OFFSETS,
    SYSTEM_VALUE_BYTES,
    SYSTEM_VALUE_OFFSETS,
)
from hubweir.spark.event_columns import COLUMN_NAMES

_MAP = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")
# In the order of COLUMN_NAMES: Arrow's type, the kernels' column (None: ours, a constant).
_COLUMNS: tuple[tuple[pa.DataType, int | None], ...] = (
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
_ARROW_TYPES = {name: arrow for name, (arrow, _) in zip(COLUMN_NAMES, _COLUMNS, strict=True)}
_KERNEL_COLUMNS = {name: column for name, (_, column) in zip(COLUMN_NAMES, _COLUMNS, strict=True)}


@cache
def arrow_schema(names: tuple[str, ...]) -> pa.Schema:
    """The columns in Arrow, exactly as Spark compares them with its own: same order, types and nullability."""
    return pa.schema([pa.field(name, _ARROW_TYPES[name]) for name in names])


def mask_of(names: Iterable[str]) -> int:
    """The kernels' mask for these columns."""
    wanted = (_KERNEL_COLUMNS[name] for name in names)
    return sum(1 << column for column in wanted if column is not None)


def fresh_columns() -> list[bytearray]:
    """Empty buffers for the kernels to append to."""
    return [bytearray() for _ in range(COLUMN_BUFFERS)]


def record_batch(columns: list[bytearray], rows: int, names: tuple[str, ...], partition_id: str) -> pa.RecordBatch:
    """The rows of the kernels' buffers as a record batch, without a copy. The buffers belong to it from now on."""
    arrays = [_ARRAYS[name](columns, rows) if name in _ARRAYS else _same(partition_id, rows) for name in names]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(names))


def _same(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def _buffer(data: bytearray, *, is_offsets: bool = False) -> pa.Buffer:
    return pa.py_buffer(data or (bytes(4) if is_offsets else b""))


def _text(
    kind: pa.DataType, columns: list[bytearray], rows: int, validity: int | None, offsets: int, data: int
) -> pa.Array:
    present = None if validity is None else _buffer(columns[validity])
    return pa.Array.from_buffers(
        kind, rows, [present, _buffer(columns[offsets], is_offsets=True), _buffer(columns[data])]
    )


def _map(columns: list[bytearray], rows: int, offsets: int, keys: tuple[int, int], values: tuple[int, int]) -> pa.Array:
    entries = max(0, len(columns[keys[0]]) // 4 - 1)
    key_array = _text(pa.string(), columns, entries, None, *keys)
    value_array = _text(pa.string(), columns, entries, None, *values)
    pairs = pa.StructArray.from_arrays([key_array, value_array], fields=[_MAP.key_field, _MAP.item_field])
    return pa.Array.from_buffers(_MAP, rows, [None, _buffer(columns[offsets], is_offsets=True)], children=[pairs])


_ARRAYS = {
    "body": lambda c, n: _text(pa.binary(), c, n, None, BODY_OFFSETS, BODY_BYTES),
    "offset": lambda c, n: _text(pa.string(), c, n, None, OFFSET_OFFSETS, OFFSET_BYTES),
    "sequenceNumber": lambda c, n: pa.Array.from_buffers(pa.int64(), n, [None, _buffer(c[SEQUENCE_NUMBERS])]),
    "enqueuedTime": lambda c, n: pa.Array.from_buffers(_TIME, n, [None, _buffer(c[ENQUEUED_TIMES])]),
    "publisher": lambda c, n: _text(pa.string(), c, n, PUBLISHER_VALIDITY, PUBLISHER_OFFSETS, PUBLISHER_BYTES),
    "partitionKey": lambda c, n: _text(
        pa.string(), c, n, PARTITION_KEY_VALIDITY, PARTITION_KEY_OFFSETS, PARTITION_KEY_BYTES
    ),
    "properties": lambda c, n: _map(
        c,
        n,
        PROPERTIES_OFFSETS,
        (PROPERTIES_KEY_OFFSETS, PROPERTIES_KEY_BYTES),
        (PROPERTIES_VALUE_OFFSETS, PROPERTIES_VALUE_BYTES),
    ),
    "systemProperties": lambda c, n: _map(
        c, n, SYSTEM_OFFSETS, (SYSTEM_KEY_OFFSETS, SYSTEM_KEY_BYTES), (SYSTEM_VALUE_OFFSETS, SYSTEM_VALUE_BYTES)
    ),
}
