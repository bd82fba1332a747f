"""One Spark session, one live hub, and queries whose micro-batches are timed by Spark itself."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from spark_cases.processor_time import processor_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

C = TypeVar("C")
T = TypeVar("T")

_LIMIT_S = 300.0
_numbers = itertools.count()


def in_turns(what: str, rounds: int, cases: Mapping[str, C], measure: Callable[[C], T]) -> dict[str, list[T]]:
    """What measure says of each case, round by round: a shared machine changes, and a round compares like with like."""
    found: dict[str, list[T]] = {name: [] for name in cases}
    for number in range(rounds):
        print(f"{what}: round {number + 1} of {rounds}", flush=True)
        for name, case in cases.items():
            found[name].append(measure(case))
    return found


@dataclass(frozen=True, slots=True)
class Rate:
    """rows a second, from the second batch on; processor time of everything together, microseconds a row."""

    rows_per_s: float
    cpu_us: float


@dataclass(frozen=True, slots=True)
class Bench:
    """What every section gets. options: of the filled hub; events: rows of a large micro-batch, of which the hub has
    `batches`; folder: for checkpoints and files, gone at the end.
    """

    spark: SparkSession
    options: dict[str, str]
    events: int
    batches: int
    rounds: int
    folder: Path

    def stream(self, name: str, **options: str) -> DataFrame:
        """The hub from its first event on, read by the format of that name."""
        chosen = {**self.options, "startingPosition": "earliest", **options}
        return self.spark.readStream.format(name).options(**chosen).load()

    def rate(self, rows: DataFrame) -> Rate:
        """Of a query over all there is, into no sink; RuntimeError as of rate_of."""
        return self.rate_of(rows.writeStream.format("noop"))

    def rate_of(self, writer: DataStreamWriter) -> Rate:
        """Of a query over all there is; RuntimeError when it does not end, or has one batch only."""
        used = processor_seconds()
        with self._query(writer, {"availableNow": True}) as query:
            if not query.awaitTermination(int(_LIMIT_S)):
                raise RuntimeError(f"a query did not end within {_LIMIT_S:.0f} s: {query.status}")
            timed = [one for one in query.recentProgress if one["numInputRows"]]
        if len(timed) < 2:
            raise RuntimeError("a query had one batch only, and the first is not counted")
        used = processor_seconds() - used
        counted = sum(one["numInputRows"] for one in timed[1:])
        return Rate(counted / sum(map(_ms, timed[1:])) * 1000, used / (counted + timed[0]["numInputRows"]) * 1_000_000)

    def batch_ms(self, rows: DataFrame, count: int) -> float:
        """The median time of a micro-batch of a query that runs on, over count of them behind the first five."""
        with self._query(rows.writeStream.format("noop"), {"processingTime": "0 seconds"}) as query:
            until_s = time.monotonic() + _LIMIT_S
            while (last := query.lastProgress) is None or last["batchId"] < count + 5:
                if query.exception() is not None or time.monotonic() > until_s:
                    raise RuntimeError(f"a query stopped behind batch {last and last['batchId']}: {query.exception()}")
                time.sleep(0.5)  # asking has the JVM make JSON, which is not what is timed
            timed = [one for one in query.recentProgress if one["numInputRows"]]
        return median(map(_ms, timed[5:]))

    @contextmanager
    def _query(self, writer: DataStreamWriter, trigger: dict[str, Any]) -> Iterator[Any]:
        checkpoint = self.folder / f"checkpoint-{next(_numbers)}"
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
        try:
            yield query
        finally:
            query.stop()


def _ms(progress: Any) -> float:
    return float(progress["durationMs"]["triggerExecution"])


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hubweir-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
