"""Dead letters: events whose body parses by a schema go on, the others to a hub of their own with the reason.

A good event keeps its body, key and properties. A dead letter has them too, and as properties of its own
`dead-letter-reason` and where it came from: `dead-letter-hub`, `dead-letter-partition`, `dead-letter-sequence-number`.

Properties are written as texts, and what was none may be longer so; a batch has something of its own to say, too. A
good event that is then more than an event may be is a dead letter as well: no event stops this pipeline.

With them a large one may be too large for an event: then its body is cut, and `dead-letter-body-size` says how many
bytes it had. Where its own properties leave no room for these, they are left out, and `dead-letter-properties-size`
says how many bytes they had. The whole stays where the other properties say.

Both writes of a micro-batch are named by query and batch, so a batch that is repeated after a crash adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.types import StructType

from hubweir.client.blocking import BlockingEventHubClient
from hubweir.kernels.contract import PROPERTIES_LIMIT, PROPERTY_LIMIT
from hubweir.pipelines.job import Job
from hubweir.pipelines.named_hubs import hub_options
from hubweir.spark.sink.write_options import parse_write_options

REASON = "dead-letter-reason"
BODY_SIZE, PROPERTIES_SIZE = "dead-letter-body-size", "dead-letter-properties-size"
# A column's type may be long, as that of a structure; in UTF-8 a character has up to four bytes.
REASON_CHARACTERS = 500
# Beside the properties that a dead letter is given: what its own and its key may have. And with all around the body.
_OWN_BYTES, _ROOM_BYTES = PROPERTIES_LIMIT - 3072, 4096
# What a property costs beside the bytes of its name and value.
_PROPERTY_BYTES = 10
# Around all properties, and around a key; around an event: its sections, and the numbers that its batch may carry.
_PROPERTIES_HEAD_BYTES, _KEY_HEAD_BYTES, _AROUND_BYTES = 12, 29, 384
TOO_LARGE = "with its properties as text it is larger than an event may be"


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    schema = StructType.fromDDL(job.text("schema"))
    events = job.events("body", "partition", "sequenceNumber", "partitionKey", "properties")
    good, dead = hub_options(job.description), hub_options(job.description, "deadLetterHub")
    room, dead_room = size_limit(good), size_limit(dead)
    judged = events.withColumn("reason", f.coalesce(reason(schema, job.texts("required")), too_large(room)))
    identity, hub = job.identity(), job.options.event_hub

    def divide(batch: DataFrame, batch_id: int) -> None:
        batch.persist()
        try:
            write(batch.where("reason IS NULL"), good, f"{identity}/good", batch_id)
            letters = dead_letters(batch.where("reason IS NOT NULL"), hub, dead_room)
            write(letters, dead, f"{identity}/dead", batch_id)
        finally:
            batch.unpersist()

    return judged.writeStream.foreachBatch(divide)


def reason(schema: StructType, required: Sequence[str]) -> Column:
    """Why a body does not fit; null when it does.

    A value fits when both ways of reading JSON take it: as a variant, which looks into structures, and as from_json,
    which the other pipelines read it with, and which makes no 1 of 1.5 or "1".
    """
    text = f.col("body").cast("string")
    value, parsed = f.try_parse_json(text), f.from_json(text, schema)
    wrong = [
        f.when(
            f.try_variant_get(value, path(field.name), "string").isNotNull()
            & (
                f.try_variant_get(value, path(field.name), field.dataType.simpleString()).isNull()
                | parsed.getField(field.name).isNull()
            ),
            f.lit(f"{field.name} is no {field.dataType.simpleString()}"[:REASON_CHARACTERS]),
        )
        for field in schema.fields
    ]
    absent = [
        f.when(f.try_variant_get(value, path(name), "string").isNull(), f.lit(f"{name} is missing"[:REASON_CHARACTERS]))
        for name in required
    ]
    return f.coalesce(
        f.when(value.isNull(), f.lit("the body is no JSON")),
        f.when(~f.schema_of_variant(value).startswith("OBJECT"), f.lit("the body is no JSON object")),
        *absent,
        *wrong,
    )


def size_limit(options: dict[str, str]) -> int:
    """Bytes that a hub takes at once, which its tier says. ServiceError as of an attach: there is no such hub."""
    hub = parse_write_options(options)
    with BlockingEventHubClient.from_connection_string(
        hub.connection_string, hub.event_hub, ca_file=hub.ca_file
    ) as client:
        return client.sender().max_message_size()


def too_large(limit: int) -> Column:
    """The reason of an event that a hub of this limit does not take; null when it does. (spark/sink/row_limits.py)"""
    entries = f.map_entries("properties")

    def encoded(text: Column) -> Column:
        return f.coalesce(f.octet_length(text) + f.when(f.octet_length(text) > 255, 5).otherwise(2), f.lit(1))

    held = f.aggregate(
        entries,
        f.lit(_PROPERTIES_HEAD_BYTES),
        lambda sum_, one: sum_ + encoded(one.key) + encoded(one.value),
    ) + f.when(_octets(f.col("partitionKey")) > 0, _octets(f.col("partitionKey")) + _KEY_HEAD_BYTES).otherwise(0)
    is_too_large = (
        f.exists(entries, lambda one: encoded(one.key) + encoded(one.value) > PROPERTY_LIMIT)
        | (held > PROPERTIES_LIMIT)
        | (_octets(f.col("body")) + held + _AROUND_BYTES > limit)
    )
    # Then nothing else is looked at.
    small = limit - PROPERTIES_LIMIT - _AROUND_BYTES
    is_small = (f.size("properties") == 0) & (_octets(f.col("body")) <= small)
    return f.when(is_small, f.lit(None)).when(is_too_large, f.lit(TOO_LARGE))


def path(name: str) -> str:
    """A column as a path into a variant."""
    return "$['" + name.replace("'", "\\'") + "']"


def dead_letters(rows: DataFrame, hub: str, limit: int) -> DataFrame:
    """The rows with reason and origin among their properties, for a hub of this limit."""
    # A dead letter that is judged again keeps only its newest reason: a map may not have a key twice.
    own = f.map_filter("properties", lambda key, _: ~key.startswith("dead-letter-"))
    origin = f.create_map(
        f.lit(REASON), f.col("reason"),
        f.lit("dead-letter-hub"), f.lit(hub),
        f.lit("dead-letter-partition"), f.col("partition"),
        f.lit("dead-letter-sequence-number"), f.col("sequenceNumber").cast("string"),
    )  # fmt: skip
    size = f.octet_length("body")
    bytes_of_own = f.aggregate(
        f.map_entries(own), f.lit(0), lambda sum_, one: sum_ + _octets(one.key) + _octets(one.value)
    )
    held = bytes_of_own + _PROPERTY_BYTES * f.size(own)
    # What was no string may be longer as text than it was: alone, or all together.
    is_long = f.exists(
        f.map_entries(own), lambda one: _octets(one.key) + _octets(one.value) > PROPERTY_LIMIT - _PROPERTY_BYTES
    )
    has_room = ~is_long & (held + _octets(f.col("partitionKey")) <= _OWN_BYTES)
    room = (limit - _ROOM_BYTES) - f.when(has_room, held).otherwise(0) - _octets(f.col("partitionKey"))
    is_cut = size > room
    none = f.expr("cast(map() AS map<string, string>)")
    return rows.withColumns(
        {
            "body": f.when(is_cut, f.col("body").substr(f.lit(1), room)).otherwise(f.col("body")),
            "properties": f.map_concat(
                f.when(has_room, own).otherwise(f.create_map(f.lit(PROPERTIES_SIZE), bytes_of_own.cast("string"))),
                origin,
                f.when(is_cut, f.create_map(f.lit(BODY_SIZE), size.cast("string"))).otherwise(none),
            ),
        }
    )


def _octets(text: Column) -> Column:
    """Bytes of a text; 0 of null."""
    return f.coalesce(f.octet_length(text), f.lit(0))


def write(rows: DataFrame, options: dict[str, str], query: str, batch_id: int) -> None:
    """Into a hub, as this query's batch of that number."""
    events = rows.select("body", "partitionKey", "properties")
    events.write.format("eventhubs").options(**options, queryId=query, batchId=str(batch_id)).mode("append").save()
