"""What a micro-batch of 1,000 rows takes beside one of Spark's own rate source, with one task and with four."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from spark_cases.figures import Figure, ratios
from spark_cases.stream_runs import Bench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = 1_000
_BATCHES = 25


def small_batches(bench: Bench) -> list[Figure]:
    cases: dict[str, Callable[[], DataFrame]] = {}
    for tasks in (1, 4):
        cases[f"rate {tasks}"] = lambda tasks=tasks: rate_source(bench, tasks)
        cases[f"ours {tasks}"] = lambda tasks=tasks: bench.stream(
            "eventhubs", maxEventsPerTrigger=str(_ROWS), minPartitions=str(tasks)
        )
    times: dict[str, list[float]] = {name: [] for name in cases}
    bench.batch_ms(cases["rate 1"](), _BATCHES)  # the JVM compiles what it runs: these are not counted
    bench.batch_ms(cases["ours 1"](), _BATCHES)
    for number in range(bench.rounds):
        print(f"small batches: round {number + 1} of {bench.rounds}", flush=True)
        for name, make in cases.items():
            times[name].append(bench.batch_ms(make(), _BATCHES))
    return [
        Figure(f"a batch of {_ROWS:,} rows, one task", tuple(times["ours 1"]), "ms"),
        Figure("  ours / Spark's rate source", ratios(times["ours 1"], times["rate 1"]), "x", 1.25, is_limit=True),
        Figure(f"a batch of {_ROWS:,} rows, four tasks", tuple(times["ours 4"]), "ms"),
        Figure("  ours / Spark's rate source", ratios(times["ours 4"], times["rate 4"]), "x", 1.5, is_limit=True),
    ]


def rate_source(bench: Bench, tasks: int) -> DataFrame:
    options = {"rowsPerBatch": str(_ROWS), "numPartitions": str(tasks)}
    return bench.spark.readStream.format("rate-micro-batch").options(**options).load()
