"""Picks the columns that the sink takes from a DataFrame, as Arrow arrays that the kernels want.

| column | type | what |
|---|---|---|
| `body` | string or binary | required; null is an empty body |
| `partitionId` | string or integer | the partition to go to |
| `partitionKey` | string | rows of one key go to one partition, and carry the key |
| `publisher` | string | sent under a publisher's own address |
| `partition` | as partitionId | where a row goes that has no other target: the source's column, taken unchanged |
| `properties` | map<string,string> | application properties; a null value is AMQP's null |

A row has at most one of the first three targets. What a source gives of a publisher's event, `partitionKey` beside the
same `publisher`, counts as the publisher alone. Other columns are left out, so what a source gives can be written as it
is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hubweir.kernels.columns_contract import MapColumn, Variable
from hubweir.spark.errors import IllegalOption

_TEXT = ("string", "varchar", "char")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_TAKEN = {
    "body": (*_TEXT, "binary"),
    "partitionId": (*_TEXT, *_INTEGERS),
    "partition": (*_TEXT, *_INTEGERS),
    "partitionKey": _TEXT,
    "publisher": _TEXT,
    "properties": ("map<string,string>",),
}
_WITHOUT_ORDER = ("map<", "array<", "interval", "variant", "void", "geo")
_MAP = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True, slots=True)
class SinkColumns:
    """The place of each column in a record batch; None: the DataFrame has none. names, kinds: of all columns, in order;
    a kind is Spark's simple type.
    """

    body: int
    partition_id: int | None
    partition: int | None
    partition_key: int | None
    publisher: int | None
    properties: int | None
    names: tuple[str, ...]
    kinds: tuple[str, ...]

    def place(self, name: str) -> int:
        """Where the column to sort by stands, in any case, as Spark has it. IllegalOption when there is none, or when
        its values have no order.
        """
        folded = [each.lower() for each in self.names]
        if name.lower() not in folded:
            raise IllegalOption(f"sortBy: there is no column '{name[:64]}'; there are {', '.join(self.names)}")
        found = folded.index(name.lower())
        if any(each in self.kinds[found] for each in _WITHOUT_ORDER):
            raise IllegalOption(
                f"sortBy: column {self.names[found]} is {self.kinds[found]}, which has no order: name columns of text, "
                "numbers, times or bytes"
            )
        return found


def sink_columns(fields: Sequence[tuple[str, str]]) -> SinkColumns:
    """The columns of a DataFrame; fields: name and Spark's simple type of each. IllegalOption when they cannot be
    written.
    """
    folded = [name.lower() for name, _ in fields]
    places: dict[str, int | None] = {}
    for name, kinds in _TAKEN.items():
        count = folded.count(name.lower())
        if count > 1:
            raise IllegalOption(f"column {name} is there {count} times: select the one to write")
        places[name] = folded.index(name.lower()) if count else None
        if count and fields[folded.index(name.lower())][1].split("(")[0].split(" collate")[0] not in kinds:
            kind = fields[folded.index(name.lower())][1]
            raise IllegalOption(f"column {name} is {kind}, and is written as {' or '.join(kinds)}: cast it in a select")
    for name, kind in fields:
        if kind.startswith("interval") and ("year" in kind or "month" in kind):
            raise IllegalOption(
                f"column {name} is {kind}, which does not reach a Python task: leave it out, or cast it"
            )
    body = places["body"]
    if body is None:
        raise IllegalOption(
            "there is no column body: select what an event shall hold as body, such as to_json(struct(*)) AS body"
        )
    return SinkColumns(
        body,
        places["partitionId"],
        places["partition"],
        places["partitionKey"],
        places["publisher"],
        places["properties"],
        tuple(name for name, _ in fields),
        tuple(kind for _, kind in fields),
    )


def text_column(found: pa.Array) -> pa.Array:
    """A column as Arrow's string, integers as decimals; as it is when it is one already."""
    return found if pa.types.is_string(found.type) else found.cast(pa.string())


def body_column(found: pa.Array) -> pa.Array:
    """The body with 32-bit offsets, string or binary."""
    if pa.types.is_large_string(found.type) or pa.types.is_large_binary(found.type):
        return found.cast(pa.binary())
    return found


def variable(found: pa.Array) -> Variable:
    """What the kernels take of a string or binary array, without a copy."""
    validity, offsets, content = found.buffers()
    if offsets is None:  # an array without rows may have none
        return None, bytes(4), b"", 0
    return (
        None if validity is None else memoryview(validity),
        memoryview(offsets),
        b"" if content is None else memoryview(content),
        found.offset,
    )


def map_column(found: pa.Array) -> MapColumn:
    """What the kernels take of a map<string,string> array."""
    if found.type != _MAP and any(
        pa.types.is_large_string(each) for each in (found.type.key_type, found.type.item_type)
    ):
        found = found.cast(_MAP)
    validity, offsets = found.buffers()[:2]
    if offsets is None:
        return None, bytes(4), 0, variable(pa.array([], pa.string())), variable(pa.array([], pa.string()))
    return (
        None if validity is None else memoryview(validity),
        memoryview(offsets),
        found.offset,
        variable(found.keys),
        variable(found.items),
    )
