"""An event hub on Spark: what reading, writing and Capture cost, against goals and what else could do it.

    ./run bench spark [--only read,batch,write,pipelines,capture,captured] [--events N] [--rounds N]

read      rows/s of 200 B events out of a live hub, beside the same rows out of memory and by azure-eventhub's consumer
batch     milliseconds of a micro-batch of 1,000 rows, beside Spark's own rate source
write     rows/s into a live hub, each stored at least once, and exactly once
capture   events/s that a broker captures while it stores
captured  rows/s of eventhubs-capture
pipelines rows/s of to-lake and of windowed aggregates, beside the same source into no sink

local[2], a server beside it in a process of its own, a hub of four partitions. What is compared takes turns, round by
round, because a shared machine changes from minute to minute; a ratio is of two values of one round. Rows/s are those
of a query's second micro-batch and all that follow. About six minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from goals.figure import Figure
from hubweir import kernels
from hubweir.spark import session
from hubweir.testing.server_process import ServerProcess
from spark_cases.captured import capture_in_broker, captured_reading
from spark_cases.events import create_hub, fill_hub, wait_captured
from spark_cases.pipelines import pipelines
from spark_cases.reading import reading
from spark_cases.small_batches import small_batches
from spark_cases.stream_runs import Bench, temporary_folder
from spark_cases.writing import writing

SECTIONS = {
    "read": reading, "batch": small_batches, "write": writing, "captured": captured_reading, "pipelines": pipelines,
}  # fmt: skip
NAMES = ("capture", *SECTIONS)
HUB = "bench"
# The first is for the JVM and the workers to get ready, the others count.
BATCHES = 4


def main() -> int:
    options = parse()
    figures: list[Figure] = []
    begun = time.perf_counter()
    if "capture" in options.only:  # first: a JVM would take its memory and a part of its time
        figures += told(capture_in_broker(options.rounds))
    sections = [SECTIONS[name] for name in SECTIONS if name in options.only]
    if sections:
        with live(options) as bench:
            for section in sections:
                figures += told(section(bench))
    show(figures, options, time.perf_counter() - begun)
    return 0


def told(figures: list[Figure]) -> list[Figure]:
    """Show medians at once: who stops a long run keeps what was measured."""
    for figure in figures:
        name, _, middle, _, aim, verdict = figure.row()
        print(f"{name:48} {middle:>18} {aim} {verdict}", flush=True)
    return figures


@contextmanager
def live(options: argparse.Namespace) -> Iterator[Bench]:
    """A server with a filled hub, and a Spark session."""
    # Workers import spark_cases.sources.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    with temporary_folder() as folder:
        captured = {"HUBWEIR_CAPTURE_FOLDER": str(folder / "captured")}
        with ServerProcess(data=folder / "data", environment=captured) as server:
            text = server.connection_string()
            create_hub(text, HUB, is_captured="captured" in options.only)
            print(f"publishing {options.events * BATCHES:,} events", flush=True)
            fill_hub(text, HUB, options.events * BATCHES)
            if "captured" in options.only:
                wait_captured(text, HUB)
            spark = session(master="local[2]", settings={"spark.ui.enabled": "false"})
            try:
                chosen = {"connectionString": text, "eventHub": HUB}
                yield Bench(spark, chosen, options.events, BATCHES, options.rounds, folder)
            finally:
                spark.stop()


def show(figures: list[Figure], options: argparse.Namespace, seconds: float) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table("what", "least", "median", "most", "goal (moonshot)", "")
    for column in table.columns[1:5]:
        column.justify = "right"
    for figure in figures:
        table.add_row(*figure.row())
    console.print(table)
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    console.print(
        f"kernels: {kernels.which()}; {os.cpu_count()} cores, load {load} (this run's own is in it); "
        f"{options.rounds} rounds, {options.events:,} events a micro-batch; {seconds:.0f} s"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./run bench spark", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(NAMES), help=f"sections, of {','.join(NAMES)} (default all)")
    parser.add_argument("--events", type=int, default=500_000, help="events a large micro-batch (default 500000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each section (default 3)")
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = [name for name in options.only if name not in NAMES]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(NAMES)}")
    if options.events < 20_000 or options.rounds < 1:
        parser.error("--events is at least 20000, --rounds at least 1")
    return options


if __name__ == "__main__":
    sys.exit(main())
