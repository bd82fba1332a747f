"""Events whose bodies are JSON, as columns: a view over the source, parsed by Spark itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


def with_json_value(events: DataFrame, schema: StructType | str, *, column: str = "value") -> DataFrame:
    """The events with one more column, the body read as JSON of this schema; null where it is not.

    Works on batches and streams. The body stays, so a row that did not parse can be kept: `value IS NULL`.
    """
    from pyspark.sql.functions import col, from_json

    return events.withColumn(column, from_json(col("body").cast("string"), schema))
