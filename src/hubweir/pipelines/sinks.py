"""Writing to event hubs: the options of a sink, and rows as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from hubweir.pipelines.job import Job
from hubweir.spark.option_texts import OptionTexts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def hub_options(job: Job, hub: str = "eventHub") -> dict[str, str]:
    """The options of format("eventhubs") for the sink; hub: which of its values names the event hub."""
    own = job.sink("connectionString")
    source = OptionTexts(job.description.source)
    options = {
        "connectionString": own or without_entity(source.text("connectionString") or ""),
        "eventHub": job.sink(hub),
        "exactlyOnce": job.sink("exactlyOnce"),
    }
    ca_file = source.text("caFile")
    return {**options, **({"caFile": ca_file} if ca_file and not own else {})}


def without_entity(connection_string: str) -> str:
    """The same namespace, without the hub that it may name: results go to another one."""
    pieces = connection_string.split(";")
    return ";".join(piece for piece in pieces if not piece.strip().lower().startswith("entitypath="))


def json_rows(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Each row as one event: all columns as JSON in `body`, the values of keys with `/` between as `partitionKey`.

    Rows of one key stay in order: they go to one partition.
    """
    body = f.to_json(f.struct(*(f.col(name) for name in rows.columns))).alias("body")
    if not keys:
        return rows.select(body)
    return rows.select(body, f.concat_ws("/", *(f.col(key).cast("string") for key in keys)).alias("partitionKey"))
