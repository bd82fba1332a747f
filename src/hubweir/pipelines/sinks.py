"""Writing to event hubs: rows as events, in JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def json_rows(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Each row as one event: all columns as JSON in `body`, the values of keys with `/` between as `partitionKey`.

    Rows of one key stay in order: they go to one partition.
    """
    body = f.to_json(f.struct(*(f.col(name) for name in rows.columns))).alias("body")
    if not keys:
        return rows.select(body)
    return rows.select(body, f.concat_ws("/", *(f.col(key).cast("string") for key in keys)).alias("partitionKey"))
