"""The demo's Spark side: delays by airport, carrier and week while events come in, and digests of everything kept.

The same figures can be made from the CSV in plain Python (`week_of`, `key_digest`), so two sides that share no code are
compared.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

FLIGHT = "origin string, carrier string, dep_delay int, time_hour string"
WEEK_S = 7 * 24 * 3600
# (flights, minutes) by airport, carrier and start of the week in seconds since 1970.
Delays = dict[tuple[str, str, int], tuple[int, int]]


def hub_options(connection_string: str, hub: str) -> dict[str, str]:
    """The options that both kinds of read share."""
    return {"connectionString": connection_string, "eventHub": hub, "startingPosition": "earliest"}


def live_delays(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """A stream of (week, origin, carrier, flights, minutes): tumbling windows over the hour a flight was planned for.

    No watermark: the events come by aircraft, so the year passes by once for each of 4,043 tails.
    """
    events = spark.readStream.format("eventhubs").options(**options).option("columns", "body").load()
    flight = events.select(f.from_json(f.col("body").cast("string"), FLIGHT).alias("flight")).select("flight.*")
    return (
        flight.where("dep_delay is not null")
        .groupBy(f.window(f.to_timestamp("time_hour"), f"{WEEK_S} seconds").alias("week"), "origin", "carrier")
        .agg(f.count("*").alias("flights"), f.sum("dep_delay").alias("minutes"))
        .select(f.col("week.start").alias("week"), "origin", "carrier", "flights", "minutes")
    )


def read_delays(spark: SparkSession, folder: Path) -> Delays:
    """What the stream wrote last."""
    rows = spark.read.parquet(str(folder)).select(f.unix_timestamp("week").alias("week"), "*").collect()
    return {(row["origin"], row["carrier"], row[0]): (row["flights"], row["minutes"]) for row in rows}


def week_of(time_hour: str) -> int:
    """The start of the week that a text such as 2013-01-01T10:00:00Z lies in, in seconds since 1970."""
    seconds = int(datetime.strptime(time_hour, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())
    return seconds - seconds % WEEK_S


def digests(events: DataFrame) -> dict[str | None, tuple[int, str]]:
    """How many events each key has, and a digest over their bodies: in the order they were stored, by key.

    Events without a key have no order between partitions: theirs are sorted by their checksum.
    """
    each = f.struct(f.when(f.col("partitionKey").isNull(), f.crc32("body")).otherwise(f.col("sequenceNumber")), "crc")
    rows = (
        events.select("partitionKey", "sequenceNumber", "body", f.crc32("body").alias("crc"))
        .groupBy("partitionKey")
        .agg(f.sort_array(f.collect_list(each)).alias("kept"))
        .select(
            "partitionKey",
            f.size("kept").alias("count"),
            f.md5(f.concat_ws(",", f.col("kept.crc").cast("array<string>"))),
        )
        .collect()
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def key_digest(key: str | None, bodies: Iterable[bytes]) -> tuple[int, str]:
    """What `digests` says of one key when nothing was lost, doubled, changed or moved."""
    sums = [zlib.crc32(body) for body in bodies]
    if key is None:
        sums.sort()
    return len(sums), hashlib.md5(",".join(map(str, sums)).encode(), usedforsecurity=False).hexdigest()


def different(what: str, expected: dict[Any, Any], seen: dict[Any, Any]) -> list[str]:
    """One sentence when two tables are not equal, with the first place; empty when they are."""
    wrong = [key for key in expected.keys() | seen.keys() if expected.get(key) != seen.get(key)]
    if not wrong:
        return []
    first = min(wrong, key=str)
    return [f"{len(wrong)} {what} differ, such as {first}: {expected.get(first)} became {seen.get(first)}"]
