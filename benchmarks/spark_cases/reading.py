"""Rows a second out of a live hub into no sink: ours, out of memory, two columns, and the official client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from goals.figure import Figure, ratios
from spark_cases.events import PARTITIONS, create_hub, fill_hub
from spark_cases.sources import OfficialDataSource, RawArrowDataSource, save_batches
from spark_cases.stream_runs import Bench, in_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TWO = "body,sequenceNumber"
_SAVED_ROWS = 50_000
# The official client is an order slower, so it gets fewer rows; but enough, in one task for each core, that the second
# or so which it takes to start and to stop counts little.
_FEW_OF = 2 / 5
_FEW_BATCHES = 2
_FEW_PARTITIONS = 2
_FEW_HUB = "bench-few"


def reading(bench: Bench) -> list[Figure]:
    cases = prepared(bench)
    for name in ("raw", "ours"):  # the JVM compiles what it runs: these are not counted
        bench.rate(cases[name]())
    found = in_turns("reading", bench.rounds, cases, lambda make: bench.rate(make()))
    rates = {name: [one.rows_per_s for one in each] for name, each in found.items()}
    cpu = {name: [one.cpu_us for one in each] for name, each in found.items()}
    return [
        Figure("read, nine columns, live hub", tuple(rates["ours"]), "rows/s", 500_000, 1_000_000),
        Figure("  processor time a row, server included", tuple(cpu["ours"]), "us"),
        Figure("  the same rows out of memory", tuple(rates["raw"]), "rows/s"),
        Figure("  processor time a row", tuple(cpu["raw"]), "us"),
        Figure("  ours / out of memory", ratios(rates["ours"], rates["raw"]), "x", 0.7, 0.95),
        Figure("  azure-eventhub, tuples", tuple(rates["official"]), "rows/s"),
        Figure("  ours / azure-eventhub", ratios(rates["ours"], rates["official"]), "x", 10, 20),
        Figure("  azure-eventhub / ours, processor time", ratios(cpu["official"], cpu["ours"]), "x"),
        Figure(f"read, columns={_TWO}", tuple(rates["two"]), "rows/s"),
        Figure("  ours / out of memory", ratios(rates["two"], rates["raw two"]), "x"),
        Figure("  two columns / nine", ratios(rates["two"], rates["ours"]), "x"),
    ]


def prepared(bench: Bench) -> dict[str, Callable[[], DataFrame]]:
    """What is read, in the order of a round. Makes the files and the smaller hub that they need."""
    bench.spark.dataSource.register(RawArrowDataSource)
    bench.spark.dataSource.register(OfficialDataSource)
    rows = min(_SAVED_ROWS, bench.events * bench.batches // PARTITIONS // 10_000 * 10_000)
    raw_file, raw_two = str(bench.folder / "all.arrow"), str(bench.folder / "two.arrow")
    save_batches(bench.options, rows, raw_file)
    save_batches({**bench.options, "columns": _TWO}, rows, raw_two)
    few = round(bench.events * _FEW_OF)
    create_hub(bench.options["connectionString"], _FEW_HUB, partitions=_FEW_PARTITIONS)
    fill_hub(bench.options["connectionString"], _FEW_HUB, _FEW_BATCHES * few, partitions=_FEW_PARTITIONS)
    size = {"maxEventsPerTrigger": str(bench.events)}
    small = {"eventHub": _FEW_HUB, "maxEventsPerTrigger": str(few)}
    return {
        "raw": lambda: bench.stream("raw-arrow", rawFile=raw_file, **size),
        "ours": lambda: bench.stream("eventhubs", **size),
        "official": lambda: bench.stream("official-client", **small),
        "two": lambda: bench.stream("eventhubs", columns=_TWO, **size),
        "raw two": lambda: bench.stream("raw-arrow", rawFile=raw_two, columns=_TWO, **size),
    }
