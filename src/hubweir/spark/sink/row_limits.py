"""Limits of a row besides its body: those of keys, publishers' names and properties.

The service refuses a batch with such an event as a whole and does not say which one. So a record batch is looked at
before anything of it is sent, by columns; only the row that is refused is looked at alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from hubweir.kernels.contract import PROPERTIES_LIMIT, PROPERTY_LIMIT
from hubweir.namespace.names import PUBLISHER_NAME_LIMIT
from hubweir.spark.errors import IllegalRow

# Of an encoded event: the head of its properties; of its annotations with the key's name, at least; of one string.
_PROPERTIES_HEAD_BYTES, _KEY_HEAD_BYTES, _HEAD_BYTES = 12, 29, 5
# The 128 characters of a partition key are a rule of who lets the service choose by it; here the writer chooses, and a
# source may give longer ones.
_KEY_LIMIT_BYTES = PROPERTY_LIMIT - 26
_NO_PIECE = r"[/?#\\\x00-\x1F\x7F]|%[0-9A-Fa-f]{2}|^\.\.?$"

RowName = Callable[[int], str]


def check_limits(
    keys: pa.Array | None, publishers: pa.Array | None, properties: pa.Array | None, row_name: RowName
) -> None:
    """Columns of one record batch, None: there is none. IllegalRow, by row_name(its number), for the first over a
    limit.
    """
    if keys is not None:
        _check_keys(keys, row_name)
    if publishers is not None:
        _check_publishers(publishers, row_name)
    if properties is not None and len(properties):
        _check_properties(properties, keys, row_name)


def _longest(texts: pa.Array) -> int:
    """Bytes of the longest text; 0 when there is none."""
    return int(pc.max(pc.binary_length(texts)).as_py() or 0)


def _first(of_rows: pa.Array) -> int:
    """The first row for which it is true; -1 when there is none."""
    return int(pc.index(pc.fill_null(of_rows, False), True).as_py())


def _check_keys(keys: pa.Array, row_name: RowName) -> None:
    if _longest(keys) <= _KEY_LIMIT_BYTES:
        return
    lengths = pc.binary_length(keys)
    row = _first(pc.greater(lengths, _KEY_LIMIT_BYTES))
    raise IllegalRow(
        f"{row_name(row)} has a partitionKey of {lengths[row].as_py()} bytes, and {_KEY_LIMIT_BYTES} are allowed: "
        "shorten it, as by sha2, or filter the row out"
    )


def _check_publishers(publishers: pa.Array, row_name: RowName) -> None:
    """A name is the last piece of an address."""
    if _longest(publishers) > PUBLISHER_NAME_LIMIT:
        lengths = pc.utf8_length(publishers)
        row = _first(pc.greater(lengths, PUBLISHER_NAME_LIMIT))
        if row >= 0:
            raise IllegalRow(
                f"{row_name(row)} has a publisher of {lengths[row].as_py()} characters, and {PUBLISHER_NAME_LIMIT} are "
                "allowed: shorten it, as by sha2, or filter the row out"
            )
    row = _first(pc.match_substring_regex(publishers, _NO_PIECE))
    if row >= 0:
        raise IllegalRow(
            f"{row_name(row)} has the publisher {publishers[row].as_py()[:64]!r}, which is no piece of an address: no "
            "/ ? # \\, control characters or percent codes, and no dots alone; replace them in a select"
        )


def _check_properties(properties: pa.Array, keys: pa.Array | None, row_name: RowName) -> None:
    offsets = properties.offsets
    if first := offsets[0].as_py():
        offsets = pc.subtract(offsets, first)
    names, values = (each.slice(first, offsets[-1].as_py()) for each in (properties.keys, properties.items))
    counts = pc.subtract(offsets[1:], offsets[:-1])
    most = _longest(names) + _longest(values) + 2 * _HEAD_BYTES
    front = 64 if keys is None else 64 + _longest(keys)
    if most <= PROPERTY_LIMIT and front + most * pc.max(counts).as_py() <= PROPERTIES_LIMIT:
        return
    entries = pc.add(_encoded(names), _encoded(values))
    so_far = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(entries)])
    ends = so_far.take(offsets)
    sizes = pc.add(pc.subtract(ends[1:], ends[:-1]), _PROPERTIES_HEAD_BYTES)
    if keys is not None:
        lengths = pc.fill_null(pc.binary_length(keys), 0)
        sizes = pc.add(sizes, pc.if_else(pc.greater(lengths, 0), pc.add(lengths, _KEY_HEAD_BYTES), 0))
    row = _first(pc.greater(sizes, PROPERTIES_LIMIT))
    if row >= 0:
        raise IllegalRow(
            f"{row_name(row)} has {sizes[row].as_py()} bytes in properties and partitionKey, and {PROPERTIES_LIMIT} "
            "are allowed: put more into the body"
        )
    entry = _first(pc.greater(entries, PROPERTY_LIMIT))
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
