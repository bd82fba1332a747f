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

Nothing here loads Arrow, so options can be checked before Spark is there; what the columns are in memory is
record_batches.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hubweir.spark.errors import IllegalOption

SPARK_TYPES = {
    "body": "binary",
    "partition": "string",
    "offset": "string",
    "sequenceNumber": "bigint",
    "enqueuedTime": "timestamp",
    "publisher": "string",
    "partitionKey": "string",
    "properties": "map<string,string>",
    "systemProperties": "map<string,string>",
}
COLUMN_NAMES = tuple(SPARK_TYPES)


def spark_schema(names: Iterable[str] = COLUMN_NAMES) -> str:
    """The columns as Spark's DDL."""
    return ", ".join(f"{name} {SPARK_TYPES[name]}" for name in names)


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
        if kind != SPARK_TYPES[name]:
            raise IllegalOption(f"the schema has {name} as {kind}, and it is {SPARK_TYPES[name]}: cast it in a select")
    return names
