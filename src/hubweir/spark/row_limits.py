"""What an event hub takes of one row besides its body: the limits of keys, publishers' names and properties.

The service refuses a batch with such an event as a whole and does not say which one. So a record batch is looked at
before anything of it is sent, by columns; only the row that is refused is looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hubweir.event_hub.partition_key import KEY_LIMIT_CHARACTERS
from hubweir.kernels.contract import PROPERTIES_LIMIT, PROPERTY_LIMIT
from hubweir.namespace.names import PUBLISHER_NAME_LIMIT
from hubweir.spark.errors import IllegalRow

# Of an encoded event: heads of its annotations and of its properties, and the annotation's name; head of one string.
_FRONT_BYTES, _HEAD_BYTES = 46, 5
_NO_PIECE = r"[/?#\\\x00-\x1F\x7F]|%[0-9A-Fa-f]{2}|^\.\.?$"

RowName = Callable[[int], str]


def check_limits(
    keys: pa.Array | None, publishers: pa.Array | None, properties: pa.Array | None, row_name: RowName
) -> None:
    """Columns of one record batch, None: there is none. IllegalRow, by row_name(its number), for the first over a
    limit.
    """
    if keys is not None:
        _check_length(keys, "partitionKey", KEY_LIMIT_CHARACTERS, row_name)
    if publishers is not None:
        _check_length(publishers, "publisher", PUBLISHER_NAME_LIMIT, row_name)
        _check_address(publishers, row_name)
    if properties is not None and len(properties):
        _check_properties(properties, 0 if keys is None else _longest(keys), row_name)


def _longest(texts: pa.Array) -> int:
    """Bytes of the longest text; 0 when there is none."""
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)


def _check_length(texts: pa.Array, column: str, limit: int, row_name: RowName) -> None:
    if _longest(texts) <= limit:
        return
    lengths = pc.utf8_length(texts)
    row = pc.index(pc.fill_null(pc.greater(lengths, limit), False), True).as_py()
    if row >= 0:
        raise IllegalRow(
            f"{row_name(row)} has a {column} of {lengths[row].as_py()} characters, and {limit} are allowed: shorten "
            "it, as by sha2, or filter the row out"
        )


def _check_address(publishers: pa.Array, row_name: RowName) -> None:
    """A name is the last piece of an address."""
    row = pc.index(pc.fill_null(pc.match_substring_regex(publishers, _NO_PIECE), False), True).as_py()
    if row >= 0:
        raise IllegalRow(
            f"{row_name(row)} has the publisher {publishers[row].as_py()[:64]!r}, which is no piece of an address: no "
            "/ ? # \\, control characters or percent codes, and no dots alone; replace them in a select"
        )


def _check_properties(properties: pa.Array, key_bytes: int, row_name: RowName) -> None:
    """key_bytes: of the longest partition key."""
    offsets = properties.offsets
    first = offsets[0].as_py()
    offsets = pc.subtract(offsets, first)
    names, values = (each.slice(first, offsets[-1].as_py()) for each in (properties.keys, properties.items))
    counts = pc.subtract(offsets[1:], offsets[:-1])
    most = _longest(names) + _longest(values) + 2 * _HEAD_BYTES
    front = _FRONT_BYTES + key_bytes
    if most <= PROPERTY_LIMIT and front + most * pc.max(counts).as_py() <= PROPERTIES_LIMIT:
        return
    entries = pc.add(_encoded(names), _encoded(values))
    so_far = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(entries)])
    ends = so_far.take(offsets)
    sizes = pc.add(pc.subtract(ends[1:], ends[:-1]), front)
    row = pc.index(pc.greater(sizes, PROPERTIES_LIMIT), True).as_py()
    if row >= 0:
        raise IllegalRow(
            f"{row_name(row)} has {sizes[row].as_py()} bytes in properties and partitionKey, and {PROPERTIES_LIMIT} "
            "are allowed: put more into the body"
        )
    entry = pc.index(pc.greater(entries, PROPERTY_LIMIT), True).as_py()
    if entry >= 0:
        row = pc.sum(pc.less_equal(offsets, entry)).as_py() - 1
        raise IllegalRow(
            f"{row_name(row)} has a property of {entries[entry].as_py()} bytes with its name, "
            f"'{names[entry].as_py()[:64]}', and {PROPERTY_LIMIT} are allowed: put it into the body"
        )


def _encoded(texts: pa.Array) -> pa.Array:
    """Bytes of each text as AMQP has it; null takes one."""
    lengths = pc.binary_length(texts).cast(pa.int64())
    return pc.fill_null(pc.add(lengths, pc.if_else(pc.greater(lengths, 255), 5, 2)), 1)
