"""What a micro-batch of 1,000 rows takes beside one of Spark's own rate source, with one task and with four.

`constant` is a Python source that does nothing: constant / rate is what PySpark adds, ours / constant is what we add.
session() sets a checkpoint manager that halves what both spend on files, so what Python costs weighs more in the ratio:
the rate source is also timed with Spark's own manager, for what a job had before it came to us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_cases.constant_source import ConstantDataSource
from spark_cases.figures import Figure, ratios
from spark_cases.stream_runs import Bench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = 1_000
_BATCHES = 25
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_SPARKS_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def small_batches(bench: Bench) -> list[Figure]:
    bench.spark.dataSource.register(ConstantDataSource)
    cases: dict[str, Callable[[], float]] = {}
    for tasks in (1, 4):
        cases[f"rate {tasks}"] = lambda tasks=tasks: bench.batch_ms(rate_source(bench, tasks), _BATCHES)
        cases[f"constant {tasks}"] = lambda tasks=tasks: bench.batch_ms(constant_source(bench, tasks), _BATCHES)
        cases[f"ours {tasks}"] = lambda tasks=tasks: bench.batch_ms(our_source(bench, tasks), _BATCHES)
    cases["rate, Spark's settings"] = lambda: sparks_own(bench)
    times: dict[str, list[float]] = {name: [] for name in cases}
    for name in ("rate 1", "constant 1", "ours 1"):  # the JVM compiles what it runs: these are not counted
        cases[name]()
    for number in range(bench.rounds):
        print(f"small batches: round {number + 1} of {bench.rounds}", flush=True)
        for name, measure in cases.items():
            times[name].append(measure())
    before = ratios(times["ours 1"], times["rate, Spark's settings"])
    return [
        Figure(f"a batch of {_ROWS:,} rows, one task", tuple(times["ours 1"]), "ms"),
        Figure("  ours / Spark's rate source", ratios(times["ours 1"], times["rate 1"]), "x", 1.25, is_limit=True),
        Figure("  constant rows of a Python source / rate", ratios(times["constant 1"], times["rate 1"]), "x"),
        Figure("  ours / those constant rows", ratios(times["ours 1"], times["constant 1"]), "x"),
        Figure("  ours / rate with Spark's own checkpoints", before, "x"),
        Figure(f"a batch of {_ROWS:,} rows, four tasks", tuple(times["ours 4"]), "ms"),
        Figure("  ours / Spark's rate source", ratios(times["ours 4"], times["rate 4"]), "x", 1.5, is_limit=True),
        Figure("  constant rows of a Python source / rate", ratios(times["constant 4"], times["rate 4"]), "x"),
        Figure("  ours / those constant rows", ratios(times["ours 4"], times["constant 4"]), "x"),
    ]


def our_source(bench: Bench, tasks: int) -> DataFrame:
    return bench.stream("eventhubs", maxEventsPerTrigger=str(_ROWS), minPartitions=str(tasks))


def constant_source(bench: Bench, tasks: int) -> DataFrame:
    return bench.spark.readStream.format("constant-rows").options(rows=str(_ROWS), tasks=str(tasks)).load()


def rate_source(bench: Bench, tasks: int) -> DataFrame:
    options = {"rowsPerBatch": str(_ROWS), "numPartitions": str(tasks)}
    return bench.spark.readStream.format("rate-micro-batch").options(**options).load()


def sparks_own(bench: Bench) -> float:
    with setting(bench, _MANAGER, _SPARKS_MANAGER):
        return bench.batch_ms(rate_source(bench, 1), _BATCHES)


@contextmanager
def setting(bench: Bench, name: str, value: str) -> Iterator[None]:
    before = bench.spark.conf.get(name)
    bench.spark.conf.set(name, value)
    try:
        yield
    finally:
        bench.spark.conf.set(name, before)
