"""One Spark session, one live hub, and queries whose micro-batches are timed by Spark itself."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LIMIT_S = 300.0
_numbers = itertools.count()


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

    def rate(self, rows: DataFrame, *, sink: str = "noop", **options: str) -> float:
        """Rows a second of a query over all there is, from the second batch on; RuntimeError when it failed."""
        with self._query(rows, sink, {"availableNow": True}, options) as query:
            if not query.awaitTermination(int(_LIMIT_S)):
                raise RuntimeError(f"a query did not end within {_LIMIT_S:.0f} s: {query.status}")
            timed = [one for one in query.recentProgress if one["numInputRows"]][1:]
        if not timed:
            raise RuntimeError("a query had one batch only, and the first is not counted")
        return sum(one["numInputRows"] for one in timed) / sum(map(_ms, timed)) * 1000

    def batch_ms(self, rows: DataFrame, count: int) -> float:
        """The median time of a micro-batch of a query that runs on, over count of them behind the first five."""
        with self._query(rows, "noop", {"processingTime": "0 seconds"}, {}) as query:
            until_s = time.monotonic() + _LIMIT_S
            while len(timed := [one for one in query.recentProgress if one["numInputRows"]]) < count + 5:
                if query.exception() is not None or time.monotonic() > until_s:
                    raise RuntimeError(f"a query stopped after {len(timed)} batches: {query.exception()}")
                time.sleep(0.2)
        return median(map(_ms, timed[5:]))

    @contextmanager
    def _query(self, rows: DataFrame, sink: str, trigger: dict[str, Any], options: dict[str, str]) -> Iterator[Any]:
        checkpoint = self.folder / f"checkpoint-{next(_numbers)}"
        writer = rows.writeStream.format(sink).options(**options).option("checkpointLocation", str(checkpoint))
        query = writer.trigger(**trigger).start()
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
