"""What a micro-batch of 1,000 rows takes beside one of Spark's own rate source, with one task and with four.

`constant` is a Python source that does nothing: constant / rate is what PySpark adds, ours / constant is what we add.
session() sets a checkpoint manager that halves what all of them spend on files, so what Python costs weighs more in a
ratio: ours and rate are also timed with Spark's own manager, which a session that is not ours has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from goals.figure import Figure, ratios
from spark_cases.constant_source import ConstantDataSource
from spark_cases.stream_runs import Bench, in_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = 1_000
_BATCHES = 25
_SPARKS = "by Spark's manager"
_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_SPARKS_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


def small_batches(bench: Bench) -> list[Figure]:
    bench.spark.dataSource.register(ConstantDataSource)
    cases: dict[str, Callable[[], float]] = {}
    for tasks in (1, 4):
        for name, source in (("rate", rate_source), ("constant", constant_source), ("ours", our_source)):
            cases[f"{name} {tasks}"] = partial(batch_ms, bench, source, tasks)
            if name != "constant":
                cases[f"{name} {tasks} {_SPARKS}"] = partial(with_sparks_manager, bench, source, tasks)
    for name in ("rate 1", "constant 1", "ours 1"):  # the JVM compiles what it runs: these are not counted
        cases[name]()
    times = in_turns("small batches", bench.rounds, cases, lambda timed: timed())
    return [*told(times, 1, "one task", 1.25), *told(times, 4, "four tasks", 1.5)]


def told(times: dict[str, list[float]], tasks: int, in_words: str, limit: float) -> list[Figure]:
    rate, constant, ours = (times[f"{name} {tasks}"] for name in ("rate", "constant", "ours"))
    sparks_rate, sparks_ours = (times[f"{name} {tasks} {_SPARKS}"] for name in ("rate", "ours"))
    return [
        Figure(f"a batch of {_ROWS:,} rows, {in_words}", tuple(ours), "ms"),
        Figure("  ours / Spark's rate source", ratios(ours, rate), "x", limit, is_limit=True),
        Figure("  constant rows of a Python source / rate", ratios(constant, rate), "x"),
        Figure("  ours / those constant rows", ratios(ours, constant), "x"),
        Figure("  ours / rate, both with Spark's checkpoints", ratios(sparks_ours, sparks_rate), "x"),
        Figure("  ours / rate with Spark's checkpoints", ratios(ours, sparks_rate), "x"),
    ]


def our_source(bench: Bench, tasks: int) -> DataFrame:
    return bench.stream("eventhubs", maxEventsPerTrigger=str(_ROWS), minPartitions=str(tasks))


def constant_source(bench: Bench, tasks: int) -> DataFrame:
    return bench.spark.readStream.format("constant-rows").options(rows=str(_ROWS), tasks=str(tasks)).load()


def rate_source(bench: Bench, tasks: int) -> DataFrame:
    options = {"rowsPerBatch": str(_ROWS), "numPartitions": str(tasks)}
    return bench.spark.readStream.format("rate-micro-batch").options(**options).load()


def batch_ms(bench: Bench, source: Callable[[Bench, int], DataFrame], tasks: int) -> float:
    return bench.batch_ms(source(bench, tasks), _BATCHES)


def with_sparks_manager(bench: Bench, source: Callable[[Bench, int], DataFrame], tasks: int) -> float:
    with setting(bench, _MANAGER, _SPARKS_MANAGER):
        return batch_ms(bench, source, tasks)


@contextmanager
def setting(bench: Bench, name: str, value: str) -> Iterator[None]:
    before = bench.spark.conf.get(name)
    bench.spark.conf.set(name, value)
    try:
        yield
    finally:
        bench.spark.conf.set(name, before)
