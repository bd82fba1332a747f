"""Dead letters: events whose body parses by a schema go on, the others to a hub of their own with the reason.

A good event keeps its body, key and properties. A dead letter has them too, and as properties of its own
`dead-letter-reason` and where it came from: `dead-letter-hub`, `dead-letter-partition`, `dead-letter-sequence-number`.

With them a large one may be too large for an event: then its body is cut, and `dead-letter-body-size` says how many
bytes it had; the whole stays where the other properties say.

Both writes of a micro-batch are named by query and batch, so a batch that is repeated after a crash adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.types import StructType

from hubweir.namespace.descriptions import MESSAGE_SIZE_LIMIT_BYTES
from hubweir.pipelines.job import Job
from hubweir.pipelines.sinks import hub_options

REASON, SIZE = "dead-letter-reason", "dead-letter-body-size"
# What a body may have beside few and short properties, and what a property costs beside its JSON.
_BODY_BYTES, _PROPERTY_BYTES = MESSAGE_SIZE_LIMIT_BYTES - 4096, 8


def start(job: Job) -> DataStreamWriter:
    """See the module's text."""
    schema = StructType.fromDDL(job.text("schema"))
    events = job.events("body", "partition", "sequenceNumber", "partitionKey", "properties")
    judged = events.withColumn("reason", reason(schema, job.texts("required")))
    good, dead = hub_options(job), hub_options(job, "deadLetterHub")
    identity, hub = job.identity(), job.options.event_hub

    def divide(batch: DataFrame, batch_id: int) -> None:
        batch.persist()
        try:
            write(batch.where("reason IS NULL"), good, f"{identity}/good", batch_id)
            write(dead_letters(batch.where("reason IS NOT NULL"), hub), dead, f"{identity}/dead", batch_id)
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
            f.lit(f"{field.name} is no {field.dataType.simpleString()}"),
        )
        for field in schema.fields
    ]
    absent = [
        f.when(f.try_variant_get(value, path(name), "string").isNull(), f.lit(f"{name} is missing"))
        for name in required
    ]
    return f.coalesce(
        f.when(value.isNull(), f.lit("the body is no JSON")),
        f.when(~f.schema_of_variant(value).startswith("OBJECT"), f.lit("the body is no JSON object")),
        *absent,
        *wrong,
    )


def path(name: str) -> str:
    """A column as a path into a variant."""
    return "$['" + name.replace("'", "\\'") + "']"


def dead_letters(rows: DataFrame, hub: str) -> DataFrame:
    """The rows with reason and origin among their properties."""
    # A dead letter that is judged again keeps only its newest reason: a map may not have a key twice.
    own = f.map_filter("properties", lambda key, _: ~key.startswith("dead-letter-"))
    origin = f.create_map(
        f.lit(REASON), f.col("reason"),
        f.lit("dead-letter-hub"), f.lit(hub),
        f.lit("dead-letter-partition"), f.col("partition"),
        f.lit("dead-letter-sequence-number"), f.col("sequenceNumber").cast("string"),
    )  # fmt: skip
    size = f.octet_length("body")
    room = f.greatest(f.lit(0), f.lit(_BODY_BYTES) - f.octet_length(f.to_json(own)) - _PROPERTY_BYTES * f.size(own))
    is_cut = size > room
    return rows.withColumns(
        {
            "body": f.when(is_cut, f.col("body").substr(f.lit(1), room)).otherwise(f.col("body")),
            "properties": f.map_concat(
                own,
                origin,
                f.when(is_cut, f.create_map(f.lit(SIZE), size.cast("string"))).otherwise(
                    f.expr("cast(map() AS map<string, string>)")
                ),
            ),
        }
    )


def write(rows: DataFrame, options: dict[str, str], query: str, batch_id: int) -> None:
    """Into a hub, as this query's batch of that number."""
    events = rows.select("body", "partitionKey", "properties")
    events.write.format("eventhubs").options(**options, queryId=query, batchId=str(batch_id)).mode("append").save()
