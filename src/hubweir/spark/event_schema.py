"""The columns of events in Spark, with the names and types of the JVM connector, and which of them a reader wants.

| column | Spark | Arrow | what |
|---|---|---|---|
| `body` | binary | binary | the body's bytes |
| `partition` | string | string | the partition's id |
| `offset` | string | string | the event's offset, opaque |
| `sequenceNumber` | long | int64 | rises by one in a partition |
| `enqueuedTime` | timestamp | timestamp[us, UTC] | when the service took it, whole milliseconds |
| `publisher` | string | string | null without one |
| `partitionKey` | string | string | null without one |
| `properties` | map<string,string> | map | application properties; what is no string as its JSON |
| `systemProperties` | map<string,string> | map | further message annotations, and the AMQP properties |

Columns cost more than rows: two instead of nine read nearly twice as fast. Spark does not tell a Python source which
columns a query needs, so a schema given by the user, or the option `columns`, is what says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from hubweir.spark.errors import IllegalOption

_MAP = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", tz="UTC")
# Name, Spark's type, Arrow's type, the kernels' column (None: ours, a constant).
_COLUMNS: tuple[tuple[str, str, pa.DataType, int | None], ...] = (
    ("body", "binary", pa.binary(), COLUMN_BODY),
    ("partition", "string", pa.string(), None),
    ("offset", "string", pa.string(), COLUMN_OFFSET),
    ("sequenceNumber", "bigint", pa.int64(), COLUMN_SEQUENCE_NUMBER),
    ("enqueuedTime", "timestamp", _TIME, COLUMN_ENQUEUED_TIME),
    ("publisher", "string", pa.string(), COLUMN_PUBLISHER),
    ("partitionKey", "string", pa.string(), COLUMN_PARTITION_KEY),
    ("properties", "map<string,string>", _MAP, COLUMN_PROPERTIES),
    ("systemProperties", "map<string,string>", _MAP, COLUMN_SYSTEM_PROPERTIES),
)
COLUMN_NAMES = tuple(name for name, *_ in _COLUMNS)
_SPARK_TYPES = {name: spark for name, spark, _, _ in _COLUMNS}
_KERNEL_COLUMNS = {name: column for name, _, _, column in _COLUMNS}


def spark_schema(names: Iterable[str] = COLUMN_NAMES) -> str:
    """The columns as Spark's DDL."""
    return ", ".join(f"{name} {_SPARK_TYPES[name]}" for name in names)


@cache
def arrow_schema(names: tuple[str, ...]) -> pa.Schema:
    """The columns in Arrow, exactly as Spark compares them with its own: same order, types and nullability."""
    types = {name: arrow for name, _, arrow, _ in _COLUMNS}
    return pa.schema([pa.field(name, types[name]) for name in names])


def mask_of(names: Iterable[str]) -> int:
    """The kernels' mask for these columns."""
    wanted = (_KERNEL_COLUMNS[name] for name in names)
    return sum(1 << column for column in wanted if column is not None)


def chosen_columns(text: str) -> tuple[str, ...]:
    """The columns that the option `columns` names, in its order and their own spelling. IllegalOption for others."""
    by_folded = {name.lower(): name for name in COLUMN_NAMES}
    asked = [one.strip() for one in text.split(",")]
    unknown = [one for one in asked if one.lower() not in by_folded]
    if unknown:
        raise IllegalOption(f"columns: events have no column '{unknown[0][:64]}'; they have {', '.join(COLUMN_NAMES)}")
    names = tuple(by_folded[one.lower()] for one in asked)
    if len(set(names)) < len(names):
        raise IllegalOption(f"columns: a name stands twice in '{text[:200]}'")
    return names


def check_schema(fields: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The columns that a schema given by the user asks for; fields: name and Spark's simple type of each.

    IllegalOption when a name or a type is not one of ours: events have a fixed schema, of which any part may be taken.
    """
    names = chosen_columns(", ".join(name for name, _ in fields)) if fields else ()
    if not names:
        raise IllegalOption("the schema has no column: leave it out, or name those that you want")
    for name, (given, kind) in zip(names, fields, strict=True):
        if given != name:
            raise IllegalOption(f"the schema calls column '{name}' '{given}': write it as it is")
        if kind != _SPARK_TYPES[name]:
            raise IllegalOption(f"the schema has {name} as {kind}, and it is {_SPARK_TYPES[name]}: cast it in a select")
    return names


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
