"""Pipelines: rows a second of to-lake and of windowed aggregates, beside the same source into no sink.

to-lake writes the filled hub as Parquet, all nine columns. The windows are of a hub of their own, whose bodies are JSON
of some 200 B: a minute, two aggregates, a thousand keys; what they are held against is the JSON's source unparsed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

from goals.figure import Figure, ratios
from hubweir.pipelines.description import describe
from hubweir.pipelines.job import Job
from hubweir.pipelines.program import load_program
from spark_cases.events import create_hub
from spark_cases.stream_runs import Bench, in_turns

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter

_JSON_HUB, _RESULT_HUB = "bench-json", "bench-windows"
_BODY = "to_json(named_struct('device', partitionKey, 'celsius', id % 50 / 2.0, 'note', repeat('x', 140))) AS body"
_KEY = "concat('device-', lpad(cast(id % 1000 AS string), 4, '0')) AS partitionKey"
_WINDOWS = {
    "schema": "device string, celsius double",
    "keys": "device",
    "aggregates": "count(*) AS events, avg(celsius) AS celsius",
    "size": "1m",
}
_numbers = count()


def pipelines(bench: Bench) -> list[Figure]:
    prepare(bench)
    size = {"maxEventsPerTrigger": str(bench.events)}
    of_json = {**size, "eventHub": _JSON_HUB, "columns": "body,enqueuedTime"}
    cases: dict[str, Callable[[], DataStreamWriter]] = {
        "source": lambda: bench.stream("eventhubs", **size).writeStream.format("noop"),
        "to-lake": lambda: pipeline(bench, "to-lake", size, {"compact": False}, {"path": str(bench.folder / "lake")}),
        "json": lambda: bench.stream("eventhubs", **of_json).writeStream.format("noop"),
        "windowed-aggregates": lambda: pipeline(
            bench, "windowed-aggregates", {**size, "eventHub": _JSON_HUB}, _WINDOWS, {"eventHub": _RESULT_HUB}
        ),
    }
    for make in cases.values():  # the JVM compiles what it runs: these are not counted
        bench.rate_of(make())
    found = in_turns("pipelines", bench.rounds, cases, lambda make: bench.rate_of(make()))
    rates = {name: [one.rows_per_s for one in each] for name, each in found.items()}
    cpu = {name: [one.cpu_us for one in each] for name, each in found.items()}
    return [
        Figure("to-lake, Parquet, nine columns", tuple(rates["to-lake"]), "rows/s"),
        Figure("  to-lake / the same source into noop", ratios(rates["to-lake"], rates["source"]), "x"),
        Figure("  the same, processor time", ratios(cpu["to-lake"], cpu["source"]), "x"),
        Figure("windowed-aggregates, JSON", tuple(rates["windowed-aggregates"]), "rows/s"),
        Figure("  windows / the same source into noop", ratios(rates["windowed-aggregates"], rates["json"]), "x"),
        Figure("  the same, processor time", ratios(cpu["windowed-aggregates"], cpu["json"]), "x"),
    ]


def prepare(bench: Bench) -> None:
    """The hub of JSON, filled by Spark, and the one that results go to."""
    for hub in (_JSON_HUB, _RESULT_HUB):
        create_hub(bench.options["connectionString"], hub)
    rows = bench.spark.range(0, bench.events * bench.batches, 1, 2).selectExpr("id", _KEY)
    options = {**bench.options, "eventHub": _JSON_HUB}
    rows.selectExpr(_BODY, "partitionKey").write.format("eventhubs").options(**options).mode("append").save()


def pipeline(
    bench: Bench, name: str, source: dict[str, str], parameters: dict[str, Any], sink: dict[str, str]
) -> DataStreamWriter:
    """A pipeline's own stream, over all that its hub has, with a checkpoint of its own."""
    raw = {
        "pipeline": name,
        "checkpoint": str(bench.folder / f"checkpoint-of-{name}-{next(_numbers)}"),
        "source": {**bench.options, **source},
        "parameters": parameters,
        "sink": sink,
    }
    described = describe(raw, "benchmark")
    return load_program(described.program)(Job(bench.spark, described))
