"""Rows a second into a live hub that syncs each batch, as hubs do by default: at least once, and exactly once.

The rows come out of the JVM without a Python task: body of 200 B, partition key, two properties. Time is that of the
whole job, its start and its last confirmation included.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from goals.figure import Figure, ratios
from hubweir.client.blocking import BlockingEventHubClient
from spark_cases.events import BODY_BYTES, PARTITIONS, create_hub
from spark_cases.stream_runs import Bench, in_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HUB = "bench-sink"
_TASKS = 2
_COLUMNS = (
    f"cast(lpad(cast(id AS string), {BODY_BYTES}, 'x') AS binary) AS body",
    "concat('device-', lpad(cast(id % 1000 AS string), 4, '0')) AS partitionKey",
    "map('source', 'benchmark', 'reading', 'temperature') AS properties",
)


def writing(bench: Bench) -> list[Figure]:
    create_hub(bench.options["connectionString"], _HUB, durability="durable")
    rows = bench.spark.range(0, bench.events, 1, _TASKS)
    whole, bodies = rows.selectExpr(*_COLUMNS), rows.selectExpr(_COLUMNS[0])
    cases = {"off": (whole, "off"), "require": (whole, "require"), "bodies": (bodies, "off")}
    for data, exactly_once in cases.values():  # the JVM compiles what it runs: these are not counted
        write(bench, data, exactly_once)
    rates = in_turns("writing", bench.rounds, cases, lambda case: bench.events / write(bench, *case))
    check_stored(bench, bench.events * len(cases) * (bench.rounds + 1))
    return [
        Figure("write, at least once", tuple(rates["off"]), "rows/s", 300_000, 600_000),
        Figure("write, exactly once", tuple(rates["require"]), "rows/s"),
        Figure("  exactly / at least once", ratios(rates["require"], rates["off"]), "x", 0.8),
        Figure("write, bodies alone, at least once", tuple(rates["bodies"]), "rows/s"),
    ]


def write(bench: Bench, rows: DataFrame, exactly_once: str) -> float:
    """Seconds of one write."""
    options = {**bench.options, "eventHub": _HUB, "exactlyOnce": exactly_once}
    begun = time.perf_counter()
    rows.write.format("eventhubs").options(**options).mode("append").save()
    return time.perf_counter() - begun


def check_stored(bench: Bench, rows: int) -> None:
    """RuntimeError when the hub has another number of events: then nothing of the above means anything."""
    with BlockingEventHubClient.from_connection_string(bench.options["connectionString"], _HUB) as client:
        stored = sum(client.partition(str(one)).last_sequence_number + 1 for one in range(PARTITIONS))
    if stored != rows:
        raise RuntimeError(f"{rows} rows were written and {stored} events are stored")
